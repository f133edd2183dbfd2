// RUN: alcop-opt %s --alcop-expand-pipelines --canonicalize --cse --split-input-file | FileCheck %s

// The copies ask what the loop has left of a step. The steady state ends one iteration
// earlier than else, so that all its steps are whole: it runs 6 of 11, not 9.
// CHECK-LABEL: @rest_of_a_step
// CHECK-SAME:  (%[[A:[a-z0-9]+]]: memref<64x340xf16>
// CHECK:       memref.subview %[[A]][0, 0] [64, 32] [1, 1]
// CHECK:       alcop.async_copy
// CHECK-SAME:  {alcop.arbitrary = [0]}
// CHECK:       scf.for %[[K:[^ ]*]] = %c0 to %c192 step %c32
// CHECK-NOT:     arith.minsi
// CHECK:         %[[AHEAD:.*]] = arith.addi %[[K]], %c64
// CHECK-NOT:     arith.minsi
// CHECK:         memref.subview %[[A]][0, %[[AHEAD]]] [64, 32] [1, 1]
// CHECK:       {alcop.unroll = 3 : i64}
// CHECK:       scf.for %[[T:[^ ]*]] = %c192 to %c340 step %c32
// CHECK:         %[[NEXT:.*]] = arith.addi %[[T]], %c64
// CHECK:         %[[LEFT:.*]] = arith.subi %c276, %[[T]]
// CHECK:         %[[SIZE:.*]] = arith.minsi %[[LEFT]], %c32
// CHECK:         memref.subview %[[A]][0, %[[NEXT]]] [64, %[[SIZE]]] [1, 1]
#ws = #gpu.address_space<workgroup>
func.func @rest_of_a_step(%A: memref<64x340xf16>, %D: memref<64xf16>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c340 = arith.constant 340 : index
  %a = memref.alloc() : memref<3x64x32xf16, #ws>
  %end = scf.for %k = %c0 to %c340 step %c32 iter_args(%slot = %c0) -> (index) {
    %av = memref.subview %a[%slot, 0, 0] [1, 64, 32] [1, 1, 1] : memref<3x64x32xf16, #ws> to memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    %left = arith.subi %c340, %k : index
    %size = arith.minsi %left, %c32 : index
    %tile = memref.subview %A[0, %k] [64, %size] [1, 1] : memref<64x340xf16> to memref<64x?xf16, strided<[340, 1], offset: ?>>
    "alcop.copy"(%tile, %av) {alcop.arbitrary = [0], alcop.pipeline = #alcop.pipeline<{shared = 3}>} : (memref<64x?xf16, strided<[340, 1], offset: ?>>, memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>) -> ()
    gpu.barrier
    %x = memref.load %av[%i, %c0] : memref<64x32xf16, strided<[32, 1], offset: ?>, #ws>
    memref.store %x, %D[%i] : memref<64xf16>
    gpu.barrier
    %n = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n, %c3 : index
    %next = arith.select %w, %c0, %n : index
    scf.yield %next : index
  } {alcop.pipeline = #alcop.pipeline<{shared = 3}>}
  return
}
