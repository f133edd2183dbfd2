// Rows of a table that indices name, times a matrix, as an embedding with a projection:
// one kernel, which reads the rows where the table has them. It is checked with indices
// that the table has:
//
//   alcop-run examples/embedding_f16.mlir

func.func @embedding(%table: tensor<1000x256xf16>, %indices: tensor<192x1xi64>,
                     %w: tensor<256x128xf16>) -> tensor<192x128xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.gather %table[%indices] gather_dims([0])
    : (tensor<1000x256xf16>, tensor<192x1xi64>) -> tensor<192x256xf16>
  %e = tensor.empty() : tensor<192x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<192x128xf32>) -> tensor<192x128xf32>
  %y = linalg.matmul ins(%rows, %w : tensor<192x256xf16>, tensor<256x128xf16>)
    outs(%f : tensor<192x128xf32>) -> tensor<192x128xf32>
  return %y : tensor<192x128xf32>
}
