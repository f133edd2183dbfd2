// RUN: alcop-opt %s --alcop-place-waits --split-input-file | FileCheck %s

// Two groups in flight before the loop, one more per iteration, the oldest waited for
// first: one younger group may stay in flight. The wait's barrier serves the acquire.
// CHECK-LABEL: @three_slots
// CHECK:         %[[G0:.*]] = nvgpu.device_async_create_group
// CHECK:         %[[G1:.*]] = nvgpu.device_async_create_group
// CHECK:         scf.for {{.*}} iter_args(%[[OLD:[a-z0-9]*]] = %[[G0]], %[[YOUNG:[a-z0-9]*]] = %[[G1]])
// CHECK-NEXT:      nvgpu.device_async_wait %[[OLD]] {numGroups = 1 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      %[[NEW:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:      scf.yield %[[YOUNG]], %[[NEW]]
// CHECK-NOT:     alcop.
func.func @three_slots(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g0 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %g1 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%old = %g0, %young = %g1) -> (!nvgpu.device.async.token, !nvgpu.device.async.token) {
    "alcop.consumer_release"() : () -> ()
    "alcop.consumer_wait"(%old) : (!nvgpu.device.async.token) -> ()
    "alcop.producer_acquire"() : () -> ()
    %new = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
    scf.yield %young, %new : !nvgpu.device.async.token, !nvgpu.device.async.token
  }
  return
}

// -----

// Issue before wait: one more group in flight, and the acquire needs its own barrier.
// CHECK-LABEL: @issue_first
// CHECK:         scf.for
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      nvgpu.device_async_create_group
// CHECK-NEXT:      nvgpu.device_async_wait %{{.*}} {numGroups = 2 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      scf.yield
func.func @issue_first(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g0 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %g1 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%old = %g0, %young = %g1) -> (!nvgpu.device.async.token, !nvgpu.device.async.token) {
    "alcop.producer_acquire"() : () -> ()
    %new = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
    "alcop.consumer_wait"(%old) : (!nvgpu.device.async.token) -> ()
    "alcop.consumer_release"() : () -> ()
    scf.yield %young, %new : !nvgpu.device.async.token, !nvgpu.device.async.token
  }
  return
}

// -----

// A pipeline inside a loop: the slots that the last run read are filled again by the
// next run's prologue. Outside of any loop they were never read.
// CHECK-LABEL: @again
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK:         scf.for
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      nvgpu.device_async_create_group
// CHECK-NEXT:    }
func.func @again(%n: index, %c0: index, %c1: index) {
  "alcop.producer_acquire"() : () -> ()
  %g0 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  scf.for %i = %c0 to %n step %c1 {
    "alcop.producer_acquire"() : () -> ()
    %g1 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
    "alcop.consumer_release"() : () -> ()
  }
  return
}

// -----

// Foreign groups count: one committed between ours and the wait, one on both branches,
// none on one branch only.
// CHECK-LABEL: @foreign_groups
// CHECK:         nvgpu.device_async_wait %{{.*}} {numGroups = 2 : i32}
func.func @foreign_groups(%c: i1) {
  %g0 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %f0 = nvgpu.device_async_create_group
  scf.if %c {
    %f1 = nvgpu.device_async_create_group
  } else {
    %f2 = nvgpu.device_async_create_group
  }
  scf.if %c {
    %f3 = nvgpu.device_async_create_group
  }
  "alcop.consumer_wait"(%g0) : (!nvgpu.device.async.token) -> ()
  return
}

// -----

// Through the results of a loop that may not run: the fewer of the two ways.
// CHECK-LABEL: @after_loop
// CHECK:         nvgpu.device_async_wait %{{.*}} {numGroups = 0 : i32}
func.func @after_loop(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g0 = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %g0) -> (!nvgpu.device.async.token) {
    %new = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
    scf.yield %new : !nvgpu.device.async.token
  }
  "alcop.consumer_wait"(%r) : (!nvgpu.device.async.token) -> ()
  return
}
