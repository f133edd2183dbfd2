// RUN: alcop-opt %s --alcop-inline-elementwise --mlir-print-local-scope --split-input-file --verify-diagnostics | FileCheck %s

// Named ops and others are one; each element is rounded to f16 as before.
// CHECK-LABEL: @chain(
// CHECK-SAME:      attributes {alcop.from_tensors}
// CHECK-NOT:     linalg.broadcast
// CHECK:         linalg.generic {{.*}}affine_map<(d0, d1) -> (d1)>{{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<16xf32>) outs(%{{.*}} : tensor<8x16xf16>)
// CHECK:           arith.addf
// CHECK:           arith.truncf
// CHECK-NOT:     linalg.generic
#all = affine_map<(m, n) -> (m, n)>
func.func @chain(%c: tensor<8x16xf32>, %bias: tensor<16xf32>) -> tensor<8x16xf16> {
  %e = tensor.empty() : tensor<8x16xf32>
  %b = linalg.broadcast ins(%bias : tensor<16xf32>) outs(%e : tensor<8x16xf32>) dimensions = [0]
  %s = linalg.add ins(%c, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %h = tensor.empty() : tensor<8x16xf16>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<8x16xf32>) outs(%h : tensor<8x16xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<8x16xf16>
  return %r : tensor<8x16xf16>
}

// -----

// A fill and a broadcast cost nothing: both readers compute them.
// CHECK-LABEL: @moves(
// CHECK-NOT:     linalg.fill
// CHECK-NOT:     linalg.broadcast
// CHECK-COUNT-2: linalg.generic
func.func @moves(%c: tensor<8x16xf32>, %bias: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%two : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = linalg.broadcast ins(%bias : tensor<16xf32>) outs(%e : tensor<8x16xf32>) dimensions = [0]
  %p = linalg.mul ins(%f, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %q = linalg.sub ins(%c, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %p, %q : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A function on memrefs is not marked: alcop-merge-elementwise decides.
// CHECK-LABEL: @memrefs(
// CHECK-NOT:     alcop.from_tensors
func.func @memrefs(%x: memref<8xf32>, %y: memref<8xf32>) {
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}

// -----

// What two ops read is computed once, when one of the two is part of the other.
// CHECK-LABEL: @part_of_the_other(
// CHECK:           math.exp
// CHECK-NOT:       math.exp
// CHECK-NOT:     linalg.generic
func.func @part_of_the_other(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %s = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.add ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.mul ins(%a, %s : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

// An exponential is cheaper than to write it, and read it twice: all readers compute it.
// CHECK-LABEL: @readers(
// CHECK:         linalg.generic
// CHECK:           math.exp
// CHECK:           arith.addf
// CHECK:         linalg.generic
// CHECK:           math.exp
// CHECK:           arith.subf
// CHECK-NOT:     linalg.{{exp|generic}}
// CHECK:         return
func.func @readers(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %s = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.add ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.sub ins(%s, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// -----

// A mask of numbers of iterations: those of the loops of each reader, one of which reads
// it transposed.
// CHECK-LABEL: @mask(
// CHECK-SAME:      %[[P:.*]]: tensor<1xi32>
// CHECK-NOT:     ins({{.*}}tensor<16xi1>
// CHECK:         linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<1xi32>, tensor<16x8xf32>)
// CHECK:           linalg.index 0 : index
// CHECK:           arith.select
// CHECK:         linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<1xi32>, tensor<8x16xf32>)
// CHECK:           linalg.index 1 : index
// CHECK:           arith.select
// CHECK-NOT:     linalg.generic
#n = affine_map<(n) -> (n)>
#one = affine_map<(n) -> (0)>
#m = affine_map<(m, n) -> (m)>
#last = affine_map<(m, n) -> (n)>
#mn = affine_map<(m, n) -> (m, n)>
func.func @mask(%p: tensor<1xi32>, %x: tensor<16x8xf32>, %y: tensor<8x16xf32>) -> (tensor<16x8xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %ei = tensor.empty() : tensor<16xi32>
  %i = linalg.generic {indexing_maps = [#n], iterator_types = ["parallel"]} outs(%ei : tensor<16xi32>) {
  ^bb0(%o: i32):
    %a = linalg.index 0 : index
    %b = arith.index_cast %a : index to i32
    linalg.yield %b : i32
  } -> tensor<16xi32>
  %eb = tensor.empty() : tensor<16xi1>
  %s = linalg.generic {indexing_maps = [#n, #one, #n], iterator_types = ["parallel"]} ins(%i, %p : tensor<16xi32>, tensor<1xi32>) outs(%eb : tensor<16xi1>) {
  ^bb0(%a: i32, %b: i32, %o: i1):
    %c = arith.cmpi sle, %a, %b : i32
    linalg.yield %c : i1
  } -> tensor<16xi1>
  %ex = tensor.empty() : tensor<16x8xf32>
  %q = linalg.generic {indexing_maps = [#m, #mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%s, %x : tensor<16xi1>, tensor<16x8xf32>) outs(%ex : tensor<16x8xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %t = arith.select %c, %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<16x8xf32>
  %ey = tensor.empty() : tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [#last, #mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%s, %y : tensor<16xi1>, tensor<8x16xf32>) outs(%ey : tensor<8x16xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %t = arith.select %c, %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %q, %r : tensor<16x8xf32>, tensor<8x16xf32>
}
