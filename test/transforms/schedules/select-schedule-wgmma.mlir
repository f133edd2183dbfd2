// RUN: alcop-opt %s --alcop-select-schedule=target=sm_90a --split-input-file --verify-diagnostics
// RUN: not alcop-opt %s --alcop-select-schedule=target=sm_90 --split-input-file 2>&1 | FileCheck %s

// Which contractions wgmma is not chosen for.

// Of what is asked for, not of the warps of another engine.
func.func @asked_for(%a: memref<1x256xf16>, %b: memref<256x256xf16>, %c: memref<1x256xf32>) {
  // CHECK: error: alcop-select-schedule: schedule 'engine=wgmma' needs wgmma, which sm_90 does not have
  // expected-error @+1 {{schedule 'engine=wgmma' asks for wgmma, but C of 1 x 256 fills less than half of a tile of 64x64: leave the engine out}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{engine = "wgmma"}>}
    ins(%a, %b : memref<1x256xf16>, memref<256x256xf16>) outs(%c : memref<1x256xf32>)
  return
}

// -----

func.func @more_rows_than_a_map_has(%a: memref<256x256xf16>, %b: memref<256x8589934592xf16>, %c: memref<256x8589934592xf32>) {
  // expected-remark @+1 {{multiplied by mma.sync instead of wgmma: dimension 1 of memref<256x8589934592xf16> has 8589934592 elements, a tensor map has at most 4294967296}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<256x256xf16>, memref<256x8589934592xf16>) outs(%c : memref<256x8589934592xf32>)
  return
}

// -----

func.func @rows_too_far_apart(%a: memref<256x256xf16, strided<[549755813888, 1]>>, %b: memref<256x256xf16>, %c: memref<256x256xf32>) {
  // expected-remark @+1 {{dimension 0 of memref<256x256xf16, strided<[549755813888, 1]>> has a distance of 1099511627776 bytes, a tensor map has more than 0 and less than 1099511627776}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<256x256xf16, strided<[549755813888, 1]>>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}

// -----

// No remark: eight elements less are allowed.
func.func @rows_far_apart(%a: memref<256x256xf16, strided<[549755813880, 1]>>, %b: memref<256x256xf16>, %c: memref<256x256xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<256x256xf16, strided<[549755813880, 1]>>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}

// -----

// One row for all: a map of it the driver refuses at each launch.
func.func @one_row(%a: memref<256x256xf16, strided<[0, 1]>>, %b: memref<256x256xf16>, %c: memref<256x256xf32>) {
  // expected-remark @+1 {{has a distance of 0 bytes, a tensor map has more than 0}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<256x256xf16, strided<[0, 1]>>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}
