// RUN: alcop-opt %s --alcop-lower-mma --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// bf16: as f16, with the same ldmatrix.
// CHECK-LABEL: @bf16
// CHECK:       %[[A:.*]] = nvgpu.ldmatrix {{.*}} transpose = false} : {{.*}} -> vector<4x2xbf16>
// CHECK:       %[[B:.*]] = nvgpu.ldmatrix {{.*}} transpose = true} : {{.*}} -> vector<4x2xbf16>
// CHECK:       nvgpu.mma.sync(%[[A]], %{{.*}}) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>)
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @bf16(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xbf16, #ws>
    %b = memref.alloc() : memref<16x16xbf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xbf16, #ws>, vector<16x16xbf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xbf16, #ws>, vector<16x16xbf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xbf16>, vector<16x16xbf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Elements of 32 bits along k: rows of 16 bytes are four of them. Each is rounded.
// CHECK-LABEL: @tf32_along_k
// CHECK:       %[[HIGH:.*]] = arith.divui %{{.*}}, %c16
// CHECK:       %[[COL:.*]] = arith.muli %[[HIGH]], %c4
// CHECK:       %[[A:.*]] = nvgpu.ldmatrix %{{.*}}[%{{.*}}, %[[COL]]] {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x1xf32>
// CHECK:       nvgpu.ldmatrix {{.*}} transpose = false} : {{.*}} -> vector<4x1xf32>
// CHECK:       %[[E:.*]] = vector.extract %[[A]][0, 0]
// CHECK:       %[[T:.*]] = nvvm.convert.float.to.tf32 %[[E]] {rnd = #nvvm.fp_rnd_mode<rna>}
// CHECK:       %[[F:.*]] = arith.bitcast %[[T]] : i32 to f32
// CHECK-COUNT-7: nvvm.convert.float.to.tf32
// CHECK:       nvgpu.mma.sync({{.*}}) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>)
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @tf32_along_k(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x8xf32, #ws>
    %b = memref.alloc() : memref<16x8xf32, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x8xf32, #ws>, vector<16x8xf32>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x8xf32, #ws>, vector<16x8xf32>
    %ta = arith.truncf %fa : vector<16x8xf32> to vector<16x8xtf32>
    %tb = arith.truncf %fb : vector<16x8xf32> to vector<16x8xtf32>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %zero : vector<16x8xtf32>, vector<16x8xtf32> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Across k: ldmatrix cannot transpose them, so lanes load one by one, at row lane % 4 and
// column lane / 4. Of a the second is 8 columns on, of b 4 rows.
// CHECK-LABEL: @tf32_across_k
// CHECK:       %[[T:.*]] = arith.remui %{{.*}}, %c4
// CHECK:       %[[G:.*]] = arith.divui %{{.*}}, %c4
// CHECK:       memref.load %[[A:.*]][%[[T]], %[[G]]]
// CHECK:       %[[G8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[G]]]
// CHECK:       memref.load %[[A]][%[[T]], %[[G8]]]
// CHECK:       %[[T4:.*]] = affine.apply affine_map<()[s0] -> (s0 + 4)>()[%[[T]]]
// CHECK:       memref.load %[[A]][%[[T4]], %[[G]]]
// CHECK:       memref.load %[[A]][%[[T4]], %[[G8]]]
// CHECK:       memref.load %[[B:.*]][%[[T]], %[[G]]]
// CHECK:       memref.load %[[B]][%[[T4]], %[[G]]]
// CHECK:       memref.load %[[B]][%[[T]], %[[G8]]]
// CHECK:       memref.load %[[B]][%[[T4]], %[[G8]]]
// CHECK-NOT:   nvgpu.ldmatrix
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @tf32_across_k(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<8x16xf32, #ws>
    %b = memref.alloc() : memref<8x16xf32, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x16xf32, #ws>, vector<8x16xf32>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<8x16xf32, #ws>, vector<8x16xf32>
    %ta = arith.truncf %fa : vector<8x16xf32> to vector<8x16xtf32>
    %tb = arith.truncf %fb : vector<8x16xf32> to vector<8x16xtf32>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ta, %tb, %zero : vector<8x16xtf32>, vector<8x16xtf32> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// s8: rows of 16 bytes are 16 elements; sums wrap around.
// CHECK-LABEL: @s8_along_k
// CHECK:       %[[A:.*]] = nvgpu.ldmatrix {{.*}} transpose = false} : {{.*}} -> vector<4x4xi8>
// CHECK:       %[[W:.*]] = vector.bitcast %[[A]] : vector<4x4xi8> to vector<4x1xi32>
// CHECK:       %[[W0:.*]] = vector.extract %[[W]][0, 0]
// CHECK:       %[[S:.*]] = nvvm.mma.sync A[%[[W0]], {{.*}} {intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>
// CHECK-SAME:      shape = #nvvm.shape<m = 16, n = 8, k = 32>
// CHECK:       gpu.shuffle
// CHECK:       vector.store {{.*}} {alignment = 16 : i64} : memref<16x16xi32>, vector<4xi32>
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @s8_along_k(%C: memref<16x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0 : i8
  %zero = arith.constant dense<0> : vector<16x16xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xi8, #ws>
    %b = memref.alloc() : memref<16x32xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xi8, #ws>, vector<16x32xi8>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xi8, #ws>, vector<16x32xi8>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x32xi8>, vector<16x32xi8> into vector<16x16xi32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xi32>, memref<16x16xi32>
    gpu.terminator
  }
  return
}

// -----

// B across k: ldmatrix transposes pairs, and prmt parts them into even and odd columns.
// Lanes in the upper half of a quad have the two matrices swapped. Each lane then has
// four neighbours of a row of C, of two mma.sync in turn: no shuffles.
// CHECK-LABEL: @s8_b_across_k
// CHECK:       %[[SWAPPED:.*]] = arith.cmpi uge, %[[PLACE:.*]], %c2
// CHECK:       %[[EVEN:.*]] = arith.select %[[SWAPPED]], %c8292_i32, %c25632_i32
// CHECK:       %[[ODD:.*]] = arith.select %[[SWAPPED]], %c12661_i32, %c30001_i32
// CHECK:       %[[BYTES:.*]] = memref.alloc() : memref<512xi8
// CHECK:       %[[PAIRS:.*]] = memref.view %[[BYTES]][%c0][] : {{.*}} to memref<32x8xi16
// CHECK:       nvgpu.ldmatrix {{.*}} transpose = false} : {{.*}} -> vector<4x4xi8>
// CHECK:       %[[L:.*]] = nvgpu.ldmatrix %[[PAIRS]][{{.*}} transpose = true} : {{.*}} -> vector<4x2xi16>
// CHECK:       %[[W:.*]] = vector.bitcast %[[L]] : vector<4x2xi16> to vector<4x1xi32>
// CHECK:       %[[W0:.*]] = vector.extract %[[W]][0, 0]
// CHECK:       %[[W1:.*]] = vector.extract %[[W]][1, 0]
// CHECK:       nvvm.prmt <default> %[[EVEN]], %[[W0]], %[[W1]]
// CHECK:       nvvm.prmt <default> %[[ODD]], %[[W0]], %[[W1]]
// CHECK:       %[[S0:.*]] = nvvm.mma.sync
// CHECK:       %[[S00:.*]] = llvm.extractvalue %[[S0]][0]
// CHECK:       %[[S01:.*]] = llvm.extractvalue %[[S0]][1]
// CHECK:       %[[S1:.*]] = nvvm.mma.sync
// CHECK:       %[[S10:.*]] = llvm.extractvalue %[[S1]][0]
// CHECK:       %[[S11:.*]] = llvm.extractvalue %[[S1]][1]
// CHECK-NOT:   gpu.shuffle
// CHECK:       %[[COL:.*]] = arith.muli %[[PLACE]], %c4
// CHECK:       %[[ROW:.*]] = vector.from_elements %[[S00]], %[[S10]], %[[S01]], %[[S11]]
// CHECK:       vector.store %[[ROW]], %{{.*}}[%{{.*}}, %[[COL]]] {alignment = 16 : i64}
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @s8_b_across_k(%C: memref<16x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0 : i8
  %zero = arith.constant dense<0> : vector<16x16xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xi8, #ws>
    %b = memref.alloc() : memref<32x16xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xi8, #ws>, vector<16x32xi8>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xi8, #ws>, vector<32x16xi8>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x32xi8>, vector<32x16xi8> into vector<16x16xi32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xi32>, memref<16x16xi32>
    gpu.terminator
  }
  return
}

// -----

// A across k: rows 2 i and 2 i + 1 of C stand where i and i + 8 would.
// CHECK-LABEL: @s8_a_across_k
// CHECK-COUNT-4: nvvm.prmt
// CHECK:       %[[QUAD:.*]] = arith.divui %{{.*}}, %c4
// CHECK:       %[[ROW:.*]] = arith.muli %[[QUAD]], %c2
// CHECK:       gpu.shuffle
// CHECK:       vector.store {{.*}} {alignment = 16 : i64} : memref<16x16xi32>, vector<4xi32>
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @s8_a_across_k(%C: memref<16x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0 : i8
  %zero = arith.constant dense<0> : vector<16x16xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xi8, #ws>
    %b = memref.alloc() : memref<16x32xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xi8, #ws>, vector<32x16xi8>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xi8, #ws>, vector<16x32xi8>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<32x16xi8>, vector<16x32xi8> into vector<16x16xi32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xi32>, memref<16x16xi32>
    gpu.terminator
  }
  return
}

// -----

// Conversions of sums, several in a row and of any width, work on fragments. Two bytes
// are too few to trade.
// CHECK-LABEL: @converted
// CHECK:       %[[F:.*]] = arith.sitofp %{{.*}} : vector<2x2xi32> to vector<2x2xf32>
// CHECK:       %[[S:.*]] = arith.mulf %[[F]], %{{.*}} : vector<2x2xf32>
// CHECK:       %[[R:.*]] = arith.fptosi %[[S]] : vector<2x2xf32> to vector<2x2xi8>
// CHECK:       %[[ROW:.*]] = vector.extract %[[R]][0] : vector<2xi8>
// CHECK:       vector.store %[[ROW]], {{.*}} {alignment = 2 : i64}
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @converted(%C: memref<16x16xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0 : i8
  %zero = arith.constant dense<0> : vector<16x16xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xi8, #ws>
    %b = memref.alloc() : memref<16x32xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xi8, #ws>, vector<16x32xi8>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xi8, #ws>, vector<16x32xi8>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x32xi8>, vector<16x32xi8> into vector<16x16xi32>
    %half = arith.constant dense<0.5> : vector<16x16xf32>
    %f = arith.sitofp %s : vector<16x16xi32> to vector<16x16xf32>
    %h = arith.mulf %f, %half : vector<16x16xf32>
    %r = arith.fptosi %h : vector<16x16xf32> to vector<16x16xi8>
    vector.transfer_write %r, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xi8>, memref<16x16xi8>
    gpu.terminator
  }
  return
}

// -----

// Two types of eight bits: what was widened for the contraction is multiplied itself.
// CHECK-LABEL: @eight_bits
// CHECK:       %[[A:.*]] = nvgpu.ldmatrix {{.*}} -> vector<4x4xf8E4M3FN>
// CHECK:       %[[B:.*]] = nvgpu.ldmatrix {{.*}} -> vector<4x4xf8E5M2>
// CHECK-NOT:   arith.extf
// CHECK:       nvvm.mma.sync
// CHECK-SAME:  multiplicandAPtxType = #nvvm.mma_type<e4m3>, multiplicandBPtxType = #nvvm.mma_type<e5m2>
// CHECK-SAME:  k = 32
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @eight_bits(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f8E4M3FN
  %pad2 = arith.constant 0.0 : f8E5M2
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf8E4M3FN, #ws>
    %b = memref.alloc() : memref<16x32xf8E5M2, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xf8E4M3FN, #ws>, vector<16x32xf8E4M3FN>
    %fb = vector.transfer_read %b[%c0, %c0], %pad2 {in_bounds = [true, true]} : memref<16x32xf8E5M2, #ws>, vector<16x32xf8E5M2>
    %wa = arith.extf %fa : vector<16x32xf8E4M3FN> to vector<16x32xf32>
    %wb = arith.extf %fb : vector<16x32xf8E5M2> to vector<16x32xf32>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %wa, %wb, %zero : vector<16x32xf32>, vector<16x32xf32> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}
