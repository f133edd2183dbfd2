// RUN: alcop-opt %s --alcop-widen-totals --split-input-file | FileCheck %s

// The sum is in f32, and rounded once.
// CHECK-LABEL: func.func @rows
// CHECK:       %[[START:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<8xf32>)
// CHECK:       %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x64xf16>) outs(%[[START]] : tensor<8xf32>) attrs = {alcop.mark = 1 : i64} {
// CHECK:         %[[TERM:.*]] = math.absf
// CHECK:         %[[WIDE:.*]] = arith.extf %[[TERM]] : f16 to f32
// CHECK:         arith.addf %[[WIDE]], %{{.*}} fastmath<contract> : f32
// CHECK:       %[[R:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<8xf32>)
// CHECK:         arith.truncf
// CHECK:       return %[[R]] : tensor<8xf16>
func.func @rows(%x: tensor<8x64xf16>) -> tensor<8xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<8xf16>) -> tensor<8xf16>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf16>) outs(%z : tensor<8xf16>) attrs = {alcop.mark = 1 : i64} {
  ^bb0(%a: f16, %c: f16):
    %0 = math.absf %a : f16
    %1 = arith.addf %c, %0 fastmath<contract> : f16
    linalg.yield %1 : f16
  } -> tensor<8xf16>
  return %s : tensor<8xf16>
}

// -----

// So is that of a window, by its name, of any size; what it starts from is widened.
// CHECK-LABEL: func.func @pool
// CHECK-SAME:  %[[X:.*]]: tensor<?x8x8x4xbf16>, %[[START:.*]]: tensor<?x4x4x4xbf16>
// CHECK:       %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[START]] :
// CHECK:         arith.extf %{{.*}} : bf16 to f32
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %{{.*}}) outs(%[[WIDE]] : tensor<?x4x4x4xf32>)
// CHECK-NOT:   linalg.pooling
func.func @pool(%x: tensor<?x8x8x4xbf16>, %start: tensor<?x4x4x4xbf16>) -> tensor<?x4x4x4xbf16> {
  %window = tensor.empty() : tensor<2x2xbf16>
  %s = linalg.pooling_nhwc_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %window : tensor<?x8x8x4xbf16>, tensor<2x2xbf16>) outs(%start : tensor<?x4x4x4xbf16>) -> tensor<?x4x4x4xbf16>
  return %s : tensor<?x4x4x4xbf16>
}

// -----

// Contractions have accumulators of f32 anyhow; extremes round nothing; memrefs stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT:   f32
func.func @others(%x: tensor<8x64xf16>, %y: tensor<64x16xf16>, %b: memref<8x64xf16>, %r: memref<8xf16>) -> (tensor<8x16xf16>, tensor<8xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8x16xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<8x16xf16>) -> tensor<8x16xf16>
  %p = linalg.matmul ins(%x, %y : tensor<8x64xf16>, tensor<64x16xf16>) outs(%z : tensor<8x16xf16>) -> tensor<8x16xf16>
  %er = tensor.empty() : tensor<8xf16>
  %zr = linalg.fill ins(%zero : f16) outs(%er : tensor<8xf16>) -> tensor<8xf16>
  %m = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x64xf16>) outs(%zr : tensor<8xf16>) {
  ^bb0(%a: f16, %c: f16):
    %0 = arith.maximumf %c, %a : f16
    linalg.yield %0 : f16
  } -> tensor<8xf16>
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%b : memref<8x64xf16>) outs(%r : memref<8xf16>) {
  ^bb0(%a: f16, %c: f16):
    %0 = arith.addf %c, %a : f16
    linalg.yield %0 : f16
  }
  return %p, %m : tensor<8x16xf16>, tensor<8xf16>
}
