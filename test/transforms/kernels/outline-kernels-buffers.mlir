// RUN: alcop-opt %s --alcop-outline-kernels --split-input-file \
// RUN:   --allow-unregistered-dialect | FileCheck %s

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

// -----

// A slot whose number is constant has a view of its own, which all its accesses share;
// others go through the whole buffer.
// CHECK-LABEL: gpu.func @slots
// CHECK-DAG:     %[[PLACE:.*]] = arith.constant 1024 : index
// CHECK-DAG:     %[[WHOLE:.*]] = memref.view %{{.*}} to memref<3x8x16xf32
// CHECK-DAG:     %[[SECOND:.*]] = memref.view %{{.*}}[%[[PLACE]]][] : {{.*}} to memref<1x8x16xf32
// CHECK:         memref.store %{{.*}}, %[[SECOND]][%c0{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:         memref.load %[[SECOND]][%c0{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:         memref.load %[[WHOLE]][%{{.*}}, %{{.*}}, %{{.*}}]
#ws = #gpu.address_space<workgroup>
func.func @slots(%C: memref<16xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %c16, %ny = %c1, %nz = %c1) {
    %s = memref.alloc() : memref<3x8x16xf32, #ws>
    %v = memref.load %C[%tx] : memref<16xf32>
    memref.store %v, %s[%c2, %c1, %tx] : memref<3x8x16xf32, #ws>
    %w = memref.load %s[%c2, %c2, %tx] : memref<3x8x16xf32, #ws>
    %x = memref.load %s[%n, %c2, %tx] : memref<3x8x16xf32, #ws>
    "test.use"(%w, %x) : (f32, f32) -> ()
    gpu.terminator
  }
  return
}

// -----

// In a loop that counts its slots, the view is built where the slot's number is; single
// elements are accessed in the whole buffer.
// CHECK-LABEL: gpu.func @counted_slots
// CHECK:         scf.for {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}) -> (index)
// CHECK-DAG:       %[[BYTES:.*]] = arith.constant 256 : index
// CHECK:           %[[FIRST:.*]] = arith.muli %[[SLOT]], %[[BYTES]]
// CHECK:           %[[VIEW:.*]] = memref.view %{{.*}}[%{{.*}}][] : {{.*}} to memref<1x8x16xf16
// CHECK:           nvgpu.ldmatrix %[[VIEW]][%c0{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:           nvgpu.ldmatrix %[[VIEW]][%c0{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:           memref.load %{{.*}} : memref<3x8x16xf16
#ws = #gpu.address_space<workgroup>
func.func @counted_slots(%C: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %c16, %ny = %c1, %nz = %c1) {
    %s = memref.alloc() : memref<3x8x16xf16, #ws>
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0) -> (index) {
      %w = nvgpu.ldmatrix %s[%slot, %c1, %c0] {numTiles = 1 : i32, transpose = false}
        : memref<3x8x16xf16, #ws> -> vector<1x2xf16>
      %x = nvgpu.ldmatrix %s[%slot, %c2, %c0] {numTiles = 1 : i32, transpose = false}
        : memref<3x8x16xf16, #ws> -> vector<1x2xf16>
      %y = memref.load %s[%slot, %c2, %tx] : memref<3x8x16xf16, #ws>
      "test.use"(%w, %x, %y) : (vector<1x2xf16>, vector<1x2xf16>, f16) -> ()
      %next = arith.remui %i, %c2 : index
      scf.yield %next : index
    }
    gpu.terminator
  }
  return
}

// -----

// An overlaid buffer lies where the others do; the block has the larger sum.
// CHECK-LABEL: func.func @overlaid
// CHECK:       %[[BYTES:.*]] = arith.constant 384 : i32
// CHECK:       dynamic_shared_memory_size %[[BYTES]]
// CHECK:       gpu.func @overlaid
// CHECK-DAG:     memref.view %{{.*}}[%c0{{.*}}][] : {{.*}} to memref<64xf32
// CHECK-DAG:     memref.view %{{.*}}[%c256][] : {{.*}} to memref<16xf32
// CHECK-DAG:     memref.view %{{.*}}[%c0{{.*}}][] : {{.*}} to memref<80xf32
#ws = #gpu.address_space<workgroup>
func.func @overlaid(%C: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%nx = %c16, %ny = %c1, %nz = %c1) {
    %over = memref.alloc() {alcop.overlaid} : memref<80xf32, #ws>
    %s = memref.alloc() : memref<64xf32, #ws>
    %t = memref.alloc() : memref<16xf32, #ws>
    %v = memref.load %C[%tx] : memref<16xf32>
    memref.store %v, %s[%tx] : memref<64xf32, #ws>
    memref.store %v, %t[%tx] : memref<16xf32, #ws>
    gpu.barrier
    memref.store %v, %over[%tx] : memref<80xf32, #ws>
    gpu.terminator
  }
  return
}
