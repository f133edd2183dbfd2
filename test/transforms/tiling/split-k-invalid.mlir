// RUN: alcop-opt %s --alcop-split-k --split-input-file --verify-diagnostics
// RUN: alcop-opt %s --alcop-select-schedule --split-input-file --verify-diagnostics

func.func @parts_of_whole_bytes(%a: memref<64x72xf16>, %b: memref<72x64xf16>, %c: memref<64x64xf32>) {
  // expected-error @+1 {{splits K, but K is 72, expected a multiple of 16: parts of whole 16 bytes}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [2, 1], warp = [32, 32]}>}
    ins(%a, %b : memref<64x72xf16>, memref<72x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

func.func @unknown_length(%a: memref<64x?xf16>, %b: memref<?x64xf16>, %c: memref<64x64xf32>) {
  // expected-error @+1 {{splits K, but K is known at run time only: leave split_k out}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [2, 1], warp = [32, 32]}>}
    ins(%a, %b : memref<64x?xf16>, memref<?x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

func.func @batch(%a: memref<4x64x64xf16>, %c: memref<4x64x64xf32>) {
  // expected-error @+1 {{splits K, but the contraction has a batch: leave split_k out}}
  linalg.batch_matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "bmk", out = "bmn", rhs = "bkn"}>,
                       alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [2, 1], warp = [32, 32]}>}
    ins(%a, %a : memref<4x64x64xf16>, memref<4x64x64xf16>) outs(%c : memref<4x64x64xf32>)
  return
}

// -----

func.func @nothing_to_sum(%a: memref<64x0xf16>, %b: memref<0x64xf16>, %c: memref<64x64xf32>) {
  // expected-error @+1 {{splits K, but K is 0, expected a multiple of 16: parts of whole 16 bytes}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [2, 1], warp = [32, 32]}>}
    ins(%a, %b : memref<64x0xf16>, memref<0x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

func.func @taps(%x: memref<1x8x8x64xf16>, %w: memref<576x32xf16>, %y: memref<64x32xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<1x8x8x64xf16>) -> memref<64x576xf16>
  // expected-error @below {{splits K, but 9 taps have 18 steps, expected parts of equally many}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1], split_k = 4}>}
    ins(%A, %w : memref<64x576xf16>, memref<576x32xf16>) outs(%y : memref<64x32xf32>)
  return
}
