// RUN: alcop-opt %s --alcop-raise-contractions --alcop-tile-to-blocks --canonicalize --cse | FileCheck %s

// Windows of 3x3 over images of 8x8, with a border of zeros: 64 channels in two steps.
// CHECK-LABEL: func.func @windows
// CHECK-SAME: (%[[X:.*]]: memref<1x8x8x64xf16>, %[[W:.*]]: memref<576x32xf16>
// CHECK-NOT: alcop.im2col
// CHECK: %[[ROWS:.*]] = vector.step : vector<32xindex>
// CHECK: arith.divui %{{.*}} : vector<32xindex>
// CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [4096], strides: [1]
// CHECK: scf.for %[[K:.*]] = %c0 to %c576 step %c32 iter_args(%{{.*}} = %{{.*}}, %[[AT:.*]] = %c0, %[[TAP:.*]] = %c1_i32)
// CHECK-NOT: div
// CHECK-NOT: rem
// CHECK: %[[ALL:.*]] = vector.broadcast %[[AT]]
// CHECK: %[[BEGIN:.*]] = arith.addi %[[FIRST:.*]], %[[ALL]]
// CHECK: %[[LACKS:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<32xi32>
// CHECK: %[[VALID:.*]] = arith.cmpi eq, %[[LACKS]]
// CHECK: "alcop.gather"(%[[FLAT]], %{{.*}}, %[[BEGIN]], %[[VALID]]) {alcop.window
// CHECK: memref.subview %[[W]][%[[K]], 0] [32, 32]
// CHECK: memref.copy
// CHECK-NOT: div
// CHECK-NOT: rem
// CHECK: scf.yield
func.func @windows(%x: memref<1x8x8x64xf16>, %w: memref<576x32xf16>, %y: memref<64x32xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<1x8x8x64xf16>) -> memref<64x576xf16>
  linalg.matmul {alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1]}>}
    ins(%A, %w : memref<64x576xf16>, memref<576x32xf16>) outs(%y : memref<64x32xf32>)
  return
}

// Rows of a table, of which the last tile has 8: numbers are read once.
// CHECK-LABEL: func.func @table
// CHECK-SAME: (%[[T:.*]]: memref<50x64xf16>, %[[I:.*]]: memref<40xi32>
// CHECK-NOT: alcop.take
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult
// CHECK: %[[NUMBERS:.*]] = vector.transfer_read %[[I]][%{{.*}}], %c0_i32 : memref<40xi32>, vector<32xi32>
// CHECK: %[[CAST:.*]] = arith.index_cast %[[NUMBERS]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[CAST]]
// CHECK: scf.for %[[K:.*]] = %c0 to %c64 step %c32
// CHECK: %[[ALL:.*]] = vector.broadcast %[[K]]
// CHECK: %[[BEGIN:.*]] = arith.addi %[[FIRST]], %[[ALL]]
// CHECK: "alcop.gather"(%{{.*}}, %{{.*}}, %[[BEGIN]], %[[EXISTS]])
func.func @table(%t: memref<50x64xf16>, %i: memref<40xi32>, %w: memref<64x32xf16>, %y: memref<40x32xf32>) {
  %A = "alcop.take"(%t, %i) : (memref<50x64xf16>, memref<40xi32>) -> memref<40x64xf16>
  linalg.matmul {alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1]}>}
    ins(%A, %w : memref<40x64xf16>, memref<64x32xf16>) outs(%y : memref<40x32xf32>)
  return
}

// A block of 32 rows has 4x8 of the 9x7 places of an image: three in each of two images.
// Rows that it does not have lack all taps, and C is seen in the same order.
// CHECK-LABEL: func.func @rectangles
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<126x32xf32>
// CHECK: gpu.launch blocks({{.*}}) in (%{{.*}} = %c1, %{{.*}} = %c6, %{{.*}} = %c1)
// CHECK: %[[NUMBER:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<32xindex>
// CHECK: %[[INSIDE:.*]] = arith.remui %[[NUMBER]], %cst
// CHECK: %[[P:.*]] = arith.cmpi ult
// CHECK-NEXT: %[[Q:.*]] = arith.cmpi ult
// CHECK-NEXT: %[[EXISTS:.*]] = arith.andi %[[P]], %[[Q]]
// CHECK: arith.select %[[EXISTS]], %{{.*}}, %{{.*}} : vector<32xi1>, vector<32xi32>
// CHECK: %[[C:.*]] = "alcop.rows"(%[[Y]]) {alcop.rectangles = {places = [9, 7], sides = [4, 8]}} : (memref<126x32xf32>) -> memref<192x32xf32>
// CHECK: vector.transfer_write %{{.*}}, %[[C]][%{{.*}}, %c0] {in_bounds = [true, true]}
func.func @rectangles(%x: memref<2x9x7x32xf16>, %w: memref<288x32xf16>, %y: memref<126x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<2x9x7x32xf16>) -> memref<126x288xf16>
  linalg.fill ins(%zero : f32) outs(%y : memref<126x32xf32>)
  linalg.matmul {alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1], rectangle = 8}>}
    ins(%A, %w : memref<126x288xf16>, memref<288x32xf16>) outs(%y : memref<126x32xf32>)
  return
}
