// RUN: alcop-opt %s --alcop-select-schedule='target=sm_80 model=false' --split-input-file | FileCheck %s
// RUN: alcop-opt %s --alcop-select-schedule='target=sm_86 model=false' --split-input-file \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: alcop-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(alcop-select-schedule{schedule='block=64,64,32 warp=32,32 stages=5,1'}))" \
// RUN:   | FileCheck %s --check-prefix=GIVEN
// RUN: alcop-opt %s --alcop-select-schedule=target=sm_80 --split-input-file | FileCheck %s --check-prefix=MODEL
// RUN: alcop-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(alcop-select-schedule{schedule='stages=2,1'},alcop-select-schedule))" \
// RUN:   | FileCheck %s --check-prefix=PARTIAL

// A large contraction: the largest tile, and the deepest pipeline that leaves two blocks to
// an SM; sm_86 has less shared memory. More blocks than run at once: in groups of rows.
// CHECK-LABEL: @large
// CHECK:       alcop.schedule = #alcop.schedule<{block = [128, 128, 32], raster = 8 : i64, stages = [4, 2], warp = [64, 64]}>, alcop.schedule_source = "default"}
// SMALL-LABEL: @large
// SMALL:       alcop.schedule = #alcop.schedule<{block = [128, 128, 32], raster = 8 : i64, stages = [3, 2], warp = [64, 64]}>
// GIVEN-LABEL: @large
// GIVEN:       alcop.schedule = #alcop.schedule<{block = [64, 64, 32], stages = [5, 1], warp = [32, 32]}>, alcop.schedule_source = "given"}
// With records or a model: whatever it likes, in full.
// MODEL-LABEL: @large
// MODEL:       alcop.schedule = #alcop.schedule<{block = [128, 256, 64], raster = 8 : i64, stages = [3, 2], warp = [64, 64]}>, alcop.schedule_source = "analytical model"}
// What is not given is what the model likes; run again, the pass keeps who has decided.
// PARTIAL-LABEL: @large
// PARTIAL:       alcop.schedule = #alcop.schedule<{block = [128, 256, 64], raster = 8 : i64, stages = [2, 1], warp = [64, 64]}>, alcop.schedule_source = "given in part, else analytical model"}
func.func @large(%a: memref<4096x4096xf16>, %c: memref<4096x4096xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %a : memref<4096x4096xf16>, memref<4096x4096xf16>) outs(%c : memref<4096x4096xf32>)
  return
}

// -----

// 16 tiles of 128x128 would leave most SMs idle: smaller ones.
// CHECK-LABEL: @fill_the_sms
// CHECK:       alcop.schedule = #alcop.schedule<{block = [64, 32, 32], stages = [4, 2], warp = [32, 32]}>
func.func @fill_the_sms(%a: memref<512x512xf16>, %c: memref<512x512xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %a : memref<512x512xf16>, memref<512x512xf16>) outs(%c : memref<512x512xf32>)
  return
}

// -----

// No more stages than K steps.
// CHECK-LABEL: @short_k
// CHECK:       block = [128, 128, 32], raster = 8 : i64, stages = [2, 2]
func.func @short_k(%a: memref<4096x64xf16>, %b: memref<64x4096xf16>, %c: memref<4096x4096xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<4096x64xf16>, memref<64x4096xf16>) outs(%c : memref<4096x4096xf32>)
  return
}

// -----

// A long sum into few tiles: in parts of 1024, a block for each.
// CHECK-LABEL: @long_k
// CHECK:       block = [64, 32, 32], split_k = 4 : i64, stages = [4, 2]
func.func @long_k(%a: memref<128x4096xf16>, %b: memref<4096x128xf16>, %c: memref<128x128xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<128x4096xf16>, memref<4096x128xf16>) outs(%c : memref<128x128xf32>)
  return
}

// -----

// Not where there is a batch.
// CHECK-LABEL: @long_k_of_a_batch
// CHECK:       block = [64, 32, 32], stages = [4, 2]
func.func @long_k_of_a_batch(%a: memref<2x128x4096xf16>, %b: memref<2x4096x128xf16>, %c: memref<2x128x128xf32>) {
  linalg.batch_matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "bmk", out = "bmn", rhs = "bkn"}>}
    ins(%a, %b : memref<2x128x4096xf16>, memref<2x4096x128xf16>) outs(%c : memref<2x128x128xf32>)
  return
}

// -----

// An unmarked op gets none.
// CHECK-LABEL: @unmarked
// CHECK-NOT:   alcop.schedule
func.func @unmarked(%a: memref<512x512xf16>, %c: memref<512x512xf32>) {
  linalg.matmul ins(%a, %a : memref<512x512xf16>, memref<512x512xf16>)
                outs(%c : memref<512x512xf32>)
  return
}

// -----

// A schedule that the op carries already is kept, unless another is given.
// CHECK-LABEL: @carried
// CHECK:       block = [32, 32, 16], stages = [2, 1], warp = [16, 16]
// GIVEN-LABEL: @carried
// GIVEN:       block = [64, 64, 32], stages = [5, 1], warp = [32, 32]
func.func @carried(%a: memref<512x512xf16>, %c: memref<512x512xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [32, 32, 16], stages = [2, 1], warp = [16, 16]}>}
    ins(%a, %a : memref<512x512xf16>, memref<512x512xf16>) outs(%c : memref<512x512xf32>)
  return
}

// -----

// What it does not say is chosen.
// CHECK-LABEL: @carried_in_part
// CHECK:       alcop.schedule = #alcop.schedule<{block = [64, 32, 32], stages = [3, 1], warp = [32, 32]}>, alcop.schedule_source = "given in part, else default"
// MODEL-LABEL: @carried_in_part
// MODEL:       alcop.schedule = #alcop.schedule<{block = [64, 64, 64], stages = [3, 1], warp = [32, 32]}>, alcop.schedule_source = "given in part, else analytical model"
func.func @carried_in_part(%a: memref<512x512xf16>, %c: memref<512x512xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{stages = [3, 1]}>}
    ins(%a, %a : memref<512x512xf16>, memref<512x512xf16>) outs(%c : memref<512x512xf32>)
  return
}

// -----

// The first that fits: the tile that is chosen is narrower than this warp.
// CHECK-LABEL: @wide_warp
// CHECK:       block = [128, 128, 32], stages = [3, 2], warp = [128, 32]}>, alcop.schedule_source = "given in part, else default"
// MODEL-LABEL: @wide_warp
// MODEL:       block = [128, {{[0-9]+, [0-9]+}}], {{.*}}warp = [128, 32]}>
func.func @wide_warp(%a: memref<512x512xf16>, %c: memref<512x512xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{warp = [128, 32]}>}
    ins(%a, %a : memref<512x512xf16>, memref<512x512xf16>) outs(%c : memref<512x512xf32>)
  return
}

// -----

// An op reads columns of two contractions in turn: of 32 columns a warp has both parts.
// Without it the model takes 16.
// MODEL-LABEL: @interleaved
// MODEL:       warp = [16, 32]}>, alcop.schedule_source = "analytical model"}
// MODEL:       linalg.matmul {{.*}}warp = [16, 16]}>
#mn = affine_map<(m, n) -> (m, n)>
#p0 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16)>
#p1 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16 + 16)>
func.func @interleaved(%A: memref<16x512xf16>, %B: memref<512x1024xf16>, %C: memref<16x1024xf32>, %D: memref<16x512xf32>, %E: memref<16x1024xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<16x512xf16>, memref<512x1024xf16>) outs(%C : memref<16x1024xf32>)
  linalg.generic {indexing_maps = [#p0, #p1, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %C : memref<16x1024xf32>, memref<16x1024xf32>) outs(%D : memref<16x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  }
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<16x512xf16>, memref<512x1024xf16>) outs(%E : memref<16x1024xf32>)
  return
}
