// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-fold-slots,canonicalize,cse)' --split-input-file | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-fold-slots,canonicalize,cse,alcop-plan-pipelines{stages=3,1 assume-noalias-args=true},alcop-multi-buffer)' \
// RUN:   --split-input-file | FileCheck %s --check-prefix=SLOTS

// Slots by a remainder: one is enough, with a barrier before the next iteration.
// CHECK-LABEL: @remainder
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[A:.*]] = memref.alloc() : memref<1x64xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK-NOT:       arith.remui
// CHECK:           memref.store %{{.*}}, %[[A]][%[[ZERO]], %{{.*}}]
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      memref.load %[[A]][%[[ZERO]], %{{.*}}]
// CHECK-NEXT:      memref.store
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:    }
// SLOTS-LABEL: @remainder
// SLOTS:         memref.alloc() : memref<3x1x64xf32
#ws = #gpu.address_space<workgroup>
func.func @remainder(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %slot = arith.remui %k, %c2 : index
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%slot, %t] : memref<2x64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%slot, %t] : memref<2x64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
  }
  return
}

// -----

// As memref.multibuffer makes them: a view of the slot. There is a barrier already.
// CHECK-LABEL: @multibuffer
// CHECK:         memref.alloc() : memref<1x64xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK:           gpu.barrier
// CHECK-NEXT:      memref.load
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:         return
// SLOTS-LABEL: @multibuffer
// SLOTS:         memref.alloc() : memref<3x1x64xf32
#ws = #gpu.address_space<workgroup>
#slot = strided<[1], offset: ?>
#number = affine_map<(d0) -> ((d0 floordiv 32) mod 4)>
func.func @multibuffer(%A: memref<2048x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<4x64xf32, #ws>
  scf.for %k = %c0 to %n step %c32 {
    %slot = affine.apply #number(%k)
    %own = memref.subview %a[%slot, 0] [1, 64] [1, 1] : memref<4x64xf32, #ws> to memref<64xf32, #slot, #ws>
    gpu.barrier
    %v = memref.load %A[%k, %t] : memref<2048x64xf32>
    memref.store %v, %own[%t] : memref<64xf32, #slot, #ws>
    gpu.barrier
    %x = memref.load %own[%t] : memref<64xf32, #slot, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
  }
  return
}

// -----

// A carried counter.
// CHECK-LABEL: @counter
// CHECK:         memref.alloc() : memref<1x64xf32, #gpu.address_space<workgroup>>
// SLOTS-LABEL: @counter
// SLOTS:         memref.alloc() : memref<3x1x64xf32
#ws = #gpu.address_space<workgroup>
func.func @counter(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<3x64xf32, #ws>
  %last = scf.for %k = %c0 to %n step %c1 iter_args(%slot = %c0) -> (index) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%slot, %t] : memref<3x64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%slot, %t] : memref<3x64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    %more = arith.addi %slot, %c1 : index
    %full = arith.cmpi eq, %more, %c3 : index
    %next = arith.select %full, %c0, %more : index
    scf.yield %next : index
  }
  return
}

// -----

// Not the iteration's own slot: a pipeline already.
// CHECK-LABEL: @ahead
// CHECK:         memref.alloc() : memref<2x64xf32, #gpu.address_space<workgroup>>
// SLOTS-LABEL: @ahead
#ws = #gpu.address_space<workgroup>
func.func @ahead(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %slot = arith.remui %k, %c2 : index
    %k1 = arith.addi %k, %c1 : index
    %next = arith.remui %k1, %c2 : index
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%next, %t] : memref<2x64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%slot, %t] : memref<2x64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
  }
  return
}

// -----

// A row for each warp: no slots.
// CHECK-LABEL: @warps
// CHECK:         memref.alloc() : memref<2x32xf32, #gpu.address_space<workgroup>>
// SLOTS-LABEL: @warps
#ws = #gpu.address_space<workgroup>
func.func @warps(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %t = gpu.thread_id x
  %lane = arith.remui %t, %c32 : index
  %warp = arith.divui %t, %c32 : index
  %a = memref.alloc() : memref<2x32xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %turn = arith.addi %k, %warp : index
    %slot = arith.remui %turn, %c2 : index
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%slot, %lane] : memref<2x32xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%slot, %lane] : memref<2x32xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// The elements that are filled move: an iteration may read what an older one left.
// CHECK-LABEL: @moving
// CHECK:         memref.alloc() : memref<2x64xf32, #gpu.address_space<workgroup>>
// SLOTS-LABEL: @moving
#ws = #gpu.address_space<workgroup>
func.func @moving(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %slot = arith.remui %k, %c2 : index
    %far = arith.addi %k, %t : index
    %to = arith.remui %far, %c64 : index
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%slot, %to] : memref<2x64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%slot, %t] : memref<2x64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// Read before the copy, and read after the loop.
// CHECK-LABEL: @read_elsewhere
// CHECK-COUNT-2: memref.alloc() : memref<2x64xf32, #gpu.address_space<workgroup>>
// SLOTS-LABEL: @read_elsewhere
#ws = #gpu.address_space<workgroup>
func.func @read_elsewhere(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<2x64xf32, #ws>
  %b = memref.alloc() : memref<2x64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %slot = arith.remui %k, %c2 : index
    %old = memref.load %a[%slot, %t] : memref<2x64xf32, #ws>
    gpu.barrier
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%slot, %t] : memref<2x64xf32, #ws>
    %w = memref.load %A[%t, %k] : memref<64x64xf32>
    memref.store %w, %b[%slot, %t] : memref<2x64xf32, #ws>
    gpu.barrier
    %x = memref.load %b[%slot, %t] : memref<2x64xf32, #ws>
    %y = arith.addf %x, %old : f32
    memref.store %y, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  %z = memref.load %b[%c1, %t] : memref<2x64xf32, #ws>
  memref.store %z, %C[%c0, %t] : memref<64x64xf32>
  return
}

// -----

// Transfers of a row of the slot.
// CHECK-LABEL: @transfers
// CHECK:         %[[A:.*]] = memref.alloc() : memref<1x64x4xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK-NOT:       arith.remui
// CHECK:           vector.transfer_write %{{.*}}, %[[A]][%c0, %{{.*}}, %c0]
// CHECK:           vector.transfer_read %[[A]][%c0, %{{.*}}, %c0]
// SLOTS-LABEL: @transfers
// SLOTS:         memref.alloc() : memref<3x1x64x4xf32
#ws = #gpu.address_space<workgroup>
func.func @transfers(%A: memref<128x4xf32>, %C: memref<128x4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.xori %t, %c1 : index
  %a = memref.alloc() : memref<2x64x4xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %slot = arith.remui %k, %c2 : index
    %row = arith.addi %k, %t : index
    %v = vector.transfer_read %A[%row, %c0], %zero {in_bounds = [true]} : memref<128x4xf32>, vector<4xf32>
    vector.transfer_write %v, %a[%slot, %t, %c0] {in_bounds = [true]} : vector<4xf32>, memref<2x64x4xf32, #ws>
    gpu.barrier
    %x = vector.transfer_read %a[%slot, %other, %c0], %zero {in_bounds = [true]} : memref<2x64x4xf32, #ws>, vector<4xf32>
    vector.transfer_write %x, %C[%row, %c0] {in_bounds = [true]} : vector<4xf32>, memref<128x4xf32>
    gpu.barrier
  }
  return
}

// -----

// A flat buffer with a part for each iteration, by a loop of another step than 1.
// CHECK-LABEL: @parts
// CHECK:         memref.alloc() : memref<1x256xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK:           vector.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<256xf32
// CHECK:           gpu.barrier
// CHECK:           memref.load %{{.*}}[%{{.*}}] : memref<256xf32
// CHECK:           gpu.barrier
// SLOTS-LABEL: @parts
// SLOTS:         memref.alloc() : memref<3x1x256xf32
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @parts(%A: memref<1792xf32>, %C: memref<1792xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<1792xf32, #ws>
  %first = arith.muli %t, %c4 : index
  %other = arith.subi %c63, %t : index
  scf.for %k = %c0 to %n step %c4 {
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %first : index
    %v = vector.load %A[%at] : memref<1792xf32>, vector<4xf32>
    vector.store %v, %a[%at] : memref<1792xf32, #ws>, vector<4xf32>
    gpu.barrier
    %from = arith.addi %part, %other : index
    %x = memref.load %a[%from] : memref<1792xf32, #ws>
    memref.store %x, %C[%from] : memref<1792xf32>
  }
  gpu.return
}

// By transfers, and with another fill where a condition does not hold.
// CHECK-LABEL: gpu.func @parts_that_are_filled_else
// CHECK:         memref.alloc() : memref<1x256xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.if
// CHECK:           vector.transfer_write %{{.*}} : vector<4xf32>, memref<256xf32
// CHECK:         else
// CHECK:           vector.transfer_write %{{.*}} : vector<4xf32>, memref<256xf32
// CHECK:         vector.transfer_read %{{.*}} : memref<256xf32
// SLOTS-LABEL: gpu.func @parts_that_are_filled_else
// SLOTS:         memref.alloc() : memref<3x1x256xf32
gpu.func @parts_that_are_filled_else(%A: memref<4096xf32>, %C: memref<1792xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c252 = arith.constant 252 : index
  %c1000 = arith.constant 1000 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %t = gpu.thread_id x
  %own = arith.muli %t, %c4 : index
  %a = memref.alloc() : memref<1792xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %row = arith.muli %k, %c64 : index
    %here = arith.addi %row, %t : index
    %in = arith.cmpi ult, %here, %c1000 : index
    %at = arith.muli %here, %c4 : index
    scf.if %in {
      %v = vector.transfer_read %A[%at], %zero {in_bounds = [true]} : memref<4096xf32>, vector<4xf32>
      vector.transfer_write %v, %a[%at] {in_bounds = [true]} : vector<4xf32>, memref<1792xf32, #ws>
    } else {
      vector.transfer_write %zeros, %a[%at] {in_bounds = [true]} : vector<4xf32>, memref<1792xf32, #ws>
    }
    gpu.barrier
    %part = arith.muli %row, %c4 : index
    %last = arith.addi %part, %c252 : index
    %from = arith.subi %last, %own : index
    %x = vector.transfer_read %a[%from], %zero {in_bounds = [true]} : memref<1792xf32, #ws>, vector<4xf32>
    vector.transfer_write %x, %C[%from] {in_bounds = [true]} : vector<4xf32>, memref<1792xf32>
  }
  gpu.return
}

// A buffer that is made in each iteration, and one for one iteration only.
// CHECK-LABEL: gpu.func @parts_of_no_use
// CHECK:         memref.alloc() : memref<64xf32
// CHECK:         memref.alloc() : memref<1792xf32
gpu.func @parts_of_no_use(%A: memref<1792xf32>, %C: memref<1792xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<1792xf32, #ws>
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %v = memref.load %A[%at] : memref<1792xf32>
    memref.store %v, %a[%at] : memref<64xf32, #ws>
    memref.store %v, %b[%at] : memref<1792xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%at] : memref<64xf32, #ws>
    %y = memref.load %b[%at] : memref<1792xf32, #ws>
    %z = arith.addf %x, %y : f32
    memref.store %z, %C[%at] : memref<1792xf32>
    gpu.barrier
  }
  gpu.return
}

// The read, or the copy, reaches into the next part; the threads are not counted; the loop
// begins elsewhere; the buffer is read after the loop.
// CHECK-LABEL: gpu.func @parts_that_overlap
// CHECK-COUNT-2: memref.alloc() : memref<1792xf32
// CHECK-LABEL: gpu.func @parts_of_before
// CHECK:         memref.alloc() : memref<1792xf32
// CHECK-LABEL: gpu.func @parts_of_many_threads
// CHECK:         memref.alloc() : memref<1792xf32
// CHECK-LABEL: gpu.func @parts_for_later
// CHECK-COUNT-2: memref.alloc() : memref<1792xf32
gpu.func @parts_that_overlap(%A: memref<1792xf32>, %C: memref<1792xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<1792xf32, #ws>
  %b = memref.alloc() : memref<1792xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %v = memref.load %A[%at] : memref<1792xf32>
    memref.store %v, %a[%at] : memref<1792xf32, #ws>
    %w = vector.load %A[%at] : memref<1792xf32>, vector<2xf32>
    vector.store %w, %b[%at] : memref<1792xf32, #ws>, vector<2xf32>
    gpu.barrier
    %from = arith.addi %at, %c1 : index
    %x = memref.load %a[%from] : memref<1792xf32, #ws>
    %y = memref.load %b[%at] : memref<1792xf32, #ws>
    %z = arith.addf %x, %y : f32
    memref.store %z, %C[%at] : memref<1792xf32>
  }
  gpu.return
}
gpu.func @parts_of_before(%A: memref<1792xf32>, %C: memref<1792xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<1792xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %v = memref.load %A[%at] : memref<1792xf32>
    memref.store %v, %a[%at] : memref<1792xf32, #ws>
    gpu.barrier
    %from = arith.subi %at, %c1 : index
    %x = memref.load %a[%from] : memref<1792xf32, #ws>
    memref.store %x, %C[%at] : memref<1792xf32>
  }
  gpu.return
}
gpu.func @parts_of_many_threads(%A: memref<1792xf32>, %C: memref<1792xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<1792xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %v = memref.load %A[%at] : memref<1792xf32>
    memref.store %v, %a[%at] : memref<1792xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%at] : memref<1792xf32, #ws>
    memref.store %x, %C[%at] : memref<1792xf32>
  }
  gpu.return
}
gpu.func @parts_for_later(%A: memref<1792xf32>, %C: memref<1792xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<1792xf32, #ws>
  %b = memref.alloc() : memref<1792xf32, #ws>
  scf.for %k = %c1 to %n step %c1 {
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %v = memref.load %A[%at] : memref<1792xf32>
    memref.store %v, %a[%at] : memref<1792xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%at] : memref<1792xf32, #ws>
    memref.store %x, %C[%at] : memref<1792xf32>
  }
  scf.for %k = %c0 to %n step %c1 {
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %v = memref.load %A[%at] : memref<1792xf32>
    memref.store %v, %b[%at] : memref<1792xf32, #ws>
    gpu.barrier
  }
  %last = memref.load %b[%t] : memref<1792xf32, #ws>
  memref.store %last, %C[%t] : memref<1792xf32>
  gpu.return
}
}

// -----

// Later iterations read what one three before has filled.
// CHECK-LABEL: @filled_under_condition
// CHECK:         memref.alloc() : memref<3x64xf32
#ws = #gpu.address_space<workgroup>
func.func @filled_under_condition(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<3x64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %go = arith.cmpi ult, %k, %c3 : index
    %slot = arith.remui %k, %c3 : index
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%slot, %t] : memref<3x64xf32, #ws>
    }
    gpu.barrier
    %x = memref.load %a[%slot, %t] : memref<3x64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// The same of parts, in a second run of the loop.
// CHECK-LABEL: @parts_filled_once
// CHECK:         memref.alloc() : memref<1024xf32
gpu.module @kernels {
gpu.func @parts_filled_once(%A: memref<1024xf32>, %C: memref<1024xf32>, %n: index)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<1024xf32, #ws>
  scf.for %o = %c0 to %c2 step %c1 {
    %first = arith.cmpi eq, %o, %c0 : index
    scf.for %k = %c0 to %n step %c1 {
      %part = arith.muli %k, %c64 : index
      %at = arith.addi %part, %t : index
      scf.if %first {
        %v = memref.load %A[%at] : memref<1024xf32>
        memref.store %v, %a[%at] : memref<1024xf32, #ws>
      }
      gpu.barrier
      %x = memref.load %a[%at] : memref<1024xf32, #ws>
      memref.store %x, %C[%at] : memref<1024xf32>
    }
  }
  gpu.return
}
}
