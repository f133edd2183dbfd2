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
// CHECK:       alcop.schedule = #alcop.schedule<{block = [128, 128, 32], stages = [3, 2], warp = [64, 64]}>
// CHECK-NOT:   linalg.matmul
// CHECK-NOT:   alcop.contraction
func.func @nn(%A: memref<256x64xf16>, %B: memref<64x128xf16>, %C: memref<256x128xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>,
    alcop.schedule = #alcop.schedule<{block = [128, 128, 32], warp = [64, 64], stages = [3, 2]}>
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

// The accumulators start from the array that the marked copy reads; the copy goes.
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
