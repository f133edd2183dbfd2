// RUN: alcop-opt %s --alcop-outline-kernels --split-input-file | FileCheck %s

// A shared buffer that stands outside of the launch, where upstream's promotion puts it,
// and a workgroup attribution: both become parts of the dynamic shared memory.
// CHECK-LABEL: func.func @outside
// CHECK-NOT:   memref.alloc
// CHECK:       %[[BYTES:.*]] = arith.constant 256 : i32
// CHECK:       dynamic_shared_memory_size %[[BYTES]]
// CHECK:       gpu.func @outside
// CHECK:         memref.view
// CHECK:         memref.view
// CHECK-NOT:     memref.view
#ws = #gpu.address_space<workgroup>
func.func @outside(%C: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %s = memref.alloc() : memref<16xf32, #ws>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %c16, %ny = %c1, %nz = %c1)
             workgroup(%w : memref<16xf32, #ws>) {
    %v = memref.load %C[%tx] : memref<16xf32>
    memref.store %v, %s[%tx] : memref<16xf32, #ws>
    memref.store %v, %w[%tx] : memref<16xf32, #ws>
    gpu.terminator
  }
  memref.dealloc %s : memref<16xf32, #ws>
  return
}
