// C + A * B on tensors, 512x512x1024, and the element-wise op max(., 0).
#rows = affine_map<(m, n) -> (m, n)>
func.func @tensor_matmul(%A: tensor<512x1024xf16>, %B: tensor<1024x512xf16>,
    %C: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.matmul
      ins(%A, %B : tensor<512x1024xf16>, tensor<1024x512xf16>)
      outs(%C : tensor<512x512xf32>) -> tensor<512x512xf32>
  %empty = tensor.empty() : tensor<512x512xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #rows],
      iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<512x512xf32>) outs(%empty : tensor<512x512xf32>) {
    ^bb0(%x: f32, %old: f32):
      %positive = arith.maximumf %x, %zero : f32
      linalg.yield %positive : f32
  } -> tensor<512x512xf32>
  return %1 : tensor<512x512xf32>
}
