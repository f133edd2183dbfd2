// RUN: alcop-opt %s --alcop-distribute-copies --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// 256 chunks of 16 bytes over 64 threads: 4 each. A row has 4, so a thread's chunks are
// 16 rows apart. What does not change is computed once, where the kernel begins.
// CHECK-LABEL: @asynchronous
// CHECK:       gpu.launch
// CHECK-NEXT:    %[[T:.*]] = gpu.thread_id x upper_bound 64
// CHECK:         %[[R0:.*]] = arith.divui %[[T]], %c4
// CHECK:         %[[PLACE:.*]] = arith.remui %[[T]], %c4
// CHECK:         %[[C:.*]] = arith.muli %[[PLACE]], %c8
// CHECK:         %[[R1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%[[R0]]]
// CHECK:         %[[R2:.*]] = affine.apply affine_map<()[s0] -> (s0 + 32)>()[%[[R0]]]
// CHECK:         %[[R3:.*]] = affine.apply affine_map<()[s0] -> (s0 + 48)>()[%[[R0]]]
// CHECK:         %[[BUF:.*]] = memref.alloc()
// CHECK:         scf.for
// CHECK-NEXT:      %[[TILE:.*]] = memref.subview
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R0]], %[[C]]], %[[BUF]][%[[R0]], %[[C]]], 8 {bypassL1}
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R1]], %[[C]]], %[[BUF]][%[[R1]], %[[C]]], 8 {bypassL1}
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R2]], %[[C]]], %[[BUF]][%[[R2]], %[[C]]], 8 {bypassL1}
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R3]], %[[C]]], %[[BUF]][%[[R3]], %[[C]]], 8 {bypassL1}
// CHECK-NEXT:    }
// CHECK-NOT:     alcop.async_copy
#ws = #gpu.address_space<workgroup>
func.func @asynchronous(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    scf.for %k = %c0 to %c512 step %c32 {
      %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
      "alcop.async_copy"(%tile, %a) : (memref<64x32xf16, strided<[512, 1], offset: ?>>, memref<64x32xf16, #ws>) -> ()
    }
    gpu.terminator
  }
  return
}

// -----

// Rows that are further apart than a constant in an instruction: each thread copies two
// chunks of two rows, not one of four, so that it needs two addresses. Of eight lanes
// four copy of one row, four of the row four below.
// CHECK-LABEL: @far_rows
// CHECK:       gpu.launch
// CHECK-NEXT:    %[[T:.*]] = gpu.thread_id x upper_bound 64
// CHECK:         %[[R:.*]] = arith.divui %[[T]], %c4
// CHECK:         %[[EIGHTH:.*]] = arith.remui %[[R]], %c8
// CHECK:         %[[ODD:.*]] = arith.remui %[[EIGHTH]], %c2
// CHECK:         arith.muli %[[ODD]], %c4
// CHECK:         %[[C1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 32)>()[%[[C0:.*]]]
// CHECK:         %[[R1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%[[R0:.*]]]
// CHECK:         scf.for
// CHECK-NEXT:      %[[TILE:.*]] = memref.subview
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R0]], %[[C0]]],
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R0]], %[[C1]]],
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R1]], %[[C0]]],
// CHECK-NEXT:      nvgpu.device_async_copy %[[TILE]][%[[R1]], %[[C1]]],
// CHECK-NEXT:    }
#ws = #gpu.address_space<workgroup>
func.func @far_rows(%A: memref<512x256xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c512 = arith.constant 512 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x64xf16, #ws>
    scf.for %k = %c0 to %c512 step %c32 {
      %tile = memref.subview %A[%k, 0] [32, 64] [1, 1] : memref<512x256xf16> to memref<32x64xf16, strided<[256, 1], offset: ?>>
      "alcop.async_copy"(%tile, %a) : (memref<32x64xf16, strided<[256, 1], offset: ?>>, memref<32x64xf16, #ws>) -> ()
    }
    gpu.terminator
  }
  return
}

// -----

// A copy that is not pipelined: all loads first, so that they wait together.
// CHECK-LABEL: @plain
// CHECK:         %[[V0:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<32x64xf16>, vector<8xf16>
// CHECK-NEXT:    %[[V1:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<32x64xf16>, vector<8xf16>
// CHECK-NEXT:    vector.store %[[V0]], %{{.*}} {alignment = 16 : i64}
// CHECK-NEXT:    vector.store %[[V1]], %{{.*}} {alignment = 16 : i64}
// CHECK-NOT:     memref.copy
#ws = #gpu.address_space<workgroup>
func.func @plain(%A: memref<32x64xf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x64xf16, #ws>
    memref.copy %A, %a : memref<32x64xf16> to memref<32x64xf16, #ws>
    gpu.terminator
  }
  return
}

// -----

// 96 chunks for 64 threads: in the second round only half of them have one. A row of 6
// chunks does not divide the threads, so that each round has rows of its own.
// CHECK-LABEL: @partial_round
// CHECK:       %[[T:.*]] = gpu.thread_id x
// CHECK:       %[[NEXT:.*]] = affine.apply affine_map<()[s0] -> (s0 + 64)>()[%[[T]]]
// CHECK:       arith.divui %[[NEXT]], %c6
// CHECK:       arith.remui %[[NEXT]], %c6
// CHECK:       %[[TAKES_PART:.*]] = arith.cmpi ult, %[[T]], %c32
// CHECK:       nvgpu.device_async_copy
// CHECK:       scf.if %[[TAKES_PART]] {
// CHECK-NEXT:    nvgpu.device_async_copy
// CHECK-NEXT:  }
#ws = #gpu.address_space<workgroup>
func.func @partial_round(%A: memref<16x48xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x48xf16, #ws>
    "alcop.async_copy"(%A, %a) : (memref<16x48xf16>, memref<16x48xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Rows of 12 bytes allow 4 at a time, and only copies of 16 bytes can pass by L1.
// CHECK-LABEL: @narrow_rows
// CHECK:       nvgpu.device_async_copy {{.*}}, 2 : memref<32x6xf16>
#ws = #gpu.address_space<workgroup>
func.func @narrow_rows(%A: memref<32x6xf16>) {
  %c1 = arith.constant 1 : index
  %c96 = arith.constant 96 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c96, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x6xf16, #ws>
    "alcop.async_copy"(%A, %a) : (memref<32x6xf16>, memref<32x6xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// A row of 6 elements is no whole number of wider chunks, though it is well aligned.
// CHECK-LABEL: @one_row
// CHECK:       scf.if
// CHECK-NEXT:    %[[V:.*]] = vector.load %{{.*}} {alignment = 4 : i64} : memref<6xf16>, vector<2xf16>
// CHECK-NEXT:    vector.store %[[V]], %{{.*}} {alignment = 4 : i64}
#ws = #gpu.address_space<workgroup>
func.func @one_row(%A: memref<6xf16>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<6xf16, #ws>
    memref.copy %A, %a : memref<6xf16> to memref<6xf16, #ws>
    gpu.terminator
  }
  return
}

// -----

// Nothing is known of where the tile begins: f16 after f16, which cp.async cannot do.
// CHECK-LABEL: @unknown_alignment
// CHECK-NOT:   nvgpu
// CHECK:       %[[V:.*]] = memref.load
// CHECK-NEXT:  memref.store %[[V]]
#ws = #gpu.address_space<workgroup>
func.func @unknown_alignment(%A: memref<4x512xf16>, %at: index) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<4x8xf16, #ws>
    %tile = memref.subview %A[0, %at] [4, 8] [1, 1] : memref<4x512xf16> to memref<4x8xf16, strided<[512, 1], offset: ?>>
    "alcop.async_copy"(%tile, %a) : (memref<4x8xf16, strided<[512, 1], offset: ?>>, memref<4x8xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Leading dimensions count as rows; also in a gpu.func, and from shared to global memory.
// CHECK-LABEL: gpu.func @three_dimensions
// CHECK:       %[[T:.*]] = gpu.thread_id x upper_bound 32
// CHECK:       %[[ROW:.*]] = arith.divui %[[T]], %c4
// CHECK:       %[[INNER:.*]] = arith.remui %[[ROW]], %c4
// CHECK:       %[[OUTER:.*]] = arith.divui %[[ROW]], %c4
// CHECK:       vector.load %{{.*}}[%[[OUTER]], %[[INNER]], %{{.*}}] {alignment = 16 : i64}
// CHECK:       vector.store %{{.*}}[%[[OUTER]], %[[INNER]], %{{.*}}] {alignment = 16 : i64}
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @three_dimensions(%A: memref<2x4x16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %a = memref.alloc() : memref<2x4x16xf32, #ws>
    memref.copy %a, %A : memref<2x4x16xf32, #ws> to memref<2x4x16xf32>
    gpu.return
  }
}

// -----

// Copies of one thread, and copies on the host, are none of this pass's business.
// CHECK-LABEL: @left_alone
// CHECK:       memref.copy %arg0, %arg0
// CHECK:       gpu.launch
// CHECK-NOT:   gpu.thread_id
// CHECK:       nvgpu.device_async_copy %arg0[%{{.*}}, %{{.*}}], %{{.*}}, 4 :
#ws = #gpu.address_space<workgroup>
func.func @left_alone(%A: memref<32x32xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  memref.copy %A, %A : memref<32x32xf16> to memref<32x32xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x32xf16, #ws>
    %t = nvgpu.device_async_copy %A[%c0, %c0], %a[%tx, %c0], 4 : memref<32x32xf16> to memref<32x32xf16, #ws>
    gpu.terminator
  }
  return
}
