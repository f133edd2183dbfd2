// RUN: alcop-opt %s --alcop-lower-mma --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// The accumulators start from C in f16: two neighbouring elements by each load. A K step
// of 32 is two mma.sync after each other, all of one k16 before those of the next.
// CHECK-LABEL: @read_c
// CHECK:       %[[V:.*]] = vector.load %[[C:.*]][%[[ROW:.*]], %[[COL:.*]]] {alignment = 4 : i64} : memref<16x16xf16>, vector<2xf16>
// CHECK:       %[[V0:.*]] = vector.extract %[[V]][0]
// CHECK:       %[[V1:.*]] = vector.extract %[[V]][1]
// CHECK:       %[[ROW8:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[ROW]]]
// CHECK:       %[[W:.*]] = vector.load %[[C]][%[[ROW8]], %[[COL]]]
// CHECK:       %[[C0:.*]] = vector.from_elements %[[V0]], %[[V1]], %{{.*}}, %{{.*}} : vector<2x2xf16>
// CHECK:       %[[E0:.*]] = arith.extf %[[C0]] : vector<2x2xf16> to vector<2x2xf32>
// CHECK:       %[[A0:.*]] = nvgpu.ldmatrix
// CHECK:       %[[A1:.*]] = nvgpu.ldmatrix
// CHECK:       %[[B0:.*]] = nvgpu.ldmatrix
// CHECK:       %[[B1:.*]] = nvgpu.ldmatrix
// CHECK:       %[[S0:.*]] = nvgpu.mma.sync(%[[A0]], %{{.*}}, %[[E0]])
// CHECK:       %[[S1:.*]] = nvgpu.mma.sync(%[[A0]]
// CHECK:       nvgpu.mma.sync(%[[A1]], %{{.*}}, %[[S0]])
// CHECK:       nvgpu.mma.sync(%[[A1]], %{{.*}}, %[[S1]])
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @read_c(%C: memref<16x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf16, #ws>
    %b = memref.alloc() : memref<32x16xf16, #ws>
    %c = vector.transfer_read %C[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %acc = arith.extf %c : vector<16x16xf16> to vector<16x16xf32>
    %fa = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<16x32xf16>, vector<32x16xf16> into vector<16x16xf32>
    %h = arith.truncf %s : vector<16x16xf32> to vector<16x16xf16>
    vector.transfer_write %h, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<16x16xf16>
    gpu.terminator
  }
  return
}

// -----

// Rows of 72 bytes are aligned to 8: each lane stores the pairs that it holds.
// CHECK-LABEL: @rows_aligned_to_8_bytes
// CHECK-NOT:   gpu.shuffle
// CHECK-COUNT-4: vector.store %{{.*}} {alignment = 8 : i64} : memref<16x18xf32>, vector<2xf32>
// CHECK-NOT:   vector.store
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @rows_aligned_to_8_bytes(%C: memref<16x18xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x18xf32>
    gpu.terminator
  }
  return
}

// -----

// Rows of 68 bytes are not: element after element.
// CHECK-LABEL: @rows_aligned_to_4_bytes
// CHECK-NOT:   vector.store
// CHECK-COUNT-8: memref.store
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @rows_aligned_to_4_bytes(%C: memref<16x17xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x17xf32>
    gpu.terminator
  }
  return
}

// -----

// A uniform vector is made where it is used; slots of a buffer are seen through the cast.
// CHECK-LABEL: @uniform_and_cast
// CHECK:       %[[SLOT:.*]] = memref.subview %{{.*}}[1, 0, 0]
// CHECK:       nvgpu.ldmatrix %[[SLOT]]
// CHECK:       %[[ALPHA:.*]] = vector.broadcast %arg1 : f32 to vector<2x2xf32>
// CHECK:       arith.mulf %{{.*}}, %[[ALPHA]] : vector<2x2xf32>
// CHECK:       arith.mulf %{{.*}}, %[[ALPHA]] : vector<2x2xf32>
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @uniform_and_cast(%C: memref<16x16xf32>, %alpha: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %slots = memref.alloc() : memref<3x16x16xf16, #ws>
    %one = memref.subview %slots[1, 0, 0] [1, 16, 16] [1, 1, 1] : memref<3x16x16xf16, #ws> to memref<16x16xf16, strided<[16, 1], offset: 256>, #ws>
    %a = memref.cast %one : memref<16x16xf16, strided<[16, 1], offset: 256>, #ws> to memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>, vector<16x16xf16>
    %p = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    %v = vector.broadcast %alpha : f32 to vector<16x16xf32>
    %s = arith.mulf %p, %v : vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Without a contraction a vector is nobody's fragments, and on the host there are no
// lanes.
// CHECK-LABEL: @left_alone
// CHECK:       vector.contract
// CHECK:       gpu.launch
// CHECK:       vector.transfer_read {{.*}} vector<16x16xf32>
// CHECK:       vector.transfer_write {{.*}} vector<16x16xf32>
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @left_alone(%C: memref<16x16xf32>, %D: memref<16x16xf32>, %f: vector<16x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %p = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %f, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
  vector.transfer_write %p, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %s = vector.transfer_read %D[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf32>, vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}
