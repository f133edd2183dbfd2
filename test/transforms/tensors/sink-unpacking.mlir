// RUN: alcop-opt %s --alcop-sink-unpacking --canonicalize --split-input-file | FileCheck %s

// Codes from 0 to 15, interleaved, with a scale per group of 32: the contraction reads
// bytes, and scales with groups along their rows.
// CHECK-DAG:   #[[BYTES:.*]] = affine_map<(d0, d1, d2) -> (d1, d2 floordiv 2)>
// CHECK-DAG:   #[[GROUPS:.*]] = affine_map<(d0, d1, d2) -> (d2 floordiv 32, d1)>
// CHECK-LABEL: @groups(
// CHECK-SAME:  %[[X:.*]]: tensor<16x128xf16>, %[[P:.*]]: tensor<32x64xi8>, %[[S:.*]]: tensor<32x4xf16>
// CHECK-NOT:   tensor.concat
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[S]] : {{.*}} permutation = [1, 0]
// CHECK:       linalg.generic {indexing_maps = [{{.*}}, #[[BYTES]], #[[GROUPS]], {{.*}}]
// CHECK-SAME:  ins(%[[X]], %[[P]], %[[T]] :
// CHECK:       ^bb0(%{{.*}}: f16, %[[B:.*]]: i8, %[[SCALE:.*]]: f16, %{{.*}}: f32):
// CHECK:       %[[HALF:.*]] = arith.shrui %[[B]], %{{.*}} : i8
// CHECK:       %[[Q:.*]] = arith.trunci %[[HALF]] : i8 to i4
// CHECK:       %[[V:.*]] = arith.uitofp %[[Q]] : i4 to f16
// CHECK:       arith.mulf %[[V]], %[[SCALE]] : f16
// CHECK:       arith.addf
#id = affine_map<(i, j) -> (i, j)>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#kept = affine_map<(i, j, k) -> (i, j, 0)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @groups(%x: tensor<16x128xf16>, %p: tensor<32x64xi8>, %s: tensor<32x4xf16>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %c15 = arith.constant 15 : i8
  %c4 = arith.constant 4 : i8
  %e = tensor.empty() : tensor<32x64xi8>
  %low = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<32x64xi8>) outs(%e : tensor<32x64xi8>) {
  ^bb0(%v: i8, %o: i8):
    %r = arith.andi %v, %c15 : i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  %high = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<32x64xi8>) outs(%e : tensor<32x64xi8>) {
  ^bb0(%v: i8, %o: i8):
    %h = arith.shrsi %v, %c4 : i8
    %r = arith.andi %h, %c15 : i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  %l1 = tensor.expand_shape %low [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xi8> into tensor<32x64x1xi8>
  %h1 = tensor.expand_shape %high [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xi8> into tensor<32x64x1xi8>
  %both = tensor.concat dim(2) %l1, %h1 : (tensor<32x64x1xi8>, tensor<32x64x1xi8>) -> tensor<32x64x2xi8>
  %q = tensor.collapse_shape %both [[0], [1, 2]] : tensor<32x64x2xi8> into tensor<32x128xi8>
  %g = tensor.expand_shape %q [[0], [1, 2]] output_shape [32, 4, 32] : tensor<32x128xi8> into tensor<32x4x32xi8>
  %s1 = tensor.expand_shape %s [[0], [1, 2]] output_shape [32, 4, 1] : tensor<32x4xf16> into tensor<32x4x1xf16>
  %ef = tensor.empty() : tensor<32x4x32xf16>
  %f = linalg.generic {indexing_maps = [#id3, #kept, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%g, %s1 : tensor<32x4x32xi8>, tensor<32x4x1xf16>) outs(%ef : tensor<32x4x32xf16>) {
  ^bb0(%v: i8, %t: f16, %o: f16):
    %u = arith.sitofp %v : i8 to f16
    %r = arith.mulf %u, %t : f16
    linalg.yield %r : f16
  } -> tensor<32x4x32xf16>
  %w = tensor.collapse_shape %f [[0], [1, 2]] : tensor<32x4x32xf16> into tensor<32x128xf16>
  %y = linalg.matmul indexing_maps = [#a, #b, #c]
    ins(%x, %w : tensor<16x128xf16>, tensor<32x128xf16>) outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

// Halves of K side by side are no neighbours in a byte.
// CHECK-LABEL: @halves(
// CHECK:       tensor.concat
// CHECK:       linalg.matmul
#id = affine_map<(i, j) -> (i, j)>
func.func @halves(%x: tensor<16x128xf16>, %p: tensor<64x32xi8>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %c15 = arith.constant 15 : i8
  %c4 = arith.constant 4 : i8
  %e = tensor.empty() : tensor<64x32xi8>
  %low = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<64x32xi8>) outs(%e : tensor<64x32xi8>) {
  ^bb0(%v: i8, %o: i8):
    %r = arith.andi %v, %c15 : i8
    linalg.yield %r : i8
  } -> tensor<64x32xi8>
  %high = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<64x32xi8>) outs(%e : tensor<64x32xi8>) {
  ^bb0(%v: i8, %o: i8):
    %r = arith.shrui %v, %c4 : i8
    linalg.yield %r : i8
  } -> tensor<64x32xi8>
  %q = tensor.concat dim(0) %low, %high : (tensor<64x32xi8>, tensor<64x32xi8>) -> tensor<128x32xi8>
  %ef = tensor.empty() : tensor<128x32xf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%q : tensor<128x32xi8>) outs(%ef : tensor<128x32xf16>) {
  ^bb0(%v: i8, %o: f16):
    %u = arith.sitofp %v : i8 to f16
    linalg.yield %u : f16
  } -> tensor<128x32xf16>
  %y = linalg.matmul ins(%x, %w : tensor<16x128xf16>, tensor<128x32xf16>) outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

// Tensor cores add: what is combined otherwise reads unpacked weights.
// CHECK-LABEL: @largest(
// CHECK:       tensor.concat
// CHECK:       ins(%{{.*}}, %{{.*}} : tensor<16x128xf16>, tensor<32x128xf16>)
#id = affine_map<(i, j) -> (i, j)>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#kept = affine_map<(i, j, k) -> (i, j, 0)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @largest(%x: tensor<16x128xf16>, %p: tensor<32x64xi8>, %s: tensor<32x4xf16>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %c15 = arith.constant 15 : i8
  %c4 = arith.constant 4 : i8
  %e = tensor.empty() : tensor<32x64xi8>
  %low = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<32x64xi8>) outs(%e : tensor<32x64xi8>) {
  ^bb0(%v: i8, %o: i8):
    %r = arith.andi %v, %c15 : i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  %high = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<32x64xi8>) outs(%e : tensor<32x64xi8>) {
  ^bb0(%v: i8, %o: i8):
    %h = arith.shrsi %v, %c4 : i8
    %r = arith.andi %h, %c15 : i8
    linalg.yield %r : i8
  } -> tensor<32x64xi8>
  %l1 = tensor.expand_shape %low [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xi8> into tensor<32x64x1xi8>
  %h1 = tensor.expand_shape %high [[0], [1, 2]] output_shape [32, 64, 1] : tensor<32x64xi8> into tensor<32x64x1xi8>
  %both = tensor.concat dim(2) %l1, %h1 : (tensor<32x64x1xi8>, tensor<32x64x1xi8>) -> tensor<32x64x2xi8>
  %q = tensor.collapse_shape %both [[0], [1, 2]] : tensor<32x64x2xi8> into tensor<32x128xi8>
  %g = tensor.expand_shape %q [[0], [1, 2]] output_shape [32, 4, 32] : tensor<32x128xi8> into tensor<32x4x32xi8>
  %s1 = tensor.expand_shape %s [[0], [1, 2]] output_shape [32, 4, 1] : tensor<32x4xf16> into tensor<32x4x1xf16>
  %ef = tensor.empty() : tensor<32x4x32xf16>
  %f = linalg.generic {indexing_maps = [#id3, #kept, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%g, %s1 : tensor<32x4x32xi8>, tensor<32x4x1xf16>) outs(%ef : tensor<32x4x32xf16>) {
  ^bb0(%v: i8, %t: f16, %o: f16):
    %u = arith.sitofp %v : i8 to f16
    %r = arith.mulf %u, %t : f16
    linalg.yield %r : f16
  } -> tensor<32x4x32xf16>
  %w = tensor.collapse_shape %f [[0], [1, 2]] : tensor<32x4x32xf16> into tensor<32x128xf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<16x128xf16>, tensor<32x128xf16>) outs(%c : tensor<16x32xf32>) {
  ^bb0(%v: f16, %t: f16, %o: f32):
    %v32 = arith.extf %v : f16 to f32
    %t32 = arith.extf %t : f16 to f32
    %u = arith.mulf %v32, %t32 : f32
    %r = arith.maximumf %o, %u : f32
    linalg.yield %r : f32
  } -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
