// RUN: alcop-opt %s --alcop-plan-pipelines='stages=3,2' --split-input-file 2>/dev/null | FileCheck %s
// RUN: alcop-opt %s --alcop-plan-pipelines='stages=3,1' --split-input-file 2>/dev/null | FileCheck %s --check-prefix=SHARED
// RUN: alcop-opt %s --alcop-plan-pipelines='stages=1,1' --split-input-file 2>/dev/null | FileCheck %s --check-prefix=NONE

// Both levels; the fragment pipeline runs on across the tiles.
// CHECK-LABEL: @two_levels
// CHECK:       memref.copy {{.*}}{alcop.op = 0 : i64}
// CHECK:       vector.transfer_read {{.*}}alcop.op = 1 : i64
// CHECK:       } {alcop.op = 2 : i64}
// CHECK:       alcop.pipeline = #alcop.pipeline<{
// CHECK-SAME:    ops = [{kind = "fill", name = "memref.copy", op = 0 : i64, ring = 0 : i64, stream = "copy"},
// CHECK-SAME:           {kind = "read", name = "vector.transfer_read", op = 1 : i64, ring = 0 : i64, stream = "load"},
// CHECK-SAME:           {kind = "loop", name = "scf.for", op = 2 : i64, stream = "compute"}]
// CHECK-SAME:    rings = [{slots = 3 : i64}]
// CHECK-SAME:    streams = [{lead = 3 : i64, name = "copy"}, {name = "load", steps = 1 : i64}, {name = "compute"}]}>
// SHARED-LABEL: @two_levels
// SHARED-NOT:   stream = "load"
// SHARED:       rings = [{slots = 3 : i64}], streams = [{lead = 2 : i64, name = "copy"}, {name = "compute"}]}>
// NONE-LABEL:   @two_levels
// NONE-NOT:     alcop.pipeline
#ws = #gpu.address_space<workgroup>
func.func @two_levels(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<64x16xf16>
  %a = memref.alloc() : memref<64x32xf16, #ws>
  %sum = scf.for %k = %c0 to %c512 step %c32 iter_args(%s = %zero) -> (vector<64x16xf16>) {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %sum1 = scf.for %kk = %c0 to %c32 step %c16 iter_args(%s1 = %s) -> (vector<64x16xf16>) {
      %f = vector.transfer_read %a[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<64x16xf16>
      %s2 = arith.addf %s1, %f : vector<64x16xf16>
      scf.yield %s2 : vector<64x16xf16>
    }
    gpu.barrier
    scf.yield %sum1 : vector<64x16xf16>
  }
  return
}

// -----

// Fragments read in the K loop itself: both levels on one loop.
// CHECK-LABEL: @one_step
// CHECK:       rings = [{slots = 3 : i64}], streams = [{lead = 3 : i64, name = "copy"}, {lead = 1 : i64, name = "load"}, {name = "compute"}]}>
#ws = #gpu.address_space<workgroup>
func.func @one_step(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %a = memref.alloc() : memref<64x16xf16, #ws>
  %zero = arith.constant dense<0.0> : vector<64x16xf16>
  %sum = scf.for %k = %c0 to %c512 step %c16 iter_args(%s = %zero) -> (vector<64x16xf16>) {
    %tile = memref.subview %A[0, %k] [64, 16] [1, 1] : memref<64x512xf16> to memref<64x16xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x16xf16, strided<[512, 1], offset: ?>> to memref<64x16xf16, #ws>
    gpu.barrier
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<64x16xf16, #ws>, vector<64x16xf16>
    %next = arith.addf %s, %f : vector<64x16xf16>
    gpu.barrier
    scf.yield %next : vector<64x16xf16>
  }
  return
}

// -----

// A loop that runs twice has two stages, not three.
// CHECK-LABEL: @short
// CHECK:       slots = 2
#ws = #gpu.address_space<workgroup>
func.func @short(%A: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c64 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x64xf16> to memref<64x32xf16, strided<[64, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x32xf16, strided<[64, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// A copy of what there is of a tile is a copy like any other.
// CHECK-LABEL: @ragged
// CHECK:       alcop.copy{{.*}}alcop.op = 0 : i64
// CHECK:       slots = 3
#ws = #gpu.address_space<workgroup>
func.func @ragged(%A: memref<64x512xf16>, %i: index, %eighths: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %n = arith.muli %eighths, %c8 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %n step %c32 {
    %left = arith.subi %n, %k : index
    %size = arith.minsi %left, %c32 : index
    %tile = memref.subview %A[0, %k] [64, %size] [1, 1] : memref<64x512xf16> to memref<64x?xf16, strided<[512, 1], offset: ?>>
    "alcop.copy"(%tile, %a) : (memref<64x?xf16, strided<[512, 1], offset: ?>>, memref<64x32xf16, #ws>) -> ()
    gpu.barrier
    %x = memref.load %a[%i, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// A launch says what is pipelined in it, and keeps the schedule that it was made by.
// CHECK-LABEL: @launch
// CHECK:       alcop.pipelines = [
// CHECK-SAME:    {buffer = "arg0 64x32xf16", level = "shared", stages = 3 : i64},
// CHECK-SAME:    {buffer = "arg0 64x16xf16", level = "register", stages = 2 : i64}],
// CHECK-SAME:  alcop.schedule = #alcop.schedule<{block = [64, 64, 32]}>
// NONE-LABEL:  @launch
// NONE:        alcop.pipelines = []
#ws = #gpu.address_space<workgroup>
func.func @launch(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<64x16xf16>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %sum = scf.for %k = %c0 to %c512 step %c32 iter_args(%s = %zero) -> (vector<64x16xf16>) {
      %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
      memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
      gpu.barrier
      %sum1 = scf.for %kk = %c0 to %c32 step %c16 iter_args(%s1 = %s) -> (vector<64x16xf16>) {
        %f = vector.transfer_read %a[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<64x16xf16>
        %t = arith.addf %f, %s1 : vector<64x16xf16>
        scf.yield %t : vector<64x16xf16>
      }
      gpu.barrier
      scf.yield %sum1 : vector<64x16xf16>
    }
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 32]}>}
  return
}

// -----

// A loop with a plan of the user's keeps it; the other is planned.
// CHECK-LABEL: @given
// CHECK:         } {alcop.pipeline = #alcop.pipeline<{shared = 4 : i64}>}
// CHECK:         } {alcop.pipeline = #alcop.pipeline<{{.*}}rings = [{slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
func.func @given(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  %b = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 4}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{shared = 4}>}
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %b : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %v = memref.load %b[%c0, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  }
  return
}

// -----

// The barrier that orders %b stays: the plan names it. The others order %a only.
// CHECK-LABEL:  @other_shared
// SHARED-LABEL: @other_shared
// SHARED:       memref.copy
// SHARED-NEXT:  gpu.barrier{{$}}
// SHARED:       memref.store
// SHARED-NEXT:  gpu.barrier {alcop.op = 1 : i64}
// SHARED:       memref.load
// SHARED:       gpu.barrier{{$}}
// SHARED:       ops = [{kind = "fill", name = "memref.copy", op = 0 : i64, ring = 0 : i64, stream = "copy"}, {kind = "effect", name = "gpu.barrier", op = 1 : i64, stream = "compute"}]
#ws = #gpu.address_space<workgroup>
func.func @other_shared(%A: memref<64x512xf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  %b = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    memref.copy %tile, %a : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
    gpu.barrier
    %v = memref.load %a[%c0, %c0] : memref<64x32xf16, #ws>
    memref.store %v, %b[%c0, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
    %w = memref.load %b[%c32, %c0] : memref<64x32xf16, #ws>
    gpu.barrier
  }
  return
}
