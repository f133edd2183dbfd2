// RUN: alcop-opt %s --alcop-propagate-layouts --canonicalize --cse --split-input-file | FileCheck %s

// From convolution to convolution: padding, an op on each element, the sum of two
// images. Transposes of the argument and of filters, no other: the last convolution
// writes what is returned.
// CHECK-DAG:   #[[ALL:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG:   #[[LAST:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG:   #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d5, d2 + d6, d4)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d5, d6, d4)>
// CHECK-DAG:   #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
// CHECK-LABEL: @block(
// CHECK-SAME:  %[[X:.*]]: tensor<2x16x8x8xf32>, %[[W:.*]]: tensor<16x16x3x3xf32>, %[[B:.*]]: tensor<16xf32>)
// CHECK-DAG:   %[[XT:.*]] = linalg.transpose ins(%[[X]] : {{.*}} outs(%{{.*}} : tensor<2x8x8x16xf32>) permutation = [0, 2, 3, 1]
// CHECK-DAG:   %[[WT:.*]] = linalg.transpose ins(%[[W]] : {{.*}} outs(%{{.*}} : tensor<16x3x3x16xf32>) permutation = [0, 2, 3, 1]
// CHECK:       %[[P:.*]] = tensor.pad %[[XT]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK:       %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<2x8x8x16xf32>)
// CHECK:       %[[Y:.*]] = linalg.generic {indexing_maps = [#[[IMAGE]], #[[ROWS]], #[[OUT]]], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%[[P]], %[[WT]] : {{.*}} outs(%[[F]] :
// CHECK:       %[[Z:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[LAST]], #[[ALL]], #[[ALL]]], {{.*}} ins(%[[Y]], %[[B]], %[[XT]] :
// CHECK:       %[[Q:.*]] = tensor.pad %[[Z]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK:       %[[V:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[WT]] : {{.*}} outs(%{{.*}} : tensor<2x16x8x8xf32>)
// CHECK-NOT:   linalg.transpose
// CHECK:       return %[[V]]
#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
func.func @block(%x: tensor<2x16x8x8xf32>, %w: tensor<16x16x3x3xf32>, %b: tensor<16xf32>) -> tensor<2x16x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x16x8x8xf32> to tensor<2x16x10x10xf32>
  %e = tensor.empty() : tensor<2x16x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x16x8x8xf32>) -> tensor<2x16x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<2x16x10x10xf32>, tensor<16x16x3x3xf32>)
    outs(%f : tensor<2x16x8x8xf32>) -> tensor<2x16x8x8xf32>
  %z = linalg.generic {indexing_maps = [#all, #channel, #all, #all],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y, %b, %x : tensor<2x16x8x8xf32>, tensor<16xf32>, tensor<2x16x8x8xf32>)
    outs(%e : tensor<2x16x8x8xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    %t = arith.addf %s, %d : f32
    linalg.yield %t : f32
  } -> tensor<2x16x8x8xf32>
  %q = tensor.pad %z low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<2x16x8x8xf32> to tensor<2x16x10x10xf32>
  %v = linalg.conv_2d_nchw_fchw ins(%q, %w : tensor<2x16x10x10xf32>, tensor<16x16x3x3xf32>)
    outs(%f : tensor<2x16x8x8xf32>) -> tensor<2x16x8x8xf32>
  return %v : tensor<2x16x8x8xf32>
}

// -----

// An image of few channels is read as it lies, as its copy changes the order; so is a
// filter of one tap. A pooling, and the mean of each channel, follow.
// CHECK-DAG:   #[[CHANNELS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
// CHECK-DAG:   #[[PIXELS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
// CHECK-LABEL: @stem(
// CHECK-SAME:  %[[X:.*]]: tensor<1x3x15x15xf32>, %[[W:.*]]: tensor<16x3x1x1xf32>)
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[W]] : {{.*}} outs(%{{.*}} : tensor<1x8x8x16xf32>)
// CHECK:       %[[P:.*]] = linalg.generic {{.*}} ins(%[[Y]], %{{.*}} outs(%{{.*}} : tensor<1x4x4x16xf32>)
// CHECK:       linalg.generic {indexing_maps = [#[[PIXELS]], #[[CHANNELS]]], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[P]] : {{.*}} outs(%{{.*}} : tensor<1x16xf32>)
// CHECK-NOT:   linalg.transpose
func.func @stem(%x: tensor<1x3x15x15xf32>, %w: tensor<16x3x1x1xf32>) -> tensor<1x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x3x15x15xf32>, tensor<16x3x1x1xf32>)
    outs(%f : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %g = arith.constant dense<0.0> : tensor<1x16x4x4xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %p = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>}
    ins(%y, %window : tensor<1x16x8x8xf32>, tensor<2x2xf32>)
    outs(%g : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
  %h = arith.constant dense<0.0> : tensor<1x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>,
    affine_map<(n, c, h, w) -> (n, c)>],
    iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%p : tensor<1x16x4x4xf32>) outs(%h : tensor<1x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<1x16xf32>
  return %r : tensor<1x16xf32>
}

// -----

// One reader of several needs the old order: it alone gets a transpose. The number of
// a channel, which a body asks for, is that of another loop then.
// CHECK-LABEL: @readers(
// CHECK:       %[[Y:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x4x4x16xf32>)
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[Y]] : tensor<?x4x4x16xf32>) outs(%{{.*}} : tensor<?x16x4x4xf32>) permutation = [0, 3, 1, 2]
// CHECK:       %[[C:.*]] = tensor.collapse_shape %[[T]]
// CHECK:       %[[Z:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<?x4x4x16xf32>)
// CHECK:       linalg.index 3 : index
// CHECK:       %[[R:.*]] = linalg.transpose ins(%[[Z]] :
// CHECK:       return %[[C]], %[[R]]
#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
func.func @readers(%x: tensor<?x16x7x7xf32>, %w: tensor<16x16x1x1xf32>, %f: tensor<?x16x4x4xf32>,
                   %e: tensor<?x16x4x4xf32>) -> (tensor<?x256xf32>, tensor<?x16x4x4xf32>) {
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<?x16x7x7xf32>, tensor<16x16x1x1xf32>)
    outs(%f : tensor<?x16x4x4xf32>) -> tensor<?x16x4x4xf32>
  %c = tensor.collapse_shape %y [[0], [1, 2, 3]] : tensor<?x16x4x4xf32> into tensor<?x256xf32>
  %z = linalg.generic {indexing_maps = [#all, #all],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y : tensor<?x16x4x4xf32>) outs(%e : tensor<?x16x4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %s = arith.addf %a, %k : f32
    linalg.yield %s : f32
  } -> tensor<?x16x4x4xf32>
  return %c, %z : tensor<?x256xf32>, tensor<?x16x4x4xf32>
}

// -----

// What the program transposes by itself, to channels last, is as it lies.
// CHECK-LABEL: @permuted(
// CHECK-COUNT-1: linalg.transpose
// CHECK:       %[[Y:.*]] = linalg.generic
// CHECK-NOT:   linalg.transpose
// CHECK:       return %[[Y]]
func.func @permuted(%x: tensor<2x16x7x7xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<2x4x4x16xf32> {
  %f = arith.constant dense<0.0> : tensor<2x16x4x4xf32>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<2x16x7x7xf32>, tensor<16x16x1x1xf32>)
    outs(%f : tensor<2x16x4x4xf32>) -> tensor<2x16x4x4xf32>
  %e = tensor.empty() : tensor<2x4x4x16xf32>
  %t = linalg.transpose ins(%y : tensor<2x16x4x4xf32>) outs(%e : tensor<2x4x4x16xf32>)
    permutation = [0, 2, 3, 1]
  return %t : tensor<2x4x4x16xf32>
}

// -----

// Images one behind the other, padded by sizes that are known at run time, of groups.
// CHECK-LABEL: @joined(
// CHECK-SAME:  %[[U:arg[0-9]+]]: index, %[[V:arg[0-9]+]]: index
// CHECK:       %[[C:.*]] = tensor.concat dim(4) %{{.*}}, %{{.*}} : (tensor<1x4x6x2x16xf32>, tensor<1x4x6x2x16xf32>) -> tensor<1x4x6x2x32xf32>
// CHECK:       %[[P:.*]] = tensor.pad %[[C]] low[0, 1, %[[U]], 0, 0] high[0, %[[V]], 0, 0, 0]
// CHECK:       linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<1x?x?x2x32xf32>, tensor<2x8x3x3x32xf32>)
// CHECK-SAME:  outs(%{{.*}} : tensor<1x2x8x?x?xf32>)
func.func @joined(%x: tensor<1x2x16x4x6xf32>, %w: tensor<2x8x32x3x3xf32>, %u: index, %v: index,
                  %o: tensor<1x2x8x?x?xf32>) -> tensor<1x2x8x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %c = tensor.concat dim(2) %x, %x
    : (tensor<1x2x16x4x6xf32>, tensor<1x2x16x4x6xf32>) -> tensor<1x2x32x4x6xf32>
  %p = tensor.pad %c low[0, 0, 0, 1, %u] high[0, 0, 0, %v, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index, %m: index):
    tensor.yield %zero : f32
  } : tensor<1x2x32x4x6xf32> to tensor<1x2x32x?x?xf32>
  %y = linalg.conv_2d_ngchw_gfchw ins(%p, %w : tensor<1x2x32x?x?xf32>, tensor<2x8x32x3x3xf32>)
    outs(%o : tensor<1x2x8x?x?xf32>) -> tensor<1x2x8x?x?xf32>
  return %y : tensor<1x2x8x?x?xf32>
}

// -----

// No convolution asks for another order: channels are last, its windows are pixels, or
// there is none. What the body of a padding computes of its place keeps its order.
// CHECK-LABEL: @unchanged(
// CHECK:       linalg.conv_2d_nhwc_hwcf
// CHECK:       linalg.pooling_nchw_max
// CHECK-LABEL: @pixels(
// CHECK:       linalg.conv_2d_nchw_fchw
// CHECK-NOT:   linalg.transpose
// CHECK-LABEL: @places(
// CHECK:       tensor.pad %{{.*}} low[0, 0, 1, 1]
// CHECK:       linalg.transpose ins(%{{.*}} : tensor<1x16x10x10xf32>)
func.func @unchanged(%x: tensor<1x8x8x16xf32>, %w: tensor<3x3x16x16xf32>, %f: tensor<1x6x6x16xf32>,
                     %z: tensor<1x16x8x8xf32>, %g: tensor<1x16x7x7xf32>)
    -> (tensor<1x6x6x16xf32>, tensor<1x16x7x7xf32>) {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x8x8x16xf32>, tensor<3x3x16x16xf32>)
    outs(%f : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %p = linalg.pooling_nchw_max ins(%z, %window : tensor<1x16x8x8xf32>, tensor<2x2xf32>)
    outs(%g : tensor<1x16x7x7xf32>) -> tensor<1x16x7x7xf32>
  return %y, %p : tensor<1x6x6x16xf32>, tensor<1x16x7x7xf32>
}

func.func @pixels(%x: tensor<1x16x7x7xf32>, %w: tensor<16x16x1x1xf32>, %f: tensor<1x16x7x7xf32>)
    -> tensor<1x16x7x7xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x7x7xf32>, tensor<16x16x1x1xf32>)
    outs(%f : tensor<1x16x7x7xf32>) -> tensor<1x16x7x7xf32>
  return %y : tensor<1x16x7x7xf32>
}

func.func @places(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32> {
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    %m = arith.index_cast %k : index to i32
    %n = arith.sitofp %m : i32 to f32
    tensor.yield %n : f32
  } : tensor<1x16x8x8xf32> to tensor<1x16x10x10xf32>
  %f = arith.constant dense<0.0> : tensor<1x16x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x16x10x10xf32>, tensor<16x16x3x3xf32>)
    outs(%f : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}
