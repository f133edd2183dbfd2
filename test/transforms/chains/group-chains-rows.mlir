// RUN: alcop-opt %s --alcop-group-chains --split-input-file | FileCheck %s

// One row for each of 4 heads, which read copies of the same keys and values: the heads
// are the rows of a matrix, and keys and values are those that were copied.
// CHECK-LABEL: @shared(
// CHECK-SAME:  %[[Q:.*]]: tensor<2x4x32xf16>, %[[K:.*]]: tensor<2x48x32xf16>, %[[V:.*]]: tensor<2x48x16xf16>
// CHECK-NOT:   linalg.broadcast
// CHECK:       scf.execute_region -> tensor<2x4x16xf32> no_inline {
// CHECK:         linalg.generic {{.*}} ins(%[[Q]], %[[K]] : tensor<2x4x32xf16>, tensor<2x48x32xf16>) {{.*}} {alcop.chain = {batch = 1 : i64, {{.*}}role = "scores"
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[V]] : tensor<2x4x48xf32>, tensor<2x48x16xf16>) {{.*}} {alcop.chain = {role = "contracted"}}
#qk = affine_map<(b, h, n, k) -> (b, h, k)>
#nk = affine_map<(b, h, n, k) -> (b, h, n, k)>
#qn = affine_map<(b, h, n, k) -> (b, h, n)>
#id = affine_map<(b, h, n) -> (b, h, n)>
#row = affine_map<(b, h, n) -> (b, h)>
#wn = affine_map<(b, h, d, n) -> (b, h, n)>
#nd = affine_map<(b, h, d, n) -> (b, h, n, d)>
#hd = affine_map<(b, h, d, n) -> (b, h, d)>
func.func @shared(%q: tensor<2x4x32xf16>, %k: tensor<2x48x32xf16>, %v: tensor<2x48x16xf16>) -> tensor<2x4x16xf32> {
  %ek = tensor.empty() : tensor<2x4x48x32xf16>
  %ks = linalg.broadcast ins(%k : tensor<2x48x32xf16>) outs(%ek : tensor<2x4x48x32xf16>) dimensions = [1]
  %ev = tensor.empty() : tensor<2x4x48x16xf16>
  %vs = linalg.broadcast ins(%v : tensor<2x48x16xf16>) outs(%ev : tensor<2x4x48x16xf16>) dimensions = [1]
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x4x48xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x48xf32>) -> tensor<2x4x48xf32>
  %s = linalg.generic {indexing_maps = [#qk, #nk, #qn], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %ks : tensor<2x4x32xf16>, tensor<2x4x48x32xf16>) outs(%z : tensor<2x4x48xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x4x48xf32>
  %er = tensor.empty() : tensor<2x4xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<2x4x48xf32>) outs(%fl : tensor<2x4xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<2x4xf32>
  %en = tensor.empty() : tensor<2x4x48xf16>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %max : tensor<2x4x48xf32>, tensor<2x4xf32>) outs(%en : tensor<2x4x48xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<2x4x48xf16>
  %eo = tensor.empty() : tensor<2x4x16xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %o = linalg.generic {indexing_maps = [#wn, #nd, #hd], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vs : tensor<2x4x48xf16>, tensor<2x4x48x16xf16>) outs(%zo : tensor<2x4x16xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x4x16xf32>
  return %o : tensor<2x4x16xf32>
}

// -----

// Where no rows share keys, each is a matrix of one row: an extent of 1 is added to
// queries and to the result.
// CHECK-LABEL: @own(
// CHECK-SAME:  %[[Q:.*]]: tensor<2x4x32xf16>, %[[K:.*]]: tensor<2x4x48x32xf16>, %[[V:.*]]: tensor<2x4x48x16xf16>
// CHECK:       scf.execute_region -> tensor<2x4x16xf32> no_inline {
// CHECK:         %[[ROWS:.*]] = tensor.expand_shape %[[Q]] {{.*}} : tensor<2x4x32xf16> into tensor<2x4x1x32xf16>
// CHECK:         linalg.generic {{.*}} ins(%[[ROWS]], %[[K]] : {{.*}} {alcop.chain = {batch = 2 : i64, {{.*}}role = "scores"
// CHECK:         tensor.collapse_shape %{{.*}} : tensor<2x4x1x16xf32> into tensor<2x4x16xf32>
#qk = affine_map<(b, h, n, k) -> (b, h, k)>
#nk = affine_map<(b, h, n, k) -> (b, h, n, k)>
#qn = affine_map<(b, h, n, k) -> (b, h, n)>
#id = affine_map<(b, h, n) -> (b, h, n)>
#row = affine_map<(b, h, n) -> (b, h)>
#wn = affine_map<(b, h, d, n) -> (b, h, n)>
#nd = affine_map<(b, h, d, n) -> (b, h, n, d)>
#hd = affine_map<(b, h, d, n) -> (b, h, d)>
func.func @own(%q: tensor<2x4x32xf16>, %ks: tensor<2x4x48x32xf16>, %vs: tensor<2x4x48x16xf16>) -> tensor<2x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x4x48xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x48xf32>) -> tensor<2x4x48xf32>
  %s = linalg.generic {indexing_maps = [#qk, #nk, #qn], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %ks : tensor<2x4x32xf16>, tensor<2x4x48x32xf16>) outs(%z : tensor<2x4x48xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x4x48xf32>
  %er = tensor.empty() : tensor<2x4xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<2x4xf32>) -> tensor<2x4xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<2x4x48xf32>) outs(%fl : tensor<2x4xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<2x4xf32>
  %en = tensor.empty() : tensor<2x4x48xf16>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %max : tensor<2x4x48xf32>, tensor<2x4xf32>) outs(%en : tensor<2x4x48xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<2x4x48xf16>
  %eo = tensor.empty() : tensor<2x4x16xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %o = linalg.generic {indexing_maps = [#wn, #nd, #hd], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%w, %vs : tensor<2x4x48xf16>, tensor<2x4x48x16xf16>) outs(%zo : tensor<2x4x16xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<2x4x16xf32>
  return %o : tensor<2x4x16xf32>
}
