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
