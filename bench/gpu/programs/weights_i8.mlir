// Weights kept as bytes, made f16 on their way from shared memory to the tensor cores.
func.func @weights_i8(%x: memref<64x256xf16>, %w: memref<256x128xi8>,
                      %y: memref<64x128xf32>) {
  %scale = arith.constant 3.906250e-03 : f16
  %zero = arith.constant 0.0 : f32
  %wide = memref.alloc() : memref<256x128xf16>
  linalg.generic {
      indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%w : memref<256x128xi8>) outs(%wide : memref<256x128xf16>) {
    ^bb0(%in: i8, %out: f16):
      %float = arith.sitofp %in : i8 to f16
      %scaled = arith.mulf %float, %scale : f16
      linalg.yield %scaled : f16
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<64x128xf32>)
  linalg.matmul ins(%x, %wide : memref<64x256xf16>, memref<256x128xf16>)
      outs(%y : memref<64x128xf32>)
  memref.dealloc %wide : memref<256x128xf16>
  return
}
