// RUN: alcop-opt %s --alcop-narrow-doubles --split-input-file | FileCheck %s

// Elements are not widened any more, constants are rounded, splats too.
// CHECK-LABEL: @statistics(
// CHECK-NOT:   f64
// CHECK:       %[[EPS:.*]] = arith.constant 9.99999974E-6 : f32
// CHECK:       %[[D:.*]] = arith.constant dense<2.500000e-01> : tensor<8xf32>
// CHECK:       linalg.fill {{.*}} -> tensor<8xf32>
// CHECK:       linalg.generic {{.*}} ins(%{{.*}} : tensor<8x64xf16>) outs(%{{.*}} : tensor<8xf32>)
// CHECK:       %[[W:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK:       arith.addf %[[W]], %{{.*}} : f32
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %[[D]] : tensor<8xf32>, tensor<8xf32>)
// CHECK:       %[[M:.*]] = arith.mulf
// CHECK:       %[[A:.*]] = arith.addf %[[M]], %[[EPS]] : f32
// CHECK:       linalg.yield %[[A]] : f32
// CHECK-NOT:   f64
// CHECK:       return
#both = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
func.func @statistics(%x: tensor<8x64xf16>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f64
  %eps = arith.constant 1.0e-5 : f64
  %d = arith.constant dense<0.25> : tensor<8xf64>
  %e = tensor.empty() : tensor<8xf64>
  %r = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<8xf64>) -> tensor<8xf64>
  %s = linalg.generic {indexing_maps = [#both, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<8x64xf16>) outs(%f : tensor<8xf64>) {
  ^bb0(%a: f16, %b: f64):
    %w = arith.extf %a : f16 to f32
    %v = arith.extf %w : f32 to f64
    %c = arith.addf %v, %b : f64
    linalg.yield %c : f64
  } -> tensor<8xf64>
  %m = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
    ins(%s, %d : tensor<8xf64>, tensor<8xf64>) outs(%r : tensor<8xf32>) {
  ^bb0(%a: f64, %q: f64, %b: f32):
    %c = arith.mulf %a, %q : f64
    %g = arith.addf %c, %eps : f64
    %h = arith.truncf %g : f64 to f32
    linalg.yield %h : f32
  } -> tensor<8xf32>
  return %m : tensor<8xf32>
}

// -----

// CHECK-LABEL: @argument(
// CHECK:       arith.addf %{{.*}} : f64
#one = affine_map<(i) -> (i)>
func.func @argument(%x: tensor<8xf64>, %r: tensor<8xf32>) -> tensor<8xf32> {
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf64>) outs(%r : tensor<8xf32>) {
  ^bb0(%a: f64, %b: f32):
    %c = arith.addf %a, %a : f64
    %h = arith.truncf %c : f64 to f32
    linalg.yield %h : f32
  } -> tensor<8xf32>
  return %m : tensor<8xf32>
}

// -----

// CHECK-LABEL: @result(
// CHECK:       arith.extf %{{.*}} : f32 to f64
#one = affine_map<(i) -> (i)>
func.func @result(%x: tensor<8xf32>) -> tensor<8xf64> {
  %r = tensor.empty() : tensor<8xf64>
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%r : tensor<8xf64>) {
  ^bb0(%a: f32, %b: f64):
    %c = arith.extf %a : f32 to f64
    linalg.yield %c : f64
  } -> tensor<8xf64>
  return %m : tensor<8xf64>
}

// -----

// f32 does not have all integers, nor 1e300; nor 0.1, so that a number that is less
// than it could be no more.
// CHECK-LABEL: @integers(
// CHECK:       arith.sitofp %{{.*}} : i64 to f64
// CHECK-LABEL: @large(
// CHECK:       arith.mulf %{{.*}} : f64
// CHECK-LABEL: @compared(
// CHECK:       arith.cmpf olt, %{{.*}} : f64
#one = affine_map<(i) -> (i)>
func.func @integers(%x: tensor<8xi64>, %r: tensor<8xf32>) -> tensor<8xf32> {
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : tensor<8xi64>) outs(%r : tensor<8xf32>) {
  ^bb0(%a: i64, %b: f32):
    %c = arith.sitofp %a : i64 to f64
    %h = arith.truncf %c : f64 to f32
    linalg.yield %h : f32
  } -> tensor<8xf32>
  return %m : tensor<8xf32>
}
func.func @large(%x: tensor<8xf32>, %r: tensor<8xf32>) -> tensor<8xf32> {
  %large = arith.constant 1.0e300 : f64
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%r : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %w = arith.extf %a : f32 to f64
    %c = arith.mulf %w, %large : f64
    %h = arith.truncf %c : f64 to f32
    linalg.yield %h : f32
  } -> tensor<8xf32>
  return %m : tensor<8xf32>
}
func.func @compared(%x: tensor<8xf32>, %r: tensor<8xi1>) -> tensor<8xi1> {
  %tenth = arith.constant 0.1 : f64
  %m = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%r : tensor<8xi1>) {
  ^bb0(%a: f32, %b: i1):
    %w = arith.extf %a : f32 to f64
    %c = arith.cmpf olt, %w, %tenth : f64
    linalg.yield %c : i1
  } -> tensor<8xi1>
  return %m : tensor<8xi1>
}
