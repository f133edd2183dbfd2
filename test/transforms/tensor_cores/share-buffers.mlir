// RUN: alcop-opt %s --alcop-share-buffers --allow-unregistered-dialect --split-input-file | FileCheck %s

// Two loops in turn: the second pair of buffers takes the memory of the first, after all
// copies have landed and all threads have met, once for both.
// CHECK-LABEL: func.func @in_turn
// CHECK:         memref.alloc() {alcop.shares = 0 : i64}
// CHECK:         memref.alloc() {alcop.shares = 1 : i64}
// CHECK:         memref.alloc() {alcop.shares = 0 : i64}
// CHECK:         memref.alloc() {alcop.shares = 1 : i64}
// CHECK:         scf.for
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    nvgpu.device_async_copy
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.terminator
#ws = #gpu.address_space<workgroup>
func.func @in_turn(%C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %f = arith.constant 1.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<2x64xf32, #ws>
    %b = memref.alloc() : memref<2x64xf32, #ws>
    %c = memref.alloc() : memref<2x64xf32, #ws>
    %d = memref.alloc() : memref<2x64xf32, #ws>
    %t1 = nvgpu.device_async_copy %C[%tx], %a[%c0, %tx], 1 : memref<64xf32> to memref<2x64xf32, #ws>
    %t2 = nvgpu.device_async_copy %C[%tx], %b[%c0, %tx], 1 : memref<64xf32> to memref<2x64xf32, #ws>
    scf.for %i = %c0 to %c64 step %c1 {
      %v = memref.subview %a[%c1, 0] [1, 64] [1, 1] : memref<2x64xf32, #ws> to memref<64xf32, strided<[1], offset: ?>, #ws>
      %x = memref.load %v[%i] : memref<64xf32, strided<[1], offset: ?>, #ws>
      %y = memref.load %b[%c0, %i] : memref<2x64xf32, #ws>
      %z = arith.addf %x, %y : f32
      memref.store %z, %C[%i] : memref<64xf32>
    }
    %t3 = nvgpu.device_async_copy %C[%tx], %c[%c0, %tx], 1 : memref<64xf32> to memref<2x64xf32, #ws>
    %t4 = nvgpu.device_async_copy %C[%tx], %d[%c0, %tx], 1 : memref<64xf32> to memref<2x64xf32, #ws>
    scf.for %i = %c0 to %c64 step %c1 {
      %x = memref.load %c[%c0, %i] : memref<2x64xf32, #ws>
      %y = memref.load %d[%c0, %i] : memref<2x64xf32, #ws>
      %z = arith.addf %x, %y : f32
      memref.store %z, %C[%i] : memref<64xf32>
    }
    gpu.terminator
  }
  return
}

// -----

// Left unchanged: buffers that are used in one loop; of other sizes; that threads fill; of
// which something is computed that may point to them.
// CHECK-LABEL: func.func @apart
// CHECK-NOT:     alcop.shares
// CHECK-NOT:     gpu.barrier
#ws = #gpu.address_space<workgroup>
func.func @apart(%C: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %f = arith.constant 1.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64xf32, #ws>
    %b = memref.alloc() : memref<64xf32, #ws>
    %large = memref.alloc() : memref<128xf32, #ws>
    %known = memref.alloc() : memref<64xf32, #ws>
    scf.for %i = %c0 to %c64 step %c1 {
      %t5 = nvgpu.device_async_copy %C[%tx], %a[%tx], 1 : memref<64xf32> to memref<64xf32, #ws>
      %t6 = nvgpu.device_async_copy %C[%tx], %b[%tx], 1 : memref<64xf32> to memref<64xf32, #ws>
    }
    %t7 = nvgpu.device_async_copy %C[%tx], %large[%tx], 1 : memref<64xf32> to memref<128xf32, #ws>
    %stored = memref.alloc() : memref<64xf32, #ws>
    memref.store %f, %stored[%tx] : memref<64xf32, #ws>
    %t9 = nvgpu.device_async_copy %C[%tx], %known[%tx], 1 : memref<64xf32> to memref<64xf32, #ws>
    %p = memref.extract_aligned_pointer_as_index %known : memref<64xf32, #ws> -> index
    "test.use"(%p) : (index) -> ()
    gpu.terminator
  }
  return
}
