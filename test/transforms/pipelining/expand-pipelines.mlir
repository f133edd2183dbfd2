// RUN: alcop-opt %s --alcop-expand-pipelines --canonicalize --cse --split-input-file | FileCheck %s

// Shared level only, 3 slots: two tiles ahead, wait first, then issue, then use.
// CHECK-LABEL: @shared_only
// CHECK:       "alcop.async_copy"
// CHECK:       %[[G0:.*]] = "alcop.producer_commit"()
// CHECK:       "alcop.async_copy"
// CHECK:       %[[G1:.*]] = "alcop.producer_commit"()
// CHECK-NOT:   alcop
// 16 iterations: the last 2 start no copy, the 14 before are 4 rounds of 3 and 2 more.
// CHECK:       %[[STEADY:.*]]:{{[0-9]+}} = scf.for %[[K:.*]] = %c0 to %c384 step %c32
// CHECK-SAME:    %[[OLD:[a-z0-9]*]] = %[[G0]], %[[YOUNG:[a-z0-9]*]] = %[[G1]]
// CHECK:         "alcop.consumer_release"()
// CHECK:         "alcop.consumer_wait"(%[[OLD]])
// CHECK:         "alcop.producer_acquire"()
// CHECK:         %[[AHEAD:.*]] = arith.addi %[[K]], %c64
// CHECK:         memref.subview %{{.*}}[0, %[[AHEAD]]] [64, 32]
// CHECK-NOT:     scf.if
// CHECK:         "alcop.async_copy"
// CHECK:         %[[NEW:.*]] = "alcop.producer_commit"()
// CHECK:         memref.load
// CHECK-NOT:     gpu.barrier
// CHECK:         scf.yield {{.*}}%[[YOUNG]], %[[NEW]]
// CHECK:       } {alcop.unroll = 3 : i64}
// CHECK:       scf.for %[[T:.*]] = %c384 to %c512 step %c32
// CHECK:         "alcop.consumer_wait"
// CHECK:         %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %c512
// CHECK:         scf.if %[[IN]] {
// CHECK:           "alcop.async_copy"
// CHECK:         }
// CHECK:         "alcop.producer_commit"
// CHECK:         memref.load
// CHECK-NOT:   alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @shared_only(%A: memref<64x512xf16>, %D: memref<64xf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<3x64x32xf16, #ws>
  %end = scf.for %k = %c0 to %c512 step %c32 iter_args(%slot = %c0) -> (index) {
    %v = memref.subview %a[%slot, 0, 0] [1, 64, 32] [1, 1, 1] : memref<3x64x32xf16, #ws> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %v {alcop.pipeline = #alcop.pipeline<{shared = 3}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    gpu.barrier
    %x = memref.load %v[%i, %c0] : memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    memref.store %x, %D[%i] : memref<64xf16>
    gpu.barrier
    %n = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n, %c3 : index
    %next = arith.select %w, %c0, %n : index
    scf.yield %next : index
  } {alcop.pipeline = #alcop.pipeline<{shared = 3}>}
  return
}

// -----

// Both levels: the first fragments are read once, before the loop; in the loop the last
// step of a tile waits for the next tile, refills the slot just left, and reads on.
// CHECK-LABEL: @two_levels
// CHECK:       "alcop.consumer_wait"
// CHECK:       "alcop.producer_acquire"
// CHECK:       "alcop.async_copy"
// CHECK:       "alcop.producer_commit"
// CHECK:       %[[F0:.*]] = vector.transfer_read
// CHECK:       scf.for {{.*}} iter_args(%[[SUM:[a-z0-9]*]] = %{{[^,]*}}, {{.*}}, %[[F:[a-z0-9]*]] = %[[F0]])
// CHECK:         %[[F1:.*]] = vector.transfer_read {{.*}}%c16
// CHECK:         %[[SUM1:.*]] = arith.addf %[[SUM]], %[[F]]
// CHECK:         "alcop.consumer_release"
// CHECK-NEXT:    "alcop.consumer_wait"
// CHECK-NEXT:    "alcop.producer_acquire"
// CHECK:         "alcop.async_copy"
// CHECK:         "alcop.producer_commit"
// CHECK:         %[[F2:.*]] = vector.transfer_read {{.*}}%c0, %c0]
// CHECK:         %[[SUM2:.*]] = arith.addf %[[SUM1]], %[[F1]]
// CHECK:         scf.yield %[[SUM2]], {{.*}}, %[[F2]]
// CHECK:       } {alcop.unroll = 2 : i64}
// CHECK:       scf.for
// CHECK:         vector.transfer_read
// CHECK:         scf.if
// CHECK:           "alcop.async_copy"
// CHECK-NOT:     scf.if
// CHECK:         arith.select
// CHECK:         vector.transfer_read
// CHECK:         scf.yield
#ws = #gpu.address_space<workgroup>
func.func @two_levels(%A: memref<64x512xf16>) -> vector<64x16xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<64x16xf16>
  %a = memref.alloc() : memref<2x64x32xf16, #ws>
  %sum:2 = scf.for %k = %c0 to %c512 step %c32 iter_args(%s = %zero, %slot = %c0) -> (vector<64x16xf16>, index) {
    %v = memref.subview %a[%slot, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf16, #ws> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %v {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    gpu.barrier
    %inner = scf.for %kk = %c0 to %c32 step %c16 iter_args(%si = %s) -> (vector<64x16xf16>) {
      %f = vector.transfer_read %v[%c0, %kk], %pad {in_bounds = [true, true], alcop.pipeline = #alcop.pipeline<{register = 2}>} : memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>, vector<64x16xf16>
      %add = arith.addf %si, %f : vector<64x16xf16>
      scf.yield %add : vector<64x16xf16>
    } {alcop.pipeline = #alcop.pipeline<{carried = true, register = 2}>}
    gpu.barrier
    %n = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n, %c2 : index
    %next = arith.select %w, %c0, %n : index
    scf.yield %inner, %next : vector<64x16xf16>, index
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return %sum#0 : vector<64x16xf16>
}

// -----

// Bounds known at run time only: the prologue is predicated, no loop may be skipped.
// CHECK-LABEL: @dynamic
// CHECK-SAME:  %[[UB:[a-z0-9]*]]: index)
// CHECK:       %[[ANY:.*]] = arith.cmpi sgt, %[[UB]], %c0
// CHECK:       scf.if %[[ANY]] {
// CHECK:         "alcop.async_copy"
// CHECK:       %[[TRIPS:.*]] = arith.ceildivsi %[[UB]], %c32
// CHECK:       %[[FULL:.*]] = arith.maxsi
// CHECK:       %[[ROUNDS:.*]] = arith.divui %[[FULL]], %c2
// CHECK:       scf.for {{.*}} step %c32
// CHECK:       } {alcop.unroll = 2 : i64}
// CHECK:       scf.for {{.*}} to %[[UB]] step %c32
#ws = #gpu.address_space<workgroup>
func.func @dynamic(%A: memref<64x512xf16>, %D: memref<1xf16>, %ub: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %a = memref.alloc() : memref<2x64x32xf16, #ws>
  %end = scf.for %k = %c0 to %ub step %c32 iter_args(%slot = %c0) -> (index) {
    %v = memref.subview %a[%slot, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf16, #ws> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %v {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    gpu.barrier
    %x = memref.load %v[%c0, %c0] : memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    memref.store %x, %D[%c0] : memref<1xf16>
    gpu.barrier
    %n = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n, %c2 : index
    %next = arith.select %w, %c0, %n : index
    scf.yield %next : index
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}

// -----

// No plan, no change.
// CHECK-LABEL: @unplanned
// CHECK:       scf.for
// CHECK:         memref.copy
// CHECK:         gpu.barrier
// CHECK-NOT:   alcop
#ws = #gpu.address_space<workgroup>
func.func @unplanned(%A: memref<64x512xf16>, %D: memref<1xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %x = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    memref.store %x, %D[%c0] : memref<1xf16>
    gpu.barrier
  }
  return
}

// -----

// Wrap-around: no predicate in any iteration; copies go on from the first tile, and are
// waited for after the loop.
// CHECK-LABEL: @wrap
// CHECK:       scf.for %{{[a-z0-9]*}} = %c0 to %c512 step %c32 {{.*}} %[[COPY:[a-z0-9]*]] = %c32, 
// CHECK-NOT:     scf.if
// CHECK:         memref.subview %{{.*}}[0, %[[COPY]]] [64, 32]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[COPY]], %c32
// CHECK:         %[[IN:.*]] = arith.cmpi slt, %[[NEXT]], %c512
// CHECK:         arith.select %[[IN]], %[[NEXT]], %c0
// CHECK:       } {alcop.unroll = 2 : i64}
// CHECK-NEXT:  "alcop.consumer_release"
// CHECK-NEXT:  "alcop.consumer_wait"
#ws = #gpu.address_space<workgroup>
func.func @wrap(%A: memref<64x512xf16>, %D: memref<64xf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<2x64x32xf16, #ws>
  %end = scf.for %k = %c0 to %c512 step %c32 iter_args(%slot = %c0) -> (index) {
    %v = memref.subview %a[%slot, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf16, #ws> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %v {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    gpu.barrier
    %x = memref.load %v[%i, %c0] : memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    memref.store %x, %D[%i] : memref<64xf16>
    gpu.barrier
    %n = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n, %c2 : index
    %next = arith.select %w, %c0, %n : index
    scf.yield %next : index
  } {alcop.pipeline = #alcop.pipeline<{shared = 2, tail = "wrap"}>}
  return
}
