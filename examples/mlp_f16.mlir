// Two layers of a network, as a function on tensors:
//
//     result = max(x * w1 + b1, 0) * w2 + b2
//
// Each contraction is one kernel that applies the bias, and in the first layer the
// activation, to its accumulators before it stores them. The first layer's output is an
// intermediate buffer, in a workspace that the launcher allocates for the call.

#row = affine_map<(i, j) -> (i, j)>
#bias = affine_map<(i, j) -> (j)>

func.func @mlp_f16(%x: tensor<128x256xf16>, %w1: tensor<256x512xf16>, %b1: tensor<512xf16>,
                   %w2: tensor<512x64xf16>, %b2: tensor<64xf32>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32

  // The first layer: f32 accumulators, bias, activation, rounded to f16 once.
  %e1 = tensor.empty() : tensor<128x512xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x512xf32>) -> tensor<128x512xf32>
  %p1 = linalg.matmul ins(%x, %w1 : tensor<128x256xf16>, tensor<256x512xf16>)
                      outs(%z1 : tensor<128x512xf32>) -> tensor<128x512xf32>
  %eh = tensor.empty() : tensor<128x512xf16>
  %h = linalg.generic {
    indexing_maps = [#row, #bias, #row], iterator_types = ["parallel", "parallel"]
  } ins(%p1, %b1 : tensor<128x512xf32>, tensor<512xf16>) outs(%eh : tensor<128x512xf16>) {
  ^bb0(%sum: f32, %b: f16, %old: f16):
    %wide = arith.extf %b : f16 to f32
    %biased = arith.addf %sum, %wide : f32
    %active = arith.maximumf %biased, %zero : f32
    %rounded = arith.truncf %active : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<128x512xf16>

  // The second layer.
  %e2 = tensor.empty() : tensor<128x64xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %p2 = linalg.matmul ins(%h, %w2 : tensor<128x512xf16>, tensor<512x64xf16>)
                      outs(%z2 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %er = tensor.empty() : tensor<128x64xf32>
  %result = linalg.generic {
    indexing_maps = [#row, #bias, #row], iterator_types = ["parallel", "parallel"]
  } ins(%p2, %b2 : tensor<128x64xf32>, tensor<64xf32>) outs(%er : tensor<128x64xf32>) {
  ^bb0(%sum: f32, %b: f32, %old: f32):
    %biased = arith.addf %sum, %b : f32
    linalg.yield %biased : f32
  } -> tensor<128x64xf32>
  return %result : tensor<128x64xf32>
}
