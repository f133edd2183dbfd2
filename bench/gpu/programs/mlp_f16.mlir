// Two layers: the bias and the rectifier are fused into the epilogue of the first
// contraction, the residual into that of the second.
func.func @mlp_f16(%x: tensor<96x128xf16>, %w1: tensor<128x256xf16>,
                   %b1: tensor<256xf16>, %w2: tensor<256x128xf16>) -> tensor<96x128xf16> {
  %zero = arith.constant 0.0 : f32
  %none1 = tensor.empty() : tensor<96x256xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%none1 : tensor<96x256xf32>) -> tensor<96x256xf32>
  %sum1 = linalg.matmul ins(%x, %w1 : tensor<96x128xf16>, tensor<128x256xf16>)
      outs(%init1 : tensor<96x256xf32>) -> tensor<96x256xf32>
  %none2 = tensor.empty() : tensor<96x256xf16>
  %hidden = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                       affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%sum1, %b1 : tensor<96x256xf32>, tensor<256xf16>)
      outs(%none2 : tensor<96x256xf16>) {
    ^bb0(%sum: f32, %bias: f16, %out: f16):
      %wide = arith.extf %bias : f16 to f32
      %shifted = arith.addf %sum, %wide : f32
      %kept = arith.maximumf %shifted, %zero : f32
      %rounded = arith.truncf %kept : f32 to f16
      linalg.yield %rounded : f16
  } -> tensor<96x256xf16>
  %none3 = tensor.empty() : tensor<96x128xf32>
  %init3 = linalg.fill ins(%zero : f32) outs(%none3 : tensor<96x128xf32>) -> tensor<96x128xf32>
  %sum2 = linalg.matmul ins(%hidden, %w2 : tensor<96x256xf16>, tensor<256x128xf16>)
      outs(%init3 : tensor<96x128xf32>) -> tensor<96x128xf32>
  %none4 = tensor.empty() : tensor<96x128xf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>,
                       affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%sum2, %x : tensor<96x128xf32>, tensor<96x128xf16>)
      outs(%none4 : tensor<96x128xf16>) {
    ^bb0(%sum: f32, %before: f16, %out: f16):
      %wide = arith.extf %before : f16 to f32
      %total = arith.addf %sum, %wide : f32
      %rounded = arith.truncf %total : f32 to f16
      linalg.yield %rounded : f16
  } -> tensor<96x128xf16>
  return %y : tensor<96x128xf16>
}
