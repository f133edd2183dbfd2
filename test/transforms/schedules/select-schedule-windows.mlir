// Where K consists of taps, a step has one tap, and slots tell where one ends.
// RUN: alcop-opt %s --alcop-select-schedule='target=sm_80 model=false' | FileCheck %s

// CHECK-LABEL: @two_steps
// CHECK: linalg.matmul {{.*}}alcop.schedule = #alcop.schedule<{block = [{{[0-9]+, [0-9]+}}, 32], stages = [4, 2]
func.func @two_steps(%x: memref<64x28x28x64xf16>, %w: memref<576x128xf16>, %y: memref<50176x128xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<64x28x28x64xf16>) -> memref<50176x576xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%A, %w : memref<50176x576xf16>, memref<576x128xf16>) outs(%y : memref<50176x128xf32>)
  return
}


// CHECK-LABEL: @four_steps
// CHECK: linalg.matmul {{.*}}alcop.schedule = #alcop.schedule<{block = [{{[0-9]+, [0-9]+}}, 32], stages = [4, 2]
func.func @four_steps(%x: memref<64x28x28x128xf16>, %w: memref<1152x128xf16>, %y: memref<50176x128xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<64x28x28x128xf16>) -> memref<50176x1152xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%A, %w : memref<50176x1152xf16>, memref<1152x128xf16>) outs(%y : memref<50176x128xf32>)
  return
}


// CHECK-LABEL: @three_steps
// CHECK: linalg.matmul {{.*}}alcop.schedule = #alcop.schedule<{block = [{{[0-9]+, [0-9]+}}, 32], stages = [3, 2]
func.func @three_steps(%x: memref<64x28x28x96xf16>, %w: memref<864x128xf16>, %y: memref<50176x128xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<64x28x28x96xf16>) -> memref<50176x864xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%A, %w : memref<50176x864xf16>, memref<864x128xf16>) outs(%y : memref<50176x128xf32>)
  return
}

// 40 channels: three steps of 16, not two of 32; slots tell where they end.
// CHECK-LABEL: @hardly_filled
// CHECK: linalg.matmul {{.*}}alcop.schedule = #alcop.schedule<{block = [{{[0-9]+, [0-9]+}}, 16], stages = [3, 2]
func.func @hardly_filled(%x: memref<64x28x28x40xf16>, %w: memref<360x128xf16>, %y: memref<50176x128xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<64x28x28x40xf16>) -> memref<50176x360xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%A, %w : memref<50176x360xf16>, memref<360x128xf16>) outs(%y : memref<50176x128xf32>)
  return
}

// Pixels of 40 bytes: each thread holds the addresses of many narrow copies, so that tiles
// are small.
// CHECK-LABEL: @narrow
// CHECK: linalg.matmul {{.*}}alcop.schedule = #alcop.schedule<{block = [64, 64, 32]
func.func @narrow(%x: memref<64x28x28x20xf16>, %w: memref<180x128xf16>, %y: memref<50176x128xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<64x28x28x20xf16>) -> memref<50176x180xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%A, %w : memref<50176x180xf16>, memref<180x128xf16>) outs(%y : memref<50176x128xf32>)
  return
}
