// The mean of each row of a matmul: a contraction, then a SIMT fallback that reduces.
func.func @rows_f32(%A: memref<96x64xf16>, %B: memref<64x80xf16>, %mean: memref<96xf32>) {
  %zero = arith.constant 0.0 : f32
  %part = arith.constant 1.250000e-02 : f32
  %C = memref.alloc() : memref<96x80xf32>
  linalg.fill ins(%zero : f32) outs(%C : memref<96x80xf32>)
  linalg.matmul ins(%A, %B : memref<96x64xf16>, memref<64x80xf16>)
      outs(%C : memref<96x80xf32>)
  linalg.fill ins(%zero : f32) outs(%mean : memref<96xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%C : memref<96x80xf32>) outs(%mean : memref<96xf32>) {
    ^bb0(%in: f32, %sum: f32):
      %share = arith.mulf %in, %part : f32
      %more = arith.addf %sum, %share : f32
      linalg.yield %more : f32
  }
  memref.dealloc %C : memref<96x80xf32>
  return
}
