// RUN: alcop-opt %s --alcop-group-chains --canonicalize | FileCheck %s

// Keys whose rows an op has made in two parts: they are read where the parts are one, and
// are not transposed.
// CHECK-LABEL: @parts_of_rows(
// CHECK-SAME:  %[[Q:.*]]: tensor<64x32xf16>, %[[K:.*]]: tensor<128x2x16xf16>,
// CHECK:       %[[C:.*]] = tensor.collapse_shape %[[K]]
// CHECK-NOT:   linalg.transpose
// CHECK:         linalg.generic {{.*}} ins(%[[Q]], %[[C]] : tensor<64x32xf16>, tensor<128x32xf16>) {{.*}} {alcop.chain = {{.*}}role = "scores"
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
func.func @parts_of_rows(%q: tensor<64x32xf16>, %kp: tensor<128x2x16xf16>, %v: tensor<128x32xf16>) -> tensor<64x32xf32> {
  %kc = tensor.collapse_shape %kp [[0], [1, 2]] : tensor<128x2x16xf16> into tensor<128x32xf16>
  %ke = tensor.empty() : tensor<32x128xf16>
  %k = linalg.transpose ins(%kc : tensor<128x32xf16>) outs(%ke : tensor<32x128xf16>) permutation = [1, 0]
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.mulf %a, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<64x128xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x128xf32>) outs(%fl : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<64x128xf32>, tensor<64xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x128xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<64x128xf32>) outs(%fz : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %sum : tensor<64x128xf32>, tensor<64xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %0 = arith.divf %a, %b : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}
