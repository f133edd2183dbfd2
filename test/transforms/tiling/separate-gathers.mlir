// RUN: alcop-opt %s --alcop-separate-gathers --split-input-file --mlir-print-local-scope | FileCheck %s

// The loop that indexes no row is none of the copy's.
// CHECK-LABEL: @embedding
// CHECK-SAME:  %[[T:.*]]: memref<100x64xf16>, %[[I:.*]]: memref<?xi32>, %[[W:.*]]: memref<64x32xf16>, %[[C:.*]]: memref<?x32xf32>
// CHECK:       %[[R:.*]] = memref.alloc(%{{.*}}) : memref<?x64xf16>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[I]] : {{.*}}) outs(%[[R]]
// CHECK:         %[[K:.*]] = linalg.index 1
// CHECK:         memref.load %[[T]][%{{.*}}, %[[K]]]
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], {{.*}} ins(%[[W]], %[[R]] : {{.*}}) outs(%[[C]]
// CHECK-NOT:     memref.load
// CHECK:       return
func.func @embedding(%t: memref<100x64xf16>, %i: memref<?xi32>, %w: memref<64x32xf16>, %c: memref<?x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%i, %w : memref<?xi32>, memref<64x32xf16>) outs(%c : memref<?x32xf32>) {
  ^bb0(%n: i32, %b: f16, %o: f32):
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %a = memref.load %t[%r, %k] : memref<100x64xf16>
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// -----

// Left unchanged: f32, which tensor cores round; a number of a loop that is compared as well.
// CHECK-LABEL: @of_floats
// CHECK-NOT:   memref.alloc
func.func @of_floats(%t: memref<100x64xf32>, %i: memref<40xi32>, %w: memref<64x32xf32>, %c: memref<40x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%i, %w : memref<40xi32>, memref<64x32xf32>) outs(%c : memref<40x32xf32>) {
  ^bb0(%n: i32, %b: f32, %o: f32):
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %a = memref.load %t[%r, %k] : memref<100x64xf32>
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: @numbers_twice
// CHECK-NOT:   memref.alloc
func.func @numbers_twice(%t: memref<100x64xf16>, %i: memref<40xi32>, %w: memref<64x32xf16>, %c: memref<40x32xf32>) {
  %limit = arith.constant 32 : index
  %zero = arith.constant 0.0 : f16
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%i, %w : memref<40xi32>, memref<64x32xf16>) outs(%c : memref<40x32xf32>) {
  ^bb0(%n: i32, %b: f16, %o: f32):
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %a = memref.load %t[%r, %k] : memref<100x64xf16>
    %is = arith.cmpi ult, %k, %limit : index
    %s = arith.select %is, %a, %zero : f16
    %0 = arith.extf %s : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %3 = arith.mulf %0, %1 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  }
  return
}
