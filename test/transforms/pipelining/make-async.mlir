// RUN: alcop-opt %s --alcop-make-async='assume-noalias-args=true' --split-input-file | FileCheck %s

// Two copies of a tile that is filled before a loop are one group. What neither needs
// stays between the group and the wait; the barrier shows the tile to other threads.
// CHECK-LABEL: @before_a_loop
// CHECK-NOT:     vector.load %arg0
// CHECK:         nvgpu.device_async_copy %arg0[%c0, %{{.*}}], %arg2[%c0, %{{.*}}], 4
// CHECK-NEXT:    nvgpu.device_async_copy %arg0[%c1, %{{.*}}], %arg2[%c1, %{{.*}}], 4
// CHECK-NEXT:    %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:    %[[SCALE:.*]] = memref.load %arg1[%c0]
// CHECK-NEXT:    nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     nvgpu.device_async
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @before_a_loop(%Q: memref<2x256xf32>, %C: memref<64xf32>)
      workgroup(%q: memref<2x256xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    %at = arith.muli %t, %c4 : index
    %u = vector.load %Q[%c0, %at] : memref<2x256xf32>, vector<4xf32>
    vector.store %u, %q[%c0, %at] : memref<2x256xf32, #ws>, vector<4xf32>
    %v = vector.load %Q[%c1, %at] : memref<2x256xf32>, vector<4xf32>
    vector.store %v, %q[%c1, %at] : memref<2x256xf32, #ws>, vector<4xf32>
    %scale = memref.load %C[%c0] : memref<64xf32>
    gpu.barrier
    %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%s = %scale) -> (f32) {
      %x = memref.load %q[%c0, %k] : memref<2x256xf32, #ws>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    }
    memref.store %r, %C[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// Two copies into one element land in order: the first before the second is issued. The
// same thread reads the element after the second without a barrier.
// CHECK-LABEL: @in_order
// CHECK:         nvgpu.device_async_copy %arg0
// CHECK-NEXT:    %[[FIRST:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait %[[FIRST]] {numGroups = 0 : i32}
// CHECK-NEXT:    nvgpu.device_async_copy %arg1
// CHECK-NEXT:    %[[SECOND:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait %[[SECOND]] {numGroups = 0 : i32}
// CHECK-NEXT:    memref.load
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @in_order(%A: memref<64xf32>, %B: memref<64xf32>)
      workgroup(%a: memref<64xf32, #ws>) kernel {
    %t = gpu.thread_id x
    %u = memref.load %A[%t] : memref<64xf32>
    memref.store %u, %a[%t] : memref<64xf32, #ws>
    %v = memref.load %B[%t] : memref<64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %A[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// What is loaded is written before it is stored; and cp.async copies no two bytes.
// CHECK-LABEL: @left_unchanged
// CHECK-NOT:     nvgpu
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @left_unchanged(%A: memref<64xf32>, %B: memref<64xf16>)
      workgroup(%a: memref<64xf32, #ws>, %b: memref<64xf16, #ws>) kernel {
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %u = memref.load %A[%t] : memref<64xf32>
    memref.store %zero, %A[%t] : memref<64xf32>
    memref.store %u, %a[%t] : memref<64xf32, #ws>
    %v = memref.load %B[%t] : memref<64xf16>
    memref.store %v, %b[%t] : memref<64xf16, #ws>
    gpu.barrier
    gpu.return
  }
}

// -----

// A loop with groups in flight: waiting for a new group would wait for these too. Before
// that loop the copy is asynchronous; the group of the loop's first tile is younger.
// CHECK-LABEL: @beside_a_pipeline
// CHECK:         nvgpu.device_async_copy %arg1
// CHECK-NEXT:    %[[OWN:.*]] = nvgpu.device_async_create_group
// CHECK:         nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait %[[OWN]] {numGroups = 1 : i32}
// CHECK-NEXT:    scf.for
// CHECK:           memref.store %{{.*}}, %arg3
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @beside_a_pipeline(%A: memref<64x64xf32>, %B: memref<64xf32>)
      workgroup(%a: memref<2x64xf32, #ws>, %b: memref<64xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %t = gpu.thread_id x
    %u = memref.load %B[%t] : memref<64xf32>
    memref.store %u, %b[%t] : memref<64xf32, #ws>
    %first = nvgpu.device_async_copy %A[%c0, %t], %a[%c0, %t], 1 : memref<64x64xf32> to memref<2x64xf32, #ws>
    %group = nvgpu.device_async_create_group %first
    %last = scf.for %k = %c0 to %c63 step %c1 iter_args(%old = %group) -> (!nvgpu.device.async.token) {
      nvgpu.device_async_wait %old
      gpu.barrier
      %next = arith.addi %k, %c1 : index
      %slot = arith.andi %next, %c1 : index
      %copy = nvgpu.device_async_copy %A[%next, %t], %a[%slot, %t], 1 : memref<64x64xf32> to memref<2x64xf32, #ws>
      %young = nvgpu.device_async_create_group %copy
      %v = memref.load %B[%k] : memref<64xf32>
      memref.store %v, %b[%t] : memref<64xf32, #ws>
      gpu.barrier
      scf.yield %young : !nvgpu.device.async.token
    }
    nvgpu.device_async_wait %last
    gpu.return
  }
}

// -----

// A copy under a condition is one asynchronous copy: its parts are no copies of their own.
// CHECK-LABEL: @guarded
// CHECK-NOT:     scf.if
// CHECK:         %[[COUNT:.*]] = arith.select
// CHECK:         nvgpu.device_async_copy {{.*}}, 2, %[[COUNT]]
// CHECK-NEXT:    %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:    nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     nvgpu.device_async
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @guarded(%A: memref<64x2xf16>, %C: memref<64xf16>, %n: index)
      workgroup(%a: memref<64x2xf16, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<2xf16>
    %t = gpu.thread_id x
    %inside = arith.cmpi ult, %t, %n : index
    scf.if %inside {
      %u = vector.load %A[%t, %c0] : memref<64x2xf16>, vector<2xf16>
      vector.store %u, %a[%t, %c0] : memref<64x2xf16, #ws>, vector<2xf16>
    } else {
      vector.store %zero, %a[%t, %c0] : memref<64x2xf16, #ws>, vector<2xf16>
    }
    gpu.barrier
    %x = memref.load %a[%c0, %c0] : memref<64x2xf16, #ws>
    memref.store %x, %C[%t] : memref<64xf16>
    gpu.return
  }
}

// -----

// A loop that only fills a buffer, and one under a condition: all copies are in flight
// together, and one wait comes after them.
// CHECK-LABEL: @rows_in_a_loop
// CHECK-NOT:     vector.load
// CHECK:         scf.for
// CHECK-NEXT:      nvgpu.device_async_copy %arg0
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[IN:.*]] = arith.cmpi
// CHECK-NEXT:    scf.if %[[IN]] {
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        nvgpu.device_async_copy %arg1
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:    %[[SCALE:.*]] = memref.load %arg1[%c0, %c0]
// CHECK-NEXT:    nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     nvgpu.device_async
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @rows_in_a_loop(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %C: memref<64xf32>, %n: index)
      workgroup(%a: memref<64x64xf32, #ws>, %b: memref<64x64xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %t = gpu.thread_id x
    scf.for %k = %c0 to %c64 step %c4 {
      %v = vector.load %A[%t, %k] : memref<64x64xf32>, vector<4xf32>
      vector.store %v, %a[%t, %k] : memref<64x64xf32, #ws>, vector<4xf32>
    }
    %in = arith.cmpi ult, %t, %n : index
    scf.if %in {
      scf.for %k = %c0 to %c64 step %c1 {
        %v = memref.load %B[%k, %t] : memref<64x64xf32>
        memref.store %v, %b[%k, %t] : memref<64x64xf32, #ws>
      }
    }
    %scale = memref.load %B[%c0, %c0] : memref<64x64xf32>
    gpu.barrier
    %x = memref.load %a[%c63, %t] : memref<64x64xf32, #ws>
    %y = arith.mulf %x, %scale : f32
    memref.store %y, %C[%t] : memref<64xf32>
    gpu.return
  }
}

// -----

// Each iteration fills the same element: the last one has to win, so that each waits.
// CHECK-LABEL: @same_element
// CHECK:         scf.for
// CHECK-NEXT:      nvgpu.device_async_copy
// CHECK-NEXT:      %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK-NEXT:      nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK-NEXT:    }
// CHECK-NOT:     nvgpu
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @same_element(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index)
      workgroup(%a: memref<64xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%c1] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.return
  }
}
