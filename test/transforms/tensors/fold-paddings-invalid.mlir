// RUN: alcop-opt %s --alcop-fold-paddings --split-input-file | FileCheck %s

// A convolution reads two tensors; it knows zeros around an image by itself.
// CHECK-LABEL: @convolution(
// CHECK:       tensor.pad
func.func @convolution(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x16xf16>) -> tensor<1x8x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %none : f16
  } : tensor<1x8x8x16xf16> to tensor<1x10x10x16xf16>
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x10x10x16xf16>, tensor<3x3x16x16xf16>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// -----

// The padded image is returned too; in the second one what is around it is computed; in
// the third a size is not known, which might be 0.
// CHECK-LABEL: @others(
// CHECK-COUNT-3: tensor.pad
func.func @others(%x: tensor<8xf32>, %z: tensor<?xf32>) -> (tensor<10xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<8xf32> to tensor<10xf32>
  %q = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    %n = arith.index_cast %i : index to i32
    %v = arith.sitofp %n : i32 to f32
    tensor.yield %v : f32
  } : tensor<8xf32> to tensor<10xf32>
  %r = tensor.pad %z low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  %w = tensor.empty() : tensor<3xf32>
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%p, %w : tensor<10xf32>, tensor<3xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %o : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%q, %w : tensor<10xf32>, tensor<3xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %o : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%r, %w : tensor<?xf32>, tensor<3xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %o : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  return %p, %a, %b, %d : tensor<10xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
