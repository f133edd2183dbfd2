// RUN: alcop-opt %s --alcop-check-pipelines --split-input-file --verify-diagnostics

// Without the wait every slot is read too early.
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
func.func @no_wait(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x32xf32, #ws>
  %first = memref.subview %a[%c0, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
  %p = nvgpu.device_async_copy %A[%c0, %t], %first[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
  %g0 = nvgpu.device_async_create_group %p
  %last:2 = scf.for %k = %c1 to %c9 step %c1 iter_args(%slot = %c0, %group = %g0)
      -> (index, !nvgpu.device.async.token) {
    %up = arith.addi %slot, %c1 : index
    %next = arith.remui %up, %c2 : index
    gpu.barrier
    %to = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    %c = nvgpu.device_async_copy %A[%k, %t], %to[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
    %g = nvgpu.device_async_create_group %c
    %from = memref.subview %a[%slot, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @+2 {{alcop-check-pipelines: slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read while a copy into it is in flight: no wait covers its group}}
    // expected-error @below {{alcop-check-pipelines: slot 1 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read while a copy into it is in flight: no wait covers its group}}
    %x = memref.load %from[%t] : memref<32xf32, #slot, #ws>
    memref.store %x, %C[%k, %t] : memref<64x32xf32>
    scf.yield %next, %g : index, !nvgpu.device.async.token
  }
  nvgpu.device_async_wait %last#1 {numGroups = 0 : i32}
  return
}

// -----

// Without the barrier other threads' copies are not seen, nor are their reads.
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
func.func @no_barrier(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x32xf32, #ws>
  %first = memref.subview %a[%c0, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
  %p = nvgpu.device_async_copy %A[%c0, %t], %first[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
  %g0 = nvgpu.device_async_create_group %p
  %last:2 = scf.for %k = %c1 to %c9 step %c1 iter_args(%slot = %c0, %group = %g0)
      -> (index, !nvgpu.device.async.token) {
    %up = arith.addi %slot, %c1 : index
    %next = arith.remui %up, %c2 : index
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    %to = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @+2 {{alcop-check-pipelines: slot 1 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is filled with no barrier since it was last read}}
    // expected-error @below {{alcop-check-pipelines: slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is filled with no barrier since it was last read}}
    %c = nvgpu.device_async_copy %A[%k, %t], %to[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
    %g = nvgpu.device_async_create_group %c
    %from = memref.subview %a[%slot, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @+2 {{alcop-check-pipelines: slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read with no barrier since its copies landed}}
    // expected-error @below {{alcop-check-pipelines: slot 1 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read with no barrier since its copies landed}}
    %x = memref.load %from[%t] : memref<32xf32, #slot, #ws>
    memref.store %x, %C[%k, %t] : memref<64x32xf32>
    scf.yield %next, %g : index, !nvgpu.device.async.token
  }
  nvgpu.device_async_wait %last#1 {numGroups = 0 : i32}
  return
}

// -----

// The wait lets the very group fly that it is for.
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
func.func @count_too_large(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x32xf32, #ws>
  %first = memref.subview %a[%c0, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
  %p = nvgpu.device_async_copy %A[%c0, %t], %first[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
  %g0 = nvgpu.device_async_create_group %p
  %last:2 = scf.for %k = %c1 to %c9 step %c1 iter_args(%slot = %c0, %group = %g0)
      -> (index, !nvgpu.device.async.token) {
    %up = arith.addi %slot, %c1 : index
    %next = arith.remui %up, %c2 : index
    // expected-error @below {{alcop-check-pipelines: lets 1 groups fly, but only 0 are younger than the one waited for}}
    nvgpu.device_async_wait %group {numGroups = 1 : i32}
    gpu.barrier
    %to = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    %c = nvgpu.device_async_copy %A[%k, %t], %to[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
    %g = nvgpu.device_async_create_group %c
    %from = memref.subview %a[%slot, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @+2 {{alcop-check-pipelines: slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read while a copy into it is in flight: no wait covers its group}}
    // expected-error @below {{alcop-check-pipelines: slot 1 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read while a copy into it is in flight: no wait covers its group}}
    %x = memref.load %from[%t] : memref<32xf32, #slot, #ws>
    memref.store %x, %C[%k, %t] : memref<64x32xf32>
    scf.yield %next, %g : index, !nvgpu.device.async.token
  }
  nvgpu.device_async_wait %last#1 {numGroups = 0 : i32}
  return
}

// -----

// The slot that is just being filled is read.
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
func.func @wrong_slot(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x32xf32, #ws>
  %first = memref.subview %a[%c0, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
  %p = nvgpu.device_async_copy %A[%c0, %t], %first[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
  %g0 = nvgpu.device_async_create_group %p
  %last:2 = scf.for %k = %c1 to %c9 step %c1 iter_args(%slot = %c0, %group = %g0)
      -> (index, !nvgpu.device.async.token) {
    %up = arith.addi %slot, %c1 : index
    %next = arith.remui %up, %c2 : index
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
    %to = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    %c = nvgpu.device_async_copy %A[%k, %t], %to[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
    %g = nvgpu.device_async_create_group %c
    %from = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @+2 {{alcop-check-pipelines: slot 1 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read while a copy into it is in flight: no wait covers its group}}
    // expected-error @below {{alcop-check-pipelines: slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read while a copy into it is in flight: no wait covers its group}}
    %x = memref.load %from[%t] : memref<32xf32, #slot, #ws>
    memref.store %x, %C[%k, %t] : memref<64x32xf32>
    scf.yield %next, %g : index, !nvgpu.device.async.token
  }
  nvgpu.device_async_wait %last#1 {numGroups = 0 : i32}
  return
}

// -----

// A slot beyond the last.
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
func.func @no_such_slot(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x32xf32, #ws>
  %first = memref.subview %a[%c0, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
  %p = nvgpu.device_async_copy %A[%c0, %t], %first[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
  %g0 = nvgpu.device_async_create_group %p
  %last:2 = scf.for %k = %c1 to %c9 step %c1 iter_args(%slot = %c0, %group = %g0)
      -> (index, !nvgpu.device.async.token) {
    %up = arith.addi %slot, %c1 : index
    %next = arith.remui %up, %c2 : index
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
    %to = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    %c = nvgpu.device_async_copy %A[%k, %t], %to[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
    %g = nvgpu.device_async_create_group %c
    %from = memref.subview %a[%c2, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @+2 {{alcop-check-pipelines: slot 2 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' does not exist}}
    // expected-error @below {{alcop-check-pipelines: slot 2 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is read and was never filled}}
    %x = memref.load %from[%t] : memref<32xf32, #slot, #ws>
    memref.store %x, %C[%k, %t] : memref<64x32xf32>
    scf.yield %next, %g : index, !nvgpu.device.async.token
  }
  nvgpu.device_async_wait %last#1 {numGroups = 0 : i32}
  return
}

// -----

// Nobody waits for the last copy.
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
func.func @left_in_flight(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x32xf32, #ws>
  %first = memref.subview %a[%c0, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
  %p = nvgpu.device_async_copy %A[%c0, %t], %first[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
  %g0 = nvgpu.device_async_create_group %p
  %last:2 = scf.for %k = %c1 to %c9 step %c1 iter_args(%slot = %c0, %group = %g0)
      -> (index, !nvgpu.device.async.token) {
    %up = arith.addi %slot, %c1 : index
    %next = arith.remui %up, %c2 : index
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    gpu.barrier
    %to = memref.subview %a[%next, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    // expected-error @below {{alcop-check-pipelines: a copy into slot 0 of 'memref<2x32xf32, #gpu.address_space<workgroup>>' is in flight when the kernel ends}}
    %c = nvgpu.device_async_copy %A[%k, %t], %to[%t], 1 : memref<64x32xf32> to memref<32xf32, #slot, #ws>
    %g = nvgpu.device_async_create_group %c
    %from = memref.subview %a[%slot, 0] [1, 32] [1, 1] : memref<2x32xf32, #ws> to memref<32xf32, #slot, #ws>
    %x = memref.load %from[%t] : memref<32xf32, #slot, #ws>
    memref.store %x, %C[%k, %t] : memref<64x32xf32>
    scf.yield %next, %g : index, !nvgpu.device.async.token
  }
  return
}
