// RUN: alcop-opt %s --alcop-tile-to-blocks --split-input-file --verify-diagnostics

func.func @no_init_copy(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  // expected-error @+1 {{init is 'copy', but no copy into the output is marked as init}}
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "copy"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2]}>
  } ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

func.func @rectangles_of_a_matrix(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  // expected-remark @+1 {{has rectangles, but the rows of A are no windows of several taps, in images of two dimensions or more and known sizes: leave rectangle out: blocks compute rows, not rectangles}}
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2], rectangle = 8}>
  } ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// An element-wise op that reads C by its columns.
func.func @rectangles_of_columns(%x: memref<1x8x8x32xf16>, %w: memref<288x32xf16>, %y: memref<64x32xf32>, %r: memref<32x64xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<1x8x8x32xf16>) -> memref<64x288xf16>
  // expected-remark @+1 {{memref<32x64xf32> is not read or written by rows of C: blocks compute rows, not rectangles}}
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1], rectangle = 8}>
  } ins(%A, %w : memref<64x288xf16>, memref<288x32xf16>) outs(%y : memref<64x32xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"],
    alcop.contraction = #alcop.contraction<{role = "epilogue"}>
  } ins(%r : memref<32x64xf32>) outs(%y : memref<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}
