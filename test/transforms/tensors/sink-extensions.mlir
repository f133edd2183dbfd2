// RUN: alcop-opt %s --alcop-sink-extensions --split-input-file | FileCheck %s

// A contraction widens in its body; the extensions are erased.
// CHECK-LABEL: @matmul(
// CHECK-SAME:  %[[A:.*]]: tensor<32x64xf16>, %[[B:.*]]: tensor<64x16xf16>, %[[C:.*]]: tensor<32x16xf32>
// CHECK:       linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME:  ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] :
// CHECK:       ^bb0(%[[X:.*]]: f16, %[[Y:.*]]: f16, %[[SUM:.*]]: f32):
// CHECK:       %[[WX:.*]] = arith.extf %[[X]]
// CHECK:       %[[WY:.*]] = arith.extf %[[Y]]
// CHECK:       %[[P:.*]] = arith.mulf %[[WX]], %[[WY]] : f32
// CHECK:       arith.addf %[[SUM]], %[[P]] : f32
#id = affine_map<(i, j) -> (i, j)>
func.func @matmul(%a: tensor<32x64xf16>, %b: tensor<64x16xf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %ea = tensor.empty() : tensor<32x64xf32>
  %eb = tensor.empty() : tensor<64x16xf32>
  %wa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<32x64xf16>) outs(%ea : tensor<32x64xf32>) {
  ^bb0(%x: f16, %y: f32):
    %z = arith.extf %x : f16 to f32
    linalg.yield %z : f32
  } -> tensor<32x64xf32>
  %wb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%b : tensor<64x16xf16>) outs(%eb : tensor<64x16xf32>) {
  ^bb0(%x: f16, %y: f32):
    %z = arith.extf %x : f16 to f32
    linalg.yield %z : f32
  } -> tensor<64x16xf32>
  %r = linalg.matmul ins(%wa, %wb : tensor<32x64xf32>, tensor<64x16xf32>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}

// -----

// Through a transpose and a reshape of sizes known at run time, to a reader with a map
// of its own, which is composed with the extension's. The wide tensor itself is still
// made, as it is returned.
// CHECK:       #[[ROW:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-LABEL: @moved(
// CHECK-SAME:  %[[A:.*]]: tensor<?x4x8xbf16>
// CHECK:       %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[A]] :
// CHECK:       arith.extf
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[A]] : tensor<?x4x8xbf16>) outs(%{{.*}} : tensor<4x?x8xbf16>) permutation = [1, 0, 2]
// CHECK:       %[[S:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0, 1], [2]] : tensor<4x?x8xbf16> into tensor<?x8xbf16>
// CHECK:       linalg.generic {indexing_maps = [#[[ROW]], #{{.*}}], {{.*}} ins(%[[S]] :
// CHECK:       ^bb0(%[[X:.*]]: bf16, %{{.*}}: f32):
// CHECK:       %[[W:.*]] = arith.extf %[[X]]
// CHECK:       math.exp %[[W]]
// CHECK:       return %{{.*}}, %[[WIDE]]
#three = affine_map<(i, j, k) -> (i, j, k)>
#row = affine_map<(i) -> (0, i)>
#one = affine_map<(i) -> (i)>
func.func @moved(%a: tensor<?x4x8xbf16>, %n: index, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<?x4x8xf32>) {
  %e = tensor.empty(%n) : tensor<?x4x8xf32>
  %wide = linalg.generic {indexing_maps = [#three, #three], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%a : tensor<?x4x8xbf16>) outs(%e : tensor<?x4x8xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %z = arith.extf %x : bf16 to f32
    linalg.yield %z : f32
  } -> tensor<?x4x8xf32>
  %et = tensor.empty(%n) : tensor<4x?x8xf32>
  %t = linalg.transpose ins(%wide : tensor<?x4x8xf32>) outs(%et : tensor<4x?x8xf32>) permutation = [1, 0, 2]
  %s = tensor.collapse_shape %t [[0, 1], [2]] : tensor<4x?x8xf32> into tensor<?x8xf32>
  %r = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel"]}
    ins(%s : tensor<?x8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = math.exp %x : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  return %r, %wide : tensor<8xf32>, tensor<?x4x8xf32>
}

// -----

// An op that rounds is none that only widens; nor is one that adds to its output.
// CHECK-LABEL: @others(
// CHECK:       linalg.exp
// CHECK:       linalg.exp
#id = affine_map<(i) -> (i)>
func.func @others(%a: tensor<8xf32>, %b: tensor<8xf16>, %o: tensor<8xf32>, %h: tensor<8xf16>) -> (tensor<8xf16>, tensor<8xf32>) {
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%a : tensor<8xf32>) outs(%h : tensor<8xf16>) {
  ^bb0(%x: f32, %y: f16):
    %z = arith.truncf %x : f32 to f16
    linalg.yield %z : f16
  } -> tensor<8xf16>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%b : tensor<8xf16>) outs(%o : tensor<8xf32>) {
  ^bb0(%x: f16, %y: f32):
    %z = arith.extf %x : f16 to f32
    %s = arith.addf %y, %z : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %r = linalg.exp ins(%n : tensor<8xf16>) outs(%h : tensor<8xf16>) -> tensor<8xf16>
  %q = linalg.exp ins(%m : tensor<8xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return %r, %q : tensor<8xf16>, tensor<8xf32>
}
