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

// Of sizes known at run time only; how many rows there are is what is multiplied.
// CHECK-LABEL: @open_sizes
// CHECK-SAME:  %[[Y:.*]]: memref<?x?x?x48xf32, strided<[?, ?, 96, 1]>>, %[[ROW:.*]]: index, %[[COLUMN:.*]]: index
// CHECK:       arith.muli
// CHECK:       %[[ROWS:.*]] = arith.muli
// CHECK:       %[[SIZE:.*]] = memref.dim %[[Y]], %{{.*}}
// CHECK:       %[[W:.*]] = arith.remui %[[ROW]], %{{.*}}
// CHECK:       memref.store %{{.*}}, %[[Y]][%{{.*}}, %{{.*}}, %[[W]], %[[COLUMN]]]
// CHECK:       return %[[ROWS]]
func.func @open_sizes(%y: memref<?x?x?x48xf32, strided<[?, ?, 96, 1]>>, %row: index, %column: index, %v: f32) -> index {
  %C = "alcop.rows"(%y) : (memref<?x?x?x48xf32, strided<[?, ?, 96, 1]>>) -> memref<?x48xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %C, %c0 : memref<?x48xf32>
  memref.store %v, %C[%row, %column] : memref<?x48xf32>
  return %n : index
}

// -----

// Rectangles of 2x4 of images of 3x4: four rows of each image have no place.
// CHECK-LABEL: @rectangles
// CHECK-SAME:  %[[Y:.*]]: memref<24x48xf32>, %[[NUMBER:.*]]: index, %[[COLUMN:.*]]: index
// CHECK:       %[[INSIDE:.*]] = arith.remui %[[NUMBER]]
// CHECK:       %[[EXISTS:.*]] = arith.cmpi slt, %[[P:.*]], %{{.*}} : index
// CHECK:       scf.if %[[EXISTS]] {
// CHECK-NEXT:    vector.store %{{.*}}, %[[Y]][%[[ROW:.*]], %[[COLUMN]]] {alignment = 16 : i64}
// CHECK-NEXT:  }
// CHECK:       %[[E:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK-NEXT:    %[[THERE:.*]] = memref.load %[[Y]]
// CHECK-NEXT:    scf.yield %[[THERE]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    %[[NONE:.*]] = arith.constant 0.0
// CHECK-NEXT:    scf.yield %[[NONE]]
// CHECK:       return %[[E]]
func.func @rectangles(%y: memref<24x48xf32>, %number: index, %column: index, %v: vector<4xf32>) -> f32 {
  %C = "alcop.rows"(%y) {alcop.rectangles = {places = [3, 4], sides = [2, 4]}} : (memref<24x48xf32>) -> memref<32x48xf32>
  vector.store %v, %C[%number, %column] {alignment = 16 : i64} : memref<32x48xf32>, vector<4xf32>
  %e = memref.load %C[%number, %column] : memref<32x48xf32>
  return %e : f32
}

// -----

// Rectangles that cover images whole need no condition; of rows that are a view.
// CHECK-LABEL: @whole
// CHECK-NOT:   scf.if
// CHECK:       vector.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<2x4x4x48xf32
// CHECK-NOT:   alcop.rows
func.func @whole(%y: memref<2x4x4x48xf32, strided<[1536, 384, 48, 1]>>, %number: index, %column: index, %v: vector<4xf32>) {
  %rows = "alcop.rows"(%y) : (memref<2x4x4x48xf32, strided<[1536, 384, 48, 1]>>) -> memref<32x48xf32>
  %C = "alcop.rows"(%rows) {alcop.rectangles = {places = [4, 4], sides = [2, 4]}} : (memref<32x48xf32>) -> memref<32x48xf32>
  vector.store %v, %C[%number, %column] : memref<32x48xf32>, vector<4xf32>
  return
}

// -----

func.func @copied(%y: memref<7x48xf32, strided<[96, 1]>>, %z: memref<7x48xf32>) {
  %C = "alcop.rows"(%y) : (memref<7x48xf32, strided<[96, 1]>>) -> memref<7x48xf32>
  // expected-error @below {{accesses 'alcop.rows' by 'memref.copy', expected memref.load, vector.load, memref.store, vector.store}}
  memref.copy %z, %C : memref<7x48xf32> to memref<7x48xf32>
  return
}
