// RUN: alcop-opt %s --alcop-fill-channels --split-input-file | FileCheck %s

// Three channels become four, of the filter and of the image, whose zeros are one pad.
// CHECK-LABEL: @stem(
// CHECK-SAME:  %[[W:.*]]: tensor<64x7x7x3xf16> {{.*}}, %[[X:.*]]: tensor<?x64x64x3xf16>
// CHECK:       %[[P:.*]] = tensor.pad %[[X]] low[0, 3, 3, 0] high[0, 3, 3, 1]
// CHECK:         tensor.yield %{{.*}} : f16
// CHECK:       } : tensor<?x64x64x3xf16> to tensor<?x70x70x4xf16>
// CHECK:       %[[V:.*]] = tensor.pad %[[W]] low[0, 0, 0, 0] high[0, 0, 0, 1]
// CHECK:       linalg.generic {{.*}} ins(%[[P]], %[[V]] : tensor<?x70x70x4xf16>, tensor<64x7x7x4xf16>)
#image = affine_map<(n, h, w, f, i, j, c) -> (n, h * 2 + i, w * 2 + j, c)>
#filter = affine_map<(n, h, w, f, i, j, c) -> (f, i, j, c)>
#out = affine_map<(n, h, w, f, i, j, c) -> (n, h, w, f)>
func.func @stem(%w: tensor<64x7x7x3xf16> {alcop.weight}, %x: tensor<?x64x64x3xf16>, %f: tensor<?x32x32x64xf32>) -> tensor<?x32x32x64xf32> {
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f16
  } : tensor<?x64x64x3xf16> to tensor<?x70x70x3xf16>
  %y = linalg.generic {indexing_maps = [#image, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%p, %w : tensor<?x70x70x3xf16>, tensor<64x7x7x3xf16>) outs(%f : tensor<?x32x32x64xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %c = arith.extf %a : f16 to f32
    %d = arith.extf %b : f16 to f32
    %e = arith.mulf %c, %d : f32
    %g = arith.addf %o, %e : f32
    linalg.yield %g : f32
  } -> tensor<?x32x32x64xf32>
  return %y : tensor<?x32x32x64xf32>
}

// -----

// Left unchanged: the filter is no weight; channels that are whole chunks; images of one
// dimension, whose taps are not joined; ones around the image.
// CHECK-LABEL: @unchanged(
// CHECK:       tensor.pad
// CHECK-NOT:   tensor.pad
#image = affine_map<(n, h, w, f, i, j, c) -> (n, h + i, w + j, c)>
#filter = affine_map<(n, h, w, f, i, j, c) -> (f, i, j, c)>
#out = affine_map<(n, h, w, f, i, j, c) -> (n, h, w, f)>
#row = affine_map<(n, w, f, j, c) -> (n, w + j, c)>
#taps = affine_map<(n, w, f, j, c) -> (f, j, c)>
#outs = affine_map<(n, w, f, j, c) -> (n, w, f)>
func.func @unchanged(%w: tensor<16x3x3x4xf16> {alcop.weight}, %v: tensor<16x3x3xf16> {alcop.weight}, %t: tensor<16x3x3x3xf16> {alcop.weight},
                     %u: tensor<16x3x3x3xf16>, %x: tensor<1x10x10x3xf16>, %z: tensor<1x10x10x4xf16>, %r: tensor<1x10x3xf16>, %f: tensor<1x8x8x16xf32>, %g: tensor<1x8x16xf32>, %q: tensor<1x8x8x3xf16>)
    -> (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x16xf32>, tensor<1x8x8x16xf32>) {
  %one = arith.constant 1.0 : f16
  %p = tensor.pad %q low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %one : f16
  } : tensor<1x8x8x3xf16> to tensor<1x10x10x3xf16>
  %a = linalg.generic {indexing_maps = [#image, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %u : tensor<1x10x10x3xf16>, tensor<16x3x3x3xf16>) outs(%f : tensor<1x8x8x16xf32>) {
  ^bb0(%k: f16, %l: f16, %o: f32):
    %c = arith.extf %k : f16 to f32
    %d = arith.extf %l : f16 to f32
    %e = arith.mulf %c, %d : f32
    %h = arith.addf %o, %e : f32
    linalg.yield %h : f32
  } -> tensor<1x8x8x16xf32>
  %b = linalg.generic {indexing_maps = [#image, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%z, %w : tensor<1x10x10x4xf16>, tensor<16x3x3x4xf16>) outs(%f : tensor<1x8x8x16xf32>) {
  ^bb0(%k: f16, %l: f16, %o: f32):
    %c = arith.extf %k : f16 to f32
    %d = arith.extf %l : f16 to f32
    %e = arith.mulf %c, %d : f32
    %h = arith.addf %o, %e : f32
    linalg.yield %h : f32
  } -> tensor<1x8x8x16xf32>
  %m = linalg.generic {indexing_maps = [#row, #taps, #outs], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%r, %v : tensor<1x10x3xf16>, tensor<16x3x3xf16>) outs(%g : tensor<1x8x16xf32>) {
  ^bb0(%k: f16, %l: f16, %o: f32):
    %c = arith.extf %k : f16 to f32
    %d = arith.extf %l : f16 to f32
    %e = arith.mulf %c, %d : f32
    %h = arith.addf %o, %e : f32
    linalg.yield %h : f32
  } -> tensor<1x8x16xf32>
  %n = linalg.generic {indexing_maps = [#image, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%p, %t : tensor<1x10x10x3xf16>, tensor<16x3x3x3xf16>) outs(%f : tensor<1x8x8x16xf32>) {
  ^bb0(%k: f16, %l: f16, %o: f32):
    %c = arith.extf %k : f16 to f32
    %d = arith.extf %l : f16 to f32
    %e = arith.mulf %c, %d : f32
    %h = arith.addf %o, %e : f32
    linalg.yield %h : f32
  } -> tensor<1x8x8x16xf32>
  return %a, %b, %m, %n : tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x16xf32>, tensor<1x8x8x16xf32>
}
