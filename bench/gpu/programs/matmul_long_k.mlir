// Few blocks and a large K: for schedules with split-K.
func.func @matmul_long_k(%A: memref<64x2048xf16>, %B: memref<2048x64xf16>,
                         %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<64x64xf32>)
  linalg.matmul ins(%A, %B : memref<64x2048xf16>, memref<2048x64xf16>)
      outs(%C : memref<64x64xf32>)
  return
}
