// RUN: alcop-opt %s --alcop-sink-loads --split-input-file --verify-diagnostics --allow-unregistered-dialect | FileCheck %s

// What is written in between, or by another block of the same kernel, is not loaded later.
// CHECK-LABEL: func.func @written_between(
// CHECK:         memref.load
// CHECK:         gpu.launch
// CHECK:         gpu.launch
// CHECK-NOT:     memref.load
func.func @written_between(%s: memref<f32>, %a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  // expected-remark @+1 {{'memref.load' is left unchanged: 'memref.store' may write the memref before the value is used}}
  %x = memref.load %s[] : memref<f32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %y = memref.load %a[%tx] : memref<4xf32>
    memref.store %y, %s[] : memref<f32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %x, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

// CHECK-LABEL: func.func @written_by_the_kernel(
// CHECK:         memref.load
// CHECK:         gpu.launch
func.func @written_by_the_kernel(%s: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-remark @+1 {{'memref.load' is left unchanged: 'memref.store' may write the memref}}
  %x = memref.load %s[%c1] : memref<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %x, %s[%bx] : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

// CHECK-LABEL: func.func @unknown(
// CHECK:         memref.load
// CHECK-NEXT:    "test.change"
func.func @unknown(%s: memref<f32>, %a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  // expected-remark @+1 {{'memref.load' is left unchanged: 'test.change' may write the memref}}
  %x = memref.load %s[] : memref<f32>
  "test.change"(%s) : (memref<f32>) -> ()
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %x, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

// What a branch writes before is written before a launch in it, too.
// CHECK-LABEL: func.func @branch(
// CHECK:         memref.load
// CHECK-NEXT:    scf.if
func.func @branch(%s: memref<f32>, %a: memref<4xf32>, %small: i1) {
  %c1 = arith.constant 1 : index
  // expected-remark @+1 {{'memref.load' is left unchanged: 'test.change' may write the memref}}
  %x = memref.load %s[] : memref<f32>
  scf.if %small {
    "test.change"(%s) : (memref<f32>) -> ()
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      memref.store %x, %a[%tx] : memref<4xf32>
      gpu.terminator
    }
  }
  return
}
