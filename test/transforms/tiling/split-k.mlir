// RUN: alcop-opt %s --alcop-split-k --alcop-split-k --canonicalize --split-input-file | FileCheck %s

// Two halves of K side by side, in f32, then added up and rounded once.
// CHECK:       #[[HERE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: @two_parts(
// CHECK-SAME:    %[[A:.*]]: memref<64x512xf16>, %[[B:.*]]: memref<512x48xf16>, %[[C:.*]]: memref<64x48xf16>
// CHECK:       %[[PARTS:.*]] = memref.alloc() : memref<2x64x48xf32>
// CHECK:       %[[AS:.*]] = memref.expand_shape %[[A]] {{\[}}[0], [1, 2]{{\]}} output_shape [64, 2, 256] : memref<64x512xf16> into memref<64x2x256xf16>
// CHECK:       %[[BS:.*]] = memref.expand_shape %[[B]] {{\[}}[0, 1], [2]{{\]}} output_shape [2, 256, 48] : memref<512x48xf16> into memref<2x256x48xf16>
// CHECK:       linalg.generic
// CHECK-SAME:    ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:    ins(%[[AS]], %[[BS]] : {{.*}}) outs(%[[PARTS]] : memref<2x64x48xf32>)
// CHECK-SAME:    attrs = {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mbk", out = "bmn", parts = true, rhs = "bkn"}>, alcop.schedule = #alcop.schedule<{block = [64, 48, 32], split_k = 2 : i64, stages = [3, 2], warp = [32, 48]}>, alcop.schedule_source = "record"}
// CHECK:       ^bb0(%[[X:.*]]: f16, %[[Y:.*]]: f16, %[[S:.*]]: f32):
// CHECK:         %[[X32:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK:         %[[Y32:.*]] = arith.extf %[[Y]] : f16 to f32
// CHECK:         %[[XY:.*]] = arith.mulf %[[X32]], %[[Y32]] : f32
// CHECK:         arith.addf %[[S]], %[[XY]] : f32
// CHECK:       %[[P0:.*]] = memref.subview %[[PARTS]][0, 0, 0] [1, 64, 48] [1, 1, 1] : memref<2x64x48xf32> to memref<64x48xf32, strided<[48, 1]>>
// CHECK:       %[[P1:.*]] = memref.subview %[[PARTS]][1, 0, 0] [1, 64, 48] [1, 1, 1] : memref<2x64x48xf32> to memref<64x48xf32, strided<[48, 1], offset: 3072>>
// CHECK:       linalg.generic {indexing_maps = [#[[HERE]], #[[HERE]], #[[HERE]]], iterator_types = ["parallel", "parallel"]}
// CHECK-SAME:    ins(%[[P0]], %[[P1]] : {{.*}}) outs(%[[C]] : memref<64x48xf16>)
// CHECK:       ^bb0(%[[V0:.*]]: f32, %[[V1:.*]]: f32, %{{.*}}: f16):
// CHECK:         %[[SUM:.*]] = arith.addf %[[V0]], %[[V1]] : f32
// CHECK:         %[[R:.*]] = arith.truncf %[[SUM]] : f32 to f16
// CHECK:         linalg.yield %[[R]] : f16
// CHECK-NOT:   linalg
func.func @two_parts(%a: memref<64x512xf16>, %b: memref<512x48xf16>, %c: memref<64x48xf16>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 48, 32], split_k = 2, stages = [3, 2], warp = [32, 48]}>, alcop.schedule_source = "record"}
    ins(%a, %b : memref<64x512xf16>, memref<512x48xf16>) outs(%c : memref<64x48xf16>)
  return
}

// -----

// What C holds comes first, then the parts in their order.
// CHECK-LABEL: @what_is_there
// CHECK:       alcop.contraction = #alcop.contraction<{init = "zero"
// CHECK:       linalg.generic
// CHECK:       ^bb0(%[[P0:.*]]: f32, %[[P1:.*]]: f32, %[[P2:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK:         %[[T0:.*]] = arith.addf %[[OLD]], %[[P0]] : f32
// CHECK:         %[[T1:.*]] = arith.addf %[[T0]], %[[P1]] : f32
// CHECK:         %[[T2:.*]] = arith.addf %[[T1]], %[[P2]] : f32
// CHECK:         linalg.yield %[[T2]] : f32
func.func @what_is_there(%a: memref<64x96xf16>, %b: memref<96x64xf16>, %c: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 3, stages = [3, 2], warp = [32, 32]}>}
    ins(%a, %b : memref<64x96xf16>, memref<96x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Accumulators start from another buffer; the marked copy is erased.
// CHECK-LABEL: @another_buffer(
// CHECK-SAME:    %[[C:[^ ]*]]: memref<64x64xf16>, %[[D:[^ ]*]]: memref<64x64xf16>)
// CHECK-NOT:   memref.copy
// CHECK:       linalg.generic
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%[[D]], %{{.*}}, %{{.*}} : {{.*}}) outs(%[[C]] : memref<64x64xf16>)
// CHECK:       ^bb0(%[[OLD:.*]]: f16, %[[P0:.*]]: f32, %[[P1:.*]]: f32, %{{.*}}: f16):
// CHECK:         %[[START:.*]] = arith.extf %[[OLD]] : f16 to f32
// CHECK:         arith.addf %[[START]], %[[P0]] : f32
func.func @another_buffer(%a: memref<64x96xf16>, %b: memref<96x64xf16>, %c: memref<64x64xf16>, %d: memref<64x64xf16>) {
  memref.copy %d, %c {alcop.contraction = #alcop.contraction<{role = "init"}>} : memref<64x64xf16> to memref<64x64xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "copy", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [3, 2], warp = [32, 32]}>}
    ins(%a, %b : memref<64x96xf16>, memref<96x64xf16>) outs(%c : memref<64x64xf16>)
  return
}

// -----

// Integers are summed in i32; both operands stored the other way, rows with gaps.
// CHECK-LABEL: @integers
// CHECK:       memref.alloc() : memref<2x64x48xi32>
// CHECK:       memref.expand_shape {{.*}} : memref<128x64xi8, strided<[80, 1]>> into memref<2x64x64xi8, strided<[5120, 80, 1]>>
// CHECK:       memref.expand_shape {{.*}} : memref<48x128xi8> into memref<48x2x64xi8>
// CHECK:       lhs = "bkm", out = "bmn", parts = true, rhs = "nbk"
// CHECK:         arith.extsi
// CHECK:         arith.extsi
// CHECK:         arith.muli
// CHECK:         arith.addi
// CHECK:       linalg.generic
// CHECK:         arith.addi
// CHECK-NEXT:    linalg.yield
#ta = affine_map<(m, n, k) -> (k, m)>
#tb = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
func.func @integers(%a: memref<128x64xi8, strided<[80, 1]>>, %b: memref<48x128xi8>, %c: memref<64x48xi32>) {
  linalg.generic {indexing_maps = [#ta, #tb, #o], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : memref<128x64xi8, strided<[80, 1]>>, memref<48x128xi8>) outs(%c : memref<64x48xi32>)
    attrs = {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "km", rhs = "nk"}>,
             alcop.schedule = #alcop.schedule<{block = [64, 48, 32], split_k = 2, stages = [3, 2], warp = [32, 48]}>} {
  ^bb0(%x: i8, %y: i8, %s: i32):
    %p = arith.extsi %x : i8 to i32
    %q = arith.extsi %y : i8 to i32
    %r = arith.muli %p, %q : i32
    %t = arith.addi %s, %r : i32
    linalg.yield %t : i32
  }
  return
}

// -----

// One row, a number of columns known at run time; tf32 stays asked for.
// CHECK-LABEL: @vector(
// CHECK-SAME:    %[[X:.*]]: memref<256xf32>, %[[B:.*]]: memref<256x?xf32>
// CHECK:       %[[N:.*]] = memref.dim %[[B]], %c1
// CHECK:       memref.alloc(%[[N]]) : memref<2x?xf32>
// CHECK:       memref.expand_shape %[[X]] {{.*}} : memref<256xf32> into memref<2x128xf32>
// CHECK:       lhs = "bk", out = "bn", parts = true, precision = "tf32", rhs = "bkn"
// CHECK:       memref.subview %{{.*}}[1, 0] [1, %[[N]]] [1, 1] : memref<2x?xf32> to memref<?xf32, strided<[1], offset: ?>>
#vx = affine_map<(n, k) -> (k)>
#vb = affine_map<(n, k) -> (k, n)>
#vc = affine_map<(n, k) -> (n)>
func.func @vector(%a: memref<256xf32>, %b: memref<256x?xf32>, %c: memref<?xf32>) {
  linalg.generic {indexing_maps = [#vx, #vb, #vc], iterator_types = ["parallel", "reduction"]}
    ins(%a, %b : memref<256xf32>, memref<256x?xf32>) outs(%c : memref<?xf32>)
    attrs = {alcop.contraction = #alcop.contraction<{init = "read", lhs = "k", out = "n", precision = "tf32", rhs = "kn"}>,
             alcop.schedule = #alcop.schedule<{block = [16, 64, 16], split_k = 2, stages = [3, 2], warp = [16, 64]}>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %r = arith.mulf %x, %y : f32
    %t = arith.addf %s, %r : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// Nothing to split.
// CHECK-LABEL: @whole
// CHECK:       linalg.matmul {alcop.contraction = {{.*}}, alcop.schedule
// CHECK-NOT:   linalg.generic
func.func @whole(%a: memref<64x64xf16>, %c: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], raster = 2, stages = [3, 2], warp = [32, 32]}>}
    ins(%a, %a : memref<64x64xf16>, memref<64x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// A factor that is computed is computed in the parts; its scalar stays what it is.
// CHECK-LABEL: @computed_factor(
// CHECK-SAME:    %{{.*}}, %{{.*}}, %[[SCALE:.*]]: memref<f16>, %{{.*}})
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%{{.*}}, %{{.*}}, %[[SCALE]] : memref<64x2x64xf16>, memref<2x64x64xf16>, memref<f16>) outs(%{{.*}} : memref<2x64x64xf32>)
// CHECK:       ^bb0(%[[X:.*]]: f16, %[[Y:.*]]: f16, %[[F:.*]]: f16, %{{.*}}: f32):
// CHECK:         %[[XF:.*]] = arith.mulf %[[X]], %[[F]] : f16
// CHECK:         %[[L:.*]] = arith.extf %[[XF]] : f16 to f32
// CHECK:         %[[R:.*]] = arith.extf %[[Y]] : f16 to f32
// CHECK:         arith.mulf %[[L]], %[[R]] : f32
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#s = affine_map<(m, n, k) -> ()>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @computed_factor(%a: memref<64x128xf16>, %b: memref<128x64xf16>, %f: memref<f16>, %c: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #s, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b, %f : memref<64x128xf16>, memref<128x64xf16>, memref<f16>) outs(%c : memref<64x64xf32>)
    attrs = {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
             alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [3, 2], warp = [32, 32]}>} {
  ^bb0(%x: f16, %y: f16, %z: f16, %s: f32):
    %xf = arith.mulf %x, %z : f16
    %p = arith.extf %xf : f16 to f32
    %q = arith.extf %y : f16 to f32
    %r = arith.mulf %p, %q : f32
    %t = arith.addf %s, %r : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// A K that is known at run time only, of which a guard says enough: the rows of A are
// parts of K, those of B are not.
// CHECK-LABEL: @run_time_length(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<64x?xf16>, %[[B:[^ ]*]]: memref<?x64xf16>,
// CHECK:       %[[K:.*]] = memref.dim %[[A]], %c1
// CHECK:       %[[PART:.*]] = arith.divui %[[K]], %c2 : index
// CHECK:       %[[AS:.*]] = memref.expand_shape %[[A]] {{\[}}[0], [1, 2]{{\]}} output_shape [64, 2, %[[PART]]] : memref<64x?xf16> into memref<64x2x?xf16>
// CHECK:       %[[AP:.*]] = memref.assume_alignment %[[AS]], 16 {alcop.row_alignment = 16 : i64} : memref<64x2x?xf16>
// CHECK:       %[[BS:.*]] = memref.expand_shape %[[B]] {{\[}}[0, 1], [2]{{\]}} output_shape [2, %{{.*}}, 64] : memref<?x64xf16> into memref<2x?x64xf16>
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%[[AP]], %[[BS]] :
func.func @run_time_length(%a: memref<64x?xf16>, %b: memref<?x64xf16>, %c: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", k_multiple = 16, lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [3, 2], warp = [32, 32]}>}
    ins(%a, %b : memref<64x?xf16>, memref<?x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Where rows have gaps, no more is promised of their distance than was before.
// CHECK-LABEL: @gaps(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<64x?xf16, strided<[?, 1]>>
// CHECK:       memref.expand_shape %{{.*}} : memref<64x?xf16, strided<[?, 1]>> into memref<64x2x?xf16, strided<[?, ?, 1]>>
// CHECK:       memref.assume_alignment %{{.*}}, 16 {alcop.row_alignment = 4 : i64} : memref<64x2x?xf16, strided<[?, ?, 1]>>
func.func @gaps(%a: memref<64x?xf16, strided<[?, 1]>>, %b: memref<?x64xf16>, %c: memref<64x64xf32>) {
  %aligned = memref.assume_alignment %a, 16 {alcop.row_alignment = 4} : memref<64x?xf16, strided<[?, 1]>>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", k_multiple = 16, lhs = "mk", rhs = "kn"}>,
                 alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [3, 2], warp = [32, 32]}>}
    ins(%aligned, %b : memref<64x?xf16, strided<[?, 1]>>, memref<?x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// Windows cannot be expanded: their matrix is indexed by b * 288 + k.
// CHECK-DAG: #[[PART:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0 * 288 + d3)>
// CHECK-DAG: #[[FILTERS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-LABEL: func.func @windows
// CHECK: %[[A:.*]] = "alcop.im2col"
// CHECK: %[[B:.*]] = memref.expand_shape {{.*}} into memref<2x288x32xf16>
// CHECK: linalg.generic {indexing_maps = [#[[PART]], #[[FILTERS]], {{.*}}], {{.*}}} ins(%[[A]], %[[B]]
// CHECK-SAME: parts = true, parts_of_k = 2 : i64
func.func @windows(%x: memref<1x8x8x64xf16>, %w: memref<576x32xf16>, %y: memref<64x32xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<1x8x8x64xf16>) -> memref<64x576xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.schedule = #alcop.schedule<{block = [32, 32, 32], warp = [32, 32], stages = [2, 1], split_k = 2}>}
    ins(%A, %w : memref<64x576xf16>, memref<576x32xf16>) outs(%y : memref<64x32xf32>)
  return
}

// -----

// An input that the body does not read: the parts do without.
// CHECK-LABEL: @unread_input(
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%{{.*}}, %{{.*}} : memref<64x2x64xf16>, memref<2x64x64xf16>) outs(%{{.*}} : memref<2x64x64xf32>)
// CHECK:       ^bb0(%[[X:.*]]: f16, %[[Y:.*]]: f16, %[[S:.*]]: f32):
func.func @unread_input(%a: memref<64x128xf16>, %b: memref<128x64xf16>, %d: memref<64xf32>,
                        %c: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                   affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b, %d : memref<64x128xf16>, memref<128x64xf16>, memref<64xf32>)
    outs(%c : memref<64x64xf32>)
    attrs = {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
             alcop.schedule = #alcop.schedule<{block = [64, 64, 32], split_k = 2, stages = [3, 2], warp = [32, 32]}>} {
  ^bb0(%x: f16, %y: f16, %z: f32, %s: f32):
    %l = arith.extf %x : f16 to f32
    %r = arith.extf %y : f16 to f32
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  return
}
