// 8-bit integers into 32-bit accumulators, B in the layout of most weights: exact.
func.func @matmul_s8(%A: memref<128x256xi8>, %B: memref<192x256xi8>,
                     %C: memref<128x192xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%C : memref<128x192xi32>)
  linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : memref<128x256xi8>, memref<192x256xi8>)
      outs(%C : memref<128x192xi32>)
  return
}
