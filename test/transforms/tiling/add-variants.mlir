// RUN: alcop-opt %s --allow-unregistered-dialect --alcop-add-variants=assume-noalias-args=true --canonicalize --cse --canonicalize --split-input-file | FileCheck %s

// Limits first, then rows; promises in the branch that asks for them only, and kept by
// upstream's passes.
// CHECK-LABEL: @aligned_and_safe(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<?x?xf16>, %[[B:[^ ]*]]: memref<?x?xf16>, %[[C:[^ ]*]]: memref<?x?xf32>)
// CHECK-DAG:   %[[M:.*]] = memref.dim %[[A]], %c0
// CHECK-DAG:   %[[N:.*]] = memref.dim %[[B]], %c1
// CHECK:       %[[MN:.*]] = arith.muli %[[M]], %[[N]] : index
// CHECK:       %[[SMALL:.*]] = arith.cmpi sle, %[[MN]], %c65536 : index
// CHECK:       %[[K:.*]] = memref.dim %[[A]], %c1
// CHECK:       %[[REST:.*]] = arith.remui %[[K]], %c8 : index
// CHECK:       %[[WHOLE:.*]] = arith.cmpi eq, %[[REST]], %c0 : index
// CHECK:       %[[BOTH:.*]] = arith.andi %[[SMALL]], %[[WHOLE]] : i1
// CHECK:       %[[REST2:.*]] = arith.remui %[[N]], %c8 : index
// CHECK:       %[[WHOLE2:.*]] = arith.cmpi eq, %[[REST2]], %c0 : index
// CHECK:       %[[ALL:.*]] = arith.andi %[[BOTH]], %[[WHOLE2]] : i1
// CHECK:       scf.if %[[ALL]] {
// CHECK:         %[[AA:.*]] = memref.assume_alignment %[[A]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         %[[BA:.*]] = memref.assume_alignment %[[B]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         %[[CA:.*]] = memref.assume_alignment %[[C]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         linalg.matmul
// CHECK-SAME:      variant = "rows16_mn65536"
// CHECK-SAME:      alcop.schedule = #alcop.schedule<{block = [64, 64, 32], stages = [3, 1], warp = [32, 32]}>, alcop.schedule_source = "model"
// CHECK-SAME:      ins(%[[AA]], %[[BA]] : {{.*}}) outs(%[[CA]] :
// CHECK:       } else {
// CHECK:         linalg.matmul
// CHECK-NOT:       variant
// CHECK-SAME:      alcop.schedule = #alcop.schedule<{block = [32, 32, 32], stages = [2, 1], warp = [32, 32]}>}
// CHECK-SAME:      ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] :
// CHECK-NOT:   linalg
func.func @aligned_and_safe(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [
      {row_bytes = 16, limits = [{loops = "mn", most = 65536}], source = "model",
       schedule = {block = [64, 64, 32], stages = [3, 1], warp = [32, 32]}},
      {schedule = {block = [32, 32, 32], stages = [2, 1], warp = [32, 32]}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// Ops that are fused go along, with allocations that only they use; so does the copy
// that C starts from. The size of such an allocation is what it is made with.
// CHECK-LABEL: @fused_ops(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<?x64xf16>, %[[B:[^ ]*]]: memref<64x64xf16>, %[[S:[^ ]*]]: memref<?x64xf32>, %[[D:[^ ]*]]: memref<?x64xf16>)
// CHECK-NOT:   memref.alloc
// CHECK:       %[[M:.*]] = memref.dim %[[A]], %c0
// CHECK:       arith.cmpi sle, %[[M]], %c64
// CHECK-NOT:   remui
// CHECK:       scf.if
// CHECK:         %[[C:.*]] = memref.alloc(%[[M]]) : memref<?x64xf32>
// CHECK:         memref.copy %[[S]], %[[C]] {alcop.contraction = #alcop.contraction<{role = "init"}>}
// CHECK:         linalg.matmul
// CHECK-SAME:      variant = "rows16_m64"
// CHECK-SAME:      ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] :
// CHECK:         linalg.generic {{.*}} ins(%[[C]] : memref<?x64xf32>) outs(%[[D]] :
// CHECK:         memref.dealloc %[[C]]
// CHECK:       } else {
// CHECK:         %[[C2:.*]] = memref.alloc(%[[M]]) : memref<?x64xf32>
// CHECK:         memref.copy %[[S]], %[[C2]]
// CHECK:         linalg.matmul
// CHECK:         linalg.generic {{.*}} ins(%[[C2]]
// CHECK:         memref.dealloc %[[C2]]
// CHECK:       }
// CHECK:       "test.use"(%[[M]])
// CHECK-NOT:   memref
#here = affine_map<(d0, d1) -> (d0, d1)>
func.func @fused_ops(%a: memref<?x64xf16>, %b: memref<64x64xf16>, %s: memref<?x64xf32>, %d: memref<?x64xf16>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %a, %c0 : memref<?x64xf16>
  %c = memref.alloc(%m) : memref<?x64xf32>
  memref.copy %s, %c {alcop.contraction = #alcop.contraction<{role = "init"}>} : memref<?x64xf32> to memref<?x64xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "copy", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, limits = [{loops = "m", most = 64}], schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<?x64xf16>, memref<64x64xf16>) outs(%c : memref<?x64xf32>)
  linalg.generic {indexing_maps = [#here, #here], iterator_types = ["parallel", "parallel"]}
    ins(%c : memref<?x64xf32>) outs(%d : memref<?x64xf16>) {
  ^bb0(%x: f32, %y: f16):
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  }
  %again = memref.dim %c, %c0 : memref<?x64xf32>
  "test.use"(%again) : (index) -> ()
  memref.dealloc %c : memref<?x64xf32>
  return
}

// -----

// A buffer that others read too stays where it is.
// CHECK-LABEL: @read_afterwards
// CHECK:       %[[C:.*]] = memref.alloc
// CHECK:       scf.if
// CHECK:         %[[CA:.*]] = memref.assume_alignment %[[C]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         linalg.matmul {{.*}} outs(%[[CA]] :
// CHECK:       } else {
// CHECK:         linalg.matmul {{.*}} outs(%[[C]] :
// CHECK:       memref.copy %[[C]]
func.func @read_afterwards(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %d: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf16>
  %n = memref.dim %b, %c1 : memref<?x?xf16>
  %c = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
  "test.between"() : () -> ()
  memref.copy %c, %d : memref<?x?xf32> to memref<?x?xf32>
  return
}

// -----

// Distances of rows too, where the type leaves them open; those of a batch as well. What
// is promised of a buffer with other elements is what follows from what was asked.
// CHECK-LABEL: @strides(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<4x?x64xf16, strided<[?, ?, 1]>>, %[[B:[^ ]*]]: memref<4x64x?xf16>,
// CHECK:       strides:3 = memref.extract_strided_metadata %[[A]]
// CHECK-DAG:   arith.remui %[[S:.*]]#0, %c8
// CHECK-DAG:   arith.remui %[[S]]#1, %c8
// CHECK-DAG:   arith.remui %{{dim.*}}, %c8
// CHECK:       scf.if
// CHECK:         memref.assume_alignment %[[A]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         memref.assume_alignment %[[B]], 16 {alcop.row_alignment = 16 : i64}
func.func @strides(%a: memref<4x?x64xf16, strided<[?, ?, 1]>>, %b: memref<4x64x?xf16>, %c: memref<4x?x?xf32>) {
  linalg.batch_matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "bmk", out = "bmn", rhs = "bkn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<4x?x64xf16, strided<[?, ?, 1]>>, memref<4x64x?xf16>) outs(%c : memref<4x?x?xf32>)
  return
}

// -----

// Rows of 4 bytes; N of C and D in f32 may be odd, but not of i8.
// CHECK-LABEL: @narrow_rows
// CHECK-DAG:   arith.remui %{{.*}}, %c2 : index
// CHECK-DAG:   arith.remui %{{.*}}, %c4 : index
// CHECK:       scf.if
// CHECK:         alcop.row_alignment = 4
// CHECK:         variant = "rows4"
func.func @narrow_rows(%a: memref<?x?xf16>, %b: memref<?x?xi8>, %c: memref<?x?xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 4, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x?xi8>) outs(%c : memref<?x?xf32>)
  return
}

// -----

// Parts of K: as many elements as whole 16 bytes have, in each part, and not none.
// CHECK-LABEL: @parts_of_k
// CHECK-DAG:   %[[K:.*]] = memref.dim %{{.*}}, %c1
// CHECK-DAG:   %[[SOME:.*]] = arith.cmpi sge, %[[K]], %c1
// CHECK-DAG:   %[[REST:.*]] = arith.remui %[[K]], %c32
// CHECK:       scf.if
// CHECK:         k_multiple = 32 : i64
// CHECK-SAME:    variant = "split4"
// CHECK:       } else {
// CHECK-NOT:     k_multiple
func.func @parts_of_k(%a: memref<64x?xf16>, %b: memref<?x64xf16>, %c: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{schedule = {split_k = 4}}, {schedule = {}}]}
    ins(%a, %b : memref<64x?xf16>, memref<?x64xf16>) outs(%c : memref<64x64xf32>)
  return
}

// -----

// What is known folds away: the second variant always runs, and the first never does.
// CHECK-LABEL: @known_sizes
// CHECK-NOT:   scf.if
// CHECK:       linalg.matmul
// CHECK-NOT:     variant
// CHECK-SAME:    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], stages = [3, 2], warp = [64, 64]}>
// CHECK-NOT:   linalg
func.func @known_sizes(%a: memref<100x64xf16>, %b: memref<64x64xf16>, %c: memref<100x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [
      {limits = [{loops = "m", most = 99}], schedule = {}},
      {row_bytes = 16, limits = [{loops = "mn", most = 6400}], schedule = {block = [64, 64, 32]}},
      {row_bytes = 4, schedule = {}},
      {schedule = {}}]}
    ins(%a, %b : memref<100x64xf16>, memref<64x64xf16>) outs(%c : memref<100x64xf32>)
  return
}

// -----

// Sizes that are known divide a limit, and K has no parts of whole 16 bytes.
// CHECK-LABEL: @known_in_part
// CHECK:       arith.cmpi sle, %{{.*}}, %c15 : index
// CHECK-NOT:   cmpi
// CHECK:       scf.if
// CHECK:         variant = "mn1000"
// CHECK:       } else {
// CHECK:       arith.cmpi sge, %{{.*}}, %c42 : index
// CHECK-NOT:   cmpi
// CHECK:       scf.if
// CHECK:         variant = "mkfrom1000_nkfrom1536"
// CHECK:       } else {
// CHECK:         variant = "rows16"
// CHECK-NOT:   linalg
func.func @known_in_part(%a: memref<?x24xf16>, %b: memref<24x64xf16>, %c: memref<?x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [
      {row_bytes = 16, schedule = {split_k = 2}},
      {limits = [{loops = "mn", most = 1000}], schedule = {}},
      {limits = [{loops = "nk", most = 1535}], schedule = {}},
      {limits = [{loops = "k", least = 25}], schedule = {}},
      {limits = [{loops = "mk", least = 1000}, {loops = "nk", least = 1536}], schedule = {}},
      {row_bytes = 16, schedule = {}},
      {schedule = {}}]}
    ins(%a, %b : memref<?x24xf16>, memref<24x64xf16>) outs(%c : memref<?x64xf32>)
  return
}

// -----

// Of rows that are known to be odd nothing is asked, nor promised.
// CHECK-LABEL: @odd_rows
// CHECK-SAME:    %[[A:[^ ]*]]: memref<?x?xf16>, %[[B:[^ ]*]]: memref<?x33xf16>, %[[C:[^ ]*]]: memref<?x33xf32>
// CHECK:       arith.remui %{{.*}}, %c2 : index
// CHECK-NOT:   remui
// CHECK:       scf.if
// CHECK:         %[[AA:.*]] = memref.assume_alignment %[[A]], 16 {alcop.row_alignment = 4 : i64}
// CHECK:         ins(%[[AA]], %[[B]] : {{.*}}) outs(%[[C]] :
func.func @odd_rows(%a: memref<?x?xf16>, %b: memref<?x33xf16>, %c: memref<?x33xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 4, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x33xf16>) outs(%c : memref<?x33xf32>)
  return
}

// -----

// Of rows with distances of their own a known length is not asked for, as their last
// chunk may be a part.
// CHECK-LABEL: @known_length
// CHECK-SAME:    %[[A:[^ ]*]]: memref<8x33xf16, strided<[?, 1]>>, %[[B:[^ ]*]]: memref<33x5xf16>, %[[C:[^ ]*]]: memref<8x5xf32, strided<[?, 1]>>
// CHECK:       arith.remui %{{.*}}, %c8 : index
// CHECK:       arith.remui %{{.*}}, %c4 : index
// CHECK-NOT:   remui
// CHECK:       scf.if
// CHECK:         %[[AA:.*]] = memref.assume_alignment %[[A]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         %[[CA:.*]] = memref.assume_alignment %[[C]], 16 {alcop.row_alignment = 16 : i64}
// CHECK:         ins(%[[AA]], %[[B]] : {{.*}}) outs(%[[CA]] :
// CHECK:       } else {
// CHECK:         ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] :
func.func @known_length(%a: memref<8x33xf16, strided<[?, 1]>>, %b: memref<33x5xf16>, %c: memref<8x5xf32, strided<[?, 1]>>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<8x33xf16, strided<[?, 1]>>, memref<33x5xf16>) outs(%c : memref<8x5xf32, strided<[?, 1]>>)
  return
}

// -----

// What the user promises is not asked for.
// CHECK-LABEL: @promised(
// CHECK-NOT:   remui
// CHECK:       scf.if
// CHECK:         variant = "rows16_m64"
// CHECK:       } else {
// CHECK:         memref.assume_alignment %{{.*}}, 16 {alcop.row_alignment = 4 : i64} : memref<?x?xf16>
// CHECK:         variant = "rows4"
// CHECK-NOT:   linalg
func.func @promised(%a: memref<?x?xf16, strided<[?, 1]>> {alcop.row_alignment = 16},
                    %b: memref<?x?xf16> {alcop.row_alignment = 16}, %c: memref<?x?xf16>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [
      {row_bytes = 16, limits = [{loops = "m", most = 64}], schedule = {}},
      {row_bytes = 4, schedule = {}},
      {schedule = {}}]}
    ins(%a, %b : memref<?x?xf16, strided<[?, 1]>>, memref<?x?xf16>) outs(%c : memref<?x?xf16>)
  return
}

// -----

// A view has the distances of rows of what it views; of its address what follows from
// these is assumed.
// CHECK-LABEL: @view
// CHECK-SAME:    %[[A:[^ ]*]]: memref<100x?xf16>
// CHECK:       %[[P:.*]] = memref.dim %[[A]], %c1
// CHECK:       arith.remui %[[P]], %c8
// CHECK:       scf.if
// CHECK-DAG:     memref.assume_alignment %{{.*}}, 2 {alcop.row_alignment = 16 : i64} : memref<64x64xf16, strided<[?, 1], offset: ?>>
// CHECK-DAG:     memref.assume_alignment %{{.*}}, 8 {alcop.row_alignment = 16 : i64} : memref<64x64xf16, strided<[?, 1], offset: ?>>
func.func @view(%a: memref<100x?xf16>, %c: memref<64x64xf32>, %i: index) {
  %part = memref.subview %a[%i, 1] [64, 64] [1, 1] : memref<100x?xf16> to memref<64x64xf16, strided<[?, 1], offset: ?>>
  %right = memref.subview %a[%i, 4] [64, 64] [1, 1] : memref<100x?xf16> to memref<64x64xf16, strided<[?, 1], offset: ?>>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%part, %right : memref<64x64xf16, strided<[?, 1], offset: ?>>, memref<64x64xf16, strided<[?, 1], offset: ?>>) outs(%c : memref<64x64xf32>)
  return
}

// Of a matrix that is never made nobody asks the size: that of C is its.
// CHECK-LABEL: func.func @windows
// CHECK-SAME: %[[Y:[^:]*]]: memref<?x32xf32>)
// CHECK: %[[ROWS:.*]] = memref.dim %[[Y]], %c0
// CHECK: arith.cmpi sle, %[[ROWS]], %c64
// CHECK: scf.if
func.func @windows(%x: memref<?x?x?x64xf16>, %w: memref<576x32xf16>, %y: memref<?x32xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1],
    dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>}
    : (memref<?x?x?x64xf16>) -> memref<?x576xf16>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{limits = [{loops = "m", most = 64}], schedule = {}}, {schedule = {}}]}
    ins(%A, %w : memref<?x576xf16>, memref<576x32xf16>) outs(%y : memref<?x32xf32>)
  return
}

// -----

// Of arguments that may begin anywhere the address is asked for: as much as what is
// known of their rows makes use of, and nothing where that is their elements. C is
// stored as wide as rows allow. What is fused is asked, too.
// CHECK-LABEL: @addresses(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<?x?xf16> {{{[^}]*}}}, %[[B:[^ ]*]]: memref<?x8xf16, strided<[?, 1]>> {{{[^}]*}}}, %[[C:[^ ]*]]: memref<?x8xf32> {{{[^}]*}}}, %[[V:[^ ]*]]: memref<8xf32> {{{[^}]*}}}, %[[D:[^ ]*]]: memref<?x8xi8> {{{[^}]*}}})
// CHECK:       %[[AT:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
// CHECK:       %[[REST:.*]] = arith.remui %[[AT]], %c4
// CHECK:       arith.cmpi eq, %[[REST]], %c0
// CHECK:       %[[BT:.*]] = memref.extract_aligned_pointer_as_index %[[B]]
// CHECK:       arith.remui %[[BT]], %c4
// CHECK:       %[[DT:.*]] = memref.extract_aligned_pointer_as_index %[[D]]
// CHECK:       arith.remui %[[DT]], %c8
// CHECK:       %[[VT:.*]] = memref.extract_aligned_pointer_as_index %[[V]]
// CHECK:       arith.remui %[[VT]], %c16
// CHECK-NOT:   extract_aligned_pointer
// CHECK:       scf.if
// CHECK:         memref.assume_alignment %[[A]], 4 {alcop.row_alignment = 4 : i64}
// CHECK:         memref.assume_alignment %[[B]], 4 {alcop.row_alignment = 4 : i64}
// CHECK:         memref.assume_alignment %[[D]], 8 {alcop.row_alignment = 4 : i64}
// CHECK:         memref.assume_alignment %[[V]], 16 {alcop.row_alignment = 4 : i64}
// CHECK:       } else {
// CHECK-NOT:     assume_alignment
#row = affine_map<(d0, d1) -> (d1)>
#here = affine_map<(d0, d1) -> (d0, d1)>
func.func @addresses(%a: memref<?x?xf16> {alcop.alignment = 2}, %b: memref<?x8xf16, strided<[?, 1]>> {alcop.alignment = 2},
    %c: memref<?x8xf32> {alcop.alignment = 16}, %v: memref<8xf32> {alcop.alignment = 4}, %d: memref<?x8xi8> {alcop.alignment = 1}) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 4, schedule = {}}, {schedule = {}}]}
    ins(%a, %b : memref<?x?xf16>, memref<?x8xf16, strided<[?, 1]>>) outs(%c : memref<?x8xf32>)
  linalg.generic {indexing_maps = [#here, #row, #here], iterator_types = ["parallel", "parallel"]}
    ins(%c, %v : memref<?x8xf32>, memref<8xf32>) outs(%d : memref<?x8xi8>) {
  ^bb0(%x: f32, %y: f32, %z: i8):
    %s = arith.addf %x, %y : f32
    %t = arith.fptosi %s : f32 to i8
    linalg.yield %t : i8
  }
  return
}

// -----

// Of a view: the address of the argument, and the offsets that the host knows; they may
// be negative. Nothing is asked of rows in vain, where a column is not aligned, or not
// known to the host.
// CHECK-LABEL: @offsets_of_views(
// CHECK-SAME:    %[[A:[^ ]*]]: memref<100x128xf16> {{{[^}]*}}}, %[[B:[^ ]*]]: memref<64x?xf16>
// CHECK:       %[[N:.*]] = memref.dim %[[B]], %c1
// CHECK:       arith.remui %[[N]], %c8
// CHECK:       arith.remsi %[[N]], %c8
// CHECK:       %[[AT:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
// CHECK:       arith.remui %[[AT]], %c16
// CHECK-NOT:   rem
// CHECK:       scf.if
// CHECK-DAG:     memref.assume_alignment %{{.*}}, 16 {alcop.row_alignment = 16 : i64} : memref<32x64xf16, strided<[128, 1], offset: ?>>
// CHECK:       linalg.matmul {{.*}} variant = "rows16"
// CHECK-LABEL: @unaligned_views(
// CHECK-NOT:   extract_aligned_pointer
// CHECK:       return
func.func @offsets_of_views(%a: memref<100x128xf16> {alcop.alignment = 2}, %b: memref<64x?xf16>, %c: memref<32x?xf32>) {
  %c1 = arith.constant 1 : index
  %n = memref.dim %b, %c1 : memref<64x?xf16>
  %part = memref.subview %a[8, %n] [32, 64] [1, 1] : memref<100x128xf16> to memref<32x64xf16, strided<[128, 1], offset: ?>>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%part, %b : memref<32x64xf16, strided<[128, 1], offset: ?>>, memref<64x?xf16>) outs(%c : memref<32x?xf32>)
  return
}
func.func @unaligned_views(%a: memref<100x128xf16> {alcop.alignment = 2}, %b: memref<64x?xf16>, %c: memref<32x?xf32>, %i: index) {
  %odd = memref.subview %a[8, 1] [32, 64] [1, 1] : memref<100x128xf16> to memref<32x64xf16, strided<[128, 1], offset: 1025>>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%odd, %b : memref<32x64xf16, strided<[128, 1], offset: 1025>>, memref<64x?xf16>) outs(%c : memref<32x?xf32>)
  %unknown = memref.subview %a[8, %i] [32, 64] [1, 1] : memref<100x128xf16> to memref<32x64xf16, strided<[128, 1], offset: ?>>
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>,
    alcop.variants = [{row_bytes = 16, schedule = {}}, {schedule = {}}]}
    ins(%unknown, %b : memref<32x64xf16, strided<[128, 1], offset: ?>>, memref<64x?xf16>) outs(%c : memref<32x?xf32>)
  return
}
