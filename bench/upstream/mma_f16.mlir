// 16x8x16, the same with f16 accumulators.
func.func @mma_f16(%A: memref<16x16xf16>, %B: memref<16x8xf16>, %C: memref<16x8xf16>) {
  linalg.matmul ins(%A, %B : memref<16x16xf16>, memref<16x8xf16>)
                outs(%C : memref<16x8xf16>)
  return
}
