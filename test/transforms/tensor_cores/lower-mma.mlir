// RUN: alcop-opt %s --alcop-lower-mma --canonicalize --cse --split-input-file | FileCheck %s

// One piece of each operand. A lane points at row lane % 16 and column 8 * (lane / 16),
// of A by the lane's own register, of B by the thread's number;
// B lies with rows along k, so ldmatrix transposes it. The lanes of a quad trade words in
// pairs and store four elements of one row each.
// CHECK-LABEL: @one_piece
// CHECK:       %[[T:.*]] = gpu.thread_id x upper_bound 32
// CHECK:       %[[LANE:.*]] = arith.remui %[[T]], %c32
// CHECK:       %[[HIGH:.*]] = arith.divui %[[LANE]], %c16
// CHECK:       %[[COL:.*]] = arith.muli %[[HIGH]], %c8
// CHECK:       %[[ROW:.*]] = arith.remui %[[LANE]], %c16
// CHECK:       %[[ALANE:.*]] = gpu.lane_id upper_bound 32
// CHECK:       %[[AHIGH:.*]] = arith.divui %[[ALANE]], %c16
// CHECK:       %[[ACOL:.*]] = arith.muli %[[AHIGH]], %c8
// CHECK:       %[[AROW:.*]] = arith.remui %[[ALANE]], %c16
// CHECK:       %[[A:.*]] = nvgpu.ldmatrix %{{.*}}[%[[AROW]], %[[ACOL]]] {numTiles = 4 : i32, transpose = false} : {{.*}} -> vector<4x2xf16>
// CHECK:       %[[B:.*]] = nvgpu.ldmatrix %{{.*}}[%[[ROW]], %[[COL]]] {numTiles = 4 : i32, transpose = true} : {{.*}} -> vector<4x2xf16>
// CHECK:       %[[B0:.*]] = vector.extract_strided_slice %[[B]] {offsets = [0, 0], sizes = [2, 2]
// CHECK:       %[[B1:.*]] = vector.extract_strided_slice %[[B]] {offsets = [2, 0], sizes = [2, 2]
// CHECK:       %[[S0:.*]] = nvgpu.mma.sync(%[[A]], %[[B0]], %[[ZERO:.*]]) {mmaShape = [16, 8, 16]}
// CHECK:       %[[S1:.*]] = nvgpu.mma.sync(%[[A]], %[[B1]], %[[ZERO]]) {mmaShape = [16, 8, 16]}
// CHECK:       %[[ODD:.*]] = arith.cmpi ne
// CHECK:       %[[W:.*]] = vector.bitcast %[[S0]] : vector<2x2xf32> to vector<2x2xi32>
// CHECK:       %[[UP:.*]] = vector.extract %[[W]][0, 0]
// CHECK:       %[[DOWN:.*]] = vector.extract %[[W]][1, 0]
// CHECK:       %[[SENT:.*]] = arith.select %[[ODD]], %[[UP]], %[[DOWN]]
// CHECK:       %[[GOT:.*]], %{{.*}} = gpu.shuffle xor %[[SENT]], %c1_i32, %c32_i32
// CHECK:       %[[OWN0:.*]] = arith.select %[[ODD]], %[[GOT]], %[[UP]]
// CHECK:       %[[OWN2:.*]] = arith.select %[[ODD]], %[[DOWN]], %[[GOT]]
// CHECK:       %[[ROW4:.*]] = vector.from_elements %[[OWN0]], %{{.*}}, %[[OWN2]], %{{.*}} : vector<4xi32>
// CHECK:       %[[OUT:.*]] = vector.bitcast %[[ROW4]] : vector<4xi32> to vector<4xf32>
// CHECK:       vector.store %[[OUT]], %{{.*}} {alignment = 16 : i64}
// CHECK:       vector.store {{.*}} : memref<16x16xf32>, vector<4xf32>
// CHECK-NOT:   vector.store
// CHECK-NOT:   vector.contract
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @one_piece(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// The other storage orders: A with rows along k is transposed, B with rows along n is
// not. Then the second 8x8 matrix is beside the first: rows lane % 8 + 8 * (lane / 16),
// columns 8 * (lane / 8 % 2).
// CHECK-LABEL: @transposed_storage
// CHECK:       %[[LANE:.*]] = gpu.lane_id upper_bound 32
// CHECK:       %[[HIGH:.*]] = arith.divui %[[LANE]], %c16
// CHECK:       %[[DOWN:.*]] = arith.muli %[[HIGH]], %c8
// CHECK:       %[[LOW:.*]] = arith.remui %[[LANE]], %c16
// CHECK:       %[[SIDE:.*]] = arith.divui %[[LOW]], %c8
// CHECK:       %[[COL:.*]] = arith.muli %[[SIDE]], %c8
// CHECK:       %[[IN8:.*]] = arith.remui %[[LANE]], %c8
// CHECK:       %[[ROW:.*]] = arith.addi %[[IN8]], %[[DOWN]]
// CHECK:       %[[ALANE:.*]] = arith.remui %{{.*}}, %c32
// CHECK:       %[[ASIDE:.*]] = arith.divui %{{.*}}, %c8
// CHECK:       %[[ACOL:.*]] = arith.muli %[[ASIDE]], %c8
// CHECK:       %[[AIN8:.*]] = arith.remui %[[ALANE]], %c8
// CHECK:       %[[AROW:.*]] = arith.addi %[[AIN8]], %{{.*}}
// CHECK:       nvgpu.ldmatrix %{{.*}}[%[[AROW]], %[[ACOL]]] {numTiles = 4 : i32, transpose = true}
// CHECK:       nvgpu.ldmatrix %{{.*}}[%[[ROW]], %[[COL]]] {numTiles = 4 : i32, transpose = false}
#ws = #gpu.address_space<workgroup>
#km = affine_map<(m, n, k) -> (k, m)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @transposed_storage(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#km, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Carried fragments and accumulators become values of each lane; two steps along k, and
// back and forth along n. Attributes stay. The f16 output goes through two trades in the quad.
// CHECK-LABEL: @carried
// CHECK:       %[[LOOP:.*]]:6 = scf.for {{.*}} iter_args(%[[A0:[a-z0-9]*]] = %{{[0-9]*}}, %[[A1:[a-z0-9]*]] = %{{[0-9]*}}, %[[S0:[a-z0-9]*]] = %[[Z:[a-z0-9_]*]], %[[S1:[a-z0-9]*]] = %[[Z]], %[[S2:[a-z0-9]*]] = %[[Z]], %[[S3:[a-z0-9]*]] = %[[Z]])
// CHECK-SAME:    -> (vector<4x2xf16>, vector<4x2xf16>, vector<2x2xf32>, vector<2x2xf32>, vector<2x2xf32>, vector<2x2xf32>)
// CHECK:         %[[B0:.*]] = vector.extract_strided_slice
// CHECK:         %[[B1:.*]] = vector.extract_strided_slice
// CHECK:         %[[N0:.*]] = nvgpu.mma.sync(%[[A0]], %[[B0]], %[[S0]])
// CHECK:         %[[N1:.*]] = nvgpu.mma.sync(%[[A0]], %[[B1]], %[[S1]])
// CHECK:         %[[N3:.*]] = nvgpu.mma.sync(%[[A1]], %[[B1]], %[[S3]])
// CHECK:         %[[N2:.*]] = nvgpu.mma.sync(%[[A1]], %[[B0]], %[[S2]])
// CHECK:         %[[NEXT:.*]]:2 = scf.if %{{.*}} -> (vector<4x2xf16>, vector<4x2xf16>) {
// CHECK:           %[[L0:.*]] = nvgpu.ldmatrix
// CHECK:           %[[L1:.*]] = nvgpu.ldmatrix
// CHECK:           scf.yield %[[L0]], %[[L1]]
// CHECK:         } else {
// CHECK:           scf.yield %[[NONE:.*]], %[[NONE]] : vector<4x2xf16>, vector<4x2xf16>
// CHECK:         scf.yield %[[NEXT]]#0, %[[NEXT]]#1, %[[N0]], %[[N1]], %[[N2]], %[[N3]]
// CHECK:       } {alcop.unroll = 3 : i64}
// CHECK:       %[[R:.*]] = arith.maximumf %[[LOOP]]#2, %[[Z]] : vector<2x2xf32>
// CHECK:       %[[H:.*]] = arith.truncf %[[R]] : vector<2x2xf32> to vector<2x2xf16>
// CHECK:       vector.bitcast %[[H]] : vector<2x2xf16> to vector<2x1xi32>
// CHECK-COUNT-2: gpu.shuffle xor %{{.*}}, %c1_i32
// CHECK-COUNT-2: gpu.shuffle xor %{{.*}}, %c2_i32
// CHECK:       vector.store {{.*}} {alignment = 16 : i64} : memref<256x256xf16>, vector<8xf16>
// CHECK:       vector.store
// CHECK-NOT:   vector.store
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @carried(%C: memref<256x256xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<32x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %first = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%fa = %first, %acc = %zero) -> (vector<32x16xf16>, vector<32x16xf32>) {
      %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
      %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<32x16xf16>, vector<16x16xf16> into vector<32x16xf32>
      %more = arith.cmpi slt, %i, %c32 : index
      %next = scf.if %more -> (vector<32x16xf16>) {
        %l = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
        scf.yield %l : vector<32x16xf16>
      } else {
        %none = arith.constant dense<0.0> : vector<32x16xf16>
        scf.yield %none : vector<32x16xf16>
      }
      scf.yield %next, %s : vector<32x16xf16>, vector<32x16xf32>
    } {alcop.unroll = 3 : i64}
    %relu = arith.maximumf %r#1, %zero : vector<32x16xf32>
    %h = arith.truncf %relu : vector<32x16xf32> to vector<32x16xf16>
    vector.transfer_write %h, %C[%c0, %c0] {in_bounds = [true, true]} : vector<32x16xf16>, memref<256x256xf16>
    gpu.terminator
  }
  return
}
