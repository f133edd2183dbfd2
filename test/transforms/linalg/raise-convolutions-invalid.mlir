// RUN: alcop-opt %s --alcop-raise-convolutions --alcop-raise-contractions --split-input-file --verify-diagnostics

// Types that tensor cores do not multiply, as for any contraction.
func.func @types(%x: memref<2x16x16x64xf64>, %w: memref<3x3x64x48xf64>, %y: memref<2x14x14x48xf64>) {
  // expected-remark @below {{'linalg.conv_2d_nhwc_hwcf' runs as a SIMT fallback: computes in f64}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x64xf64>, memref<3x3x64x48xf64>) outs(%y : memref<2x14x14x48xf64>)
  return
}

// -----

func.func @few_channels(%x: memref<2x16x16x8xf16>, %w: memref<3x1x8x48xf16>, %y: memref<2x14x16x48xf32>) {
  // expected-remark @below {{has 8 channels, expected 16 or more, or several taps in a row, which are neighbours}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x8xf16>, memref<3x1x8x48xf16>) outs(%y : memref<2x14x16x48xf32>)
  return
}

// -----

func.func @few_channels_of_unknown_filters(%x: memref<2x16x16x8xf16>, %w: memref<3x3x8x?xf16>, %y: memref<2x14x14x?xf32>) {
  // expected-remark @below {{has 8 channels, expected 16 or more, or a number of filters that is known}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x8xf16>, memref<3x3x8x?xf16>) outs(%y : memref<2x14x14x?xf32>)
  return
}

// -----

// Zeros are added to the channels, even where runs fill up whole steps.
func.func @few_channels_in_a_transform(%x: memref<2x16x45x3xf16>, %w: memref<3x32x3x48xf16>, %y: memref<2x14x14x48xf32>) {
  %one = arith.constant 1.0 : f16
  // expected-remark @below {{tiles are filled up with zeros, for which its operand transforms are not zero}}
  linalg.generic {
    indexing_maps = [affine_map<(n, p, q, f, r, s, c) -> (n, p + r, q + s, c)>,
                     affine_map<(n, p, q, f, r, s, c) -> (r, s, c, f)>,
                     affine_map<(n, p, q, f, r, s, c) -> (n, p, q, f)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : memref<2x16x45x3xf16>, memref<3x32x3x48xf16>) outs(%y : memref<2x14x14x48xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %a1 = arith.addf %a, %one : f16
    %b1 = arith.addf %b, %one : f16
    %aw = arith.extf %a1 : f16 to f32
    %bw = arith.extf %b1 : f16 to f32
    %m = arith.mulf %aw, %bw : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// What was copied for a contraction that is none after all is gone.
func.func @few_channels_of_f32(%x: memref<2x16x16x3xf32>, %w: memref<3x3x3x48xf32>, %y: memref<2x14x14x48xf32>) {
  // expected-remark @below {{'linalg.conv_2d_nhwc_hwcf' runs as a SIMT fallback: has f32 inputs}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x3xf32>, memref<3x3x3x48xf32>) outs(%y : memref<2x14x14x48xf32>)
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

func.func @no_channels(%x: memref<16x16xf16>, %w: memref<3x3xf16>, %y: memref<14x14xf32>) {
  // expected-remark @below {{has no channels, expected 16 or more}}
  linalg.conv_2d ins(%x, %w : memref<16x16xf16>, memref<3x3xf16>) outs(%y : memref<14x14xf32>)
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

// -----

// Padding that is computed: the convolution reads the buffer, not the image.
func.func @other_value(%x: memref<1x14x14x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<1x14x14x48xf32>) {
  %one = arith.constant 1.0 : f16
  %p = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%one : f16) outs(%p : memref<1x16x16x64xf16>)
  %inner = memref.subview %p[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.copy %x, %inner : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  // expected-remark @below {{its padding is computed: it is padded with 1.0, expected zero}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<1x14x14x48xf32>)
  return
}

// -----

// A minus zero makes minus zeros.
func.func @minus_zero(%x: memref<1x14x14x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<1x14x14x48xf32>) {
  %zero = arith.constant -0.0 : f16
  %p = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x16x16x64xf16>)
  %inner = memref.subview %p[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.copy %x, %inner : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  // expected-remark @below {{it is padded with -0.0, expected zero}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<1x14x14x48xf32>)
  return
}

// -----

// The image is written after it was copied.
func.func @written(%x: memref<1x14x14x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<1x14x14x48xf32>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x16x16x64xf16>)
  %inner = memref.subview %p[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.copy %x, %inner : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  linalg.fill ins(%zero : f16) outs(%x : memref<1x14x14x64xf16>)
  // expected-remark @below {{'linalg.fill' may write what was padded before it is read}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<1x14x14x48xf32>)
  return
}

// -----

func.func @other_user(%x: memref<1x14x14x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<1x14x14x48xf32>, %e: f16) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %p = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x16x16x64xf16>)
  %inner = memref.subview %p[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.copy %x, %inner : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.store %e, %p[%c0, %c0, %c0, %c0] : memref<1x16x16x64xf16>
  // expected-remark @below {{'memref.store' uses the padded buffer too}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<1x14x14x48xf32>)
  return
}

// -----

func.func @channels(%x: memref<1x16x16x60xf16>, %w: memref<3x3x64x48xf16>, %y: memref<1x14x14x48xf32>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x16x16x64xf16>)
  %inner = memref.subview %p[0, 0, 0, 0] [1, 16, 16, 60] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x16x16x60xf16, strided<[16384, 1024, 64, 1]>>
  memref.copy %x, %inner : memref<1x16x16x60xf16> to memref<1x16x16x60xf16, strided<[16384, 1024, 64, 1]>>
  // expected-remark @below {{more is padded than the dimensions along which the window moves}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<1x14x14x48xf32>)
  return
}

// -----

// An output that is the image: the padded copy of it was another one.
func.func @in_place(%x: memref<1x14x14x64xf16>, %w: memref<3x3x64x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x16x16x64xf16>)
  %inner = memref.subview %p[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.copy %x, %inner : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  // expected-remark @below {{reduces into a memref that is also an input, expected another output}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x16x16x64xf16>, memref<3x3x64x64xf16>) outs(%x : memref<1x14x14x64xf16>)
  return
}

// -----

func.func @channels_first(%x: memref<2x32x9x7xf16>, %w: memref<3x3x32x48xf16>, %y: memref<2x7x5x48xf32>) {
  // expected-remark @below {{transposed copies are made of its image: expected the channels last in image and output, and after the taps in the filter}}
  linalg.generic {indexing_maps = [affine_map<(n, p, q, f, r, s, c) -> (n, c, p + r, q + s)>,
                                   affine_map<(n, p, q, f, r, s, c) -> (r, s, c, f)>,
                                   affine_map<(n, p, q, f, r, s, c) -> (n, p, q, f)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : memref<2x32x9x7xf16>, memref<3x3x32x48xf16>) outs(%y : memref<2x7x5x48xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %wide = arith.extf %a : f16 to f32
    %other = arith.extf %b : f16 to f32
    %p = arith.mulf %wide, %other : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A negative dilation: MLIR looks at the first and the last iteration only.
func.func @outside(%x: memref<1x8x8x16xf16>, %w: memref<3x3x16x16xf16>, %y: memref<1x6x6x16xf32>) {
  // expected-remark @below {{accesses dimension 1 of memref<1x8x8x16xf16> at indices from -2 to 5, expected 0 to 7}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<-1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x8x8x16xf16>, memref<3x3x16x16xf16>) outs(%y : memref<1x6x6x16xf32>)
  return
}

// -----

func.func @before(%x: memref<1x?x8x16xf16>, %w: memref<3x3x16x16xf16>, %y: memref<1x?x6x16xf32>) {
  // expected-remark @below {{has windows that begin before its image}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<[-1, 1]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x?x8x16xf16>, memref<3x3x16x16xf16>) outs(%y : memref<1x?x6x16xf32>)
  return
}

// -----

// What MLIR itself refuses, with one error at the op.
func.func @no_dilation(%x: memref<1x8x8x16xf16>, %w: memref<3x3x16x16xf16>, %y: memref<1x6x6x16xf32>) {
  // expected-error @below {{unexpected loop dimension for convolution op}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<0> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x8x8x16xf16>, memref<3x3x16x16xf16>) outs(%y : memref<1x6x6x16xf32>)
  return
}

// -----

func.func @large_window(%x: memref<1x2x8x16xf16>, %w: memref<3x3x16x16xf16>, %y: memref<1x1x6x16xf32>) {
  // expected-error @below {{shape's dimension #1 to be greater than or equal to 3, but found 2}}
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x2x8x16xf16>, memref<3x3x16x16xf16>) outs(%y : memref<1x1x6x16xf32>)
  return
}

// -----

func.func @groups(%x: memref<2x8x8x24xf16>) {
  // expected-error @below {{'alcop.im2col' op expects groups that divide 24, got 5}}
  %0 = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1], dilations = [1, 1], low = [0, 0], high = [0, 0], groups = 5}>} : (memref<2x8x8x24xf16>) -> memref<72x216xf16>
  return
}
