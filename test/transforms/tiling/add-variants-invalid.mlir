// RUN: alcop-opt %s --alcop-add-variants=assume-noalias-args=true --verify-diagnostics --split-input-file

// The last one must be for all sizes.
func.func @none_for_all(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  // expected-error @below {{the last variant must be for all sizes}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

func.func @no_list(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  // expected-error @below {{variants: expected a list, got 3}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = 3}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

func.func @no_contraction(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  // expected-error @below {{has 'alcop.variants', but is not marked as a contraction}}
  linalg.matmul {alcop.variants = [{schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// Where no branch is made, alcop-fuse-elementwise says what is not fused; and what is
// fused with a later contraction is.
#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1, d0)>
func.func @fused_later(%a: memref<64x64xf16>, %b: memref<?x?xf16>, %c: memref<64x64xf32>, %d: memref<64x64xf32>, %e: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%a, %a : memref<64x64xf16>, memref<64x64xf16>) outs(%c : memref<64x64xf32>)
  linalg.generic {indexing_maps = [#columns, #rows], iterator_types = ["parallel", "parallel"]}
    ins(%c : memref<64x64xf32>) outs(%d : memref<64x64xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%b, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%e : memref<?x?xf32>)
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>}
    ins(%a, %a : memref<64x64xf16>, memref<64x64xf16>) outs(%c : memref<64x64xf32>)
  linalg.generic {indexing_maps = [#columns, #rows, #rows], iterator_types = ["parallel", "parallel"]}
    ins(%e, %c : memref<?x?xf32>, memref<64x64xf32>) outs(%d : memref<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// An op that is not fused stays behind the branches.
#here = affine_map<(d0, d1) -> (d0, d1)>
#across = affine_map<(d0, d1) -> (d1, d0)>
func.func @not_fused(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %d: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  // expected-remark @below {{'linalg.generic' is not fused into the contraction: writes its output by other loops than it reads the contraction's: transposed, or broadcast}}
  linalg.generic {indexing_maps = [#across, #here], iterator_types = ["parallel", "parallel"]}
    ins(%c : memref<?x?xf32>) outs(%d : memref<?x?xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}
