// C += A * B^T: both operands have K as their last dimension, as in `x @ w.T`.
//
// A matmul whose operands are indexed in another order is a `linalg.matmul` with
// indexing maps. There is no fill: the accumulators start from what C holds.

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

func.func @matmul_nt_f16(%A: memref<256x256xf16>, %B: memref<256x256xf16>,
                         %C: memref<256x256xf32>) {
  linalg.matmul indexing_maps = [#lhs, #rhs, #out]
                ins(%A, %B : memref<256x256xf16>, memref<256x256xf16>)
                outs(%C : memref<256x256xf32>)
  return
}
