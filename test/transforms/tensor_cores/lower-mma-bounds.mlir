// RUN: alcop-opt %s --alcop-lower-mma --canonicalize --cse --split-input-file | FileCheck %s

// What may be out of bounds is loaded and stored under conditions. Rows are multiples of
// 4 elements: a store of 4 is inside or not, as a whole.
// CHECK-LABEL: @whole_stores
// CHECK:       %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %c100
// CHECK:       scf.if %[[IN]] -> (vector<2xf32>)
// CHECK:         vector.load %{{.*}} : memref<100x40xf32>, vector<2xf32>
// CHECK:       } else {
// CHECK-NEXT:    scf.yield
// CHECK:       nvgpu.mma.sync
// CHECK:       %[[ROW:.*]] = arith.cmpi slt, %{{.*}}, %c100
// CHECK:       %[[LAST:.*]] = affine.apply {{.*}}
// CHECK:       %[[COLUMN:.*]] = arith.cmpi slt, %[[LAST]], %c40
// CHECK:       %[[BOTH:.*]] = arith.andi %[[ROW]], %[[COLUMN]]
// CHECK-NEXT:  scf.if %[[BOTH]] {
// CHECK-NEXT:    vector.store %{{.*}}, %{{.*}} : memref<100x40xf32>, vector<4xf32>
// CHECK-NEXT:  }
// CHECK-NOT:   memref.store
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @whole_stores(%C: memref<100x40xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %m = arith.muli %i, %c16 : index
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %acc = vector.transfer_read %C[%m, %m], %f {in_bounds = [false, true]} : memref<100x40xf32>, vector<16x16xf32>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%m, %m] {in_bounds = [false, false]} : vector<16x16xf32>, memref<100x40xf32>
    gpu.terminator
  }
  return
}

// -----

// Rows that may end inside of a store: element by element there.
// CHECK-LABEL: @parts_of_stores
// CHECK:       scf.if %{{.*}} {
// CHECK-NEXT:    vector.store %{{.*}}, %{{.*}} : memref<16x30xf32, strided<[32, 1]>>, vector<4xf32>
// CHECK-NEXT:  } else {
// CHECK-COUNT-4: memref.store
// CHECK:       scf.if %{{.*}} {
// CHECK-NEXT:    vector.store
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @parts_of_stores(%C: memref<16x30xf32, strided<[32, 1]>>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %n = arith.muli %i, %c16 : index
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %n] {in_bounds = [true, false]} : vector<16x16xf32>, memref<16x30xf32, strided<[32, 1]>>
    gpu.terminator
  }
  return
}
