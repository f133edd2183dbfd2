// RUN: alcop-opt %s --alcop-distribute-copies --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// Chunks beyond the source's rows or columns are read in no element: cp.async fills them
// with zero. A row is a whole number of chunks, so that each is there or not.
// CHECK-LABEL: @asynchronous
// CHECK-SAME:  %[[ROWS:[a-z0-9]+]]: index, %[[EIGHTHS:[a-z0-9]+]]: index
// CHECK:       %[[COLUMNS:.*]] = arith.muli %[[EIGHTHS]], %c8
// CHECK:       %[[TILE:.*]] = memref.subview
// CHECK:       %[[ROWS_LEFT:.*]] = arith.subi %[[ROWS]], %[[R:.*]] : index
// CHECK:       %[[ROWS_WORD:.*]] = arith.index_cast %[[ROWS_LEFT]] : index to i32
// CHECK:       %[[IN_ROW:.*]] = arith.cmpi sgt, %[[ROWS_WORD]], %c0_i32
// CHECK:       %[[COLUMNS_LEFT:.*]] = arith.subi %[[COLUMNS]], %[[C:.*]] : index
// CHECK:       %[[COLUMNS_WORD:.*]] = arith.index_cast %[[COLUMNS_LEFT]] : index to i32
// CHECK:       %[[IN_COLUMN:.*]] = arith.cmpi sgt, %[[COLUMNS_WORD]], %c0_i32
// CHECK:       %[[BOTH:.*]] = arith.andi %[[IN_ROW]], %[[IN_COLUMN]]
// CHECK:       %[[COUNT:.*]] = arith.select %[[BOTH]], %c8, %c0
// CHECK:       nvgpu.device_async_copy %[[TILE]][%[[R]], %[[C]]], %{{.*}}[%[[R]], %[[C]]], 8, %[[COUNT]] {bypassL1}
#ws = #gpu.address_space<workgroup>
func.func @asynchronous(%A: memref<64x512xf16>, %rows: index, %eighths: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %columns = arith.muli %eighths, %c8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %tile = memref.subview %A[0, 0] [%rows, %columns] [1, 1] : memref<64x512xf16> to memref<?x?xf16, strided<[512, 1]>>
    "alcop.async_copy"(%tile, %a) : (memref<?x?xf16, strided<[512, 1]>>, memref<64x32xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// A row that may end inside of a chunk: as many elements as there are.
// CHECK-LABEL: @part_of_a_chunk
// CHECK:       %[[LEFT:.*]] = arith.subi %c13, %[[C:.*]] : index
// CHECK:       %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:       %[[COUNT:.*]] = arith.minsi %[[SOME]], %c8
// CHECK:       nvgpu.device_async_copy %{{.*}}[%{{.*}}, %[[C]]], %{{.*}}, 8, %[[COUNT]] {bypassL1}
#ws = #gpu.address_space<workgroup>
func.func @part_of_a_chunk(%A: memref<32x16xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    %tile = memref.subview %A[0, 0] [32, 13] [1, 1] : memref<32x16xf16> to memref<32x13xf16, strided<[16, 1]>>
    "alcop.async_copy"(%tile, %a) : (memref<32x13xf16, strided<[16, 1]>>, memref<32x16xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Plain loads stand under a condition, and are no wider than the source's rows allow.
// CHECK-LABEL: @plain
// CHECK:       %[[LEFT:.*]] = arith.subi %c12, %[[C:.*]] : index
// CHECK:       %[[WORD:.*]] = arith.index_cast %[[LEFT]] : index to i32
// CHECK:       %[[THERE:.*]] = arith.cmpi sgt, %[[WORD]], %c0_i32
// CHECK:       %[[V:.*]] = scf.if %[[THERE]] -> (vector<4xf16>)
// CHECK:         vector.load %{{.*}}[%{{.*}}, %[[C]]] {alignment = 8 : i64}
// CHECK:       } else {
// CHECK:         scf.yield %cst
// CHECK:       vector.store %[[V]], %{{.*}}[%{{.*}}, %[[C]]] {alignment = 8 : i64}
// CHECK-NOT:   alcop.copy
#ws = #gpu.address_space<workgroup>
func.func @plain(%A: memref<32x16xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    %tile = memref.subview %A[0, 0] [32, 12] [1, 1] : memref<32x16xf16> to memref<32x12xf16, strided<[16, 1]>>
    "alcop.copy"(%tile, %a) : (memref<32x12xf16, strided<[16, 1]>>, memref<32x16xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Rows at a distance known at run time only: a thread moves along its row. What lies
// behind the last row may be anything, so it is that row once more.
// CHECK-LABEL: @rows_anywhere
// CHECK-SAME:  %[[ROWS:[a-z0-9]+]]: index
// CHECK:       gpu.launch
// CHECK-NEXT:    %[[T:.*]] = gpu.thread_id x upper_bound 128
// CHECK:         %[[QUARTER:.*]] = arith.remui %[[T]], %c4
// CHECK:         %[[C0:.*]] = arith.muli %[[QUARTER]], %c8
// CHECK:         %[[C1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 32)>()[%[[C0]]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[ROWS]], %c1
// CHECK:         %[[ROW:.*]] = arith.minsi %[[R:.*]], %[[LAST]]
// CHECK:         nvgpu.device_async_copy %{{.*}}[%[[ROW]], %[[C0]]], %{{.*}}[%[[R]], %[[C0]]], 8 {bypassL1}
// CHECK:         nvgpu.device_async_copy %{{.*}}[%[[ROW]], %[[C1]]], %{{.*}}[%[[R]], %[[C1]]], 8 {bypassL1}
#ws = #gpu.address_space<workgroup>
func.func @rows_anywhere(%A: memref<?x?xf16>, %rows: index, %eighths: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %n = arith.muli %eighths, %c8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x64xf16, #ws>
    %all = memref.reinterpret_cast %A to offset: [0], sizes: [%rows, %n], strides: [%n, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1]>>
    %tile = memref.subview %all[0, 0] [%rows, 64] [1, 1] : memref<?x?xf16, strided<[?, 1]>> to memref<?x64xf16, strided<[?, 1]>>
    "alcop.async_copy"(%tile, %a) {alcop.arbitrary = [0]} : (memref<?x64xf16, strided<[?, 1]>>, memref<32x64xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Rounds differ by numbers: those are taken from the bound, so that all rounds compare
// one index with it, and hold one index to the last row.
// CHECK-LABEL: @rounds
// CHECK:       %[[R:.*]] = arith.divui %{{.*}}, %c4
// CHECK:       %[[SECOND:.*]] = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%[[R]]]
// CHECK:       %[[LAST:.*]] = arith.subi %[[ROWS:.*]], %c1
// CHECK:       arith.minsi %[[R]], %[[LAST]]
// CHECK:       nvgpu.device_async_copy
// CHECK:       %[[BELOW:.*]] = affine.apply affine_map<()[s0] -> (s0 - 16)>()[%[[LAST]]]
// CHECK:       %[[HELD:.*]] = arith.minsi %[[R]], %[[BELOW]]
// CHECK:       %[[ROW:.*]] = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%[[HELD]]]
// CHECK:       nvgpu.device_async_copy %{{.*}}[%[[ROW]], %[[C:.*]]], %{{.*}}[%[[SECOND]], %[[C]]], 8 {bypassL1}
#ws = #gpu.address_space<workgroup>
func.func @rounds(%A: memref<?x?xf16> {alcop.row_alignment = 16 : i64}, %rows: index,
                  %pitch: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %distance = arith.muli %pitch, %c8 : index
  %whole = memref.reinterpret_cast %A to offset: [0], sizes: [%rows, %distance], strides: [%distance, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1]>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x32xf16, #ws>
    %tile = memref.subview %whole[0, 0] [%rows, 32] [1, 1] : memref<?x?xf16, strided<[?, 1]>> to memref<?x32xf16, strided<[?, 1]>>
    "alcop.async_copy"(%tile, %a) {alcop.arbitrary = [0]} : (memref<?x32xf16, strided<[?, 1]>>, memref<32x32xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Many small loads go in a loop, sixteen at a time.
// CHECK-LABEL: @many
// CHECK:       %[[ROW:.*]] = arith.divui %{{.*}}, %c32
// CHECK:       scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK:         %[[DOWN:.*]] = arith.muli %[[I]], %c32
// CHECK:         %[[FIRST:.*]] = arith.addi %[[ROW]], %[[DOWN]]
// CHECK:         memref.load %{{.*}}[%[[FIRST]], %{{.*}}]
// CHECK-COUNT-15: memref.load
// CHECK-NOT:     memref.load
// CHECK-COUNT-16: memref.store
// CHECK-NOT:     memref.store
// CHECK:       gpu.terminator
#ws = #gpu.address_space<workgroup>
func.func @many(%A: memref<128x33xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<128x32xf16, #ws>
    %tile = memref.subview %A[0, 0] [128, 32] [1, 1] : memref<128x33xf16> to memref<128x32xf16, strided<[33, 1]>>
    memref.copy %tile, %a : memref<128x32xf16, strided<[33, 1]>> to memref<128x32xf16, #ws>
    gpu.terminator
  }
  return
}
