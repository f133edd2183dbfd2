// RUN: alcop-opt %s --alcop-plan-pipelines='stages=3,2 assume-noalias-args=true' --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-NOT: alcop.
// A copy in another loop.
#ws = #gpu.address_space<workgroup>
func.func @while_loop(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %last, %sum = scf.while (%k = %c0, %acc = %zero) : (index, f32) -> (index, f32) {
    %more = arith.cmpi slt, %k, %n : index
    scf.condition(%more) %k, %acc : index, f32
  } do {
  ^bb0(%k: index, %acc: f32):
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 2): the loop is an 'scf.while', only scf.for is pipelined; write it as an scf.for}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    %after = arith.addi %k, %c1 : index
    scf.yield %after, %next : index, f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The same, once: the reads in it need no remark of their own.
#ws = #gpu.address_space<workgroup>
func.func @affine_loop(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = affine.for %k = 0 to 64 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 2): the loop is an 'affine.for', only scf.for is pipelined; lower it with lower-affine before this pass}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    affine.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Under a condition: what is copied is, not the zero.
#ws = #gpu.address_space<workgroup>
func.func @guarded_in_affine_loop(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = affine.for %k = 0 to 64 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi slt, %k, %c63 : index
    scf.if %in {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 2): the loop is an 'affine.for', only scf.for is pipelined; lower it with lower-affine before this pass}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    } else {
      memref.store %zero, %a[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    affine.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// An affine load in a loop that could be pipelined.
#ws = #gpu.address_space<workgroup>
func.func @affine_load(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = affine.load %A[symbol(%t), 0] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 1): it loads or stores by an affine op; lower it with lower-affine before this pass}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// A loop that only reads shared memory: one remark.
#ws = #gpu.address_space<workgroup>
func.func @reads_in_affine_loop(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  memref.store %zero, %a[%t] : memref<64xf32, #ws>
  gpu.barrier
  %sum = affine.for %k = 0 to 64 iter_args(%acc = %zero) -> (f32) {
    // expected-remark @below {{not pipelined (rule 2): the loop is an 'affine.for', only scf.for is pipelined; lower it with lower-affine before this pass}}
    %x = memref.load %a[%k] : memref<64xf32, #ws>
    %y = memref.load %a[%other] : memref<64xf32, #ws>
    %m = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %m : f32
    affine.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// TMA copies end by mbarriers, not by groups.
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!tile = memref<1x64xf32, #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = !tile, swizzle = none, l2promo = none, oob = zero, interleave = none>
gpu.module @kernels {
gpu.func @tma(%map: !map, %bar: !bar, %C: memref<64xf32>, %n: index) workgroup(%a: !tile) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %even = arith.constant false
  %ticks = arith.constant 100000 : index
  %t = gpu.thread_id x
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> f32 {
    // expected-remark @below {{not pipelined (rule 1): it is a TMA load, whose end an mbarrier tells; copy by nvgpu.device_async_copy, or by loads and stores}}
    nvgpu.tma.async.load %map[%c0, %k], %bar[%c0] to %a : !map, !bar -> !tile
    nvgpu.mbarrier.try_wait.parity %bar[%c0], %even, %ticks : !bar
    %x = memref.load %a[%c0, %t] : !tile
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// The form that asynchronous copies have after lowering.
gpu.module @kernels {
gpu.func @pointers(%A: !llvm.ptr<1>, %a: !llvm.ptr<3>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %i = arith.index_cast %k : index to i64
    %p = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    // expected-remark @below {{not pipelined (rule 1): its addresses are pointers, of which it is not known what else they point to; copy by nvgpu.device_async_copy, or by loads and stores}}
    nvvm.cp.async.shared.global %a, %p, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    gpu.barrier
  }
  gpu.return
}
}
