// RUN: alcop-opt %s --alcop-group-chains --split-input-file --verify-diagnostics | FileCheck %s

// Nothing is reduced along rows: weights are what is computed of each of the scores, and
// nothing is corrected or divided.
// CHECK-LABEL: @squares(
// CHECK-SAME:  %[[Q:.*]]: tensor<256x32xf16>, %[[K:.*]]: tensor<32x256xf16>, %[[V:.*]]: tensor<256x32xf16>
// CHECK-NOT:   linalg.
// CHECK:       %[[O:.*]] = scf.execute_region -> tensor<256x32xf32> no_inline {
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[K]] : {{.*}} {alcop.chain = {batch = 0 : i64, role = "scores"}}
// CHECK:         %[[W:.*]] = linalg.generic {{.*}} ins(%[[S]] : {{.*}} {alcop.chain = {role = "weights"}}
// CHECK:           %[[POSITIVE:.*]] = arith.maximumf
// CHECK:           arith.mulf %[[POSITIVE]], %[[POSITIVE]]
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[V]] : {{.*}} {alcop.chain = {role = "contracted"}}
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]] : {{.*}} {alcop.chain = {role = "result"}}
// CHECK:         scf.yield %[[R]]
// CHECK:       return %[[O]]
#id = affine_map<(m, n) -> (m, n)>
func.func @squares(%q: tensor<256x32xf16>, %k: tensor<32x256xf16>, %v: tensor<256x32xf16>) -> tensor<256x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.matmul ins(%q, %k : tensor<256x32xf16>, tensor<32x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %ep = tensor.empty() : tensor<256x256xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<256x256xf32>) outs(%ep : tensor<256x256xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.maximumf %a, %zero : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<256x256xf16>
  %eo = tensor.empty() : tensor<256x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<256x32xf32>) -> tensor<256x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<256x256xf16>, tensor<256x32xf16>) outs(%zo : tensor<256x32xf32>) -> tensor<256x32xf32>
  return %o : tensor<256x32xf32>
}

// -----

// Two layers of a small network, whose products have fewer elements than the weights:
// each is a kernel of its own that fills the target better.
// CHECK-LABEL: @few_scores(
// CHECK-NOT:   scf.execute_region
#id = affine_map<(m, n) -> (m, n)>
func.func @few_scores(%q: tensor<64x32xf16>, %k: tensor<32x64xf16>, %v: tensor<64x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x64xf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %ep = tensor.empty() : tensor<64x64xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<64x64xf32>) outs(%ep : tensor<64x64xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.maximumf %a, %zero : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<64x64xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x64xf16>, tensor<64x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Of three contractions the first two are a chain; the third one reads its result.
// CHECK-LABEL: @three(
// CHECK:       %[[O:.*]] = scf.execute_region -> tensor<256x16xf16>
// CHECK-NOT:   scf.execute_region
// CHECK:       linalg.matmul ins(%[[O]],
#id = affine_map<(m, n) -> (m, n)>
func.func @three(%q: tensor<256x16xf16>, %k: tensor<16x256xf16>, %v: tensor<256x16xf16>, %w: tensor<16x256xf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.matmul ins(%q, %k : tensor<256x16xf16>, tensor<16x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %ep = tensor.empty() : tensor<256x256xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<256x256xf32>) outs(%ep : tensor<256x256xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<256x256xf16>
  %eo = tensor.empty() : tensor<256x16xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<256x16xf32>) -> tensor<256x16xf32>
  %o = linalg.matmul ins(%p, %v : tensor<256x256xf16>, tensor<256x16xf16>) outs(%zo : tensor<256x16xf32>) -> tensor<256x16xf32>
  %en = tensor.empty() : tensor<256x16xf16>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%o : tensor<256x16xf32>) outs(%en : tensor<256x16xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<256x16xf16>
  %r = linalg.matmul ins(%n, %w : tensor<256x16xf16>, tensor<16x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// -----

// One chain begins with the result of another one.
// CHECK-LABEL: @one_after_another(
// CHECK:       %[[O:.*]] = scf.execute_region -> tensor<256x16xf16>
// CHECK:       %[[R:.*]] = scf.execute_region -> tensor<256x16xf16>
// CHECK:         linalg.generic {{.*}} ins(%[[O]], {{.*}} role = "scores"
// CHECK:       return %[[R]]
#id = affine_map<(m, n) -> (m, n)>
func.func @one_after_another(%q: tensor<256x16xf16>, %k: tensor<16x256xf16>, %v: tensor<256x16xf16>) -> tensor<256x16xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %ep = tensor.empty() : tensor<256x256xf16>
  %eo = tensor.empty() : tensor<256x16xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<256x16xf32>) -> tensor<256x16xf32>
  %en = tensor.empty() : tensor<256x16xf16>
  %s = linalg.matmul ins(%q, %k : tensor<256x16xf16>, tensor<16x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<256x256xf32>) outs(%ep : tensor<256x256xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<256x256xf16>
  %o = linalg.matmul ins(%p, %v : tensor<256x256xf16>, tensor<256x16xf16>) outs(%zo : tensor<256x16xf32>) -> tensor<256x16xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%o : tensor<256x16xf32>) outs(%en : tensor<256x16xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<256x16xf16>
  %s2 = linalg.matmul ins(%n, %k : tensor<256x16xf16>, tensor<16x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %p2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s2 : tensor<256x256xf32>) outs(%ep : tensor<256x256xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.negf %a : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<256x256xf16>
  %o2 = linalg.matmul ins(%p2, %v : tensor<256x256xf16>, tensor<256x16xf16>) outs(%zo : tensor<256x16xf32>) -> tensor<256x16xf32>
  %n2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%o2 : tensor<256x16xf32>) outs(%en : tensor<256x16xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<256x16xf16>
  return %n2 : tensor<256x16xf16>
}

// -----

// A row of values has more elements than a warp can hold; the scores are read by another op.
// CHECK-LABEL: @long_rows(
// CHECK-NOT:   scf.execute_region
#id = affine_map<(m, n) -> (m, n)>
func.func @long_rows(%q: tensor<2048x32xf16>, %k: tensor<32x2048xf16>, %v: tensor<2048x320xf16>) -> tensor<2048x320xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x2048xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %s = linalg.matmul ins(%q, %k : tensor<2048x32xf16>, tensor<32x2048xf16>) outs(%z : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %ep = tensor.empty() : tensor<2048x2048xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2048x2048xf32>) outs(%ep : tensor<2048x2048xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<2048x2048xf16>
  %eo = tensor.empty() : tensor<2048x320xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<2048x320xf32>) -> tensor<2048x320xf32>
  // expected-remark @below {{not one kernel with the contraction that its weights are of: rows of 320 elements are multiplied, expected a multiple of 16 up to 256}}
  %o = linalg.matmul ins(%p, %v : tensor<2048x2048xf16>, tensor<2048x320xf16>) outs(%zo : tensor<2048x320xf32>) -> tensor<2048x320xf32>
  return %o : tensor<2048x320xf32>
}

// CHECK-LABEL: @other_reader(
// CHECK-NOT:   scf.execute_region
func.func @other_reader(%q: tensor<256x32xf16>, %k: tensor<32x256xf16>, %v: tensor<256x32xf16>) -> (tensor<256x32xf32>, tensor<256x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.matmul ins(%q, %k : tensor<256x32xf16>, tensor<32x256xf16>) outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %ep = tensor.empty() : tensor<256x256xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<256x256xf32>) outs(%ep : tensor<256x256xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<256x256xf16>
  %eo = tensor.empty() : tensor<256x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<256x32xf32>) -> tensor<256x32xf32>
  // expected-remark @below {{not one kernel with the contraction that its weights are of: 'func.return' reads what is between the contractions too}}
  %o = linalg.matmul ins(%p, %v : tensor<256x256xf16>, tensor<256x32xf16>) outs(%zo : tensor<256x32xf32>) -> tensor<256x32xf32>
  return %o, %s : tensor<256x32xf32>, tensor<256x256xf32>
}
