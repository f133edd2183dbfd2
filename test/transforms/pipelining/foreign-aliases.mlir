// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1})' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// LLVM's promise: what is accessed through %A and written is accessed through nothing
// else.
// CHECK-LABEL: @noalias_source
// CHECK:         alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @noalias_source(%A: memref<64x64xf32> {llvm.noalias}, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// The same of what is written.
// CHECK-LABEL: @noalias_target
// CHECK:         alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @noalias_target(%A: memref<64x64xf32>, %C: memref<64x64xf32> {llvm.noalias}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// No writes through %A: that says nothing of writes through %C.
// CHECK-LABEL: @readonly
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @readonly(%A: memref<64x64xf32> {llvm.readonly}, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; promise that arguments do not alias with assume-noalias-args=true, if so}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// One promise of both, for the values that it returns.
// CHECK-LABEL: @distinct_objects
// CHECK:         alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @distinct_objects(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %d:2 = memref.distinct_objects %A, %C : memref<64x64xf32>, memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %d#0[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %d#1[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// It says nothing of a third argument.
// CHECK-LABEL: @third_argument
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @third_argument(%A: memref<64x64xf32>, %B: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %d:2 = memref.distinct_objects %A, %B : memref<64x64xf32>, memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %d#0[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; promise that arguments do not alias with assume-noalias-args=true, if so}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// An object of its own in each iteration, but perhaps the other one of the last.
// CHECK-LABEL: @distinct_in_the_loop
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @distinct_in_the_loop(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %swap: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %p = arith.select %swap, %A, %C : memref<64x64xf32>
    %q = arith.select %swap, %C, %A : memref<64x64xf32>
    %d:2 = memref.distinct_objects %p, %q : memref<64x64xf32>, memref<64x64xf32>
    %v = memref.load %d#0[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %d#1[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// Two parts of one argument, with no element in common.
// CHECK-LABEL: @halves
// CHECK:         alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @halves(%A: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %h0 = memref.subview %A[0, 0] [32, 64] [1, 1] : memref<64x64xf32> to memref<32x64xf32, strided<[64, 1]>>
  %h1 = memref.subview %A[32, 0] [32, 64] [1, 1] : memref<64x64xf32> to memref<32x64xf32, strided<[64, 1], offset: 2048>>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %h0[%k, %t] : memref<32x64xf32, strided<[64, 1]>>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %h1[%k, %t] : memref<32x64xf32, strided<[64, 1], offset: 2048>>
    gpu.barrier
  }
  return
}

// -----

// Parts that have a row in common.
// CHECK-LABEL: @overlapping_parts
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @overlapping_parts(%A: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %h0 = memref.subview %A[0, 0] [32, 64] [1, 1] : memref<64x64xf32> to memref<32x64xf32, strided<[64, 1]>>
  %h1 = memref.subview %A[31, 0] [32, 64] [1, 1] : memref<64x64xf32> to memref<32x64xf32, strided<[64, 1], offset: 1984>>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %h0[%k, %t] : memref<32x64xf32, strided<[64, 1]>>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %h1[%k, %t] : memref<32x64xf32, strided<[64, 1], offset: 1984>>
    gpu.barrier
  }
  return
}

// -----

// Two globals are two objects.
// CHECK-LABEL: @two_globals
// CHECK:         alcop.pipeline
#ws = #gpu.address_space<workgroup>
memref.global @table : memref<64x64xf32>
memref.global @result : memref<64x64xf32>
func.func @two_globals(%unused: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %A = memref.get_global @table : memref<64x64xf32>
  %C = memref.get_global @result : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// An argument may be that global, as far as the function knows.
// CHECK-LABEL: @global_and_argument
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
memref.global @table : memref<64x64xf32>
func.func @global_and_argument(%C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %A = memref.get_global @table : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; promise that arguments do not alias with assume-noalias-args=true, if so}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// Its address goes nowhere: what was chosen is another memref.
// CHECK-LABEL: @private_source
// CHECK:         alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @private_source(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %which: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %own = memref.alloc() : memref<64x64xf32>
  %chosen = arith.select %which, %A, %C : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %own[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %chosen[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// What was chosen may be what is copied.
// CHECK-LABEL: @chosen_allocation
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @chosen_allocation(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %which: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %own = memref.alloc() : memref<64x64xf32>
  %chosen = arith.select %which, %own, %C : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %own[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %chosen[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// A promise about %A, and what was chosen may be %A.
// CHECK-LABEL: @chosen_noalias
// CHECK-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @chosen_noalias(%A: memref<64x64xf32> {llvm.noalias}, %C: memref<64x64xf32>, %which: i1, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  %chosen = arith.select %which, %A, %C : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %chosen[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}
