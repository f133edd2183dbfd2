// C += A * B on memrefs, as a front end may produce it; tile_and_pipeline.mlir is a
// schedule for it.

func.func @product(%A: memref<256x128xf16>, %B: memref<128x256xf16>,
                   %C: memref<256x256xf32>) {
  linalg.matmul ins(%A, %B : memref<256x128xf16>, memref<128x256xf16>)
                outs(%C : memref<256x256xf32>)
  return
}
