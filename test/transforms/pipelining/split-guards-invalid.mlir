// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-split-guards,alcop-plan-pipelines{stages=3,1 assume-noalias-args=true})' \
// RUN:   --split-input-file --verify-diagnostics
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-split-guards)' --split-input-file | FileCheck %s

// The condition, or how often the loop runs, may differ between threads: the barrier
// would be met by others than before.
// CHECK-LABEL: @of_threads
// CHECK:         scf.if
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      gpu.barrier
#ws = #gpu.address_space<workgroup>
func.func @of_threads(%A: memref<64x64xf32>, %mask: memref<64xi8>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i8
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %m = memref.load %mask[%t] : memref<64xi8>
    %go = arith.cmpi ne, %m, %none : i8
    // expected-remark @+1 {{it holds 'gpu.barrier', and threads may differ in its condition; let all threads compute it alike, from indices, arguments and loads of global memory}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
      gpu.barrier
    }
  }
  return
}

// -----

// CHECK-LABEL: @loop_of_threads
// CHECK:         scf.if
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      gpu.barrier
#ws = #gpu.address_space<workgroup>
func.func @loop_of_threads(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = gpu.thread_id x
  %trips = arith.addi %t, %c4 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %trips step %c1 {
    %go = arith.cmpi ult, %k, %c4 : index
    // expected-remark @+1 {{it holds 'gpu.barrier', and threads may differ in}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
      gpu.barrier
    }
  }
  return
}

// -----

// A thread's own memory, a thread's id that a branch yields: not known to be alike.
// CHECK-LABEL: @own_memory
// CHECK:         scf.if
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      gpu.barrier
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @own_memory(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index)
    workgroup(%a : memref<64xf32, #ws>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %own = memref.alloca() : memref<1xindex>
  memref.store %t, %own[%c0] : memref<1xindex>
  scf.for %k = %c0 to %n step %c1 {
    %m = memref.load %own[%c0] : memref<1xindex>
    %go = arith.cmpi ne, %m, %k : index
    // expected-remark @+1 {{and threads may differ in its condition}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
    }
  }
  gpu.return
}
}

// -----

// CHECK-LABEL: @yielded
// CHECK:         arith.cmpi ne
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      gpu.barrier
#ws = #gpu.address_space<workgroup>
func.func @yielded(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %few = arith.cmpi ult, %k, %c1 : index
    %m = scf.if %few -> (index) {
      %id = gpu.thread_id y
      scf.yield %id : index
    } else {
      scf.yield %k : index
    }
    %go = arith.cmpi ne, %m, %c1 : index
    // expected-remark @+1 {{and threads may differ in its condition}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
    }
  }
  return
}

// -----

// Each thread has a condition of its own in each iteration, and reads what another one
// may not have filled.
// CHECK-LABEL: @read_alike
#ws = #gpu.address_space<workgroup>
func.func @read_alike(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ult, %k, %t : index
    // expected-remark @+1 {{(rule 2): its condition changes from iteration to iteration: where it does not copy, its buffer keeps elements of an older tile; store another value to the same elements otherwise, or read them under the same condition, if that is the same for all threads}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    scf.if %go {
      %x = memref.load %a[%u] : memref<64xf32, #ws>
      memref.store %x, %C[%u] : memref<64xf32>
    }
    gpu.barrier
  }
  return
}

// -----

// The condition of the iteration before is another one; so is its negation.
// CHECK-LABEL: @read_otherwise
#ws = #gpu.address_space<workgroup>
func.func @read_otherwise(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %false = arith.constant false
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %last = scf.for %k = %c0 to %n step %c1 iter_args(%before = %false) -> (i1) {
    %go = arith.cmpi ult, %k, %c4 : index
    // expected-remark @+1 {{(rule 2): its condition changes}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    }
    // expected-remark @+1 {{(rule 2): its condition changes}}
    scf.if %go {
    } else {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %b[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    scf.if %before {
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
    }
    scf.if %go {
      %x = memref.load %b[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
    }
    gpu.barrier
    scf.yield %go : i1
  }
  return
}

// -----

// A part would yield a memref: left unchanged.
// CHECK-LABEL: @allocation
// CHECK:         scf.if
// CHECK-NEXT:      memref.load
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      memref.alloc
// CHECK-NEXT:      gpu.barrier
#ws = #gpu.address_space<workgroup>
func.func @allocation(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ugt, %k, %c1 : index
    // expected-remark @+1 {{(rule 1): 'scf.if' does more than copy: it holds 'memref.alloc'}}
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      %b = memref.alloc() : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %b[%t] : memref<64xf32, #ws>
      %y = memref.load %b[%t] : memref<64xf32, #ws>
      memref.store %y, %C[%t] : memref<64xf32>
    }
  }
  return
}
