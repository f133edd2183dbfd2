// RUN: alcop-opt %s --alcop-select-schedule --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s
// RUN: not alcop-opt %s --alcop-select-schedule=target=sm_12 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TARGET
// RUN: not alcop-opt %s --pass-pipeline="builtin.module(func.func(alcop-select-schedule{schedule='block=64'}))" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SCHEDULE

// TARGET:   error: {{.*}}unknown target 'sm_12', expected one of sm_80, sm_86, sm_89, sm_90
// SCHEDULE: error: {{.*}}schedule: block=64, expected 3 positive integers

// Nothing divides 40: the op is left as alcop-raise-contractions found it.
// CHECK-LABEL: @no_tile
// CHECK:       linalg.fill
// CHECK-NEXT:  linalg.matmul ins(
// CHECK:       memref.copy %{{.*}}, %{{.*}} : memref
// CHECK-NEXT:  linalg.matmul ins(
func.func @no_tile(%a: memref<40x64xf16>, %b: memref<64x64xf16>, %in: memref<40x64xf32>,
                   %c: memref<40x64xf32>) {
  // expected-remark @+1 {{'linalg.matmul' is left alone: no tile divides M, N, K = 40x64x64, expected multiples of 16}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<40x64xf16>, memref<64x64xf16>) outs(%c : memref<40x64xf32>)
  memref.copy %in, %c {alcop.contraction = #alcop.contraction<{role = "init"}>} : memref<40x64xf32> to memref<40x64xf32>
  // expected-remark @+1 {{'linalg.matmul' is left alone}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "copy", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<40x64xf16>, memref<64x64xf16>) outs(%c : memref<40x64xf32>)
  return
}

// -----

func.func @does_not_divide(%a: memref<64x64xf16>, %c: memref<64x64xf32>) {
  // expected-error @+1 {{alcop-select-schedule: schedule 'block=64,64,48 warp=32,32 stages=2,1' does not divide the product: K is 64, expected a multiple of 48}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 48], stages = [2, 1], warp = [32, 32]}>}
    ins(%a, %a : memref<64x64xf16>, memref<64x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

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

func.func @no_product(%a: memref<256x256xf16>, %c: memref<256x256xf16>) {
  // expected-error @+1 {{'linalg.add' is marked but not a matrix product}}
  linalg.add {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %a : memref<256x256xf16>, memref<256x256xf16>) outs(%c : memref<256x256xf16>)
  return
}
