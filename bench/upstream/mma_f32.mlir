// 16x8x16, a warp's mma.sync with f32 accumulators.
func.func @mma_f32(%A: memref<16x16xf16>, %B: memref<16x8xf16>, %C: memref<16x8xf32>) {
  linalg.matmul ins(%A, %B : memref<16x16xf16>, memref<16x8xf16>)
                outs(%C : memref<16x8xf32>)
  return
}
