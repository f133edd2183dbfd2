// A matrix product whose output is an input too is refused: blocks would read what
// others write. Parts of one buffer that have no element in common are not.
// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-raise-contractions))' --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @in_place
// CHECK-NOT: alcop.contraction
func.func @in_place(%A: memref<32x32xf16>, %B: memref<32x32xf16>) {
  // expected-remark @+1 {{reduces into a memref that is also an input, expected another output}}
  linalg.matmul ins(%A, %B : memref<32x32xf16>, memref<32x32xf16>) outs(%A : memref<32x32xf16>)
  return
}

// CHECK-LABEL: @parts
// CHECK: alcop.contraction
func.func @parts(%A: memref<64x32xf16>, %B: memref<32x32xf16>) {
  %top = memref.subview %A[0, 0] [32, 32] [1, 1] : memref<64x32xf16> to memref<32x32xf16, strided<[32, 1]>>
  %low = memref.subview %A[32, 0] [32, 32] [1, 1] : memref<64x32xf16> to memref<32x32xf16, strided<[32, 1], offset: 1024>>
  linalg.matmul ins(%top, %B : memref<32x32xf16, strided<[32, 1]>>, memref<32x32xf16>)
                outs(%low : memref<32x32xf16, strided<[32, 1], offset: 1024>>)
  return
}

// CHECK-LABEL: @overlapping_parts
// CHECK-NOT: alcop.contraction
func.func @overlapping_parts(%A: memref<64x32xf16>, %B: memref<32x32xf16>) {
  %top = memref.subview %A[0, 0] [32, 32] [1, 1] : memref<64x32xf16> to memref<32x32xf16, strided<[32, 1]>>
  %low = memref.subview %A[31, 0] [32, 32] [1, 1] : memref<64x32xf16> to memref<32x32xf16, strided<[32, 1], offset: 992>>
  // expected-remark @+1 {{reduces into a memref that is also an input, expected another output}}
  linalg.matmul ins(%top, %B : memref<32x32xf16, strided<[32, 1]>>, memref<32x32xf16>)
                outs(%low : memref<32x32xf16, strided<[32, 1], offset: 992>>)
  return
}
