// RUN: alcop-opt %s --alcop-select-schedule --split-input-file | FileCheck %s
// RUN: alcop-opt %s --alcop-select-schedule=variants=1 --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: alcop-opt %s --alcop-select-schedule='variants=4 model=false' --split-input-file | FileCheck %s --check-prefix=DEFAULT
// RUN: alcop-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(alcop-select-schedule{variants=4 schedule='block=64,64,32 warp=32,32 stages=3,1'}))" \
// RUN:   | FileCheck %s --check-prefix=GIVEN
// RUN: alcop-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(alcop-select-schedule{variants=4 schedule='stages=2,1'},alcop-select-schedule{variants=2}))" \
// RUN:   | FileCheck %s --check-prefix=PARTIAL

// Kernels of aligned rows, one of them for small outputs; the last is for all sizes.
// CHECK-LABEL: @open
// CHECK-NOT:   alcop.schedule
// CHECK:       alcop.variants = [{limits = [{{[^r]*}}row_bytes
// CHECK-SAME:  row_bytes = 16 : i64, schedule = {block
// CHECK-SAME:  {schedule = {block = [{{[^{]*}}}, source = "analytical model"}]}
// ONE-LABEL: @open
// ONE-NOT:   alcop.variants
// ONE:       alcop.schedule = #alcop.schedule<{block = [64, 64, 32],{{.*}}alcop.schedule_source = "default"
// DEFAULT-LABEL: @open
// DEFAULT:       alcop.variants = [{row_bytes = 16 : i64, schedule = {block = [128, 128, 32], raster = 8 : i64, stages = [4, 2], warp = [64, 64]}, source = "default"}, {schedule = {block = [64, 64, 32], raster = 8 : i64, stages = [4, 2], warp = [32, 32]}, source = "default"}]
// What is given is that of all.
// GIVEN-LABEL: @open
// GIVEN:       alcop.variants = [{row_bytes = 16 : i64, schedule = {block = [64, 64, 32], stages = [3, 1], warp = [32, 32]}, source = "given"}, {schedule = {block = [64, 64, 32], stages = [3, 1], warp = [32, 32]}, source = "given"}]
// Run again, the pass keeps variants.
// PARTIAL-LABEL: @open
// PARTIAL:       alcop.variants = [{limits = {{.*}}stages = [2, 1]{{.*}}stages = [2, 1]{{.*}}stages = [2, 1]{{.*}}source = "given in part, else analytical model"}]
func.func @open(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// Rows that are known to be aligned are not asked about.
// CHECK-LABEL: @open_rows
// CHECK:       alcop.variants = [
// CHECK-NOT:   row_bytes
// CHECK:       outs
// DEFAULT-LABEL: @open_rows
// DEFAULT:       alcop.schedule = #alcop.schedule<{block = [128, 128, 32]
// GIVEN-LABEL: @open_rows
// GIVEN:       alcop.schedule = #alcop.schedule<{block = [64, 64, 32]
func.func @open_rows(%a: memref<?x4096xf16>, %b: memref<4096x4096xf16>, %c: memref<?x4096xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x4096xf16>, memref<4096x4096xf16>) outs(%c : memref<?x4096xf32>)
  return
}

// -----

// A promise is known, too.
// CHECK-LABEL: @promised
// CHECK:       alcop.variants = [
// CHECK-NOT:   row_bytes
// CHECK:       outs
func.func @promised(%a: memref<?x?xf16> {alcop.row_alignment = 16 : i64}, %b: memref<?x?xf16> {alcop.row_alignment = 16 : i64}, %c: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// Rows of known length, at distances that are not known.
// CHECK-LABEL: @strided
// CHECK:       alcop.variants = [{{.*}}row_bytes = 16
// DEFAULT-LABEL: @strided
// DEFAULT:       alcop.variants = [{row_bytes = 16
func.func @strided(%a: memref<?x4096xf16, strided<[?, 1]>>, %b: memref<4096x4096xf16>, %c: memref<?x4096xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x4096xf16, strided<[?, 1]>>, memref<4096x4096xf16>) outs(%c : memref<?x4096xf32>)
  return
}

// -----

// Sizes to be expected, of both operands: no limit of M is beyond them, and one of the
// kernels splits K.
// CHECK-LABEL: @ranges
// CHECK:       alcop.variants = [{{.*}}split_k = {{.*}}]
// CHECK-NOT:   block = [128
// CHECK:       outs
func.func @ranges(%a: memref<?x?xf16> {alcop.size_range = [[1, 16], [1, 8192]]},
                  %b: memref<?x?xf16> {alcop.size_range = [[4096, 16384], [64, 128]]}, %c: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// All sizes are known: a single schedule.
// CHECK-LABEL: @known
// CHECK-NOT:   alcop.variants
// CHECK:       alcop.schedule = {{.*}}alcop.schedule_source = "analytical model"
func.func @known(%a: memref<512x512xf16>, %c: memref<512x512xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %a : memref<512x512xf16>, memref<512x512xf16>) outs(%c : memref<512x512xf32>)
  return
}

// -----

// Sizes are known, but distances of rows are not: aligned ones or any. Of C alone they
// would not matter.
// CHECK-LABEL: @known_sizes
// CHECK:       alcop.variants = [{row_bytes = 16 : i64, schedule = {{.*}}}, {row_bytes = 4 : i64, {{.*}}}, {schedule =
// CHECK:       alcop.schedule = {{.*}}alcop.schedule_source = "analytical model"
// ONE-LABEL: @known_sizes
// ONE-NOT:     alcop.variants
// DEFAULT-LABEL: @known_sizes
// DEFAULT:       alcop.variants = [{row_bytes = 16 : i64, schedule = {{.*}}}, {schedule =
// DEFAULT:       alcop.schedule =
func.func @known_sizes(%a: memref<512x510xf16, strided<[?, 1]>>, %b: memref<510x512xf16>, %c: memref<512x512xf32>,
                       %d: memref<512x512xf16>, %e: memref<512x512xf32, strided<[?, 1]>>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<512x510xf16, strided<[?, 1]>>, memref<510x512xf16>) outs(%c : memref<512x512xf32>)
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%d, %d : memref<512x512xf16>, memref<512x512xf16>) outs(%e : memref<512x512xf32, strided<[?, 1]>>)
  return
}
