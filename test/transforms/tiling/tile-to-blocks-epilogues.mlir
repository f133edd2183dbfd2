// RUN: alcop-opt %s --alcop-tile-to-blocks --canonicalize --cse --split-input-file | FileCheck %s

// Sums are taken 16 rows at a time; what is the same for all rows is read once. The
// intermediate buffer is gone, and nothing is rounded before the end.
// CHECK-LABEL: func.func @bias_relu
// CHECK-SAME:  %[[BIAS:[a-z0-9]+]]: memref<64xf32>, %[[E:[a-z0-9]+]]: memref<64x64xf16>)
// CHECK-NOT:   memref.alloc() : memref<64x64xf32>
// CHECK:       %[[SUM:.*]] = scf.for {{.*}} -> (vector<32x32xf32>)
// CHECK:       %[[ROWS:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [0, 0], sizes = [16, 32], strides = [1, 1]}
// CHECK:       %[[B:.*]] = vector.transfer_read %[[BIAS]][%[[N:.*]]], %{{.*}} {in_bounds = [true, true], permutation_map = #[[ALONG_N:.*]]} : memref<64xf32>, vector<16x32xf32>
// CHECK:       %[[X:.*]] = arith.addf %[[ROWS]], %[[B]] : vector<16x32xf32>
// CHECK:       %[[Y:.*]] = arith.maximumf %[[X]], %{{.*}} : vector<16x32xf32>
// CHECK:       %[[H:.*]] = arith.truncf %[[Y]] : vector<16x32xf32> to vector<16x32xf16>
// CHECK:       vector.transfer_write %[[H]], %[[E]][%{{.*}}, %[[N]]]
// CHECK:       vector.extract_strided_slice %[[SUM]] {offsets = [16, 0]
// CHECK-NOT:   vector.transfer_read
// CHECK:       vector.transfer_write %{{.*}}, %[[E]]
// CHECK-NOT:   vector.transfer_write
// CHECK-NOT:   linalg
#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @bias_relu(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %bias: memref<64xf32>, %E: memref<64x64xf16>) {
  %zero = arith.constant 0.0 : f32
  %C = memref.alloc() : memref<64x64xf32>
  %D = memref.alloc() : memref<64x64xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [64, 64, 32], warp = [32, 32], stages = [2, 1]}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %bias : memref<64x64xf32>, memref<64xf32>) outs(%D : memref<64x64xf32>) attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} {
  ^bb0(%x: f32, %b: f32, %o: f32):
    %s = arith.addf %x, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%D : memref<64x64xf32>) outs(%E : memref<64x64xf16>) attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} {
  ^bb0(%x: f32, %o: f16):
    %r = arith.maximumf %x, %zero : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  }
  return
}

// -----

// A body that extends C gets the sums; one that does not gets them rounded. C, which is
// an argument, is stored too.
// CHECK-LABEL: func.func @half
// CHECK-SAME:  %[[C:[a-z0-9]+]]: memref<16x16xf16>, %[[D:[a-z0-9]+]]: memref<16x16xf32>, %[[E:[a-z0-9]+]]: memref<16x16xf16>)
// CHECK:       %[[SUM:.*]] = vector.contract
// CHECK:       %[[WIDE:.*]] = math.exp %[[SUM]] : vector<16x16xf32>
// CHECK:       %[[HALF:.*]] = arith.truncf %[[SUM]]
// CHECK:       %[[NARROW:.*]] = math.absf %[[HALF]] : vector<16x16xf16>
// CHECK:       vector.transfer_write %[[HALF]], %[[C]]
// CHECK:       vector.transfer_write %[[WIDE]], %[[D]]
// CHECK:       vector.transfer_write %[[NARROW]], %[[E]]
#mn = affine_map<(m, n) -> (m, n)>
func.func @half(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf16>, %D: memref<16x16xf32>, %E: memref<16x16xf16>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [16, 16, 16], warp = [16, 16], stages = [1, 1]}>} ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf16>)
  linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%C : memref<16x16xf16>) outs(%D : memref<16x16xf32>) attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} {
  ^bb0(%x: f16, %o: f32):
    %w = arith.extf %x : f16 to f32
    %e = math.exp %w : f32
    linalg.yield %e : f32
  }
  linalg.abs {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} ins(%C : memref<16x16xf16>) outs(%E : memref<16x16xf16>)
  return
}

// -----

// A scalar, a column of one element a row, a residual by batches.
// CHECK-LABEL: func.func @operands
// CHECK-SAME:  %[[S:[a-z0-9]+]]: memref<f32>, %[[COLUMN:[a-z0-9]+]]: memref<4x30x1xf32>, %[[R:[a-z0-9]+]]: memref<4x30x64xf32>
// CHECK:       memref.load %[[S]][] : memref<f32>
// CHECK:       %[[ONE:.*]] = memref.subview %[[R]][%{{.*}}, 0, 0] [1, 30, 64] [1, 1, 1]
// CHECK:       vector.transfer_read %[[ONE]]{{.*}} {in_bounds = [false, true]}
// CHECK:       %[[ROWS:.*]] = memref.subview %[[COLUMN]][%{{.*}}, 0, 0] [1, 30, 1] [1, 1, 1]
// CHECK:       vector.transfer_read %[[ROWS]][%{{.*}}, %c0], %{{.*}} {in_bounds = [false, true], permutation_map = #{{.*}}}
#bmn = affine_map<(b, m, n) -> (b, m, n)>
#s = affine_map<(b, m, n) -> ()>
#bm = affine_map<(b, m, n) -> (b, m, 0)>
func.func @operands(%A: memref<4x30x32xf16>, %B: memref<4x32x64xf16>, %s: memref<f32>, %column: memref<4x30x1xf32>, %R: memref<4x30x64xf32>, %D: memref<4x30x64xf32>) {
  %C = memref.alloc() : memref<4x30x64xf32>
  linalg.batch_matmul {alcop.contraction = #alcop.contraction<{lhs = "bmk", rhs = "bkn", out = "bmn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [32, 32, 16], warp = [16, 32], stages = [1, 1]}>} ins(%A, %B : memref<4x30x32xf16>, memref<4x32x64xf16>) outs(%C : memref<4x30x64xf32>)
  linalg.generic {indexing_maps = [#bmn, #s, #bmn, #bm, #bmn], iterator_types = ["parallel", "parallel", "parallel"]} ins(%C, %s, %R, %column : memref<4x30x64xf32>, memref<f32>, memref<4x30x64xf32>, memref<4x30x1xf32>) outs(%D : memref<4x30x64xf32>) attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} {
  ^bb0(%x: f32, %a: f32, %r: f32, %c: f32, %o: f32):
    %0 = arith.mulf %x, %a : f32
    %1 = arith.addf %0, %r : f32
    %2 = arith.addf %1, %c : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

// The sums start from a row that is the same for all rows of C.
// CHECK-LABEL: func.func @init_row
// CHECK-NOT:   linalg.broadcast
// CHECK:       %[[ROW:.*]] = vector.transfer_read %{{.*}} {in_bounds = [true, true], permutation_map = #{{.*}}} : memref<16xf16>, vector<16x16xf16>
// CHECK:       %[[START:.*]] = arith.extf %[[ROW]] : vector<16x16xf16> to vector<16x16xf32>
// CHECK:       vector.contract {{.*}} %[[START]] :
func.func @init_row(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %row: memref<16xf16>, %C: memref<16x16xf16>) {
  linalg.broadcast ins(%row : memref<16xf16>) outs(%C : memref<16x16xf16>) dimensions = [0] {alcop.contraction = #alcop.contraction<{role = "init"}>}
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "copy"}>, alcop.schedule = #alcop.schedule<{block = [16, 16, 16], warp = [16, 16], stages = [1, 1]}>} ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf16>)
  return
}

// -----

// An intermediate buffer of which there is a view is stored, too: it may be read later.
// CHECK-LABEL: func.func @viewed
// CHECK:       %[[C:.*]] = memref.alloc() : memref<16x16xf32>
// CHECK:       gpu.launch
// CHECK:       vector.transfer_write %{{.*}}, %[[C]]
// CHECK:       memref.copy
func.func @viewed(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %D: memref<16x16xf32>, %E: memref<4x16xf32>) {
  %C = memref.alloc() : memref<16x16xf32>
  %V = memref.subview %C[0, 0] [4, 16] [1, 1] : memref<16x16xf32> to memref<4x16xf32, strided<[16, 1]>>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [16, 16, 16], warp = [16, 16], stages = [1, 1]}>} ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf32>)
  linalg.exp {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} ins(%C : memref<16x16xf32>) outs(%D : memref<16x16xf32>)
  memref.copy %V, %E : memref<4x16xf32, strided<[16, 1]>> to memref<4x16xf32>
  return
}

// -----

// Two contractions into one buffer: each starts from what was copied just before it.
// CHECK-LABEL: func.func @two_inits
// CHECK-SAME:  %[[X:[a-z0-9]+]]: memref<16xf32>, %[[Y:[a-z0-9]+]]: memref<16xf32>, %[[C:[a-z0-9]+]]: memref<16x16xf32>)
// CHECK-NOT:   linalg.broadcast
// CHECK:       gpu.launch
// CHECK:         vector.transfer_read %[[X]]
// CHECK:       gpu.launch
// CHECK:         vector.transfer_read %[[Y]]
// CHECK-NOT:   linalg
func.func @two_inits(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %x: memref<16xf32>, %y: memref<16xf32>, %C: memref<16x16xf32>) {
  linalg.broadcast ins(%x : memref<16xf32>) outs(%C : memref<16x16xf32>) dimensions = [0] {alcop.contraction = #alcop.contraction<{role = "init"}>}
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "copy"}>, alcop.schedule = #alcop.schedule<{block = [16, 16, 16], warp = [16, 16], stages = [1, 1]}>} ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf32>)
  linalg.broadcast ins(%y : memref<16xf32>) outs(%C : memref<16x16xf32>) dimensions = [0] {alcop.contraction = #alcop.contraction<{role = "init"}>}
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "copy"}>, alcop.schedule = #alcop.schedule<{block = [16, 16, 16], warp = [16, 16], stages = [1, 1]}>} ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf32>)
  return
}

// -----

// Columns of two contractions in turn: a group of the output's columns at a time, of
// slices of the accumulators. Its columns are half as far from the first.
// CHECK-LABEL: func.func @interleaved
// CHECK-SAME:  %[[D:[a-z0-9]+]]: memref<64x64xf32>)
// CHECK-NOT:   memref<64x128xf32>
// CHECK:       %[[SUM:.*]] = scf.for {{.*}} -> (vector<32x64xf32>)
// CHECK:       %[[G:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [0, 0], sizes = [16, 16], strides = [1, 1]}
// CHECK:       %[[U:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [0, 16], sizes = [16, 16], strides = [1, 1]}
// CHECK:       %[[HALF:.*]] = arith.divui %{{.*}}, %c2 : index
// CHECK:       %[[Y:.*]] = arith.mulf %[[G]], %[[U]] : vector<16x16xf32>
// CHECK:       vector.transfer_write %[[Y]], %[[D]][%{{.*}}, %[[HALF]]]
// CHECK:       vector.extract_strided_slice %[[SUM]] {offsets = [0, 32]
// CHECK:       vector.extract_strided_slice %[[SUM]] {offsets = [0, 48]
// CHECK:       %[[NEXT:.*]] = affine.apply #map{{.*}}()[%[[HALF]]]
// CHECK:       vector.transfer_write %{{.*}}, %[[D]][%{{.*}}, %[[NEXT]]]
// CHECK-NOT:   linalg
#mn = affine_map<(m, n) -> (m, n)>
#p0 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16)>
#p1 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16 + 16)>
func.func @interleaved(%A: memref<64x32xf16>, %B: memref<32x128xf16>, %D: memref<64x64xf32>) {
  %C = memref.alloc() : memref<64x128xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [32, 64, 16], warp = [32, 64], stages = [1, 1]}>} ins(%A, %B : memref<64x32xf16>, memref<32x128xf16>) outs(%C : memref<64x128xf32>)
  linalg.generic {indexing_maps = [#p0, #p1, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %C : memref<64x128xf32>, memref<64x128xf32>) outs(%D : memref<64x64xf32>) attrs = {alcop.contraction = #alcop.contraction<{role = "epilogue"}>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  }
  return
}
