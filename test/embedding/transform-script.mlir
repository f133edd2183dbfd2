// RUN: alcop-opt %s --transform-interpreter | FileCheck %s
// RUN: alcop-opt %s | FileCheck %s --check-prefix=KEPT
// RUN: alcop-opt %s --pass-pipeline='builtin.module(transform-interpreter{entry-point=only_plan},canonicalize)' | FileCheck %s --check-prefix=PLAN

// alcop-opt knows the ops of alcop_transform when the input mentions them.
// CHECK-LABEL: @copied
// CHECK:       memref.alloc() : memref<2x64x32xf16, #gpu.address_space<workgroup>>
// CHECK:       nvgpu.device_async_wait
// KEPT-LABEL:  @__transform_main
// KEPT:        "alcop_transform.pipeline"(%{{.*}}) {stages = [2, 1]} : (!transform.any_op) -> !transform.any_op
// PLAN-LABEL:  @copied
// PLAN:        memref.copy {{.*}}{alcop.op = 0 : i64}
// PLAN:        alcop.pipeline = #alcop.pipeline<{{.*}}rings = [{slots = 3 : i64}]
#shared = #gpu.address_space<workgroup>
module attributes {transform.with_named_sequence} {
  func.func @copied(%A: memref<64x512xf16>) {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c512 = arith.constant 512 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<64xf16>
    %a = memref.alloc() : memref<64x32xf16, #shared>
    %sum = scf.for %k = %c0 to %c512 step %c32 iter_args(%s = %zero) -> (vector<64xf16>) {
      %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
      memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #shared>
      gpu.barrier
      %v = vector.transfer_read %a[%c0, %c0], %pad : memref<64x32xf16, #shared>, vector<64xf16>
      %s1 = arith.addf %s, %v : vector<64xf16>
      gpu.barrier
      scf.yield %s1 : vector<64xf16>
    }
    return
  }

  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %piped = "alcop_transform.pipeline"(%f) {stages = [2, 1]} : (!transform.any_op) -> !transform.any_op
    transform.yield
  }

  transform.named_sequence @only_plan(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %planned = "alcop_transform.plan_pipelines"(%f) {stages = [3, 1]} : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
