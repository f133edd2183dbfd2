// RUN: alcop-opt %s --alcop-prepare-weights --split-input-file | FileCheck %s

// A matrix in another order, and a vector that two weights are needed for: not the one
// weight that only the other function reads, nor those that are used as they are.
// CHECK-LABEL: func.func @main(
// CHECK-SAME:  %[[W:.*]]: tensor<64x300xf16>, %[[X:.*]]: tensor<8x64xf16>, %{{.*}}: tensor<64xf16>, %{{.*}}: tensor<64xf32>, %[[T:.*]]: tensor<300x64xf16>, %[[S:.*]]: tensor<64xf32>)
// CHECK-SAME:  alcop.prepare = {arrays = 2 : i64, function = "main_prepare", weights = [0, 2, 3]}
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[S]] :
// CHECK:       return %[[R]], %[[T]], %[[W]]
// CHECK-LABEL: func.func @main_prepare(
// CHECK-SAME:  %[[W:.*]]: tensor<64x300xf16>, %[[V:.*]]: tensor<64xf16>, %[[B:.*]]: tensor<64xf32>) -> (tensor<300x64xf16>, tensor<64xf32>)
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[W]] :
// CHECK:       %[[S:.*]] = linalg.generic {{.*}} ins(%[[V]], %[[B]] :
// CHECK:       return %[[T]], %[[S]]
// CHECK-NOT:   func.func
#one = affine_map<(i) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%w: tensor<64x300xf16> {alcop.weight}, %x: tensor<8x64xf16>, %v: tensor<64xf16> {alcop.weight},
                %b: tensor<64xf32> {alcop.weight}) -> (tensor<8x64xf16>, tensor<300x64xf16>, tensor<64x300xf16>) {
  %d = tensor.empty() : tensor<300x64xf16>
  %t = linalg.transpose ins(%w : tensor<64x300xf16>) outs(%d : tensor<300x64xf16>) permutation = [1, 0]
  %e = tensor.empty() : tensor<64xf32>
  %s = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
    ins(%v, %b : tensor<64xf16>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f16, %q: f32, %o: f32):
    %0 = arith.extf %p : f16 to f32
    %1 = arith.mulf %0, %q : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %f = tensor.empty() : tensor<8x64xf16>
  %r = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<8x64xf16>, tensor<64xf32>) outs(%f : tensor<8x64xf16>) {
  ^bb0(%p: f16, %q: f32, %o: f16):
    %0 = arith.truncf %q : f32 to f16
    %1 = arith.mulf %p, %0 : f16
    linalg.yield %1 : f16
  } -> tensor<8x64xf16>
  return %r, %t, %w : tensor<8x64xf16>, tensor<300x64xf16>, tensor<64x300xf16>
}

// -----

// Views, what grows beyond its weights (a bias for each of 64 thousand elements, integers
// that become floats), what may stop the program, and what is no weight stay.
// CHECK-LABEL: func.func @stays(
// CHECK-SAME:  %{{[^:]*}}: tensor<64xf32>, %{{[^:]*}}: tensor<512x128xi8>, %{{[^:]*}}: tensor<64xf32>)
// CHECK-NOT:   alcop.
// CHECK:       tensor.expand_shape
// CHECK:       linalg.broadcast
// CHECK:       arith.sitofp
// CHECK:       cf.assert
// CHECK:       return
// CHECK-NOT:   func.func
#one = affine_map<(i) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @stays(%b: tensor<64xf32> {alcop.weight}, %q: tensor<512x128xi8> {alcop.weight}, %x: tensor<64xf32>)
    -> (tensor<64x1xf32>, tensor<64x1024xf32>, tensor<512x128xf32>, tensor<64xf32>, tensor<64xf32>) {
  %v = tensor.expand_shape %b [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32>
  %c = tensor.empty() : tensor<64x1024xf32>
  %w = linalg.broadcast ins(%b : tensor<64xf32>) outs(%c : tensor<64x1024xf32>) dimensions = [1]
  %d = tensor.empty() : tensor<512x128xf32>
  %f = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%q : tensor<512x128xi8>) outs(%d : tensor<512x128xf32>) {
  ^bb0(%p: i8, %o: f32):
    %0 = arith.sitofp %p : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<512x128xf32>
  %e = tensor.empty() : tensor<64xf32>
  %g = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%b : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.cmpf one, %p, %p : f32
    cf.assert %0, "never"
    linalg.yield %p : f32
  } -> tensor<64xf32>
  %h = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %p, %p : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %v, %w, %f, %g, %h : tensor<64x1xf32>, tensor<64x1024xf32>, tensor<512x128xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// A function that another one calls takes what it took; of sizes that only calls know
// no array is kept, nor of what is updated in place.
// CHECK-LABEL: func.func @called(
// CHECK-SAME:  %{{[^:]*}}: tensor<4x8xf32>)
// CHECK:       linalg.transpose
// CHECK-LABEL: func.func @open(
// CHECK-SAME:  %{{[^:]*}}: tensor<?x8xf32>, %{{[^:]*}}: tensor<8x?xf32>)
// CHECK:       linalg.transpose
func.func @called(%w: tensor<4x8xf32> {alcop.weight}) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%w : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %t : tensor<8x4xf32>
}

func.func @open(%w: tensor<?x8xf32> {alcop.weight}, %e: tensor<8x?xf32> {alcop.weight}) -> tensor<8x?xf32> {
  %t = linalg.transpose ins(%w : tensor<?x8xf32>) outs(%e : tensor<8x?xf32>) permutation = [1, 0]
  return %t : tensor<8x?xf32>
}

// CHECK-LABEL: func.func @updated(
// CHECK-SAME:  %{{[^:]*}}: tensor<4x4xf32> {alcop.in_place = 0 : i64})
// CHECK:       linalg.transpose
func.func @updated(%w: tensor<4x4xf32> {alcop.in_place = 0 : i64, alcop.weight}) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %t = linalg.transpose ins(%w : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
  return %t : tensor<4x4xf32>
}

func.func @calls(%w: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %r = func.call @called(%w) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// Angles that depend on nothing are as good as weights, as their functions take long; the
// numbers that they are computed from are not, if others read them.
// CHECK-LABEL: func.func @angles(
// CHECK-SAME:  %{{[^:]*}}: tensor<8xf32>, %[[X:[^:]*]]: tensor<8xf32>, %[[C:[^:]*]]: tensor<8xf32>)
// CHECK-SAME:  alcop.prepare = {arrays = 1 : i64, function = "angles_prepare", weights = [0]}
// CHECK-NOT:   math.cos
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %[[C]],
// CHECK-LABEL: func.func @angles_prepare(
// CHECK:       math.cos
#e = affine_map<(i) -> (i)>
func.func @angles(%w: tensor<8xf32> {alcop.weight}, %x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %n = linalg.generic {indexing_maps = [#e], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    linalg.yield %k : f32
  } -> tensor<8xf32>
  %c = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel"]} ins(%n : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.cos %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#e, #e, #e, #e, #e], iterator_types = ["parallel"]}
      ins(%x, %c, %n, %w : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %u = arith.addf %t, %r : f32
    %v = arith.addf %u, %s : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// So is a cast of them: the angles themselves are read by nobody then. What is larger
// than they are, as a copy for each row, its readers compute.
// CHECK-LABEL: func.func @casts(
// CHECK-SAME:  %[[C:[^:]*]]: tensor<8xf16>)
// CHECK:       %[[ROWS:.*]] = linalg.generic {{.*}} ins(%[[C]] : tensor<8xf16>)
// CHECK:       return %[[ROWS]]
// CHECK-LABEL: func.func @casts_prepare(
// CHECK:       math.cos
// CHECK:       %[[T:.*]] = linalg.generic
// CHECK:         arith.truncf
// CHECK:       return %[[T]]
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
func.func @casts(%w: tensor<8xf32> {alcop.weight}) -> tensor<4x8xf16> {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8xf16>
  %c = linalg.generic {indexing_maps = [#e], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %t = math.cos %k : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %h = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel"]} ins(%c : tensor<8xf32>) outs(%f : tensor<8xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<8xf16>
  %g = tensor.empty() : tensor<4x8xf16>
  %r = linalg.generic {indexing_maps = [#j, #ij], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<8xf16>) outs(%g : tensor<4x8xf16>) {
  ^bb0(%a: f16, %o: f16):
    linalg.yield %a : f16
  } -> tensor<4x8xf16>
  return %r : tensor<4x8xf16>
}

// A table of angles may be larger than the frequencies that are a weight, but not than
// all weights.
// CHECK-LABEL: func.func @tables(
// CHECK-NOT:   math.cos
// CHECK:       return
// CHECK-LABEL: func.func @tables_prepare(
// CHECK:       math.cos
func.func @tables(%f: tensor<128xf32> {alcop.weight}, %w: tensor<256x128xf32> {alcop.weight}, %x: tensor<256x128xf32>) -> (tensor<256x128xf32>, tensor<256x128xf32>) {
  %e = tensor.empty() : tensor<256x128xf32>
  %c = linalg.generic {indexing_maps = [#j, #ij], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<128xf32>) outs(%e : tensor<256x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %n = arith.sitofp %k : i32 to f32
    %m = arith.mulf %n, %a : f32
    %t = math.cos %m : f32
    linalg.yield %t : f32
  } -> tensor<256x128xf32>
  %y = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<256x128xf32>, tensor<256x128xf32>) outs(%e : tensor<256x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<256x128xf32>
  return %y, %w : tensor<256x128xf32>, tensor<256x128xf32>
}
