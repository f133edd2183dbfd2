// RUN: alcop-opt %s --alcop-sink-loads --split-input-file --allow-unregistered-dialect | FileCheck %s

// A number that kernels use is loaded in each of them; an index that is loaded, too.
// CHECK-LABEL: func.func @numbers(
// CHECK-SAME:    %[[S:.*]]: memref<8xf32>, %[[I:.*]]: memref<index>, %[[A:.*]]: memref<4xf32>)
// CHECK-NOT:     memref.load
// CHECK:         gpu.launch
// CHECK-NEXT:      %[[AT:.*]] = memref.load %[[I]][]
// CHECK-NEXT:      %[[X:.*]] = memref.load %[[S]][%[[AT]]]
// CHECK-NEXT:      memref.store %[[X]], %[[A]]
// CHECK:         gpu.launch
// CHECK-NEXT:      %[[AT:.*]] = memref.load %[[I]][]
// CHECK-NEXT:      %[[X:.*]] = memref.load %[[S]][%[[AT]]]
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        memref.store %[[X]], %[[A]]
func.func @numbers(%s: memref<8xf32>, %i: memref<index>, %a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %at = memref.load %i[] : memref<index>
  %x = memref.load %s[%at] : memref<8xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %x, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    scf.if %true {
      memref.store %x, %a[%tx] : memref<4xf32>
    }
    gpu.terminator
  }
  return
}

// -----

// A load that no kernel uses is somebody else's business.
// CHECK-LABEL: func.func @on_the_host(
// CHECK:         memref.load
// CHECK-NEXT:    "test.use"
func.func @on_the_host(%s: memref<f32>) {
  %x = memref.load %s[] : memref<f32>
  "test.use"(%x) : (f32) -> ()
  return
}

// -----

// Kernels in branches of the host load it too, and in a branch the number is loaded there.
// CHECK-LABEL: func.func @branches(
// CHECK-SAME:    %[[S:.*]]: memref<f32>, %[[A:.*]]: memref<4xf32>
// CHECK-NOT:     memref.load
// CHECK:         scf.if
// CHECK:           gpu.launch
// CHECK-NEXT:        %[[X:.*]] = memref.load %[[S]][]
// CHECK-NEXT:        memref.store %[[X]], %[[A]]
// CHECK:         } else {
// CHECK-NOT:       memref.load
// CHECK:           gpu.launch
// CHECK-NEXT:        %[[Y:.*]] = memref.load %[[S]][]
// CHECK-NEXT:        memref.store %[[Y]], %[[A]]
func.func @branches(%s: memref<f32>, %a: memref<4xf32>, %small: i1) {
  %c1 = arith.constant 1 : index
  %x = memref.load %s[] : memref<f32>
  scf.if %small {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      memref.store %x, %a[%tx] : memref<4xf32>
      gpu.terminator
    }
  } else {
    %y = memref.load %s[] : memref<f32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      memref.store %y, %a[%tx] : memref<4xf32>
      gpu.terminator
    }
  }
  return
}
