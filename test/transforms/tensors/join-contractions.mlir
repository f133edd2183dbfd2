// RUN: alcop-opt %s --alcop-join-contractions --mlir-print-local-scope --split-input-file | FileCheck %s

// Weights of 48 and of 16 columns, and their biases, are put side by side; a cast behind
// each is one, and so is the addition.
// CHECK-LABEL: @both(
// CHECK-SAME:    %[[X:.*]]: tensor<64x32xf16>, %[[WQ:[^ ]*]]: tensor<48x32xf16> {alcop.weight}, %[[WK:[^ ]*]]: tensor<16x32xf16> {alcop.weight}
// CHECK:         %[[W0:.*]] = tensor.insert_slice %[[WQ]] into %{{.*}}[0, 0] [48, 32] [1, 1] : tensor<48x32xf16> into tensor<64x32xf16>
// CHECK:         %[[W:.*]] = tensor.insert_slice %[[WK]] into %[[W0]][48, 0] [16, 32] [1, 1]
// CHECK:         %[[C:.*]] = linalg.matmul {{.*}} ins(%[[X]], %[[W]] : tensor<64x32xf16>, tensor<64x32xf16>) outs(%{{.*}} : tensor<64x64xf32>)
// CHECK:         %[[H:.*]] = linalg.generic {{.*}} ins(%[[C]] : tensor<64x64xf32>)
// CHECK:         %[[B:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[48] [16] [1] : tensor<16xf16> into tensor<64xf16>
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[H]], %[[B]] : tensor<64x64xf16>, tensor<64xf16>)
// CHECK:         %[[Q:.*]] = tensor.extract_slice %[[Y]][0, 0] [64, 48] [1, 1] : tensor<64x64xf16> to tensor<64x48xf16>
// CHECK:         %[[K:.*]] = tensor.extract_slice %[[Y]][0, 48] [64, 16] [1, 1] : tensor<64x64xf16> to tensor<64x16xf16>
// CHECK-NOT:     linalg.matmul
// CHECK:         tensor.expand_shape %[[Q]]
// CHECK:         tensor.expand_shape %[[K]]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func private @read(tensor<64x3x16xf16>, tensor<64x1x16xf16>)
func.func @both(%x: tensor<64x32xf16>, %wq: tensor<48x32xf16> {alcop.weight}, %wk: tensor<16x32xf16> {alcop.weight},
                %bq: tensor<48xf16> {alcop.weight}, %bk: tensor<16xf16> {alcop.weight}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %c = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wq : tensor<64x32xf16>, tensor<48x32xf16>) outs(%i : tensor<64x48xf32>) -> tensor<64x48xf32>
  %eh = tensor.empty() : tensor<64x48xf16>
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<64x48xf32>) outs(%eh : tensor<64x48xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x48xf16>
  %q = linalg.generic {indexing_maps = [#all, #n, #all], iterator_types = ["parallel", "parallel"]} ins(%h, %bq : tensor<64x48xf16>, tensor<48xf16>) outs(%eh : tensor<64x48xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %t = arith.addf %a, %b : f16
    linalg.yield %t : f16
  } -> tensor<64x48xf16>
  %f = tensor.empty() : tensor<64x16xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %d = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wk : tensor<64x32xf16>, tensor<16x32xf16>) outs(%j : tensor<64x16xf32>) -> tensor<64x16xf32>
  %fh = tensor.empty() : tensor<64x16xf16>
  %g = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<64x16xf32>) outs(%fh : tensor<64x16xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x16xf16>
  %k = linalg.generic {indexing_maps = [#all, #n, #all], iterator_types = ["parallel", "parallel"]} ins(%g, %bk : tensor<64x16xf16>, tensor<16xf16>) outs(%fh : tensor<64x16xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %t = arith.addf %a, %b : f16
    linalg.yield %t : f16
  } -> tensor<64x16xf16>
  %qh = tensor.expand_shape %q [[0], [1, 2]] output_shape [64, 3, 16] : tensor<64x48xf16> into tensor<64x3x16xf16>
  %kh = tensor.expand_shape %k [[0], [1, 2]] output_shape [64, 1, 16] : tensor<64x16xf16> into tensor<64x1x16xf16>
  call @read(%qh, %kh) : (tensor<64x3x16xf16>, tensor<64x1x16xf16>) -> ()
  return
}

// -----

// One is returned as an array of its own. The others, which have a cast in common that it
// has not, are one.
// CHECK-LABEL: @others(
// CHECK-SAME:    %[[X:.*]]: tensor<64x32xf16>, %[[WQ:[^ ]*]]: tensor<16x32xf16> {alcop.weight}, %{{.*}}: tensor<16x32xf16> {alcop.weight}, %{{.*}}: tensor<16x32xf16> {alcop.weight}
// CHECK:         %[[C:.*]] = linalg.matmul {{.*}} ins(%[[X]], %{{.*}} : tensor<64x32xf16>, tensor<32x32xf16>)
// CHECK:         %[[H:.*]] = linalg.generic {{.*}} ins(%[[C]] : tensor<64x32xf32>)
// CHECK-DAG:     %[[Q:.*]] = tensor.extract_slice %[[H]][0, 0] [64, 16] [1, 1]
// CHECK-DAG:     %[[K:.*]] = tensor.extract_slice %[[H]][0, 16] [64, 16] [1, 1]
// CHECK:         %[[V:.*]] = linalg.matmul {{.*}} ins(%[[X]], %{{.*}} : tensor<64x32xf16>, tensor<16x32xf16>)
// CHECK:         call @read(%[[Q]], %[[K]])
// CHECK:         return %[[V]]
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
func.func private @read(tensor<64x16xf16>, tensor<64x16xf16>)
func.func @others(%x: tensor<64x32xf16>, %wq: tensor<16x32xf16> {alcop.weight}, %wk: tensor<16x32xf16> {alcop.weight}, %wv: tensor<16x32xf16> {alcop.weight}) -> tensor<64x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %h = tensor.empty() : tensor<64x16xf16>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %cq = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wq : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %q = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%cq : tensor<64x16xf32>) outs(%h : tensor<64x16xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x16xf16>
  %ck = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wk : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  %k = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%ck : tensor<64x16xf32>) outs(%h : tensor<64x16xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<64x16xf16>
  %cv = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %wv : tensor<64x32xf16>, tensor<16x32xf16>) outs(%i : tensor<64x16xf32>) -> tensor<64x16xf32>
  call @read(%q, %k) : (tensor<64x16xf16>, tensor<64x16xf16>) -> ()
  return %cv : tensor<64x16xf32>
}
