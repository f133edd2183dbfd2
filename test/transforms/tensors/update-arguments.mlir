// RUN: alcop-opt %s --alcop-update-arguments --split-input-file | FileCheck %s

#row = affine_map<(d0, d1) -> (d0)>
#none = affine_map<(d0, d1) -> ()>
#id = affine_map<(d0, d1) -> (d0, d1)>
#along = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

// The op starts from the argument, and computes the mask of rows itself.
// CHECK-DAG:   #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[NONE:.*]] = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @row(
// CHECK-SAME:    %[[X:.*]]: tensor<16x8xf16> {alcop.in_place = 1 : i64, bufferization.writable = true}, %[[V:.*]]: tensor<8xf16>, %[[P:.*]]: tensor<i64>)
// CHECK-NOT:     linalg.generic {{.*}}iterator_types = ["parallel"]
// CHECK:         %[[Y:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #[[NONE]], #[[ID]]]
// CHECK-SAME:      ins(%[[V]], %[[P]] : {{.*}}) outs(%[[X]] :
// CHECK-NEXT:    ^bb0(%[[NEW:.*]]: f16, %[[AT:.*]]: i64, %[[OLD:.*]]: f16):
// CHECK-NEXT:      %[[I:.*]] = linalg.index 0
// CHECK-NEXT:      %[[J:.*]] = arith.index_cast %[[I]]
// CHECK-NEXT:      %[[HERE:.*]] = arith.cmpi eq, %[[J]], %[[AT]]
// CHECK-NEXT:      %[[S:.*]] = arith.select %[[HERE]], %[[NEW]], %[[OLD]]
// CHECK-NEXT:      linalg.yield %[[S]]
// CHECK:         return %{{.*}}, %[[Y]]
func.func @row(%x: tensor<16x8xf16> {alcop.in_place = 1 : i64}, %v: tensor<8xf16>, %p: tensor<i64>) -> (tensor<8xf16>, tensor<16x8xf16>) {
  %e = tensor.empty() : tensor<16xi64>
  %i = linalg.generic {indexing_maps = [#along], iterator_types = ["parallel"]} outs(%e : tensor<16xi64>) {
  ^bb0(%o: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  } -> tensor<16xi64>
  %f = tensor.empty() : tensor<16xi1>
  %m = linalg.generic {indexing_maps = [#along, #scalar, #along], iterator_types = ["parallel"]} ins(%i, %p : tensor<16xi64>, tensor<i64>) outs(%f : tensor<16xi1>) {
  ^bb0(%a: i64, %b: i64, %o: i1):
    %0 = arith.cmpi eq, %a, %b : i64
    linalg.yield %0 : i1
  } -> tensor<16xi1>
  %g = tensor.empty() : tensor<16x8xf16>
  %y = linalg.generic {indexing_maps = [#row, affine_map<(d0, d1) -> (d1)>, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %v, %x : tensor<16xi1>, tensor<8xf16>, tensor<16x8xf16>) outs(%g : tensor<16x8xf16>) {
  ^bb0(%c: i1, %n: f16, %old: f16, %o: f16):
    %0 = arith.select %c, %n, %old : f16
    linalg.yield %0 : f16
  } -> tensor<16x8xf16>
  return %v, %y : tensor<8xf16>, tensor<16x8xf16>
}

// -----

// One that reads the argument at other elements is left unchanged, as is a result that
// is the new value of another argument.
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME:    bufferization.writable = true
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : {{.*}}) outs(%{{.*}} : tensor<8x8xf16>)
// CHECK-NEXT:    ^bb0(%[[OLD:.*]]: f16, %{{.*}}: f16):
// CHECK-NEXT:      arith.negf %[[OLD]]
func.func @transposed(%x: tensor<8x8xf16> {alcop.in_place = 0 : i64}) -> tensor<8x8xf16> {
  %e = tensor.empty() : tensor<8x8xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf16>) outs(%e : tensor<8x8xf16>) {
  ^bb0(%a: f16, %o: f16):
    %0 = arith.negf %a : f16
    linalg.yield %0 : f16
  } -> tensor<8x8xf16>
  return %y : tensor<8x8xf16>
}

// -----

// Without the attribute nothing changes.
// CHECK-LABEL: func.func @value(%{{.*}}: tensor<8xf16>) -> tensor<8xf16>
func.func @value(%x: tensor<8xf16>) -> tensor<8xf16> {
  return %x : tensor<8xf16>
}
