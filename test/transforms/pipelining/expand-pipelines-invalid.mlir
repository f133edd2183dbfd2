// RUN: alcop-opt %s --alcop-expand-pipelines --split-input-file --verify-diagnostics

// An inner pipeline can be carried only over a known number of steps.
#ws = #gpu.address_space<workgroup>
func.func @carried_dynamic(%a: memref<2x64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pad = arith.constant 0.0 : f16
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{alcop-expand-pipelines: a carried pipeline needs a constant trip count}}
    scf.for %kk = %c0 to %n step %c1 {
      %f = vector.transfer_read %a[%c0, %c0, %kk], %pad {in_bounds = [true], alcop.pipeline = #alcop.pipeline<{register = 2}>} : memref<2x64x32xf16, #ws>, vector<8xf16>
    } {alcop.pipeline = #alcop.pipeline<{carried = true, register = 2}>}
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @not_a_copy(%a: memref<64x32xf16, #ws>, %v: f16, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{alcop-expand-pipelines: 'memref.store' is planned, expected a copy}}
    memref.store %v, %a[%c0, %c0] {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, #ws>
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}

// -----

// What someone else wrote into a plan is an error at the op.
func.func @bad_stages(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{alcop-expand-pipelines: alcop.pipeline: shared is three, expected an integer from 2 to 8}}
  scf.for %k = %c0 to %n step %c1 {
  } {alcop.pipeline = #alcop.pipeline<{shared = "three"}>}
  return
}

// -----

func.func @bad_name(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{alcop.pipeline has 'stages', expected shared, register, carried, tail, stage, order, streams}}
  scf.for %k = %c0 to %n step %c1 {
  } {alcop.pipeline = #alcop.pipeline<{stages = 3}>}
  return
}

// -----

func.func @bad_kind(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'alcop.pipeline' is 3 : i64, expected #alcop.pipeline<{...}>}}
  scf.for %k = %c0 to %n step %c1 {
  } {alcop.pipeline = 3 : i64}
  return
}

// -----

// Without slots the copies would overwrite tiles that are still read.
#ws = #gpu.address_space<workgroup>
func.func @no_slots(%A: memref<64x512xf16>, %a: memref<64x32xf16, #ws>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  // expected-error @+1 {{its buffers have no 2 slots, expected alcop-multi-buffer before this pass}}
  scf.for %k = %c0 to %n step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}
