// RUN: alcop-opt %s --alcop-raise-convolutions --split-input-file --mlir-print-local-scope | FileCheck %s

// A matrix of windows, which is never made, times the filter as a matrix.
// CHECK-LABEL: @taps
// CHECK-SAME:  %[[X:.*]]: memref<2x16x16x64xf16>, %[[W:.*]]: memref<3x3x64x48xf16>, %[[Y:.*]]: memref<2x14x14x48xf32>
// CHECK-NEXT:  %[[A:.*]] = "alcop.im2col"(%[[X]]) {alcop.window = #alcop.window<{dilations = [1, 1], groups = 1 : i64, high = [0, 0], low = [0, 0], size = [3, 3], strides = [1, 1]}>} : (memref<2x16x16x64xf16>) -> memref<392x576xf16>
// CHECK-NEXT:  %[[B:.*]] = memref.collapse_shape %[[W]] {{\[\[}}0, 1, 2], [3]] : memref<3x3x64x48xf16> into memref<576x48xf16>
// CHECK-NEXT:  %[[C:.*]] = memref.collapse_shape %[[Y]] {{\[\[}}0, 1, 2], [3]] : memref<2x14x14x48xf32> into memref<392x48xf32>
// CHECK-NEXT:  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] : {{.*}}) {
// CHECK-NEXT:  ^bb0(%[[a:.*]]: f16, %[[b:.*]]: f16, %[[c:.*]]: f32):
// CHECK-NEXT:    %[[WA:.*]] = arith.extf %[[a]]
// CHECK-NEXT:    %[[WB:.*]] = arith.extf %[[b]]
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[WA]], %[[WB]]
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[c]], %[[P]]
// CHECK-NEXT:    linalg.yield %[[S]]
// CHECK-NOT:   linalg.conv
func.func @taps(%x: memref<2x16x16x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<2x14x14x48xf32>) {
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<2x14x14x48xf32>)
  return
}

// -----

// A filter that is stored along K; what is left of a stride belongs to no window.
// CHECK-LABEL: @strided
// CHECK:       "alcop.im2col"(%{{.*}}) {alcop.window = #alcop.window<{dilations = [1, 2], groups = 1 : i64, high = [0, 0], low = [0, 0], size = [3, 3], strides = [2, 1]}>} : (memref<2x16x16x64xf16>) -> memref<168x576xf16>
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3]] : memref<48x3x3x64xf16> into memref<48x576xf16>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d2)>]
func.func @strided(%x: memref<2x16x16x64xf16>, %w: memref<48x3x3x64xf16>, %y: memref<2x7x12x48xf32>) {
  linalg.conv_2d_nhwc_fhwc {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x64xf16>, memref<48x3x3x64xf16>) outs(%y : memref<2x7x12x48xf32>)
  return
}

// -----

// Windows of one element, moved by one: a view of the image. Moved by two: one tap.
// CHECK-LABEL: @pixels
// CHECK-NEXT:  memref.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3]] : memref<2x8x8x64xf16> into memref<128x64xf16>
// CHECK:       linalg.generic
// CHECK:       "alcop.im2col"(%{{.*}}) {alcop.window = #alcop.window<{{.*}}size = [1, 1], strides = [2, 2]}>} : (memref<2x8x8x64xf16>) -> memref<32x64xf16>
func.func @pixels(%x: memref<2x8x8x64xf16>, %w: memref<1x1x64x48xf16>, %y: memref<2x8x8x48xf32>, %z: memref<2x4x4x48xf32>) {
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x8x8x64xf16>, memref<1x1x64x48xf16>) outs(%y : memref<2x8x8x48xf32>)
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : memref<2x8x8x64xf16>, memref<1x1x64x48xf16>) outs(%z : memref<2x4x4x48xf32>)
  return
}

// -----

// Of an image that is larger than the windows reach, the part that they see.
// CHECK-LABEL: @part
// CHECK:       %[[PART:.*]] = memref.subview %{{.*}}[0, 0, 0, 0] [2, 14, 16, 64] [1, 1, 1, 1]
// CHECK:       "alcop.im2col"(%[[PART]]) {{.*}} -> memref<336x576xf16>
func.func @part(%x: memref<2x20x16x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<2x12x14x48xf32>) {
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x20x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<2x12x14x48xf32>)
  return
}

// -----

// Groups are a batch.
// CHECK-LABEL: @groups
// CHECK:       %[[X:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4]]
// CHECK:       "alcop.im2col"(%[[X]]) {alcop.window = #alcop.window<{{.*}}groups = 4{{.*}}>} : (memref<2x16x16x128xf16>) -> memref<392x4x288xf16>
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3, 4]] : memref<4x16x3x3x32xf16> into memref<4x16x288xf16>
// CHECK:       memref.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3], [4]]
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d1, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>]
func.func @groups(%x: memref<2x16x16x4x32xf16>, %w: memref<4x16x3x3x32xf16>, %y: memref<2x14x14x4x16xf32>) {
  linalg.conv_2d_nhwgc_gfhwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x16x16x4x32xf16>, memref<4x16x3x3x32xf16>) outs(%y : memref<2x14x14x4x16xf32>)
  return
}

// -----

// A generic op, filter first, whose window starts at an offset, of one dimension.
// CHECK-LABEL: @maps
// CHECK:       %[[PART:.*]] = memref.subview %{{.*}}[0, 1, 0] [2, 16, 32] [1, 1, 1]
// CHECK:       %[[X:.*]] = "alcop.im2col"(%[[PART]]) {alcop.window = #alcop.window<{dilations = [2], groups = 1 : i64, high = [0], low = [0], size = [3], strides = [1]}>} : {{.*}} -> memref<24x96xf16>
// CHECK:       linalg.generic {indexing_maps = {{.*}}} ins(%[[X]], %{{.*}} : memref<24x96xf16>, memref<96x48xf16>)
// CHECK-NEXT:  ^bb0(%[[a:.*]]: f16, %[[b:.*]]: f16, %{{.*}}: f32):
// CHECK-NEXT:    arith.extf %[[b]]
// CHECK-NEXT:    arith.extf %[[a]]
func.func @maps(%x: memref<2x17x32xf16>, %w: memref<3x32x48xf16>, %y: memref<2x12x48xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, q, f, s, c) -> (s, c, f)>,
                                   affine_map<(n, q, f, s, c) -> (n, q + s * 2 + 1, c)>,
                                   affine_map<(n, q, f, s, c) -> (n, q, f)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%w, %x : memref<3x32x48xf16>, memref<2x17x32xf16>) outs(%y : memref<2x12x48xf32>) {
  ^bb0(%b: f16, %a: f16, %c: f32):
    %wide = arith.extf %b : f16 to f32
    %other = arith.extf %a : f16 to f32
    %p = arith.mulf %other, %wide : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Zeros around an image are not computed: of two buffers, that which something else
// reads stays. More before than after; beyond what the windows see.
// CHECK-LABEL: @padding
// CHECK-SAME:  %[[X:[^:]*]]: memref<1x14x14x64xf16>
// CHECK-NOT:   memref<1x17x16x64xf16>
// CHECK:       "alcop.im2col"(%[[X]]) {alcop.window = #alcop.window<{dilations = [1, 1], groups = 1 : i64, high = [0, 1], low = [2, 1], size = [3, 3], strides = [2, 1]}>} : (memref<1x14x14x64xf16>) -> memref<98x576xf16>
// CHECK:       linalg.fill ins(%{{.*}}) outs(%[[BUFFER:.*]] : memref<1x16x16x64xf16>)
// CHECK:       "alcop.im2col"(%[[X]]) {{.*}}high = [1, 1], low = [1, 1]{{.*}} -> memref<196x576xf16>
// CHECK:       memref.copy %[[BUFFER]]
func.func @padding(%x: memref<1x14x14x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<1x7x14x48xf32>, %z: memref<1x14x14x48xf32>, %v: memref<1x16x16x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<1x17x16x64xf16>
  linalg.map outs(%p : memref<1x17x16x64xf16>) (%init: f16) {
    %i = linalg.index 0 : index
    linalg.yield %zero : f16
  }
  %inner = memref.subview %p[0, 2, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x17x16x64xf16> to memref<1x14x14x64xf16, strided<[17408, 1024, 64, 1], offset: 2112>>
  memref.copy %x, %inner : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[17408, 1024, 64, 1], offset: 2112>>
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%p, %w : memref<1x17x16x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<1x7x14x48xf32>)
  memref.dealloc %p : memref<1x17x16x64xf16>
  %q = memref.alloc() : memref<1x16x16x64xf16>
  linalg.fill ins(%zero : f16) outs(%q : memref<1x16x16x64xf16>)
  %other = memref.subview %q[0, 1, 1, 0] [1, 14, 14, 64] [1, 1, 1, 1] : memref<1x16x16x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  memref.copy %x, %other : memref<1x14x14x64xf16> to memref<1x14x14x64xf16, strided<[16384, 1024, 64, 1], offset: 1088>>
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%q, %w : memref<1x16x16x64xf16>, memref<3x3x64x48xf16>) outs(%z : memref<1x14x14x48xf32>)
  memref.copy %q, %v : memref<1x16x16x64xf16> to memref<1x16x16x64xf16>
  return
}

// -----

// Sizes known at run time only: the host asserts that there are as many windows as fit.
// CHECK-LABEL: @open_sizes
// CHECK-SAME:  %[[X:[^:]*]]: memref<?x?x?x64xf16>, %{{.*}}: {{.*}}, %[[Y:[^:]*]]: memref<?x?x?x48xf32>
// CHECK:       "alcop.im2col"(%[[X]]) {alcop.window = #alcop.window<{dilations = [1, 2], groups = 1 : i64, high = [0, 1], low = [1, 1], size = [3, 3], strides = [2, 1]}>} : (memref<?x?x?x64xf16>) -> memref<?x576xf16>
// CHECK:       memref.collapse_shape %[[Y]] {{\[\[}}0, 1, 2], [3]] : memref<?x?x?x48xf32> into memref<?x48xf32>
// CHECK-COUNT-5: cf.assert
// CHECK-NOT:   cf.assert
func.func @open_sizes(%x: memref<?x?x?x64xf16>, %w: memref<3x3x64x48xf16>, %y: memref<?x?x?x48xf32>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : memref<?x?x?x64xf16>
  %h = memref.dim %x, %c1 : memref<?x?x?x64xf16>
  %v = memref.dim %x, %c2 : memref<?x?x?x64xf16>
  %hp = affine.apply affine_map<()[s0] -> (s0 + 1)>()[%h]
  %vp = arith.addi %c2, %v : index
  %p = memref.alloc(%n, %hp, %vp) : memref<?x?x?x64xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<?x?x?x64xf16>)
  %again = memref.dim %x, %c1 : memref<?x?x?x64xf16>
  %inner = memref.subview %p[0, 1, 1, 0] [%n, %again, %v, 64] [1, 1, 1, 1] : memref<?x?x?x64xf16> to memref<?x?x?x64xf16, strided<[?, ?, 64, 1], offset: ?>>
  memref.copy %x, %inner : memref<?x?x?x64xf16> to memref<?x?x?x64xf16, strided<[?, ?, 64, 1], offset: ?>>
  linalg.conv_2d_nhwc_hwcf {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%p, %w : memref<?x?x?x64xf16>, memref<3x3x64x48xf16>) outs(%y : memref<?x?x?x48xf32>)
  return
}

// -----

// Channels first: transposed copies, also of the result, and zero where that was filled.
// CHECK-LABEL: @channels_first
// CHECK-SAME:  %[[X:.*]]: memref<2x32x9x7xf16>, %[[W:.*]]: memref<48x32x3x3xf16>, %[[Y:.*]]: memref<2x48x7x5xf32>
// CHECK-NOT:   outs(%[[Y]]
// CHECK:       %[[IMAGE:.*]] = memref.alloc() : memref<2x9x7x32xf16>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], {{.*}}} ins(%[[X]] {{.*}} outs(%[[IMAGE]]
// CHECK:       %[[FILTER:.*]] = memref.alloc() : memref<48x3x3x32xf16>
// CHECK:       linalg.generic {{.*}} ins(%[[W]] {{.*}} outs(%[[FILTER]]
// CHECK:       %[[OUT:.*]] = memref.alloc() : memref<2x7x5x48xf32>
// CHECK:       linalg.fill {{.*}} outs(%[[OUT]]
// CHECK:       "alcop.im2col"(%[[IMAGE]]) {{.*}} -> memref<70x288xf16>
// CHECK:       linalg.generic
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], {{.*}}} ins(%[[OUT]] {{.*}} outs(%[[Y]]
func.func @channels_first(%x: memref<2x32x9x7xf16>, %w: memref<48x32x3x3xf16>, %y: memref<2x48x7x5xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<2x48x7x5xf32>)
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x32x9x7xf16>, memref<48x32x3x3xf16>) outs(%y : memref<2x48x7x5xf32>)
  return
}

// -----

// Of one image, the output is a matrix with a row per filter: it is not copied.
// CHECK-LABEL: @one_image
// CHECK-SAME:  %[[Y:[^:]*]]: memref<1x48x7x5xf32>
// CHECK:       %[[WINDOWS:.*]] = "alcop.im2col"
// CHECK:       %[[C:.*]] = memref.collapse_shape %[[Y]] {{\[\[}}0, 1], [2, 3]] : memref<1x48x7x5xf32> into memref<48x35xf32>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d2, d0)>]{{.*}}} ins(%[[WINDOWS]], %{{.*}}) outs(%[[C]]
func.func @one_image(%x: memref<1x9x7x32xf16>, %w: memref<48x3x3x32xf16>, %y: memref<1x48x7x5xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, p, q, f, r, s, c) -> (n, p + r, q + s, c)>,
                                   affine_map<(n, p, q, f, r, s, c) -> (f, r, s, c)>,
                                   affine_map<(n, p, q, f, r, s, c) -> (n, f, p, q)>],
                  iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : memref<1x9x7x32xf16>, memref<48x3x3x32xf16>) outs(%y : memref<1x48x7x5xf32>) {
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

// Pixels, channels first: a batch of matrices, and the filter the same for all.
// CHECK-LABEL: @pixels_channels_first
// CHECK-NOT:   memref.alloc
// CHECK-DAG:   memref.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] : memref<2x32x9x7xf16> into memref<2x32x63xf16>
// CHECK-DAG:   memref.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3]] : memref<48x32x1x1xf16> into memref<48x32xf16>
// CHECK-DAG:   memref.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] : memref<2x48x9x7xf32> into memref<2x48x63xf32>
func.func @pixels_channels_first(%x: memref<2x32x9x7xf16>, %w: memref<48x32x1x1xf16>, %y: memref<2x48x9x7xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<2x32x9x7xf16>, memref<48x32x1x1xf16>) outs(%y : memref<2x48x9x7xf32>)
  return
}

// -----

// The gradient of an image: the filter of a window that goes backwards is copied so.
// CHECK-LABEL: @backwards
// CHECK-SAME:  %{{.*}}: {{.*}}, %[[W:.*]]: memref<3x16x32xf16>
// CHECK:       %[[FILTER:.*]] = memref.alloc() : memref<16x3x32xf16>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (-d1 + 2, d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}}} ins(%[[W]] {{.*}} outs(%[[FILTER]]
// CHECK:       "alcop.im2col"
func.func @backwards(%x: memref<2x17x32xf16>, %w: memref<3x16x32xf16>, %y: memref<2x15x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, q, f, s, c) -> (n, q - s + 2, c)>,
                                   affine_map<(n, q, f, s, c) -> (s, f, c)>,
                                   affine_map<(n, q, f, s, c) -> (n, q, f)>],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : memref<2x17x32xf16>, memref<3x16x32xf16>) outs(%y : memref<2x15x16xf32>) {
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

// Few channels: the taps of a row are one run, of a padded copy whose pixels overlap.
// CHECK-LABEL: @few_channels
// CHECK-SAME:  %[[X:.*]]: memref<1x224x224x3xf16>, %[[W:.*]]: memref<7x7x3x64xf16>, %[[Y:.*]]: memref
// CHECK-NOT:   230x230
// CHECK:       %[[P:.*]] = memref.alloc() : memref<1x229x229x4xf16>
// CHECK:       linalg.fill ins(%{{.*}} : f16) outs(%[[P]] : {{.*}})
// CHECK:       %[[INNER:.*]] = memref.subview %[[P]][0, 3, 3, 0] [1, 224, 224, 3] [1, 1, 1, 1]
// CHECK:       linalg.generic {{.*}} outs(%[[INNER]] : {{.*}})
// CHECK:       %[[ROWS:.*]] = memref.reinterpret_cast %[[P]] to offset: [0], sizes: [1, 229, 112, 28], strides: [209764, 916, 8, 1]
// CHECK:       %[[F:.*]] = memref.alloc() : memref<7x7x4x64xf16>
// CHECK:       linalg.fill ins(%{{.*}} : f16) outs(%[[F]] : {{.*}})
// CHECK:       %[[PART:.*]] = memref.subview %[[F]][0, 0, 0, 0] [7, 7, 3, 64] [1, 1, 1, 1]
// CHECK:       linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%[[PART]] : {{.*}})
// CHECK:       %[[TAPS:.*]] = memref.reinterpret_cast %[[F]] to offset: [0], sizes: [7, 1, 28, 64]
// CHECK:       %[[A:.*]] = "alcop.im2col"(%[[ROWS]]) {alcop.window = #alcop.window<{dilations = [1, 1], groups = 1 : i64, high = [0, 0], low = [0, 0], size = [7, 1], strides = [2, 1]}>} : {{.*}} -> memref<12544x196xf16>
// CHECK:       %[[B:.*]] = memref.collapse_shape %[[TAPS]] {{.*}} into memref<196x64xf16>
// CHECK:       linalg.generic {{.*}} ins(%[[A]], %[[B]] : {{.*}})
// CHECK-NOT:   linalg.conv
func.func @few_channels(%x: memref<1x224x224x3xf16>, %w: memref<7x7x3x64xf16>, %y: memref<1x112x112x64xf32>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<1x230x230x3xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x230x230x3xf16>)
  %inner = memref.subview %p[0, 3, 3, 0] [1, 224, 224, 3] [1, 1, 1, 1] : memref<1x230x230x3xf16> to memref<1x224x224x3xf16, strided<[158700, 690, 3, 1], offset: 2079>>
  memref.copy %x, %inner : memref<1x224x224x3xf16> to memref<1x224x224x3xf16, strided<[158700, 690, 3, 1], offset: 2079>>
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%p, %w : memref<1x230x230x3xf16>, memref<7x7x3x64xf16>) outs(%y : memref<1x112x112x64xf32>)
  return
}

// -----

// Sizes known at run time only: distances of overlapping pixels are computed of them,
// and the host asserts that windows fill the output.
// CHECK-LABEL: @few_channels_of_unknown_images
// CHECK-SAME:  %[[X:.*]]: memref<?x?x?x3xf16>, %{{.*}}, %[[Y:.*]]: memref<?x?x?x64xf32>
// CHECK-COUNT-2: arith.addi
// CHECK:       %[[N:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK:       %[[H:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK:       %[[W:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK:       %[[HP:.*]] = arith.addi %[[H]], %{{.*}}
// CHECK:       %[[WP:.*]] = arith.addi %[[W]], %{{.*}}
// CHECK:       %[[P:.*]] = memref.alloc(%[[N]], %[[HP]], %[[WP]]) : memref<?x?x?x4xf16>
// CHECK:       memref.subview %[[P]][0, 2, 3, 0] [%[[N]], %[[H]], %[[W]], 3] [1, 1, 1, 1]
// CHECK-DAG:   %[[Q:.*]] = memref.dim %[[Y]], %{{.*}}
// CHECK-DAG:   %[[IMAGE:.*]] = arith.muli %[[HP]], %[[WP]]
// CHECK-DAG:   %[[IMAGES:.*]] = arith.muli %[[IMAGE]], %{{.*}}
// CHECK-DAG:   %[[ROW:.*]] = arith.muli %[[WP]], %{{.*}}
// CHECK:       memref.reinterpret_cast %[[P]] to offset: [0], sizes: [%[[N]], %[[HP]], %[[Q]], 28], strides: [%[[IMAGES]], %[[ROW]], 8, 1]
// CHECK:       "alcop.im2col"({{.*}}high = [0, 0], low = [0, 0], size = [7, 1], strides = [2, 1]}>} : {{.*}} -> memref<?x196xf16>
// CHECK-COUNT-7: cf.assert
func.func @few_channels_of_unknown_images(%x: memref<?x?x?x3xf16>, %w: memref<7x7x3x64xf16>, %y: memref<?x?x?x64xf32>) {
  %zero = arith.constant 0.0 : f16
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %x, %c0 : memref<?x?x?x3xf16>
  %h = memref.dim %x, %c1 : memref<?x?x?x3xf16>
  %v = memref.dim %x, %c2 : memref<?x?x?x3xf16>
  %hp = arith.addi %h, %c5 : index
  %vp = arith.addi %v, %c5 : index
  %p = memref.alloc(%n, %hp, %vp) : memref<?x?x?x3xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<?x?x?x3xf16>)
  %inner = memref.subview %p[0, 2, 3, 0] [%n, %h, %v, 3] [1, 1, 1, 1] : memref<?x?x?x3xf16> to memref<?x?x?x3xf16, strided<[?, ?, 3, 1], offset: ?>>
  memref.copy %x, %inner : memref<?x?x?x3xf16> to memref<?x?x?x3xf16, strided<[?, ?, 3, 1], offset: ?>>
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%p, %w : memref<?x?x?x3xf16>, memref<7x7x3x64xf16>) outs(%y : memref<?x?x?x64xf32>)
  return
}

// -----

// A layout that says what the shape does is kept by the views.
// CHECK-LABEL: @layout
// CHECK:       memref.expand_shape %{{.*}} : memref<16x16x64xf16, strided<[1024, 64, 1]>> into memref<1x16x16x64xf16, strided<[16384, 1024, 64, 1]>>
// CHECK:       memref.collapse_shape %{{.*}} : memref<3x3x64x48xf16, strided<[9216, 3072, 48, 1]>> into memref<576x48xf16, strided<[48, 1]>>
func.func @layout(%x: memref<16x16x64xf16, strided<[1024, 64, 1]>>, %w: memref<3x3x64x48xf16, strided<[9216, 3072, 48, 1]>>, %y: memref<14x14x48xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(p, q, f, r, s, c) -> (p + r, q + s, c)>,
                     affine_map<(p, q, f, r, s, c) -> (r, s, c, f)>,
                     affine_map<(p, q, f, r, s, c) -> (p, q, f)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %w : memref<16x16x64xf16, strided<[1024, 64, 1]>>, memref<3x3x64x48xf16, strided<[9216, 3072, 48, 1]>>) outs(%y : memref<14x14x48xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %m = arith.mulf %aw, %bw : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Two convolutions of one padded image: the copy goes with the last of them.
// CHECK-LABEL: @padded_once
// CHECK-SAME:  %[[X:.*]]: memref<4x8x32xf16>
// CHECK-NOT:   memref<4x10x32xf16>
// CHECK:       "alcop.im2col"(%[[X]])
// CHECK:       "alcop.im2col"(%[[X]])
func.func @padded_once(%x: memref<4x8x32xf16>, %w: memref<3x32x16xf16>) {
  %y = memref.alloc() : memref<4x8x16xf32>
  %z = memref.alloc() : memref<4x8x16xf32>
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<4x10x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<4x10x32xf16>)
  %s = memref.subview %p[0, 1, 0] [4, 8, 32] [1, 1, 1] : memref<4x10x32xf16> to memref<4x8x32xf16, strided<[320, 32, 1], offset: 32>>
  memref.copy %x, %s : memref<4x8x32xf16> to memref<4x8x32xf16, strided<[320, 32, 1], offset: 32>>
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%p, %w : memref<4x10x32xf16>, memref<3x32x16xf16>) outs(%y : memref<4x8x16xf32>)
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%p, %w : memref<4x10x32xf16>, memref<3x32x16xf16>) outs(%z : memref<4x8x16xf32>)
  return
}

// -----

// An output whose rows are apart, as of a phase of a transposed convolution: a matrix
// all the same, which is filled instead.
// CHECK-LABEL: @rows_apart
// CHECK-SAME:  %[[X:.*]]: memref<4x8x32xf16>, %[[W:.*]]: memref<3x32x16xf16>, %[[Y:.*]]: memref<4x6x16xf32, strided<[400, 32, 1]>>
// CHECK-NEXT:  %[[ZERO:.*]] = arith.constant
// CHECK-NEXT:  %[[C:.*]] = "alcop.rows"(%[[Y]]) : (memref<4x6x16xf32, strided<[400, 32, 1]>>) -> memref<24x16xf32>
// CHECK-NEXT:  linalg.fill ins(%[[ZERO]] : f32) outs(%[[C]] : memref<24x16xf32>)
// CHECK-NEXT:  "alcop.im2col"(%[[X]])
// CHECK:       linalg.generic {{.*}} outs(%[[C]] : memref<24x16xf32>)
// CHECK-NOT:   linalg.generic
func.func @rows_apart(%x: memref<4x8x32xf16>, %w: memref<3x32x16xf16>, %y: memref<4x6x16xf32, strided<[400, 32, 1]>>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<4x6x16xf32, strided<[400, 32, 1]>>)
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%x, %w : memref<4x8x32xf16>, memref<3x32x16xf16>) outs(%y : memref<4x6x16xf32, strided<[400, 32, 1]>>)
  return
}
