// RUN: alcop-opt %s --alcop-merge-launches --alcop-plan-pipelines='stages=3,2' --verify-diagnostics | FileCheck %s

// Of merged launches, a remark is made at each.
// CHECK-LABEL: func.func @f(
// CHECK-COUNT-2: call @f
// CHECK-NOT:     call
// CHECK:       func.func private

#ws = #gpu.address_space<workgroup>
func.func @f(%A: memref<64x512xf16>, %B: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    scf.for %k = %c0 to %c512 step %c32 {
      %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
      // expected-remark @+1 {{not pipelined (rule 2): its buffer is also written by 'memref.store'}}
      memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
      memref.store %zero, %a[%c0, %c0] : memref<64x32xf16, #ws>
    }
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    scf.for %k = %c0 to %c512 step %c32 {
      %tile = memref.subview %B[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
      // expected-remark @+1 {{not pipelined (rule 2): its buffer is also written by 'memref.store'}}
      memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
      memref.store %zero, %a[%c0, %c0] : memref<64x32xf16, #ws>
    }
    gpu.terminator
  }
  return
}
