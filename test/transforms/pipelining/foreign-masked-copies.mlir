// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// A mask that counts becomes the number of elements that are read.
// CHECK-LABEL: @masked_load
// CHECK:         scf.for
// CHECK:           %[[LEFT:.*]] = arith.subi
// CHECK:           %[[LEAST:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:           %[[READ:.*]] = arith.minsi %[[LEAST]], %c4
// CHECK:           nvgpu.device_async_copy {{.*}}, 4, %[[READ]] {bypassL1}
// CHECK-NOT:     vector.maskedload
#ws = #gpu.address_space<workgroup>
func.func @masked_load(%A: memref<64x512xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %left = arith.subi %n, %k : index
    %mask = vector.create_mask %left : vector<4xi1>
    %v = vector.maskedload %A[%k, %t4], %mask, %zeros : memref<64x512xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    vector.store %v, %a[%t4] : memref<64xf32, #ws>, vector<4xf32>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// A transfer, with a mask that is the same in all iterations.
// CHECK-LABEL: @masked_transfer
// CHECK:         nvgpu.device_async_copy {{.*}}, 4, %c3{{.*}} {bypassL1}
// CHECK-NOT:     vector.transfer_read
#ws = #gpu.address_space<workgroup>
func.func @masked_transfer(%A: memref<64x512xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %mask = vector.constant_mask [3] : vector<4xi1>
  scf.for %k = %c0 to %c64 step %c1 {
    %v = vector.transfer_read %A[%k, %t4], %zero, %mask {in_bounds = [true]} : memref<64x512xf32>, vector<4xf32>
    vector.store %v, %a[%t4] : memref<64xf32, #ws>, vector<4xf32>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// cp.async reads the first elements of those side by side, and fills with zero.
// CHECK-LABEL: @other_masks
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @other_masks(%A: memref<64x512xf32>, %C: memref<64xf32>, %mask: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %ones = arith.constant dense<1.0> : vector<4xf32>
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %few = vector.create_mask %t : vector<4xi1>
  scf.for %k = %c0 to %c64 step %c1 {
    %v = vector.transfer_read %A[%k, %t4], %zero, %mask {in_bounds = [true]} : memref<64x512xf32>, vector<4xf32>
    // expected-remark @below {{not pipelined (rule 1): the mask of 'vector.transfer_read' is not of vector.create_mask, or does not fill with zero; count the elements with vector.create_mask, and fill with zero}}
    vector.store %v, %a[%t4] : memref<64xf32, #ws>, vector<4xf32>
    %w = vector.maskedload %A[%k, %t4], %few, %ones : memref<64x512xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    // expected-remark @below {{not pipelined (rule 1): the mask of 'vector.maskedload' is not of vector.create_mask, or does not fill with zero}}
    vector.store %w, %b[%t4] : memref<64xf32, #ws>, vector<4xf32>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    %y = memref.load %b[%t] : memref<64xf32, #ws>
    %s = arith.addf %x, %y : f32
    memref.store %s, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// What a masked store leaves out is that of an older tile, in another slot.
// CHECK-LABEL: @masked_stores
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @masked_stores(%A: memref<64x512xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  %mask = vector.create_mask %n : vector<4xi1>
  scf.for %k = %c0 to %c64 step %c1 {
    %v = vector.load %A[%k, %t4] : memref<64x512xf32>, vector<4xf32>
    // expected-remark @below {{not pipelined (rule 1): 'vector.maskedstore' has a mask, and where that is false the buffer keeps elements of an older tile; mask the load, and store all of it}}
    vector.maskedstore %a[%t4], %mask, %v : memref<64xf32, #ws>, vector<4xi1>, vector<4xf32>
    %w = vector.load %A[%k, %t4] : memref<64x512xf32>, vector<4xf32>
    // expected-remark @below {{not pipelined (rule 1): 'vector.transfer_write' has a mask, and where that is false the buffer keeps elements of an older tile}}
    vector.transfer_write %w, %b[%t4], %mask {in_bounds = [true]} : vector<4xf32>, memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    %y = memref.load %b[%t] : memref<64xf32, #ws>
    %s = arith.addf %x, %y : f32
    memref.store %s, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// Perhaps beyond the memref's end: cp.async does not know where that is.
// CHECK-LABEL: @out_of_bounds
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @out_of_bounds(%A: memref<64x512xf32>, %C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %t4 = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %c64 step %c1 {
    %v = vector.transfer_read %A[%k, %t4], %zero : memref<64x512xf32>, vector<4xf32>
    // expected-remark @below {{not pipelined (rule 1): 'vector.transfer_read' moves more than one row of elements, or may leave the bounds of its memref; move one row that is in bounds, by a mask where it may be shorter}}
    vector.store %v, %a[%t4] : memref<64xf32, #ws>, vector<4xf32>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}
