// RUN: alcop-opt %s --alcop-lower-mma --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// A row for all rows: one load of two neighbours for each piece, which both halves of it
// share, and the pieces below.
// CHECK-LABEL: @same_for_all_rows
// CHECK:       nvgpu.mma.sync
// CHECK-COUNT-2: vector.load %{{.*}}[%{{.*}}] {alignment = 8 : i64} : memref<64xf32>, vector<2xf32>
// CHECK-NOT:   vector.load
// CHECK:       arith.addf %{{.*}} : vector<2x2xf32>
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @same_for_all_rows(%C: memref<32x16xf32>, %bias: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %acc = arith.constant dense<0.0> : vector<32x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<32x16xf16>, vector<16x16xf16> into vector<32x16xf32>
    %r = vector.transfer_read %bias[%c32], %f {in_bounds = [true, true], permutation_map = affine_map<(n) -> (0, n)>} : memref<64xf32>, vector<32x16xf32>
    %t = arith.addf %s, %r : vector<32x16xf32>
    vector.transfer_write %t, %C[%c0, %c0] {in_bounds = [true, true]} : vector<32x16xf32>, memref<32x16xf32>
    gpu.terminator
  }
  return
}

// -----

// A column for all columns, some of whose rows there are not, on half of the rows: of
// the others nothing is computed.
// CHECK-LABEL: @same_for_all_columns
// CHECK:       %[[S1:.*]] = nvgpu.mma.sync
// CHECK:       %[[S0:.*]] = nvgpu.mma.sync
// CHECK-NOT:   nvgpu.mma.sync
// CHECK-COUNT-2: memref.load %{{.*}}[%{{.*}}] : memref<30xf32>
// CHECK-NOT:   memref.load
// CHECK:       arith.mulf %[[S0]], %{{.*}} : vector<2x2xf32>
// CHECK:       arith.mulf %[[S1]], %{{.*}} : vector<2x2xf32>
// CHECK-NOT:   arith.mulf
// CHECK:       vector.store
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @same_for_all_columns(%C: memref<16x16xf32>, %scale: memref<30xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %acc = arith.constant dense<0.0> : vector<32x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<32x16xf16>, vector<16x16xf16> into vector<32x16xf32>
    %below = vector.extract_strided_slice %s {offsets = [16, 0], sizes = [16, 16], strides = [1, 1]} : vector<32x16xf32> to vector<16x16xf32>
    %r = vector.transfer_read %scale[%c16], %f {in_bounds = [false, true], permutation_map = affine_map<(m) -> (m, 0)>} : memref<30xf32>, vector<16x16xf32>
    %t = arith.mulf %below, %r : vector<16x16xf32>
    vector.transfer_write %t, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Read transposed: element by element, columns run along the first dimension.
// CHECK-LABEL: @transposed
// CHECK:       nvgpu.mma.sync
// CHECK-COUNT-8: memref.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<16x16xf32>
// CHECK-NOT:   memref.load
// CHECK-NOT:   vector.load
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @transposed(%C: memref<16x16xf32>, %R: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %acc = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    %r = vector.transfer_read %R[%c0, %c0], %f {in_bounds = [true, true], permutation_map = affine_map<(n, m) -> (m, n)>} : memref<16x16xf32>, vector<16x16xf32>
    %t = arith.addf %s, %r : vector<16x16xf32>
    vector.transfer_write %t, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}
