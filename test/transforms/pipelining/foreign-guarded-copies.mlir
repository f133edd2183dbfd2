// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// A tail filled with zero: the guard becomes the number of elements that are read.
// CHECK-LABEL: @zero_filled
// CHECK:         %[[ELEMENTS:.*]] = arith.select %{{.*}}, %c1{{.*}}, %c0
// CHECK:         nvgpu.device_async_copy {{.*}}, 1, %[[ELEMENTS]]
#ws = #gpu.address_space<workgroup>
func.func @zero_filled(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    scf.if %in {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    } else {
      memref.store %zero, %a[%t] : memref<64xf32, #ws>
    }
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

// Without a fill the place keeps what an older tile left there.
// CHECK-LABEL: @not_filled
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @not_filled(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    // expected-remark @below {{not pipelined (rule 2): its condition changes from iteration to iteration: where it does not copy, its buffer keeps elements of an older tile; store another value to the same elements otherwise}}
    scf.if %in {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    }
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

// cp.async can fill with zero only: other values are stored.
// CHECK-LABEL: @filled_with_one
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK-NEXT:        nvgpu.device_async_copy
// CHECK-NEXT:      } else {
// CHECK-NEXT:        memref.store %{{.*}}, %{{.*}}
// CHECK-NEXT:      }
// CHECK-NEXT:      "alcop.producer_commit"
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @filled_with_one(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %one = arith.constant 1.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    scf.if %in {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    } else {
      memref.store %one, %a[%t] : memref<64xf32, #ws>
    }
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

// What the branch computes the address from moves before the copy.
// CHECK-LABEL: @address_in_branch
// CHECK:         %[[AT:.*]] = arith.subi %{{.*}}, %c1
// CHECK:         nvgpu.device_async_copy %{{.*}}[%{{.*}}, %[[AT]]]
#ws = #gpu.address_space<workgroup>
func.func @address_in_branch(%A: memref<16x16xf32>, %C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<16x1xf32, #ws>
  scf.for %i = %c0 to %c16 step %c1 {
    %in = arith.cmpi uge, %i, %c1 : index
    scf.if %in {
      %p = arith.subi %i, %c1 : index
      %v = memref.load %A[%t, %p] : memref<16x16xf32>
      memref.store %v, %a[%t, %c0] : memref<16x1xf32, #ws>
    } else {
      memref.store %zero, %a[%t, %c0] : memref<16x1xf32, #ws>
    }
    %x = memref.load %a[%t, %c0] : memref<16x1xf32, #ws>
    memref.store %x, %C[%t, %i] : memref<16x16xf32>
  }
  return
}

// -----

// What it loads an index from may be out of bounds where the guard is false.
// CHECK-LABEL: @index_loaded_in_branch
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @index_loaded_in_branch(%A: memref<16x16xf32>, %I: memref<16xindex>, %C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<16x1xf32, #ws>
  scf.for %i = %c0 to %c16 step %c1 {
    %in = arith.cmpi uge, %i, %c1 : index
    // expected-remark @below {{not pipelined (rule 6): its address depends on 'memref.load' of the same iteration; compute the address from the loop's index}}
    scf.if %in {
      %p = memref.load %I[%i] : memref<16xindex>
      %v = memref.load %A[%t, %p] : memref<16x16xf32>
      memref.store %v, %a[%t, %c0] : memref<16x1xf32, #ws>
    } else {
      memref.store %zero, %a[%t, %c0] : memref<16x1xf32, #ws>
    }
    %x = memref.load %a[%t, %c0] : memref<16x1xf32, #ws>
    memref.store %x, %C[%t, %i] : memref<16x16xf32>
  }
  return
}

// -----

// Half of the threads copy, the same ones in every iteration.
// CHECK-LABEL: @half_of_the_threads
// CHECK:         %[[FIRST:.*]] = arith.cmpi ult
// CHECK:         scf.for
// CHECK:           scf.if %[[FIRST]] {
// CHECK-NEXT:        nvgpu.device_async_copy
// CHECK-NEXT:      }
// CHECK-NEXT:      "alcop.producer_commit"
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @half_of_the_threads(%A: memref<64x32xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %half = arith.remui %t, %c32 : index
  %a = memref.alloc() : memref<32xf32, #ws>
  %first = arith.cmpi ult, %t, %c32 : index
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    scf.if %first {
      %v = memref.load %A[%k, %t] : memref<64x32xf32>
      memref.store %v, %a[%t] : memref<32xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%half] : memref<32xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The condition may choose what is stored, too.
// CHECK-LABEL: @chosen
// CHECK:         scf.for
// CHECK:           %[[ROW:.*]] = arith.subi %c63
// CHECK:           %[[ELEMENTS:.*]] = arith.select %{{.*}}, %c1{{.*}}, %c0
// CHECK:           nvgpu.device_async_copy %{{.*}}[%[[ROW]], %{{.*}}], %{{.*}}, 1, %[[ELEMENTS]]
// CHECK-NOT:       scf.if
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @chosen(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    %v = scf.if %in -> f32 {
      %row = arith.subi %c63, %k : index
      %l = memref.load %A[%row, %t] : memref<64x64xf32>
      scf.yield %l : f32
    } else {
      scf.yield %zero : f32
    }
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

// What it may choose otherwise must be known early.
// CHECK-LABEL: @chosen_otherwise
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @chosen_otherwise(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    %v = scf.if %in -> f32 {
      %row = arith.subi %c63, %k : index
      %l = memref.load %A[%row, %t] : memref<64x64xf32>
      scf.yield %l : f32
    } else {
      scf.yield %acc : f32
    }
    // expected-remark @below {{not pipelined (rule 6): what it stores otherwise depends on 'memref.load' of an earlier iteration; store what can be computed from the loop's index}}
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

// Two copies under one condition, as canonicalize makes it of neighbours.
// CHECK-LABEL: @merged
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_copy
// CHECK:           nvgpu.device_async_copy
// CHECK-NOT:       scf.if
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @merged(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    scf.if %in {
      %row = arith.subi %c63, %k : index
      %v = memref.load %A[%row, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      %w = memref.load %A[%row, %other] : memref<64x64xf32>
      memref.store %w, %b[%t] : memref<64xf32, #ws>
    } else {
      memref.store %zero, %a[%t] : memref<64xf32, #ws>
      memref.store %zero, %b[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = memref.load %b[%other] : memref<64xf32, #ws>
    %m = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %m : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Where they are not pipelined they stay together, and one remark is enough.
// CHECK-LABEL: @merged_but_written
// CHECK-NOT:     alcop.
// CHECK:         scf.if
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:           memref.load
// CHECK:           memref.store
// CHECK:         else
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      memref.store
// CHECK-NOT:     scf.if
#ws = #gpu.address_space<workgroup>
func.func @merged_but_written(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    scf.if %in {
      %row = arith.subi %c63, %k : index
      %v = memref.load %A[%row, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      %w = memref.load %A[%row, %other] : memref<64x64xf32>
      memref.store %w, %b[%t] : memref<64xf32, #ws>
    } else {
      memref.store %zero, %a[%t] : memref<64xf32, #ws>
      memref.store %zero, %b[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = memref.load %b[%other] : memref<64xf32, #ws>
    %m = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %m : f32
    gpu.barrier
    memref.store %next, %A[%k, %t] : memref<64x64xf32>
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// More than copies is done under the condition.
// CHECK-LABEL: @merged_with_more
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @merged_with_more(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %in = arith.cmpi ult, %k, %c63 : index
    // expected-remark @below {{not pipelined (rule 1): 'memref.store' stores a loaded value that is used elsewhere too; load it again for the other use}}
    scf.if %in {
      %row = arith.subi %c63, %k : index
      %v = memref.load %A[%row, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      %w = memref.load %A[%row, %other] : memref<64x64xf32>
      memref.store %w, %b[%t] : memref<64xf32, #ws>
      memref.store %w, %C[%t] : memref<64xf32>
    } else {
      memref.store %zero, %a[%t] : memref<64xf32, #ws>
      memref.store %zero, %b[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %y = memref.load %b[%other] : memref<64xf32, #ws>
    %m = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %m : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// Rows that an scf.forall copies: it is issued early as a whole.
// CHECK-LABEL: @rows_by_forall
// CHECK:         scf.for
// CHECK:           scf.forall
// CHECK-NOT:         memref.store
// CHECK:             nvgpu.device_async_copy
// CHECK:           "alcop.producer_commit"
// CHECK:         {alcop.unroll = 3 : i64}
#ws = #gpu.address_space<workgroup>
func.func @rows_by_forall(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<4x64xf32, #ws>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    scf.forall (%j) in (4) {
      %r = arith.addi %k, %j : index
      %v = memref.load %A[%r, %t] : memref<64x64xf32>
      memref.store %v, %a[%j, %t] : memref<4x64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%c1, %t] : memref<4x64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}

// -----

// The whole body is under a condition: a tile's copy in it is not alone there.
// CHECK-LABEL: @body_under_condition
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @body_under_condition(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %in = arith.cmpi ult, %k, %c63 : index
    // expected-remark @below {{not pipelined (rule 1): 'scf.if' does more than copy: it holds 'gpu.barrier'; keep in it loads of what is copied, stores of that, and stores of what needs no memory}}
    scf.if %in {
      %row = memref.subview %A[%k, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<64xf32, strided<[1], offset: ?>>
      memref.copy %row, %a : memref<64xf32, strided<[1], offset: ?>> to memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
      gpu.barrier
    }
  }
  return
}
