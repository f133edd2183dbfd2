// RUN: alcop-opt %s --alcop-drop-last-waits=assume-noalias-args=true --split-input-file | FileCheck %s
// RUN: alcop-opt %s --alcop-drop-last-waits --split-input-file | FileCheck %s --check-prefix=ALIAS

!shared = memref<64xf16, #gpu.address_space<workgroup>>

// The tail of a ring with three slots: the group of the last tile is waited for with one
// empty group behind it, which stays. The next wait is for an empty one.
// CHECK-LABEL: @tail
// CHECK:         nvgpu.device_async_copy
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    vector.load
// CHECK-NEXT:    vector.store
// CHECK-NEXT:    gpu.terminator
// Also where arguments may overlap: the barrier before orders what was read of them.
// ALIAS-LABEL: @tail
// ALIAS:         vector.load
// ALIAS-NEXT:    vector.store
func.func @tail(%a: memref<64xf16>, %c: memref<64xf16>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  gpu.launch blocks(%x, %y, %z) in (%bx = %c1, %by = %c1, %bz = %c1)
      threads(%t, %u, %v) in (%tx = %c1, %ty = %c1, %tz = %c1) {
    %s = memref.alloc() : !shared
    %0 = nvgpu.device_async_copy %a[%c0], %s[%c0], 8 : memref<64xf16> to !shared
    %g = nvgpu.device_async_create_group {}
    %h = nvgpu.device_async_create_group {}
    nvgpu.device_async_wait %g {numGroups = 1 : i32}
    gpu.barrier
    %e = nvgpu.device_async_create_group {}
    %r = vector.load %s[%c0] : !shared, vector<8xf16>
    nvgpu.device_async_wait %h {numGroups = 1 : i32}
    gpu.barrier
    %f = nvgpu.device_async_create_group {}
    vector.store %r, %c[%c0] : memref<64xf16>, vector<8xf16>
    gpu.terminator
  }
  return
}

// -----

!shared = memref<64xf16, #gpu.address_space<workgroup>>

// The groups of a loop are committed at the end of each turn. Of a buffer without slots,
// which is read behind the last barrier, that barrier stays.
// CHECK-LABEL: @other_buffer
// CHECK:         }
// CHECK-NEXT:    nvgpu.device_async_wait
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    vector.load
// CHECK-NEXT:    vector.store
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    vector.load
// CHECK-NEXT:    vector.store
// CHECK-NEXT:    gpu.terminator
func.func @other_buffer(%a: memref<64xf16>, %c: memref<64xf16>, %n: index) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%x, %y, %z) in (%bx = %c1, %by = %c1, %bz = %c1)
      threads(%t, %u, %v) in (%tx = %c1, %ty = %c1, %tz = %c1) {
    %s = memref.alloc() : !shared
    %o = memref.alloc() : !shared
    %g0 = nvgpu.device_async_create_group {}
    %g = scf.for %i = %c0 to %n step %c1 iter_args(%old = %g0) -> (!nvgpu.device.async.token) {
      %0 = nvgpu.device_async_copy %a[%c0], %s[%c0], 8 : memref<64xf16> to !shared
      %new = nvgpu.device_async_create_group {}
      scf.yield %new : !nvgpu.device.async.token
    }
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    %h = nvgpu.device_async_create_group {}
    %r = vector.load %s[%c0] : !shared, vector<8xf16>
    vector.store %r, %o[%t] : !shared, vector<8xf16>
    nvgpu.device_async_wait %h {numGroups = 0 : i32}
    gpu.barrier
    %q = vector.load %o[%c8] : !shared, vector<8xf16>
    vector.store %q, %c[%c0] : memref<64xf16>, vector<8xf16>
    gpu.terminator
  }
  return
}

// -----

!shared = memref<64xf16, #gpu.address_space<workgroup>>

// What one thread stores to global memory and another one loads, or two arguments that
// may overlap, a barrier has to order; and a wait for copies stays.
// CHECK-LABEL: @global
// CHECK:         nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    vector.load %[[A:.*]][
// CHECK-NEXT:    vector.store {{.*}}, %[[D:.*]][
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    vector.load %[[D]][
// CHECK-NEXT:    vector.store
// CHECK-NEXT:    gpu.terminator
func.func @global(%a: memref<64xf16>, %c: memref<64xf16>, %d: memref<64xf16>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%x, %y, %z) in (%bx = %c1, %by = %c1, %bz = %c1)
      threads(%t, %u, %v) in (%tx = %c1, %ty = %c1, %tz = %c1) {
    %s = memref.alloc() : !shared
    %0 = nvgpu.device_async_copy %a[%c0], %s[%c0], 8 : memref<64xf16> to !shared
    %g = nvgpu.device_async_create_group {}
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    %h = nvgpu.device_async_create_group {}
    %r = vector.load %a[%c0] : memref<64xf16>, vector<8xf16>
    vector.store %r, %d[%t] : memref<64xf16>, vector<8xf16>
    nvgpu.device_async_wait %h {numGroups = 0 : i32}
    gpu.barrier
    %q = vector.load %d[%c8] : memref<64xf16>, vector<8xf16>
    vector.store %q, %c[%c0] : memref<64xf16>, vector<8xf16>
    gpu.terminator
  }
  return
}

// -----

!shared = memref<64xf16, #gpu.address_space<workgroup>>

// Arguments that may overlap: the load of %a comes before the store to %c.
// CHECK-LABEL: @arguments
// CHECK-COUNT-1: gpu.barrier
// CHECK-NOT:     gpu.barrier
// ALIAS-LABEL: @arguments
// ALIAS-COUNT-2: gpu.barrier
// ALIAS-NOT:     gpu.barrier
func.func @arguments(%a: memref<64xf16>, %c: memref<64xf16>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  gpu.launch blocks(%x, %y, %z) in (%bx = %c1, %by = %c1, %bz = %c1)
      threads(%t, %u, %v) in (%tx = %c1, %ty = %c1, %tz = %c1) {
    %s = memref.alloc() : !shared
    %0 = nvgpu.device_async_copy %a[%c0], %s[%c0], 8 : memref<64xf16> to !shared
    %g = nvgpu.device_async_create_group {}
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    %h = nvgpu.device_async_create_group {}
    %r = vector.load %a[%t] : memref<64xf16>, vector<8xf16>
    nvgpu.device_async_wait %h {numGroups = 0 : i32}
    gpu.barrier
    vector.store %r, %c[%c0] : memref<64xf16>, vector<8xf16>
    gpu.terminator
  }
  return
}

// -----

!shared = memref<64xf16, #gpu.address_space<workgroup>>

// Copies under a predicate, text that may do anything, and a wait that counts on the
// group: nothing goes. The wait in the branch is one of another loop.
// ALIAS-LABEL: @stays
// CHECK-LABEL: @stays
// CHECK:         scf.if
// CHECK:         nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    llvm.inline_asm
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_create_group
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      nvgpu.device_async_wait
func.func @stays(%a: memref<64xf16>, %p: i1) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  gpu.launch blocks(%x, %y, %z) in (%bx = %c1, %by = %c1, %bz = %c1)
      threads(%t, %u, %v) in (%tx = %c1, %ty = %c1, %tz = %c1) {
    %s = memref.alloc() : !shared
    scf.if %p {
      %0 = nvgpu.device_async_copy %a[%c0], %s[%c0], 8 : memref<64xf16> to !shared
    }
    %g = nvgpu.device_async_create_group {}
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier
    llvm.inline_asm has_side_effects "cp.async.wait_group 1;", "" : () -> ()
    %h = nvgpu.device_async_create_group {}
    %i = nvgpu.device_async_create_group {}
    scf.if %p {
      nvgpu.device_async_wait %h {numGroups = 1 : i32}
    }
    gpu.terminator
  }
  return
}
