// RUN: alcop-opt %s --alcop-lower-rows --split-input-file --verify-diagnostics | FileCheck %s

// The row of a matrix becomes the indices of a pixel, by divisions.
// CHECK-LABEL: @accesses
// CHECK-SAME:  %[[Y:.*]]: memref<2x7x5x48xf32, strided<[9408, 1344, 96, 1]>>, %[[ROW:.*]]: index, %[[COLUMN:.*]]: index
// CHECK-DAG:   %[[C5:.*]] = arith.constant 5
// CHECK-DAG:   %[[W:.*]] = arith.remui %[[ROW]], %[[C5]]
// CHECK:       %[[REST:.*]] = arith.divui %[[ROW]]
// CHECK:       %[[H:.*]] = arith.remui %[[REST]]
// CHECK:       %[[N:.*]] = arith.divui %[[REST]]
// CHECK:       vector.store %{{.*}}, %[[Y]][%[[N]], %[[H]], %[[W]], %[[COLUMN]]] {alignment = 16 : i64}
// CHECK:       memref.load %[[Y]]
// CHECK-NOT:   alcop.rows
func.func @accesses(%y: memref<2x7x5x48xf32, strided<[9408, 1344, 96, 1]>>, %row: index, %column: index, %v: vector<4xf32>) -> f32 {
  %C = "alcop.rows"(%y) : (memref<2x7x5x48xf32, strided<[9408, 1344, 96, 1]>>) -> memref<70x48xf32>
  vector.store %v, %C[%row, %column] {alignment = 16 : i64} : memref<70x48xf32>, vector<4xf32>
  %e = memref.load %C[%row, %column] : memref<70x48xf32>
  return %e : f32
}

// -----

func.func @copied(%y: memref<7x48xf32, strided<[96, 1]>>, %z: memref<7x48xf32>) {
  %C = "alcop.rows"(%y) : (memref<7x48xf32, strided<[96, 1]>>) -> memref<7x48xf32>
  // expected-error @below {{accesses 'alcop.rows' by 'memref.copy', expected memref.load, vector.load, memref.store, vector.store}}
  memref.copy %z, %C : memref<7x48xf32> to memref<7x48xf32>
  return
}
