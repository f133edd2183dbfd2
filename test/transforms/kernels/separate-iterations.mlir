// RUN: alcop-opt %s --alcop-separate-iterations --canonicalize --split-input-file \
// RUN:   | FileCheck %s

// A branch, never taken, parts two tiles: what the first one adds up is computed in front.
// CHECK-LABEL: func.func @two_tiles
// CHECK:       scf.for %[[K:[a-z0-9]+]] =
// CHECK:         nvgpu.device_async_wait
// CHECK:         nvgpu.mma.sync
// CHECK:         %[[SUM:.*]] = arith.addf
// CHECK:         %[[HERE:.*]] = llvm.inline_asm has_side_effects "mov.b32 $0, $1;", "=f,f" %[[SUM]]
// CHECK:         %[[COUNT:.*]] = arith.index_cast %[[K]] : index to i32
// CHECK:         %[[MOVED:.*]] = llvm.inline_asm "mov.b32 $0, $1;", "=r,r" %[[COUNT]]
// CHECK:         %[[ENDED:.*]] = arith.cmpi sge, %[[MOVED]], %c896_i32
// CHECK:         scf.if %[[ENDED]] {
// CHECK-NEXT:      llvm.intr.trap
// CHECK-NEXT:    }
// CHECK-NEXT:    nvgpu.device_async_wait
// CHECK:         arith.addf %[[HERE]]
// CHECK-NOT:     scf.if
func.func @two_tiles(%token: !nvgpu.device.async.token, %a: vector<4x2xf16>, %b: vector<2x2xf16>, %w: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c896 = arith.constant 896 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<2x2xf32>
  %r:2 = scf.for %k = %c0 to %c896 step %c128 iter_args(%acc = %zeros, %total = %zero) -> (vector<2x2xf32>, f32) {
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %0 = nvgpu.mma.sync(%a, %b, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %1 = arith.addf %total, %w : f32
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %2 = nvgpu.mma.sync(%a, %b, %0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %3 = arith.addf %1, %w : f32
    scf.yield %2, %3 : vector<2x2xf32>, f32
  }
  return %r#1 : f32
}

// -----

// Totals of several rows, and an end that is known at run time only.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[HERE:.*]] = llvm.inline_asm has_side_effects "mov.b32 $0, $1;", "=f,f"
// CHECK:         llvm.inline_asm has_side_effects "mov.b32 $0, $1;", "=f,f"
// CHECK:         llvm.inline_asm "mov.b64 $0, $1;"
// CHECK:         arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK:         llvm.intr.trap
// CHECK:         nvgpu.device_async_wait
// CHECK:         arith.addf %[[HERE]]
func.func @rows(%token: !nvgpu.device.async.token, %a: vector<4x2xf16>, %b: vector<2x2xf16>, %w: f32, %n: index) -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %none = arith.constant dense<0.0> : vector<2xf32>
  %zeros = arith.constant dense<0.0> : vector<2x2xf32>
  %r:2 = scf.for %k = %c0 to %n step %c128 iter_args(%acc = %zeros, %total = %none) -> (vector<2x2xf32>, vector<2xf32>) {
    %0 = nvgpu.mma.sync(%a, %b, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %1 = vector.extract %total[0] : f32 from vector<2xf32>
    %2 = vector.extract %total[1] : f32 from vector<2xf32>
    %3 = arith.addf %1, %w : f32
    %4 = arith.addf %2, %w : f32
    %5 = vector.from_elements %3, %4 : vector<2xf32>
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %6 = nvgpu.mma.sync(%a, %b, %0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %7 = vector.extract %5[0] : f32 from vector<2xf32>
    %8 = arith.addf %7, %w : f32
    %9 = vector.from_elements %8, %8 : vector<2xf32>
    scf.yield %6, %9 : vector<2x2xf32>, vector<2xf32>
  }
  return %r#1 : vector<2xf32>
}

// -----

// Not of a product of matrices alone, which the tiles of one iteration may share.
// CHECK-LABEL: func.func @no_total
// CHECK-NOT:   scf.if
func.func @no_total(%token: !nvgpu.device.async.token, %a: vector<4x2xf16>, %b: vector<2x2xf16>) -> vector<2x2xf32> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c896 = arith.constant 896 : index
  %zeros = arith.constant dense<0.0> : vector<2x2xf32>
  %r = scf.for %k = %c0 to %c896 step %c128 iter_args(%acc = %zeros) -> (vector<2x2xf32>) {
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %0 = nvgpu.mma.sync(%a, %b, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %1 = nvgpu.mma.sync(%a, %b, %0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    scf.yield %1 : vector<2x2xf32>
  }
  return %r : vector<2x2xf32>
}

// -----

// Nor where an iteration is one tile, or nothing is multiplied, or sums are in f64.
// CHECK-LABEL: func.func @one_tile
// CHECK-NOT:   scf.if
func.func @one_tile(%token: !nvgpu.device.async.token, %a: vector<4x2xf16>, %b: vector<2x2xf16>, %w: f32, %d: f64) -> (f32, f32, f64) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c896 = arith.constant 896 : index
  %zero = arith.constant 0.0 : f32
  %zero64 = arith.constant 0.0 : f64
  %zeros = arith.constant dense<0.0> : vector<2x2xf32>
  %r:2 = scf.for %k = %c0 to %c896 step %c128 iter_args(%acc = %zeros, %total = %zero) -> (vector<2x2xf32>, f32) {
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %0 = nvgpu.mma.sync(%a, %b, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %1 = arith.addf %total, %w : f32
    scf.yield %0, %1 : vector<2x2xf32>, f32
  }
  %s = scf.for %k = %c0 to %c896 step %c128 iter_args(%total = %zero) -> (f32) {
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %1 = arith.addf %total, %w : f32
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %2 = arith.addf %1, %w : f32
    scf.yield %2 : f32
  }
  %t:2 = scf.for %k = %c0 to %c896 step %c128 iter_args(%acc = %zeros, %total = %zero64) -> (vector<2x2xf32>, f64) {
    %0 = nvgpu.mma.sync(%a, %b, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %1 = arith.addf %total, %d : f64
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    scf.yield %0, %1 : vector<2x2xf32>, f64
  }
  return %r#1, %s, %t#1 : f32, f32, f64
}

// -----

// Nor where fragments of the next tile are loaded before it begins.
// CHECK-LABEL: func.func @loaded_early
// CHECK-NOT:   scf.if
func.func @loaded_early(%token: !nvgpu.device.async.token, %a: vector<4x2xf16>, %s: memref<64x16xf16, 3>, %w: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c896 = arith.constant 896 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<2x2xf32>
  %r:2 = scf.for %k = %c0 to %c896 step %c128 iter_args(%acc = %zeros, %total = %zero) -> (vector<2x2xf32>, f32) {
    %b = nvgpu.ldmatrix %s[%c0, %c0] {numTiles = 2 : i32, transpose = false} : memref<64x16xf16, 3> -> vector<2x2xf16>
    %0 = nvgpu.mma.sync(%a, %b, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %1 = arith.addf %total, %w : f32
    nvgpu.device_async_wait %token {numGroups = 0 : i32}
    %2 = nvgpu.mma.sync(%a, %b, %0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    %3 = arith.addf %1, %w : f32
    scf.yield %2, %3 : vector<2x2xf32>, f32
  }
  return %r#1 : f32
}
