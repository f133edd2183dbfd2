// RUN: alcop-opt %s --alcop-tile-to-blocks --canonicalize --cse --split-input-file | FileCheck %s

// One launch; the K loop copies a tile of A and of B, the fragment loop multiplies.
// CHECK-LABEL: func.func @nn
// CHECK-SAME:  (%[[A:.*]]: memref<256x64xf16>, %[[B:.*]]: memref<64x128xf16>, %[[C:.*]]: memref<256x128xf32>)
// CHECK:       gpu.launch blocks(%[[BX:[^ ]*]], %[[BY:[^ ]*]], %{{[^ ]*}}) in (%{{[^ ]*}} = %c1, %{{[^ ]*}} = %c2, %{{[^ ]*}} = %c1)
// CHECK-SAME:  threads(%{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}}) in (%{{[^ ]*}} = %c128, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK:         %[[M0:.*]] = arith.muli %[[BY]], %c128
// CHECK:         %[[SA:.*]] = memref.alloc() : memref<128x32xf16, #gpu.address_space<workgroup>>
// CHECK:         %[[SB:.*]] = memref.alloc() : memref<32x128xf16, #gpu.address_space<workgroup>>
// CHECK:         %[[SUM:.*]] = scf.for %[[K:.*]] = %c0 to %c64 step %c32 iter_args(%{{.*}} = %{{.*}}) -> (vector<64x64xf32>)
// CHECK:           %[[GA:.*]] = memref.subview %[[A]][%[[M0]], %[[K]]] [128, 32] [1, 1]
// CHECK:           memref.copy %[[GA]], %[[SA]]
// CHECK:           %[[GB:.*]] = memref.subview %[[B]][%[[K]], {{.*}}] [32, 128] [1, 1]
// CHECK:           memref.copy %[[GB]], %[[SB]]
// CHECK:           gpu.barrier
// CHECK:           scf.for %[[KK:.*]] = %c0 to %c32 step %c16
// CHECK:             %[[FA:.*]] = vector.transfer_read %[[SA]][%{{.*}}, %[[KK]]]
// CHECK-SAME:          vector<64x16xf16>
// CHECK:             %[[FB:.*]] = vector.transfer_read %[[SB]][%[[KK]], %{{.*}}]
// CHECK-SAME:          vector<16x64xf16>
// CHECK:             vector.contract
// CHECK-SAME:          %[[FA]], %[[FB]]
// CHECK:           gpu.barrier
// CHECK:         vector.transfer_write %[[SUM]], %[[C]]
// CHECK:       alcop.schedule = #alcop.schedule<{block = [128, 128, 32], stages = [3, 2], warp = [64, 64]}>, alcop.schedule_source = "record"
// CHECK-NOT:   linalg.matmul
// CHECK-NOT:   alcop.contraction
func.func @nn(%A: memref<256x64xf16>, %B: memref<64x128xf16>, %C: memref<256x128xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [128, 128, 32], warp = [64, 64], stages = [3, 2]}>, alcop.schedule_source = "record"
  } ins(%A, %B : memref<256x64xf16>, memref<64x128xf16>) outs(%C : memref<256x128xf32>)
  return
}

// -----

// B stored as N x K keeps its layout in shared memory; f16 results are rounded once.
// CHECK-LABEL: func.func @nt_read_f16
// CHECK-SAME:  %[[C:[a-z0-9]*]]: memref<64x64xf16>)
// CHECK:       %[[READ:.*]] = vector.transfer_read %[[C]]
// CHECK:       %[[INIT:.*]] = arith.extf %[[READ]] : vector<32x32xf16> to vector<32x32xf32>
// CHECK:       memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK:       %[[SB:.*]] = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK:       scf.for {{.*}} iter_args(%{{.*}} = %[[INIT]])
// CHECK:         vector.transfer_read %[[SB]]
// CHECK-SAME:      vector<32x16xf16>
// CHECK:       arith.truncf %{{.*}} : vector<32x32xf32> to vector<32x32xf16>
// CHECK:       vector.transfer_write
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @nt_read_f16(%A: memref<64x128xf16>, %B: memref<64x128xf16>, %C: memref<64x64xf16>) {
  linalg.matmul indexing_maps = [#a, #b, #c] {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "nk", init = "read"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [2, 1]}>
  } ins(%A, %B : memref<64x128xf16>, memref<64x128xf16>) outs(%C : memref<64x64xf16>)
  return
}

// -----

// The accumulators start from the buffer that the marked copy reads; the copy is erased.
// CHECK-LABEL: func.func @init_copy
// CHECK-SAME:  %[[C0:[a-z0-9]+]]: memref<64x64xf32>, %[[C:[a-z0-9]+]]: memref<64x64xf32>)
// CHECK-NOT:   memref.copy %[[C0]]
// CHECK:       vector.transfer_read %[[C0]]
// CHECK:       vector.transfer_write %{{.*}}, %[[C]]
func.func @init_copy(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C0: memref<64x64xf32>, %C: memref<64x64xf32>) {
  memref.copy %C0, %C {alcop.contraction = #alcop.contraction<{role = "init"}>} : memref<64x64xf32> to memref<64x64xf32>
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "copy"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [2, 1]}>
  } ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// No schedule, no change.
// CHECK-LABEL: func.func @unscheduled
// CHECK-NOT:   gpu.launch
// CHECK:       linalg.matmul
func.func @unscheduled(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// Over the edge: what there is of a tile is copied, C is written within its bounds. N is
// a whole number of tiles, and B copied whole along it.
// CHECK-LABEL: func.func @ragged
// CHECK-SAME:  (%[[A:.*]]: memref<100x40xf16>, %[[B:.*]]: memref<40x128xf16>, %[[C:.*]]: memref<100x128xf32>)
// CHECK:       gpu.launch {{.*}} in (%{{[^ ]*}} = %c2, %{{[^ ]*}} = %c2, %{{[^ ]*}} = %c1)
// CHECK:         %[[LEFT:.*]] = arith.subi %c100, %[[M0:.*]] : index
// CHECK:         %[[ROWS:.*]] = arith.minsi %[[LEFT]], %c64
// CHECK:         scf.for %[[K:.*]] = %c0 to %c40 step %c32
// CHECK:           %[[REST:.*]] = arith.subi %c40, %[[K]]
// CHECK:           %[[COLUMNS:.*]] = arith.minsi %[[REST]], %c32
// CHECK:           %[[GA:.*]] = memref.subview %[[A]][%[[M0]], %[[K]]] [%[[ROWS]], %[[COLUMNS]]] [1, 1]
// CHECK:           "alcop.copy"(%[[GA]], %{{.*}}) {alcop.arbitrary = [0]}
// CHECK:           %[[GB:.*]] = memref.subview %[[B]][%[[K]], %{{.*}}] [%[[COLUMNS]], 64] [1, 1]
// CHECK:           "alcop.copy"(%[[GB]], %{{.*}}) {alcop.arbitrary = [1]}
// CHECK:         %[[INSIDE:.*]] = arith.cmpi sge, %[[LEFT]], %c64
// CHECK:         scf.if %[[INSIDE]]
// CHECK:           vector.transfer_write {{.*}} {in_bounds = [true, true]}
// CHECK:         else
// CHECK:           vector.transfer_write {{.*}} {in_bounds = [false, true]}
func.func @ragged(%A: memref<100x40xf16>, %B: memref<40x128xf16>, %C: memref<100x128xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2]}>
  } ins(%A, %B : memref<100x40xf16>, memref<40x128xf16>) outs(%C : memref<100x128xf32>)
  return
}

// -----

// Sizes of the operands; those that are promised are known to be multiples of 8 elements.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:  (%[[A:.*]]: memref<?x?xf16> {{{.*}}}, %[[B:[^ ]*]]: memref<?x?xf16>, %[[C:[^ ]*]]: memref<?x?xf32>)
// CHECK-DAG:   %[[M:.*]] = memref.dim %[[A]], %c0
// CHECK-DAG:   %[[N:.*]] = memref.dim %[[B]], %c1
// CHECK-DAG:   %[[K:.*]] = memref.dim %[[A]], %c1
// CHECK:       %[[EIGHTHS:.*]] = arith.divui %[[K]], %c8
// CHECK:       %[[WHOLE:.*]] = arith.muli %[[EIGHTHS]], %c8
// CHECK:       %[[X:.*]] = arith.ceildivui %[[N]], %c64
// CHECK:       %[[Y:.*]] = arith.ceildivui %[[M]], %c64
// CHECK:       %[[BLOCKS:.*]] = arith.muli %[[X]], %[[Y]]
// CHECK:       gpu.launch {{.*}} in (%{{[^ ]*}} = %[[BLOCKS]], %{{[^ ]*}} = %c1{{.*}}, %{{[^ ]*}} = %c1{{.*}})
// CHECK:         %[[OUT:.*]] = memref.reinterpret_cast %[[C]] to offset: [0], sizes: [%[[M]], %[[N]]], strides: [%[[N]], 1]
// CHECK:         vector.transfer_read %[[OUT]]{{.*}}, %{{.*}} : memref<?x?xf32, {{.*}}>, vector<32x32xf32>
// CHECK:         %[[LHS:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [%[[M]], %[[WHOLE]]], strides: [%[[WHOLE]], 1]
// CHECK:         scf.for %{{.*}} = %c0 to %[[WHOLE]] step %c32
// CHECK:           memref.subview %[[LHS]]
// CHECK:           "alcop.copy"
func.func @dynamic(%A: memref<?x?xf16> {alcop.row_alignment = 16 : i64}, %B: memref<?x?xf16>, %C: memref<?x?xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "read"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2]}>
  } ins(%A, %B : memref<?x?xf16>, memref<?x?xf16>) outs(%C : memref<?x?xf32>)
  return
}

// -----

// A batch along block z; the shared A has no part in it.
// CHECK-LABEL: func.func @batch
// CHECK-SAME:  (%[[A:.*]]: memref<64x64xf16>, %[[B:.*]]: memref<3x64x64xf16>, %[[C:.*]]: memref<3x64x64xf32>)
// CHECK:       gpu.launch blocks(%{{[^ ]*}}, %{{[^ ]*}}, %[[Z:[^ ]*]]) in (%{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c3)
// CHECK:         %[[RHS:.*]] = memref.subview %[[B]][%[[Z]], 0, 0] [1, 64, 64] [1, 1, 1]
// CHECK:         scf.for
// CHECK:           memref.subview %[[A]]
// CHECK:           memref.subview %[[RHS]]
// CHECK:         %[[OUT:.*]] = memref.subview %[[C]][%[[Z]], 0, 0] [1, 64, 64] [1, 1, 1]
// CHECK:         vector.transfer_write %{{.*}}, %[[OUT]]
#a = affine_map<(b, m, n, k) -> (m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @batch(%A: memref<64x64xf16>, %B: memref<3x64x64xf16>, %C: memref<3x64x64xf32>) {
  linalg.contract indexing_maps = [#a, #b, #c] {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "bkn", out = "bmn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2]}>
  } ins(%A, %B : memref<64x64xf16>, memref<3x64x64xf16>) outs(%C : memref<3x64x64xf32>)
  return
}

// -----

// A batch that is summed over: a loop around the K loop, with the accumulators.
// CHECK-LABEL: func.func @batch_reduce
// CHECK-SAME:  (%[[A:[a-z0-9]+]]: memref<3x64x64xf16>
// CHECK:       gpu.launch {{.*}} in (%{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK:         scf.for %[[BATCH:.*]] = %c0 to %c3 step %c1 iter_args
// CHECK:           memref.subview %[[A]][%[[BATCH]], 0, 0]
// CHECK:           scf.for %{{.*}} = %c0 to %c64 step %c32 iter_args
func.func @batch_reduce(%A: memref<3x64x64xf16>, %B: memref<3x64x64xf16>, %C: memref<64x64xf32>) {
  linalg.batch_reduce_matmul {
    alcop.contraction = #alcop.contraction<{lhs = "bmk", rhs = "bkn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [3, 2]}>
  } ins(%A, %B : memref<3x64x64xf16>, memref<3x64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// Vectors are matrices of one row; the op has them in the order B, A.
// CHECK-LABEL: func.func @vector
// CHECK-SAME:  (%[[A:.*]]: memref<128x64xf16>, %[[X:.*]]: memref<64xf16>, %[[Y:.*]]: memref<128xf32>)
// CHECK:       gpu.launch {{.*}} in (%{{[^ ]*}} = %c2, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK:         %[[ROW:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [1, 64], strides: [64, 1]
// CHECK:         %[[OUT:.*]] = memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [1, 128], strides: [128, 1]
// CHECK:         vector.transfer_write %{{.*}}, %[[OUT]]{{.*}} {in_bounds = [false, true]}
func.func @vector(%A: memref<128x64xf16>, %x: memref<64xf16>, %y: memref<128xf32>) {
  linalg.matvec {
    alcop.contraction = #alcop.contraction<{lhs = "k", rhs = "nk", out = "n", init = "zero", swapped = true}>,
    alcop.schedule = #alcop.schedule<{block = [16, 64, 32], warp = [16, 64], stages = [3, 2]}>
  } ins(%A, %x : memref<128x64xf16>, memref<64xf16>) outs(%y : memref<128xf32>)
  return
}

// -----

// A sum of nothing is zero, element by element; a C of no size is not computed.
// CHECK-LABEL: func.func @empty_sum
// CHECK:       gpu.launch
// CHECK-NOT:     vector.contract
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<64x64xf32>
// CHECK-LABEL: func.func @empty_result
// CHECK-NEXT:    return
func.func @empty_sum(%A: memref<64x0xf16>, %B: memref<0x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [1, 1]}>
  } ins(%A, %B : memref<64x0xf16>, memref<0x64xf16>) outs(%C : memref<64x64xf32>)
  return
}
func.func @empty_result(%A: memref<0x64xf16>, %B: memref<64x64xf16>, %C: memref<0x64xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [1, 1]}>
  } ins(%A, %B : memref<0x64xf16>, memref<64x64xf16>) outs(%C : memref<0x64xf32>)
  return
}
