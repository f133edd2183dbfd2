// A block's second half of ResNet-18, as inference runs it: a 3x3 convolution with a border
// of zeros, NHWC, its batch normalisation folded to a bias, the residual, ReLU. It is one
// kernel: tiles of the windows are gathered from %x, and the border is never made.

#pixels = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channels = affine_map<(n, h, w, c) -> (c)>

func.func @conv(%x: tensor<1x14x14x64xf16>, %filters: tensor<3x3x64x64xf16>,
    %bias: tensor<64xf32>, %residual: tensor<1x14x14x64xf16>) -> tensor<1x14x14x64xf16> {
  %border = arith.constant 0.0 : f16
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %border : f16
  } : tensor<1x14x14x64xf16> to tensor<1x16x16x64xf16>
  %empty = tensor.empty() : tensor<1x14x14x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  %convolved = linalg.conv_2d_nhwc_hwcf {
      dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%padded, %filters : tensor<1x16x16x64xf16>, tensor<3x3x64x64xf16>)
    outs(%init : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  %out = tensor.empty() : tensor<1x14x14x64xf16>
  %result = linalg.generic {
      indexing_maps = [#pixels, #channels, #pixels, #pixels],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%convolved, %bias, %residual : tensor<1x14x14x64xf32>, tensor<64xf32>, tensor<1x14x14x64xf16>)
    outs(%out : tensor<1x14x14x64xf16>) {
  ^bb0(%a: f32, %b: f32, %r: f16, %_: f16):
    %biased = arith.addf %a, %b : f32
    %wide = arith.extf %r : f16 to f32
    %sum = arith.addf %biased, %wide : f32
    %positive = arith.maximumf %sum, %zero : f32
    %half = arith.truncf %positive : f32 to f16
    linalg.yield %half : f16
  } -> tensor<1x14x14x64xf16>
  return %result : tensor<1x14x14x64xf16>
}
