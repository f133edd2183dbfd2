// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// The threads of a warp meet in it: it stays in the arithmetic.
// CHECK-LABEL: @shuffle
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:           gpu.shuffle
// CHECK-NOT:       gpu.shuffle
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @shuffle(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %y, %valid = gpu.shuffle xor %x, %one, %width : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The same.
// CHECK-LABEL: @subgroup_reduce
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:           gpu.subgroup_reduce
// CHECK-NOT:       gpu.subgroup_reduce
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @subgroup_reduce(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = gpu.subgroup_reduce add %x : (f32) -> f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// A reduction of a vector is arithmetic.
// CHECK-LABEL: @multi_reduction
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:           vector.multi_reduction
// CHECK-NOT:       vector.multi_reduction
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @multi_reduction(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %wide = vector.broadcast %x : f32 to vector<3x2xf32>
    %y = vector.multi_reduction <add>, %wide, %x [0, 1] : vector<3x2xf32> to f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// What is printed is printed once, in the order of the iterations.
// CHECK-LABEL: @printf
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:           gpu.printf
// CHECK-NOT:       gpu.printf
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @printf(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    gpu.printf "%f", %x : f32
    %y = arith.negf %x : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The same for what is asserted.
// CHECK-LABEL: @assert
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:           cf.assert
// CHECK-NOT:       cf.assert
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @assert(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %right = arith.cmpf ole, %x, %x : f32
    cf.assert %right, "not a number"
    %y = arith.negf %x : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// A prefetch of the source does not write it.
// CHECK-LABEL: @prefetch
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       nvgpu.device_async_copy
// CHECK:           memref.prefetch
// CHECK-NOT:       memref.prefetch
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @prefetch(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    memref.prefetch %A[%k, %t], read, locality<3>, data : memref<64x64xf32>
    %y = arith.negf %x : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// A division: where an iteration exists, its address may be divided early.
// CHECK-LABEL: @divided_address
// CHECK:         scf.for
// CHECK:           %[[ROW:.*]] = arith.remui
// CHECK:           nvgpu.device_async_copy %{{.*}}[%[[ROW]], 
#ws = #gpu.address_space<workgroup>
func.func @divided_address(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %row = arith.remui %k, %n : index
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = arith.negf %x : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The threads of a warp need not meet where a copy is issued early.
// CHECK-LABEL: @shuffled_address
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @shuffled_address(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %number = arith.index_cast %k : index to i32
    %far, %valid = gpu.shuffle xor %number, %one, %width : i32
    %row = arith.index_cast %far : i32 to index
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its address depends on 'gpu.shuffle' of the same iteration; compute the address from the loop's index}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = arith.negf %x : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// An op that nothing is known of may write anything.
// CHECK-LABEL: @unknown
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @unknown(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): the loop holds 'func.call', which may write its source; move it out of the loop}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    func.call @opaque() : () -> ()
    %y = arith.negf %x : f32
    %next = arith.addf %acc, %y : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}
func.func private @opaque()

// -----

// An mbarrier of the program's own stays where it is, and so does the barrier that orders
// its set-up: the copies run ahead of both.
// CHECK-LABEL: @mbarrier
// CHECK:         nvgpu.device_async_copy
// CHECK:         scf.for
// CHECK:           nvgpu.mbarrier.init
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      nvgpu.mbarrier.arrive
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @mbarrier(%A: memref<64x64xf32>, %C: memref<64xf32>)
      workgroup(%a: memref<64xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %other = arith.subi %c63, %t : index
    %m = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #ws>
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      nvgpu.mbarrier.init %m[%c0], %c64 : !nvgpu.mbarrier.group<memorySpace = #ws>
      gpu.barrier
      %token = nvgpu.mbarrier.arrive %m[%c0] : !nvgpu.mbarrier.group<memorySpace = #ws> -> !nvgpu.mbarrier.token
      %x = memref.load %a[%other] : memref<64xf32, #ws>
      %next = arith.addf %acc, %x : f32
      gpu.barrier
      scf.yield %next : f32
    }
    memref.store %sum, %C[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// An atomic op writes its own memref only.
// CHECK-LABEL: @atomic
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK:           memref.atomic_rmw
// CHECK:           memref.generic_atomic_rmw
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @atomic(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %old = memref.atomic_rmw addf %x, %C[%k] : (f32, memref<64xf32>) -> f32
    %older = memref.generic_atomic_rmw %C[%t] : memref<64xf32> {
    ^bb0(%was: f32):
      %now = arith.maximumf %was, %x : f32
      memref.atomic_yield %now : f32
    }
    gpu.barrier
  }
  return
}

// -----

// The same of what is copied.
// CHECK-LABEL: @atomic_on_the_source
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @atomic_on_the_source(%A: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.atomic_rmw' in the loop; copy from memory that the loop does not write}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %old = memref.atomic_rmw addf %x, %A[%k, %other] : (f32, memref<64x64xf32>) -> f32
    gpu.barrier
  }
  return
}

// -----

// Which row is copied is chosen by arithmetic: it is chosen early.
// CHECK-LABEL: @chosen_address
// CHECK:         scf.for
// CHECK:           %[[ROW:.*]] = scf.if
// CHECK:           nvgpu.device_async_copy %{{.*}}[%[[ROW]],
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @chosen_address(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index, %few: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %is_first = arith.cmpi ult, %k, %few : index
    %row = scf.if %is_first -> (index) {
      %far = arith.muli %k, %few : index
      scf.yield %far : index
    } else {
      scf.yield %k : index
    }
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}
