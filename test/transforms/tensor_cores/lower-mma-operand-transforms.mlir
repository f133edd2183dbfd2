// RUN: alcop-opt %s --alcop-lower-mma --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Operands that are computed from what shared memory holds: the ops work on fragments,
// and each lane loads what it needs of elements that ldmatrix does not fit.

// f32 that become f16, along k: a lane's word of two f16 is two neighbours in memory,
// columns 2 * (lane % 4) and the next of row lane / 4. Of a, the row 8 below follows, then
// 8 columns on; of b the columns come first.
// CHECK-LABEL: @wider_along_k
// CHECK:       %[[T:.*]] = arith.remui %{{.*}}, %c4
// CHECK:       %[[COL:.*]] = arith.muli %[[T]], %c2
// CHECK:       %[[ROW:.*]] = arith.divui %{{.*}}, %c4
// CHECK:       vector.load %[[A:.*]][%[[ROW]], %[[COL]]] {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:       %[[ROW8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[ROW]]]
// CHECK:       vector.load %[[A]][%[[ROW8]], %[[COL]]]
// CHECK:       %[[COL8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[COL]]]
// CHECK:       vector.load %[[A]][%[[ROW]], %[[COL8]]]
// CHECK:       vector.load %[[A]][%[[ROW8]], %[[COL8]]]
// CHECK:       %[[FA:.*]] = vector.from_elements {{.*}} : vector<4x2xf32>
// CHECK:       vector.load %[[B:.*]][%[[ROW]], %[[COL]]]
// CHECK:       vector.load %[[B]][%[[ROW]], %[[COL8]]]
// CHECK:       vector.load %[[B]][%[[ROW8]], %[[COL]]]
// CHECK:       vector.load %[[B]][%[[ROW8]], %[[COL8]]]
// CHECK:       %[[HA:.*]] = arith.truncf %[[FA]] : vector<4x2xf32> to vector<4x2xf16>
// CHECK:       nvgpu.mma.sync(%[[HA]], {{.*}}) {mmaShape = [16, 8, 16]}
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @wider_along_k(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f32
  %pad_b = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf32, #ws>
    %b = memref.alloc() : memref<16x16xf32, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf32, #ws>, vector<16x16xf32>
    %fb = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x16xf32, #ws>, vector<16x16xf32>
    %ha = arith.truncf %fa : vector<16x16xf32> to vector<16x16xf16>
    %hb = arith.truncf %fb : vector<16x16xf32> to vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ha, %hb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Across k: two loads of one element for each word.
// CHECK-LABEL: @wider_across_k
// CHECK:       %[[T:.*]] = arith.remui %{{.*}}, %c4
// CHECK:       %[[K:.*]] = arith.muli %[[T]], %c2
// CHECK:       %[[M:.*]] = arith.divui %{{.*}}, %c4
// CHECK:       memref.load %[[A:.*]][%[[K]], %[[M]]]
// CHECK:       %[[K1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 1)>()[%[[K]]]
// CHECK:       memref.load %[[A]][%[[K1]], %[[M]]]
// CHECK:       %[[M8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[M]]]
// CHECK:       memref.load %[[A]][%[[K]], %[[M8]]]
// CHECK:       memref.load %[[A]][%[[K1]], %[[M8]]]
// CHECK:       %[[K8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[K]]]
// CHECK:       memref.load %[[A]][%[[K8]], %[[M]]]
// CHECK:       vector.from_elements {{.*}} : vector<4x2xf32>
// CHECK:       nvgpu.ldmatrix {{.*}} transpose = true} : {{.*}} -> vector<4x2xf16>
// CHECK:       nvgpu.mma.sync
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @wider_across_k(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f32
  %pad_b = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf32, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf32, #ws>, vector<16x16xf32>
    %fb = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %ha = arith.truncf %fa : vector<16x16xf32> to vector<16x16xf16>
    %hb = arith.addf %fb, %fb : vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ha, %hb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Bytes that become f16: two neighbours by one load of 16 bits, spread out by prmt; then
// by their bits, 0x6480 flipped, and one subtraction of 1152 for both.
// CHECK-LABEL: @narrower_along_k
// CHECK:       nvgpu.ldmatrix {{.*}} -> vector<4x2xf16>
// CHECK:       %[[P:.*]] = memref.load %{{.*}} : memref<16x8xi16, #gpu.address_space<workgroup>>
// CHECK:       %[[W:.*]] = arith.extui %[[P]] : i16 to i32
// CHECK:       nvvm.prmt <default> %c16704_i32, %[[W]], %c0_i32
// CHECK-COUNT-3: memref.load {{.*}} memref<16x8xi16
// CHECK:       %[[L:.*]] = vector.bitcast %{{.*}} : vector<4x1xi32> to vector<4x2xi16>
// CHECK:       %[[B:.*]] = arith.trunci %[[L]] : vector<4x2xi16> to vector<4x2xi8>
// CHECK:       %[[Z:.*]] = arith.extui %[[B]] : vector<4x2xi8> to vector<4x2xi16>
// CHECK:       %[[F:.*]] = arith.xori %[[Z]], %cst{{.*}} : vector<4x2xi16>
// CHECK:       %[[N:.*]] = vector.bitcast %[[F]] : vector<4x2xi16> to vector<4x2xf16>
// CHECK:       %[[H:.*]] = arith.subf %[[N]], %cst{{.*}} : vector<4x2xf16>
// CHECK:       %[[S:.*]] = arith.mulf %[[H]], %{{.*}} : vector<4x2xf16>
// CHECK:       %[[B0:.*]] = vector.extract_strided_slice %[[S]]
// CHECK:       nvgpu.mma.sync(%{{.*}}, %[[B0]],
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @narrower_along_k(%factor: f16, %C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f16
  %pad_b = arith.constant 0 : i8
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x16xi8, #ws>, vector<16x16xi8>
    %ha = arith.negf %fa : vector<16x16xf16>
    %scale = vector.broadcast %factor : f16 to vector<16x16xf16>
    %raw = arith.sitofp %fb : vector<16x16xi8> to vector<16x16xf16>
    %hb = arith.mulf %raw, %scale : vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ha, %hb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Across k, ldmatrix moves pairs of bytes, of two pieces at a time. First bytes are of
// even columns, second bytes of odd ones, so each lane stores four neighbours of a row.
// CHECK-LABEL: @narrower_across_k
// CHECK:       %[[H:.*]] = arith.divui %{{.*}}, %c16
// CHECK:       %[[C:.*]] = arith.muli %[[H]], %c8
// CHECK:       %[[R:.*]] = arith.remui %{{.*}}, %c16
// CHECK:       %[[M:.*]] = nvgpu.ldmatrix %{{.*}}[%[[R]], %[[C]]] {numTiles = 2 : i32, transpose = true} : memref<16x8xi16, #gpu.address_space<workgroup>> -> vector<2x2xi16>
// CHECK:       %[[W:.*]] = vector.bitcast %[[M]] : vector<2x2xi16> to vector<2x1xi32>
// CHECK:       %[[LOW:.*]] = vector.extract %[[W]][0, 0]
// CHECK:       %[[HIGH:.*]] = vector.extract %[[W]][1, 0]
// CHECK:       %[[LOW2:.*]] = arith.shrui %[[LOW]], %c8_i32
// CHECK:       %[[HIGH2:.*]] = arith.shrui %[[HIGH]], %c8_i32
// CHECK:       vector.from_elements %[[LOW]], %[[HIGH]], %[[LOW2]], %[[HIGH2]] : vector<4x1xi32>
// CHECK:       arith.trunci %{{.*}} : vector<4x2xi16> to vector<4x2xi8>
// CHECK:       nvgpu.mma.sync
// CHECK-NOT:   gpu.shuffle
// CHECK:       vector.store {{.*}} vector<4xf32>
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @narrower_across_k(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f16
  %pad_b = arith.constant 0 : i8
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x16xi8, #ws>, vector<16x16xi8>
    %ha = arith.negf %fa : vector<16x16xf16>
    %hb = arith.sitofp %fb : vector<16x16xi8> to vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ha, %hb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Elements of the same size: ldmatrix fits, whatever they become.
// CHECK-LABEL: @as_wide
// CHECK:       %[[A:.*]] = nvgpu.ldmatrix {{.*}} -> vector<4x2xbf16>
// CHECK:       %[[B:.*]] = nvgpu.ldmatrix {{.*}} -> vector<4x2xf16>
// CHECK:       %[[W:.*]] = arith.extf %[[A]] : vector<4x2xbf16> to vector<4x2xf32>
// CHECK:       %[[H:.*]] = arith.truncf %[[W]] : vector<4x2xf32> to vector<4x2xf16>
// CHECK:       %[[P:.*]] = arith.cmpf ogt, %[[B]], %[[Z:.*]] : vector<4x2xf16>
// CHECK:       arith.select %[[P]], %[[B]], %[[Z]] : vector<4x2xi1>, vector<4x2xf16>
// CHECK:       nvgpu.mma.sync(%[[H]],
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @as_wide(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : bf16
  %pad_b = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xbf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xbf16, #ws>, vector<16x16xbf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %wa = arith.extf %fa : vector<16x16xbf16> to vector<16x16xf32>
    %ha = arith.truncf %wa : vector<16x16xf32> to vector<16x16xf16>
    %nil = arith.constant dense<0.0> : vector<16x16xf16>
    %more = arith.cmpf ogt, %fb, %nil : vector<16x16xf16>
    %hb = arith.select %more, %fb, %nil : vector<16x16xi1>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ha, %hb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// One value per column of b, from anywhere: the same along k, so a lane loads those of
// its two columns. The bytes of b are across k: columns 2i and 2i + 1.
// CHECK-LABEL: @same_along_k(
// CHECK-SAME:      %[[S:.*]]: memref<16xf16>
// CHECK:       %[[G:.*]] = arith.divui %{{.*}}, %c4
// CHECK:       %[[N:.*]] = arith.muli %[[G]], %c2
// CHECK:       %[[S0:.*]] = memref.load %[[S]][%[[N]]]
// CHECK:       %[[N1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 1)>()[%[[N]]]
// CHECK:       %[[S1:.*]] = memref.load %[[S]][%[[N1]]]
// CHECK:       %[[F:.*]] = vector.from_elements %[[S0]], %[[S0]], %[[S0]], %[[S0]], %[[S1]], %[[S1]], %[[S1]], %[[S1]] : vector<4x2xf16>
// CHECK:       arith.mulf %{{.*}}, %[[F]] : vector<4x2xf16>
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @same_along_k(%s: memref<16xf16>, %C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f16
  %pad_b = arith.constant 0 : i8
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x16xi8, #ws>, vector<16x16xi8>
    %ha = arith.negf %fa : vector<16x16xf16>
    %along = vector.transfer_read %s[%c0], %pad_a {in_bounds = [true, true], permutation_map = affine_map<(n) -> (0, n)>} : memref<16xf16>, vector<16x16xf16>
    %raw = arith.sitofp %fb : vector<16x16xi8> to vector<16x16xf16>
    %hb = arith.mulf %raw, %along : vector<16x16xf16>
    %sum = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ha, %hb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %sum, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Nibbles along k: a lane's word of two f16 is one byte, of column lane % 4 and of 4 on.
// Its halves go to the halves of the word, with the sign flipped, and 1032 is subtracted.
// CHECK-LABEL: @nibbles
// CHECK:       %[[T:.*]] = arith.remui %{{.*}}, %c4
// CHECK:       memref.load %[[B:.*]][%[[G:.*]], %[[T]]] : memref<16x8xi8
// CHECK:       %[[T4:.*]] = affine.apply affine_map<()[s0] -> (s0 + 4)>()[%[[T]]]
// CHECK:       memref.load %[[B]][%[[G]], %[[T4]]]
// CHECK:       %[[G8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[G]]]
// CHECK:       memref.load %[[B]][%[[G8]], %[[T]]]
// CHECK:       memref.load %[[B]][%[[G8]], %[[T4]]]
// CHECK:       %[[BYTE:.*]] = arith.extui %{{.*}} : i8 to i32
// CHECK:       %[[UP:.*]] = arith.shli %[[BYTE]], %c12_i32
// CHECK:       %[[BOTH:.*]] = arith.ori %[[BYTE]], %[[UP]]
// CHECK:       %[[CUT:.*]] = arith.andi %[[BOTH]], %c983055_i32
// CHECK:       arith.xori %[[CUT]], %c1678271496_i32
// CHECK:       %[[BITS:.*]] = vector.bitcast %{{.*}} : vector<4x1xi32> to vector<4x2xf16>
// CHECK:       arith.subf %[[BITS]], %{{.*}} : vector<4x2xf16>
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @nibbles(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f16
  %pad_b = arith.constant 0 : i8
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x8xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %bytes = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x8xi8, #ws>, vector<16x8xi8>
    %q = vector.bitcast %bytes : vector<16x8xi8> to vector<16x16xi4>
    %fb = arith.sitofp %q : vector<16x16xi4> to vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}
