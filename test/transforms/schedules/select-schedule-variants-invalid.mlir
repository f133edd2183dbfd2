// RUN: alcop-opt %s --alcop-select-schedule=variants=4 --split-input-file --verify-diagnostics
// RUN: alcop-opt %s --alcop-select-schedule=variants=1 --split-input-file --verify-diagnostics
// RUN: not alcop-opt %s --alcop-select-schedule=variants=0 2>&1 | FileCheck %s --check-prefix=COUNT

// COUNT: error: {{.*}}variants=0, expected 1 to 16

func.func @no_common_size(%a: memref<?x?xf16> {alcop.size_range = [[1, 64], [1, 64]]},
                          %b: memref<?x?xf16> {alcop.size_range = [[128, 256], [1, 64]]}, %c: memref<?x?xf32>) {
  // expected-error @+1 {{no size of K is in all its ranges: 128 at least, 64 at most}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

func.func @known_size(%a: memref<?x?xf16> {alcop.size_range = [[1, 64], [1, 64]]},
                      %b: memref<128x?xf16>, %c: memref<?x?xf32>) {
  // expected-error @+1 {{the size of K is 128, and in no range: 1 at least, 64 at most}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x?xf16>, memref<128x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

func.func @does_not_fit(%a: memref<?x?xf16>, %c: memref<?x?xf32>) {
  // expected-error @+1 {{needs 262144 bytes of shared memory}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [128, 128, 64], stages = [8, 1], warp = [64, 64]}>}
    ins(%a, %a : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}
