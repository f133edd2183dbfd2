// C += A * B on memrefs, 512x512x1024.
func.func @linalg_matmul(%A: memref<512x1024xf16>, %B: memref<1024x512xf16>,
    %C: memref<512x512xf32>) {
  linalg.matmul ins(%A, %B : memref<512x1024xf16>, memref<1024x512xf16>)
                outs(%C : memref<512x512xf32>)
  return
}
