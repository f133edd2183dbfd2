// RUN: alcop-opt %s --alcop-merge-launches --split-input-file | FileCheck %s

// Equal launches are one function, which has the constants and views of the host.
// Allocations overlap nothing. Another launch stays.
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<4x8xf32>
// CHECK:       %[[T:.*]] = memref.alloc()
// CHECK-NOT:   gpu.launch
// CHECK:       call @f_map(%[[A]], %[[T]]) : (memref<4x8xf32>, memref<32xf32>) -> ()
// CHECK-NOT:   gpu.launch
// CHECK:       call @f_map(%[[B]], %[[T]]) : (memref<4x8xf32>, memref<32xf32>) -> ()
// CHECK-NEXT:  gpu.launch
// CHECK:         memref.load
// CHECK:       return
// CHECK:       func.func private @f_map(
// CHECK-SAME:    %[[P:.*]]: memref<4x8xf32>, %[[Q:.*]]: memref<32xf32> {llvm.noalias})
// CHECK-SAME:    attributes {alcop.merged}
// CHECK:         %[[V:.*]] = memref.collapse_shape %[[P]]
// CHECK:         gpu.launch
// CHECK:           %[[E:.*]] = memref.load %[[V]]
// CHECK:           memref.store %[[E]], %[[Q]]
// CHECK:         } {alcop.kernel = "map"}
// CHECK-NEXT:    return
func.func @f(%A: memref<4x8xf32>, %B: memref<4x8xf32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t = memref.alloc() : memref<32xf32>
  %a = memref.collapse_shape %A [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %v = memref.load %a[%tx] : memref<32xf32>
    memref.store %v, %t[%tx] : memref<32xf32>
    gpu.terminator
  } {alcop.kernel = "map"}
  %b = memref.collapse_shape %B [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %v = memref.load %b[%tx] : memref<32xf32>
    memref.store %v, %t[%tx] : memref<32xf32>
    gpu.terminator
  } {alcop.kernel = "map"}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %v = memref.load %t[%tx] : memref<32xf32>
    memref.store %v, %b[%tx] : memref<32xf32>
    gpu.terminator
  } {alcop.kernel = "map"}
  return
}

// -----

// In two functions, and in a branch; sizes are computed of the arguments. What is
// promised of an argument is part of what is equal.
// CHECK-LABEL: func.func @g(
// CHECK:       scf.if
// CHECK-NEXT:    call @g_kernel(%{{.*}}) : (memref<?xf32>) -> ()
// CHECK:       func.func private @g_kernel(%[[P:.*]]: memref<?xf32>)
// CHECK:         %[[N:.*]] = memref.dim %[[P]]
// CHECK:         gpu.launch blocks({{.*}}) in (%{{.*}} = %[[N]],
// CHECK-LABEL: func.func @h(
// CHECK:       call @g_kernel(%{{.*}}) : (memref<?xf32>) -> ()
// CHECK-LABEL: func.func @aligned(
// CHECK:       gpu.launch
// CHECK-LABEL: func.func @rows(
// CHECK:       gpu.launch
func.func @g(%A: memref<?xf32>, %some: i1) {
  scf.if %some {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %A, %c0 : memref<?xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %v = memref.load %A[%bx] : memref<?xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %A[%bx] : memref<?xf32>
      gpu.terminator
    } {alcop.kernel = "kernel"}
  }
  return
}
func.func @h(%A: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %A[%bx] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %A[%bx] : memref<?xf32>
    gpu.terminator
  } {alcop.kernel = "kernel"}
  return
}
func.func @aligned(%A: memref<?xf32> {alcop.alignment = 4}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %A[%bx] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %A[%bx] : memref<?xf32>
    gpu.terminator
  } {alcop.kernel = "kernel"}
  return
}
func.func @rows(%A: memref<?xf32> {alcop.row_alignment = 16}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %A[%bx] : memref<?xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %A[%bx] : memref<?xf32>
    gpu.terminator
  } {alcop.kernel = "kernel"}
  return
}

// -----

// One buffer twice is not two, and numbers of the host are arguments. A launch that can
// be no kernel is left where it is.
// CHECK-LABEL: func.func @same(
// CHECK:       gpu.launch
// CHECK:       call @same_kernel(%{{.*}}, %{{.*}}) : (memref<8xf32>, f32) -> ()
// CHECK:       call @same_kernel(%{{.*}}, %{{.*}}) : (memref<8xf32>, f32) -> ()
// CHECK:       gpu.launch async
// CHECK:       gpu.launch async
func.func @same(%A: memref<8xf32>, %B: memref<8xf32>, %x: f32, %y: f32) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %A[%tx] : memref<8xf32>
    %w = arith.addf %v, %x : f32
    memref.store %w, %B[%tx] : memref<8xf32>
    gpu.terminator
  } {alcop.kernel = "kernel"}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %A[%tx] : memref<8xf32>
    %w = arith.addf %v, %x : f32
    memref.store %w, %A[%tx] : memref<8xf32>
    gpu.terminator
  } {alcop.kernel = "kernel"}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %B[%tx] : memref<8xf32>
    %w = arith.addf %v, %y : f32
    memref.store %w, %B[%tx] : memref<8xf32>
    gpu.terminator
  } {alcop.kernel = "kernel"}
  %t0 = gpu.launch async blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  %t1 = gpu.launch async blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}
