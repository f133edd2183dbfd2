// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-separate-buffers)' --split-input-file | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-separate-buffers,alcop-plan-pipelines{stages=3,1 assume-noalias-args=true})' \
// RUN:   --split-input-file | FileCheck %s --check-prefix=PLAN

// Two loops, and each reads what its own iteration copied. Both are pipelined.
// CHECK-LABEL: @in_turn
// CHECK:         %[[B:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[A:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK:           memref.store %{{.*}}, %[[A]][
// CHECK:           memref.load %[[A]][
// CHECK:         scf.for
// CHECK:           memref.store %{{.*}}, %[[B]][
// CHECK:           memref.load %[[B]][
// PLAN-LABEL:  @in_turn
// PLAN-COUNT-2: alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @in_turn(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %c63 step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %both = arith.addf %r, %s : f32
  memref.store %both, %C[%t] : memref<64xf32>
  return
}

// -----

// A view that both use is made again.
// CHECK-LABEL: @view
// CHECK:         %[[B:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[A:.*]] = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.cast %[[A]]
// CHECK:         memref.cast %[[B]]
// PLAN-LABEL:  @view
#ws = #gpu.address_space<workgroup>
func.func @view(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %v0 = memref.cast %a : memref<64xf32, #ws> to memref<?xf32, #ws>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %v0[%t] : memref<?xf32, #ws>
    gpu.barrier
    %x = memref.load %v0[%other] : memref<?xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %v0[%t] : memref<?xf32, #ws>
    gpu.barrier
    %x = memref.load %v0[%other] : memref<?xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %both = arith.addf %r, %s : f32
  memref.store %both, %C[%t] : memref<64xf32>
  return
}

// -----

// The second loop fills other elements: it may read what the first one left.
// CHECK-LABEL: @other_elements
// CHECK:         memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
// PLAN-LABEL:  @other_elements
#ws = #gpu.address_space<workgroup>
func.func @other_elements(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %c31 = arith.constant 31 : index
  %half = arith.minui %t, %c31 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%half] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %both = arith.addf %r, %s : f32
  memref.store %both, %C[%t] : memref<64xf32>
  return
}

// -----

// Read after the loops.
// CHECK-LABEL: @read_after
// CHECK:         memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
// PLAN-LABEL:  @read_after
#ws = #gpu.address_space<workgroup>
func.func @read_after(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %z = memref.load %a[%other] : memref<64xf32, #ws>
  %both = arith.addf %r, %z : f32
  memref.store %both, %C[%t] : memref<64xf32>
  return
}

// -----

// The second loop reads first: what the first one left.
// CHECK-LABEL: @read_first
// CHECK:         memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
// PLAN-LABEL:  @read_first
#ws = #gpu.address_space<workgroup>
func.func @read_first(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %old = memref.load %a[%other] : memref<64xf32, #ws>
    gpu.barrier
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %both = arith.addf %r, %s : f32
  memref.store %both, %C[%t] : memref<64xf32>
  return
}

// -----

// What is filled moves with a loop around: the first one reads what the second one left.
// CHECK-LABEL: @moves
// CHECK:         memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
// PLAN-LABEL:  @moves
#ws = #gpu.address_space<workgroup>
func.func @moves(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %o = %c0 to %n step %c1 {
  %at = arith.xori %o, %t : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%at] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%at] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %both = arith.addf %r, %s : f32
  memref.store %both, %C[%t] : memref<64xf32>
  }
  return
}

// -----

// Half of the threads run the second loop.
// CHECK-LABEL: @some_threads
// CHECK:         memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
// PLAN-LABEL:  @some_threads
#ws = #gpu.address_space<workgroup>
func.func @some_threads(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %c32 = arith.constant 32 : index
  %few = arith.cmpi ult, %t, %c32 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  scf.if %few {
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  memref.store %s, %C[%t] : memref<64xf32>
  }
  return
}

// -----

// As much as the target has: no second buffer fits.
// CHECK-LABEL: @too_large
// CHECK:         memref.alloc()
// CHECK-NOT:     memref.alloc()
// CHECK:         return
// PLAN-LABEL:  @too_large
#ws = #gpu.address_space<workgroup>
func.func @too_large(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<32768xf32, #ws>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<32768xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<32768xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<32768xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<32768xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  %both = arith.addf %r, %s : f32
  memref.store %both, %C[%t] : memref<64xf32>
  return
}

// -----

// The second loop fills nothing at first, and reads what the first one left.
// CHECK-LABEL: @one_fills_some
// CHECK:         memref.alloc
// CHECK-NOT:     memref.alloc
// CHECK:         return
#ws = #gpu.address_space<workgroup>
func.func @one_fills_some(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ugt, %k, %c2 : index
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}
