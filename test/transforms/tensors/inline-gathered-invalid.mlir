// RUN: alcop-opt %s --alcop-inline-gathered --split-input-file --verify-diagnostics | FileCheck %s

// More are looked up than there are.
// CHECK-LABEL: @often(
// CHECK:         linalg.exp
// CHECK:         tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<8x64xf32>
#n = affine_map<(n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @often(%x: tensor<8x64xf32>, %t: tensor<600xi64>) -> tensor<600xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-remark @below {{not computed where its elements are looked up: 600 elements are looked up, of 512: some would be computed several times}}
  %p = linalg.exp ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = tensor.empty() : tensor<600xf32>
  %y = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%t : tensor<600xi64>) outs(%g : tensor<600xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = tensor.extract %p[%c, %c] : tensor<8x64xf32>
    linalg.yield %v : f32
  } -> tensor<600xf32>
  return %y : tensor<600xf32>
}

// -----

// What a contraction can compute is stored by it.
// CHECK-LABEL: @epilogue(
// CHECK:         linalg.exp
// CHECK:         tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<16x16xf32>
#n = affine_map<(n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @epilogue(%a: tensor<16x16xf32>, %t: tensor<8xi64>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%s : tensor<16x16xf32>) -> tensor<16x16xf32>
  %k = linalg.matmul ins(%a, %a : tensor<16x16xf32>, tensor<16x16xf32>) outs(%init : tensor<16x16xf32>) -> tensor<16x16xf32>
  %e = tensor.empty() : tensor<16x16xf32>
  // expected-remark @below {{not computed where its elements are looked up: a contraction can compute it, and stores no other result then}}
  %p = linalg.exp ins(%k : tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %g = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%t : tensor<8xi64>) outs(%g : tensor<8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = tensor.extract %p[%c, %c] : tensor<16x16xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Read later, what is overwritten would be copied.
// CHECK-LABEL: @overwritten(
// CHECK:         linalg.exp
// CHECK:         tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<8x64xf32>
#n = affine_map<(n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @overwritten(%x: tensor<8x64xf32> {alcop.in_place = 0 : i64}, %z: tensor<8x64xf32>, %t: tensor<8xi64>) -> (tensor<8x64xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8x64xf32>
  // expected-remark @below {{not computed where its elements are looked up: what it reads is overwritten in place, and would be copied before}}
  %p = linalg.exp ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %g = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%t : tensor<8xi64>) outs(%g : tensor<8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = tensor.extract %p[%c, %c] : tensor<8x64xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %u = tensor.insert_slice %z into %x[0, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<8x64xf32>
  return %u, %y : tensor<8x64xf32>, tensor<8xf32>
}

// -----

// Its old value is gone.
// CHECK-LABEL: @updated(
// CHECK:         arith.addf
// CHECK:         tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<8x64xf32>
#n = affine_map<(n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @updated(%x: tensor<8x64xf32>, %e: tensor<8x64xf32>, %t: tensor<8xi64>) -> tensor<8xf32> {
  // expected-remark @below {{not computed where its elements are looked up: it is computed from what its output held before}}
  %p = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8x64xf32>
  %g = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%t : tensor<8xi64>) outs(%g : tensor<8xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = tensor.extract %p[%c, %c] : tensor<8x64xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
