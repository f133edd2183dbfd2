// RUN: alcop-opt %s --alcop-multi-buffer --split-input-file | FileCheck %s
// Again it does nothing.
// RUN: alcop-opt %s --alcop-multi-buffer --alcop-multi-buffer --split-input-file | FileCheck %s

// One slot per stage; the loop carries the slot and counts it round.
// CHECK-LABEL: @three_slots
// CHECK:       %[[WIDE:.*]] = memref.alloc() : memref<3x64x32xf16, #gpu.address_space<workgroup>>
// CHECK:       scf.for {{.*}} iter_args(%[[SLOT:.*]] = %c0{{.*}}) -> (index)
// CHECK:         %[[VIEW:.*]] = memref.subview %[[WIDE]][%[[SLOT]], 0, 0] [1, 64, 32] [1, 1, 1]
// CHECK:         memref.copy %{{.*}}, %[[VIEW]]
// CHECK:         memref.load %[[VIEW]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[SLOT]], %c1
// CHECK:         %[[WRAP:.*]] = arith.cmpi eq, %[[NEXT]], %c3
// CHECK:         %[[NEW:.*]] = arith.select %[[WRAP]], %c0{{.*}}, %[[NEXT]]
// CHECK:         scf.yield %[[NEW]]
// CHECK:       alcop.pipeline = #alcop.pipeline<{noalias = true, ops = [{kind = "fill", name = "memref.copy", op = 0 : i64, ring = 0 : i64, stream = "copy"}], rings = [{slots = 3 : i64}], streams = [{lead = 2 : i64, name = "copy"}, {name = "compute"}]}>
#ws = #gpu.address_space<workgroup>
func.func @three_slots(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 3}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{shared = 3}>}
  return
}

// -----

// A buffer made in the loop is made once, before it.
// CHECK-LABEL: @made_inside
// CHECK:       memref.alloc() : memref<2x64x32xf16, #gpu.address_space<workgroup>>
// CHECK:       scf.for
// CHECK-NOT:   memref.alloc
#ws = #gpu.address_space<workgroup>
func.func @made_inside(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  scf.for %k = %c0 to %c512 step %c32 {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}

// -----

// No plan, no change.
// CHECK-LABEL: @unplanned
// CHECK:       memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK-NOT:   memref.subview %{{.*}}[%{{.*}}, 0, 0]
#ws = #gpu.address_space<workgroup>
func.func @unplanned(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
  }
  return
}
