// RUN: alcop-opt %s --alcop-lower-gathers --split-input-file | FileCheck %s

// On the host, and of vectors of any kind.
// CHECK-LABEL: @host
// CHECK-SAME:  %[[X:.*]]: memref<?xf16>, %[[T:.*]]: memref<8x32xf16>, %[[ROWS:.*]]: vector<8xindex>, %[[VALID:.*]]: vector<8xi1>
// CHECK:       scf.for %[[I:.*]] = %c0 to %c8 step %c1 {
// CHECK-NEXT:    %[[ROW:.*]] = vector.extract %[[ROWS]][%[[I]]] : index from vector<8xindex>
// CHECK-NEXT:    %[[OK:.*]] = vector.extract %[[VALID]][%[[I]]] : i1 from vector<8xi1>
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %c32 step
// CHECK-NEXT:      %[[V:.*]] = scf.if %[[OK]] -> (f16) {
// CHECK-NEXT:        %[[AT:.*]] = arith.addi %[[ROW]], %[[J]]
// CHECK-NEXT:        %[[E:.*]] = memref.load %[[X]][%[[AT]]]
// CHECK-NEXT:        scf.yield %[[E]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT:        scf.yield %[[ZERO]]
// CHECK:           memref.store %[[V]], %[[T]][%[[I]], %[[J]]]
// CHECK-NOT:   alcop.gather
func.func @host(%x: memref<?xf16>, %tile: memref<8x32xf16>, %rows: vector<8xindex>, %valid: vector<8xi1>) {
  "alcop.gather"(%x, %tile, %rows, %valid) : (memref<?xf16>, memref<8x32xf16>, vector<8xindex>, vector<8xi1>) -> ()
  return
}

// -----

// In a kernel threads share the rows; beyond the width there is zero.
// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:  %[[SOURCE:.*]]: memref<?xi8>, %[[WIDTH:.*]]: index) kernel
// CHECK:       %[[Y:.*]] = gpu.thread_id y
// CHECK:       %[[SIZE:.*]] = gpu.block_dim x
// CHECK:       arith.muli %[[SIZE]],
// CHECK:       %[[X:.*]] = gpu.thread_id x
// CHECK:       %[[THREAD:.*]] = arith.addi %{{.*}}, %[[X]]
// CHECK:       %[[THREADS:.*]] = arith.muli %[[SIZE]],
// CHECK:       scf.for %[[I:.*]] = %[[THREAD]] to %c8{{.*}} step %[[THREADS]] {
// CHECK:         scf.for %[[J:.*]] =
// CHECK-NEXT:      %[[HAS:.*]] = arith.cmpi slt, %[[J]], %[[WIDTH]]
// CHECK-NEXT:      %[[BOTH:.*]] = arith.andi %{{.*}}, %[[HAS]]
// CHECK-NEXT:      scf.if %[[BOTH]]
// CHECK-NOT:   alcop.async_gather
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @kernel(%x: memref<?xi8>, %width: index) kernel {
    %a = memref.alloc() : memref<8x32xi8, #ws>
    %rows = vector.step : vector<8xindex>
    %valid = arith.constant dense<[true, false, true, true, true, false, true, true]> : vector<8xi1>
    "alcop.async_gather"(%x, %a, %rows, %valid, %width) : (memref<?xi8>, memref<8x32xi8, #ws>, vector<8xindex>, vector<8xi1>, index) -> ()
    gpu.return
  }
}
