// RUN: alcop-opt %s --alcop-place-results --split-input-file | FileCheck %s

// What is elsewhere is copied; the function returns the rest.
// CHECK-LABEL: func.func @elsewhere(
// CHECK-SAME:    %[[X:.*]]: memref<8xf16>, %{{.*}}: memref<4xf32>) -> memref<4xf32>
// CHECK:         %[[Y:.*]] = memref.alloc() : memref<8xf16>
// CHECK-NEXT:    memref.copy %[[Y]], %[[X]]
// CHECK-NEXT:    return %{{.*}} : memref<4xf32>
func.func @elsewhere(%x: memref<8xf16> {alcop.in_place = 0 : i64}, %z: memref<4xf32>) -> (memref<8xf16>, memref<4xf32>) {
  %y = memref.alloc() : memref<8xf16>
  return %y, %z : memref<8xf16>, memref<4xf32>
}

// -----

// CHECK-LABEL: func.func @in_place(
// CHECK-NEXT:    return
// CHECK-NEXT:  }
func.func @in_place(%x: memref<8xf16> {alcop.in_place = 0 : i64}) -> memref<8xf16> {
  return %x : memref<8xf16>
}

// -----

// What an argument holds before it is written goes elsewhere first: two that are
// exchanged, and a view that is returned.
// CHECK-LABEL: func.func @exchanged(
// CHECK-SAME:    %[[X:.*]]: memref<8xf16>, %[[Y:.*]]: memref<8xf16>) -> memref<8xf16>
// CHECK:         memref.copy %[[Y]], %[[OLD_Y:.*]] :
// CHECK:         memref.copy %[[X]], %[[OLD_X:.*]] :
// CHECK:         memref.copy %[[X]], %[[KEPT:.*]] :
// CHECK-NEXT:    memref.copy %[[OLD_Y]], %[[X]] :
// CHECK-NEXT:    memref.copy %[[OLD_X]], %[[Y]] :
// CHECK-NEXT:    return %[[KEPT]]
func.func @exchanged(%x: memref<8xf16> {alcop.in_place = 0 : i64}, %y: memref<8xf16> {alcop.in_place = 1 : i64})
    -> (memref<8xf16>, memref<8xf16>, memref<8xf16>) {
  return %y, %x, %x : memref<8xf16>, memref<8xf16>, memref<8xf16>
}
