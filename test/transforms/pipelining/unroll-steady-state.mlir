// RUN: alcop-opt %s --alcop-unroll-steady-state --canonicalize --cse --split-input-file | FileCheck %s

// By the number of slots: each copy of the body has its slot as a constant.
// CHECK-LABEL: @by_slots
// CHECK:       scf.for %[[K:.*]] = %c0 to %c288 step %c96 {
// CHECK:         memref.load %{{.*}}[%c0, %[[K]]]
// CHECK:         %[[K1:.*]] = arith.addi %[[K]], %c32
// CHECK:         memref.load %{{.*}}[%c1, %[[K1]]]
// CHECK:         %[[K2:.*]] = arith.addi %[[K]], %c64
// CHECK:         memref.load %{{.*}}[%c2, %[[K2]]]
// CHECK-NOT:     arith.select
// CHECK-NOT:   alcop.unroll
func.func @by_slots(%A: memref<3x288xf16>, %D: memref<288xf16>) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c288 = arith.constant 288 : index
  %end = scf.for %k = %c0 to %c288 step %c32 iter_args(%slot = %c0) -> (index) {
    %v = memref.load %A[%slot, %k] : memref<3x288xf16>
    memref.store %v, %D[%k] : memref<288xf16>
    %n = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n, %c3 : index
    %next = arith.select %w, %c0, %n : index
    scf.yield %next : index
  } {alcop.unroll = 3 : i64}
  return %end : index
}

// -----

// Marked with its own trip count: whole, and what depends on the index folds.
// CHECK-LABEL: @whole
// CHECK-NOT:   scf.for
// CHECK:       memref.store %{{.*}}, %{{.*}}[%c0]
// CHECK:       memref.store %{{.*}}, %{{.*}}[%c32]
// CHECK-NOT:   memref.store
func.func @whole(%D: memref<96xf16>, %x: f16) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %c64 step %c32 {
    memref.store %x, %D[%k] : memref<96xf16>
  } {alcop.unroll = 2 : i64}
  return
}

// -----

// A loop over fragments needs no mark.
// CHECK-LABEL: @fragments
// CHECK-NOT:   scf.for
// CHECK:       nvgpu.ldmatrix
// CHECK:       nvgpu.ldmatrix
#ws = #gpu.address_space<workgroup>
func.func @fragments(%a: memref<64x32xf16, #ws>, %r: index) -> vector<4x2xf16> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<4x2xf16>
  %sum = scf.for %kk = %c0 to %c32 step %c16 iter_args(%s = %zero) -> (vector<4x2xf16>) {
    %f = nvgpu.ldmatrix %a[%r, %kk] {numTiles = 4 : i32, transpose = false} : memref<64x32xf16, #ws> -> vector<4x2xf16>
    %add = arith.addf %s, %f : vector<4x2xf16>
    scf.yield %add : vector<4x2xf16>
  }
  return %sum : vector<4x2xf16>
}

// -----

// Any other loop is left unchanged, a counter that starts elsewhere too.
// CHECK-LABEL: @others
// CHECK:       scf.for {{.*}} step %c1
func.func @others(%D: memref<96xf16>, %x: f16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %k = %c0 to %c4 step %c1 {
    memref.store %x, %D[%k] : memref<96xf16>
  }
  return
}
