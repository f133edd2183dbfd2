// RUN: alcop-opt %s | alcop-opt | FileCheck %s
// RUN: alcop-opt %s --cse --canonicalize | FileCheck %s

// Attributes print with sorted keys, and come back equal.
// CHECK-LABEL: @attributes
// CHECK-SAME:  a = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "nk"}>
// CHECK-SAME:  b = #alcop.schedule<{block = [128, 128, 32], stages = [3, 2]}>
// CHECK-SAME:  c = #alcop.pipeline<{carried = true, register = 2 : i64}>
// CHECK-SAME:  d = #alcop.pipeline<{}>
func.func private @attributes() attributes {
  a = #alcop.contraction<{lhs = "mk", rhs = "nk", init = "zero"}>,
  b = #alcop.schedule<{stages = [3, 2], block = [128, 128, 32]}>,
  c = #alcop.pipeline<{register = 2, carried = true}>,
  d = #alcop.pipeline<{}>
}

// Ops have effects that MLIR does not know: none is merged, moved or erased, also not a
// group that nobody waits for.
// CHECK-LABEL: @operations
// CHECK-NEXT:  "alcop.producer_acquire"() : () -> ()
// CHECK-NEXT:  "alcop.async_copy"(%arg0, %arg1) : (memref<4x8xf16, strided<[64, 1]>>, memref<4x8xf16, 3>) -> ()
// CHECK-NEXT:  "alcop.async_copy"(%arg0, %arg1)
// CHECK-NEXT:  "alcop.copy"(%arg2, %arg1) {alcop.arbitrary = [0]} : (memref<3x?xf16>, memref<4x8xf16, 3>) -> ()
// CHECK-NEXT:  %[[GROUP:.*]] = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
// CHECK-NEXT:  "alcop.producer_commit"()
// CHECK-NEXT:  "alcop.consumer_wait"(%[[GROUP]]) : (!nvgpu.device.async.token) -> ()
// CHECK-NEXT:  "alcop.consumer_wait"(%[[GROUP]])
// CHECK-NEXT:  "alcop.consumer_release"() : () -> ()
func.func @operations(%global: memref<4x8xf16, strided<[64, 1]>>, %shared: memref<4x8xf16, 3>, %part: memref<3x?xf16>) {
  "alcop.producer_acquire"() : () -> ()
  "alcop.async_copy"(%global, %shared) : (memref<4x8xf16, strided<[64, 1]>>, memref<4x8xf16, 3>) -> ()
  "alcop.async_copy"(%global, %shared) : (memref<4x8xf16, strided<[64, 1]>>, memref<4x8xf16, 3>) -> ()
  "alcop.copy"(%part, %shared) {alcop.arbitrary = [0]} : (memref<3x?xf16>, memref<4x8xf16, 3>) -> ()
  %group = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %unused = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  "alcop.consumer_wait"(%group) : (!nvgpu.device.async.token) -> ()
  "alcop.consumer_wait"(%group) : (!nvgpu.device.async.token) -> ()
  "alcop.consumer_release"() : () -> ()
  return
}
