// RUN: alcop-opt %s --alcop-select-schedule --split-input-file --verify-diagnostics
// RUN: not alcop-opt %s --alcop-select-schedule=target=sm_12 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TARGET
// RUN: not alcop-opt %s --pass-pipeline="builtin.module(func.func(alcop-select-schedule{schedule='block=64'}))" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SCHEDULE

// TARGET:   error: {{.*}}unknown target 'sm_12', expected one of sm_80, sm_86, sm_89, sm_90
// SCHEDULE: error: {{.*}}schedule.block: expected a list of 3, each an integer from 1 to 65536, got [64]

func.func @does_not_fit(%a: memref<256x256xf16>, %c: memref<256x256xf32>) {
  // expected-error @+1 {{needs 262144 bytes of shared memory, sm_80 has 166912 per block: fewer stages or a smaller block}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [128, 128, 64], stages = [8, 1], warp = [64, 64]}>}
    ins(%a, %a : memref<256x256xf16>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}

// -----

func.func @absurd(%a: memref<256x256xf16>, %c: memref<256x256xf32>) {
  // expected-error @+1 {{schedule: warp M is 8, must be 16*n}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [128, 128, 64], stages = [8, 1], warp = [8, 64]}>}
    ins(%a, %a : memref<256x256xf16>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}

// -----

// Nothing that is chosen fits.
func.func @fits_nothing(%a: memref<256x256xf16>, %c: memref<256x256xf32>) {
  // expected-error @+1 {{is not a whole number of warp=4096,64}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{warp = [4096, 64]}>}
    ins(%a, %a : memref<256x256xf16>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}

// -----

func.func @no_contraction(%a: memref<256x256xf16>, %c: memref<256x256xf16>) {
  // expected-error @+1 {{'linalg.add' is marked but not a contraction}}
  linalg.add {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %a : memref<256x256xf16>, memref<256x256xf16>) outs(%c : memref<256x256xf16>)
  return
}

// -----

// expected-error @+1 {{'alcop.size_range' has an empty range [64, 1], expected 1 <= least <= largest}}
func.func @empty_range(%a: memref<?x256xf16> {alcop.size_range = [[64, 1], [256, 256]]}) {
  return
}

// -----

// expected-error @+1 {{'alcop.size_range' expects a range for each of 2 dimensions}}
func.func @few_ranges(%a: memref<?x256xf16> {alcop.size_range = [[1, 64]]}) {
  return
}

// -----

// expected-error @+1 {{'alcop.size_range' expects [least, largest] for dimension 0}}
func.func @no_range(%a: memref<?x256xf16> {alcop.size_range = [64, [256, 256]]}) {
  return
}

// -----

// expected-error @+1 {{'alcop.size_range' is [1, 64] for a size that is 256}}
func.func @known_size(%a: memref<?x256xf16> {alcop.size_range = [[1, 64], [1, 64]]}) {
  return
}

// -----

// expected-error @+1 {{'alcop.size_range' is of an argument of type f16, expected a memref}}
func.func @no_sizes(%a: f16 {alcop.size_range = [[1, 64]]}) {
  return
}

// -----

// expected-error @+1 {{'alcop.size_range' has no multiple of 8 in [3, 5], as rows are promised to be}}
func.func @range_against_promise(%A: memref<?x?xf16> {alcop.size_range = [[1, 9], [3, 5]], alcop.row_alignment = 16}) {
  return
}

// -----

// Of what is asked for, not of the warps of another engine.
func.func @no_wgmma(%a: memref<256x256xf16>, %c: memref<256x256xf32>) {
  // expected-error @+1 {{schedule 'engine=wgmma' needs wgmma, which sm_80 does not have: compile for sm_90a, or leave the engine out}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{engine = "wgmma"}>}
    ins(%a, %a : memref<256x256xf16>, memref<256x256xf16>) outs(%c : memref<256x256xf32>)
  return
}
