// RUN: alcop-opt %s --alcop-make-persistent=target=sm_90a --split-input-file | FileCheck %s

// 512 tiles for 132 SMs: each block goes on to the tile 132 further. Buffers are made once.
// CHECK-LABEL: @many_tiles
// CHECK:       gpu.launch blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c132{{.*}}, %{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}) threads
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         scf.for %[[NUMBER:.*]] = %{{.*}} to %c512_i32 step %c132_i32
// CHECK:           %[[TILE:.*]] = arith.index_castui %[[NUMBER]]
// CHECK:           %[[X:.*]] = arith.remui %[[TILE]], %c16
// CHECK:           %[[Y:.*]] = arith.divui %[[TILE]], %c16
// CHECK:           arith.muli %[[Y]], %[[X]]
// CHECK:           memref.store %{{.*}}, %[[A]]
// CHECK:         gpu.terminator
#ws = #gpu.address_space<workgroup>
func.func @many_tiles(%v: f16) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c32, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<512xf16, #ws>
    %at = arith.muli %by, %bx : index
    memref.store %v, %a[%at] : memref<512xf16, #ws>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 256, 64], warp = [16, 256], stages = [4, 2], engine = "wgmma"}>}
  return
}

// -----

// As many blocks as SMs, blocks of which several fit on an SM, and those of mma.sync stay.
// CHECK-LABEL: @few_tiles
// CHECK-NOT:   scf.for
func.func @few_tiles(%v: f16, %C: memref<512xf16>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c33 = arith.constant 33 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c33, %gy = %c4, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    memref.store %v, %C[%bx] : memref<512xf16>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 256, 64], warp = [16, 256], stages = [4, 2], engine = "wgmma"}>}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c33, %gy = %c16, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    memref.store %v, %C[%bx] : memref<512xf16>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 256, 64], warp = [16, 256], stages = [4, 2], engine = "wgmma"}>}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c33, %gy = %c16, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    memref.store %v, %C[%bx] : memref<512xf16>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 128, 32], warp = [64, 64], stages = [3, 2]}>}
  return
}

// -----

// 128 clusters of two blocks, of which 66 run at once: a block keeps its place in one.
// CHECK-LABEL: @clusters
// CHECK:       gpu.launch clusters(%[[C:.*]], %{{.*}}, %{{.*}}) in ({{.*}}) blocks({{.*}}) in (%{{.*}} = %c132
// CHECK:         %[[FIRST:.*]] = arith.index_castui %[[C]]
// CHECK:         scf.for %[[NUMBER:.*]] = %[[FIRST]] to %c128_i32 step %c66_i32
// CHECK:           %[[PAIR:.*]] = arith.index_castui %[[NUMBER]]
// CHECK:           %[[X:.*]] = arith.remui %[[PAIR]], %c16
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[X]]]
func.func @clusters(%v: f16, %C: memref<512xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%scx = %c2, %scy = %c1, %scz = %c1) blocks(%bx, %by, %bz) in (%gx = %c32, %gy = %c8, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    memref.store %v, %C[%cx] : memref<512xf16>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 256, 64], warp = [16, 256], stages = [4, 2], engine = "wgmma", cluster = 2}>}
  return
}

// -----

// Of tiles whose number is known at run time only: it is computed in the kernel.
// CHECK-LABEL: @open_tiles
// CHECK:       %[[M:.*]] = memref.dim
// CHECK:       gpu.launch blocks(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c132{{.*}}, %{{.*}} = %c1{{.*}}, %{{.*}} = %c1{{.*}}) threads
// CHECK:         %[[ROWS:.*]] = arith.ceildivui %[[M]], %c128
// CHECK:         %[[TILES:.*]] = arith.muli
// CHECK:         %[[LAST:.*]] = arith.index_castui %[[TILES]]
// CHECK:         scf.for %[[NUMBER:.*]] = %{{.*}} to %[[LAST]] step %c132_i32
// CHECK:           %[[TILE:.*]] = arith.index_castui %[[NUMBER]]
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[TILE]], %{{.*}}]
func.func @open_tiles(%v: f16, %C: memref<?x?xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %m = memref.dim %C, %c0 : memref<?x?xf16>
  %n = memref.dim %C, %c1 : memref<?x?xf16>
  %rows = arith.ceildivui %m, %c128 : index
  %columns = arith.ceildivui %n, %c256 : index
  %tiles = arith.muli %rows, %columns : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    memref.store %v, %C[%bx, %by] : memref<?x?xf16>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 256, 64], warp = [16, 256], stages = [4, 2], engine = "wgmma"}>}
  return
}
