// RUN: alcop-opt %s --alcop-raise-convolutions --alcop-raise-contractions --split-input-file --verify-diagnostics

// Types that tensor cores do not multiply, as for any contraction.
func.func @types(%x: memref<2x16x16x64xf64>, %w: memref<3x3x64x48xf64>, %y: memref<2x14x14x48xf64>) {
  // expected-remark @below {{'linalg.conv_2d_nhwc_hwcf' runs as a SIMT fallback: computes in f64}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x64xf64>, memref<3x3x64x48xf64>) outs(%y : memref<2x14x14x48xf64>)
  return
}

// -----

func.func @few_channels(%x: memref<2x16x16x8xf16>, %w: memref<3x3x8x48xf16>, %y: memref<2x14x14x48xf32>) {
  // expected-remark @below {{has 8 channels, expected 16 or more}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x8xf16>, memref<3x3x8x48xf16>) outs(%y : memref<2x14x14x48xf32>)
  return
}

// -----

func.func @few_in_group(%x: memref<2x16x16x8x4xf16>, %w: memref<8x4x3x3x4xf16>, %y: memref<2x14x14x8x4xf32>) {
  // expected-remark @below {{has 4 channels in a group, expected 16 or more}}
  linalg.conv_2d_nhwgc_gfhwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x8x4xf16>, memref<8x4x3x3x4xf16>) outs(%y : memref<2x14x14x8x4xf32>)
  return
}

// -----

func.func @depthwise(%x: memref<2x16x16x64xf16>, %w: memref<3x3x64xf16>, %y: memref<2x14x14x64xf32>) {
  // expected-remark @below {{is a depthwise convolution: each channel has a filter of its own}}
  linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x64xf16>, memref<3x3x64xf16>) outs(%y : memref<2x14x14x64xf32>)
  return
}

// -----

func.func @quantised(%x: memref<2x16x16x64xi8>, %w: memref<3x3x64x48xi8>, %a: i32, %b: i32, %y: memref<2x14x14x48xi32>) {
  // expected-remark @below {{is a convolution of 4 inputs, expected an image and a filter}}
  linalg.conv_2d_nhwc_hwcf_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w, %a, %b : memref<2x16x16x64xi8>, memref<3x3x64x48xi8>, i32, i32) outs(%y : memref<2x14x14x48xi32>)
  return
}

// -----

// What is a convolution, but not one of products, is not changed either.
func.func @pooling(%x: memref<2x16x16x64xf32>, %w: memref<3x3xf32>, %y: memref<2x14x14x64xf32>) {
  // expected-remark @below {{'linalg.pooling_nhwc_max' runs as a SIMT fallback: not a contraction}}
  linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x64xf32>, memref<3x3xf32>) outs(%y : memref<2x14x14x64xf32>)
  return
}
