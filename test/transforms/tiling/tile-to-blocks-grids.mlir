// A grid has 65,535 blocks along y and z, and 2^31 - 1 along x: where rows of tiles or a
// batch may need more, all blocks lie along x, and each takes its number apart.
// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-raise-contractions,alcop-select-schedule{schedule="block=16,16,16 warp=16,16 stages=1,1 raster=2" variants=1},alcop-tile-to-blocks,canonicalize))' | FileCheck %s

// CHECK-LABEL: @tall
// CHECK-DAG:     %[[BLOCKS:.*]] = arith.constant 131074 : index
// CHECK:         gpu.launch blocks(%[[X:[^,]*]], {{.*}}) in (%{{.*}} = %[[BLOCKS]], %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK:           arith.divui %[[X]], %c4
func.func @tall(%A: memref<1048577x16xf16>, %B: memref<16x32xf16>, %C: memref<1048577x32xf32>) {
  linalg.matmul ins(%A, %B : memref<1048577x16xf16>, memref<16x32xf16>) outs(%C : memref<1048577x32xf32>)
  return
}

// CHECK-LABEL: @large_batch
// CHECK-DAG:     %[[BLOCKS:.*]] = arith.constant 65536 : index
// CHECK:         gpu.launch blocks(%[[X:[^,]*]], {{.*}}) in (%{{.*}} = %[[BLOCKS]], %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK:           memref.subview %{{.*}}[%[[X]], 0, 0] [1, 4, 4]
func.func @large_batch(%A: memref<65536x4x4xf16>, %B: memref<65536x4x4xf16>, %C: memref<65536x4x4xf32>) {
  linalg.batch_matmul ins(%A, %B : memref<65536x4x4xf16>, memref<65536x4x4xf16>) outs(%C : memref<65536x4x4xf32>)
  return
}

// CHECK-LABEL: @fits
// CHECK-DAG:     %[[BATCH:.*]] = arith.constant 65535 : index
// CHECK:         gpu.launch blocks({{.*}}) in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %[[BATCH]]) threads
func.func @fits(%A: memref<65535x4x4xf16>, %B: memref<65535x4x4xf16>, %C: memref<65535x4x4xf32>) {
  linalg.batch_matmul ins(%A, %B : memref<65535x4x4xf16>, memref<65535x4x4xf16>) outs(%C : memref<65535x4x4xf32>)
  return
}

// The number of columns of tiles alone has room along x.
// CHECK-LABEL: @wide
// CHECK:         %[[COLUMNS:.*]] = arith.ceildivui %{{.*}}, %c16
// CHECK:         gpu.launch blocks({{.*}}) in (%{{.*}} = %[[COLUMNS]], %{{.*}} = %c4, %{{.*}} = %c1)
func.func @wide(%A: memref<64x16xf16>, %B: memref<16x?xf16>, %C: memref<64x?xf32>) {
  linalg.matmul ins(%A, %B : memref<64x16xf16>, memref<16x?xf16>) outs(%C : memref<64x?xf32>)
  return
}

// Divided by what shows that it is below 2^31: rows and columns of tiles, then those of a
// group of two rows.
// CHECK-LABEL: @open
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant 2147483647 : index
// CHECK:         %[[COLUMNS:.*]] = arith.ceildivui %[[N:.*]], %c16
// CHECK:         %[[ROWS:.*]] = arith.ceildivui %[[M:.*]], %c16
// CHECK:         %[[MATRIX:.*]] = arith.muli %[[COLUMNS]], %[[ROWS]]
// CHECK:         %[[ALL:.*]] = arith.muli %[[MATRIX]], %[[BATCH:.*]] : index
// CHECK:         gpu.launch blocks(%[[X:[^,]*]], {{.*}}) in (%{{.*}} = %[[ALL]], %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK:           %[[TALL:.*]] = arith.andi %{{.*}}, %[[LIMIT]]
// CHECK:           %[[WIDE:.*]] = arith.andi %{{.*}}, %[[LIMIT]]
// CHECK:           %[[BOTH:.*]] = arith.muli %[[TALL]], %[[WIDE]]
// CHECK:           %[[TILES:.*]] = arith.andi %[[BOTH]], %[[LIMIT]]
// CHECK:           %[[B:.*]] = arith.divui %[[X]], %[[TILES]]
// CHECK:           %[[NUMBER:.*]] = arith.remui %[[X]], %[[TILES]]
// CHECK:           %[[SIZE:.*]] = arith.muli %[[WIDE]], %c2
// CHECK:           %[[FEW:.*]] = arith.minui %[[SIZE]], %[[LIMIT]]
// CHECK:           arith.divui %[[NUMBER]], %[[FEW]]
// CHECK:           memref.subview %{{.*}}[%[[B]], 0, 0]
func.func @open(%A: memref<?x?x?xf16>, %B: memref<?x?x?xf16>, %C: memref<?x?x?xf32>) {
  linalg.batch_matmul ins(%A, %B : memref<?x?x?xf16>, memref<?x?x?xf16>) outs(%C : memref<?x?x?xf32>)
  return
}

// The number of a matrix is taken apart once where a batch has several loops. A has the
// heads inside of the tokens; B has none.
// CHECK-LABEL: @heads
// CHECK-DAG:     %[[BATCH:.*]] = arith.constant 6 : index
// CHECK:         gpu.launch blocks({{.*}}, %[[Z:[^,]*]]) in (%{{.*}} = %c1, %{{.*}} = %c1, %{{.*}} = %[[BATCH]]) threads
// CHECK:           %[[H:.*]] = arith.remui %[[Z]], %c3
// CHECK:           %[[B:.*]] = arith.divui %[[Z]], %c3
// CHECK-NOT:       arith.{{div|rem}}ui %[[Z]]
// CHECK:           memref.subview %arg0[%[[B]], 0, %[[H]], 0] [1, 16, 1, 16] [1, 1, 1, 1] : memref<2x16x3x16xf16> to memref<16x16xf16, strided<[48, 1], offset: ?>>
// CHECK:           memref.subview %arg1[%[[B]], 0, 0] [1, 16, 16]
// CHECK:           memref.subview %arg2[%[[B]], %[[H]], 0, 0] [1, 1, 16, 16]
func.func @heads(%A: memref<2x16x3x16xf16>, %B: memref<2x16x16xf16>, %C: memref<2x3x16x16xf32>) {
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (b, n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    ins(%A, %B : memref<2x16x3x16xf16>, memref<2x16x16xf16>) outs(%C : memref<2x3x16x16xf32>)
  return
}

// Sizes of the batch that are known at run time only; its outer loop's is not asked for.
// CHECK-LABEL: @open_heads
// CHECK-DAG:     %[[LIMIT:.*]] = arith.constant 2147483647 : index
// CHECK-DAG:     %[[OUTER:.*]] = memref.dim %arg0, %c0
// CHECK-DAG:     %[[INNER:.*]] = memref.dim %arg0, %c2
// CHECK:         %[[ALL:.*]] = arith.muli %[[OUTER]], %[[INNER]]
// CHECK:         gpu.launch blocks(%[[X:[^,]*]], {{.*}}) in (%{{.*}} = %[[ALL]], %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK:           %[[SIZE:.*]] = arith.andi %[[INNER]], %[[LIMIT]]
// CHECK:           %[[H:.*]] = arith.remui %[[X]], %[[SIZE]]
// CHECK:           %[[B:.*]] = arith.divui %[[X]], %[[SIZE]]
// CHECK:           memref.subview %{{.*}}[%[[B]], 0, %[[H]], 0]
func.func @open_heads(%A: memref<?x16x?x16xf16>, %B: memref<16x16xf16>, %C: memref<?x?x16x16xf32>) {
  linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (n, k)>, affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    ins(%A, %B : memref<?x16x?x16xf16>, memref<16x16xf16>) outs(%C : memref<?x?x16x16xf32>)
  return
}
