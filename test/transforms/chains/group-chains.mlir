// RUN: alcop-opt %s --alcop-group-chains --split-input-file | FileCheck %s

// Scores, their softmax and its product are one region. The division by the sum is done
// to the product, and what is multiplied is f16.
// CHECK-LABEL: @softmax(
// CHECK-SAME:  %[[Q:.*]]: tensor<64x32xf16>, %[[K:.*]]: tensor<32x128xf16>, %[[V:.*]]: tensor<128x32xf16>
// CHECK-NOT:   linalg.
// CHECK:       %[[DEST:.*]] = tensor.empty() : tensor<64x32xf32>
// CHECK-NEXT:  %[[O:.*]] = scf.execute_region -> tensor<64x32xf32> no_inline {
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[K]] : {{.*}} {alcop.chain = {batch = 0 : i64, {{.*}}role = "scores", {{.*}}start = 0xFFF0000000000000 : f64}}
// CHECK:         %[[MAX:.*]] = linalg.generic {{.*}} ins(%[[S]] : {{.*}} {alcop.chain = {role = "maximum"}}
// CHECK:           arith.maximumf
// CHECK:         %[[W:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[MAX]] : {{.*}} {alcop.chain = {role = "weights"}}
// CHECK:           arith.subf
// CHECK:           arith.mulf
// CHECK-NEXT:      math.exp2
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[W]] : {{.*}} {alcop.chain = {role = "total"}}
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[V]] : {{.*}} {alcop.chain = {role = "contracted"}}
// CHECK:           arith.truncf %{{.*}} : f32 to f16
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[SUM]] : {{.*}} outs(%[[DEST]] : {{.*}} {alcop.chain = {role = "result"}}
// CHECK:           arith.divf
// CHECK:         scf.yield %[[R]]
// CHECK:   return %[[O]]
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
func.func @softmax(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.mulf %a, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<64x128xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x128xf32>) outs(%fl : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<64x128xf32>, tensor<64xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x128xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<64x128xf32>) outs(%fz : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %sum : tensor<64x128xf32>, tensor<64xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %0 = arith.divf %a, %b : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// A mask computed of indices is computed again, with numbers of 32 bits.
// CHECK-LABEL: @causal(
// CHECK-NOT:   linalg.
// CHECK:       scf.execute_region
// CHECK:       ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-DAG:     %[[ROW:.*]] = linalg.index 0
// CHECK-DAG:     %[[COLUMN:.*]] = linalg.index 1
// CHECK-DAG:     %[[R32:.*]] = arith.index_cast %[[ROW]] : index to i32
// CHECK-DAG:     %[[C32:.*]] = arith.index_cast %[[COLUMN]] : index to i32
// CHECK:         %[[OK:.*]] = arith.cmpi sle, %[[C32]], %[[R32]] : i32
// CHECK:         arith.select %[[OK]], %[[A]]
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
func.func @causal(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %i = tensor.empty() : tensor<128xi64>
  %numbers = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>], iterator_types = ["parallel"]} outs(%i : tensor<128xi64>) {
  ^bb0(%c: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  } -> tensor<128xi64>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %numbers : tensor<64x128xf32>, tensor<128xi64>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %col: i64, %c: f32):
    %0 = linalg.index 0 : index
    %row = arith.index_cast %0 : index to i64
    %1 = arith.cmpi sle, %col, %row : i64
    %2 = arith.select %1, %a, %low : f32
    linalg.yield %2 : f32
  } -> tensor<64x128xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x128xf32>) outs(%fl : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<64x128xf32>, tensor<64xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x128xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<64x128xf32>) outs(%fz : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %sum : tensor<64x128xf32>, tensor<64xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %0 = arith.divf %a, %b : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// So is what has fewer loops besides: slopes times distances. What has all loops is read.
// CHECK-LABEL: @distance(
// CHECK-SAME:  %[[SLOPE:[^ ]*]]: tensor<64xf16>, %[[WHOLE:[^ ]*]]: tensor<64x128xf16>
// CHECK:       %[[TWICE:.*]] = linalg.generic {{.*}} ins(%[[WHOLE]] :
// CHECK:       scf.execute_region
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[SLOPE]], %[[TWICE]] : tensor<64x128xf32>, tensor<64xf16>, tensor<64x128xf16>) {{.*}} {alcop.chain = {role = "elements"}}
// CHECK:           %[[D:.*]] = arith.subi %{{.*}} : i32
// CHECK-NEXT:      %[[A:.*]] = math.absi %[[D]] : i32
// CHECK-NEXT:      %[[F:.*]] = arith.sitofp %[[A]] : i32 to f32
// CHECK-NEXT:      arith.mulf %{{.*}}, %[[F]] : f32
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
func.func @distance(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %slope: tensor<64xf16>, %whole: tensor<64x128xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %i = tensor.empty() : tensor<128xi64>
  %numbers = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>], iterator_types = ["parallel"]} outs(%i : tensor<128xi64>) {
  ^bb0(%c: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  } -> tensor<128xi64>
  %eb = tensor.empty() : tensor<64x128xf16>
  %bias = linalg.generic {indexing_maps = [#row, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%slope, %numbers : tensor<64xf16>, tensor<128xi64>) outs(%eb : tensor<64x128xf16>) {
  ^bb0(%a: f16, %col: i64, %c: f16):
    %0 = linalg.index 0 : index
    %row = arith.index_cast %0 : index to i64
    %1 = arith.subi %row, %col : i64
    %2 = math.absi %1 : i64
    %3 = arith.sitofp %2 : i64 to f16
    %4 = arith.mulf %a, %3 : f16
    linalg.yield %4 : f16
  } -> tensor<64x128xf16>
  %twice = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%whole : tensor<64x128xf16>) outs(%eb : tensor<64x128xf16>) {
  ^bb0(%a: f16, %c: f16):
    %0 = arith.addf %a, %a : f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %x = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %bias, %twice : tensor<64x128xf32>, tensor<64x128xf16>, tensor<64x128xf16>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f16, %d: f16, %c: f32):
    %0 = arith.extf %b : f16 to f32
    %1 = arith.addf %a, %0 : f32
    %2 = arith.extf %d : f16 to f32
    %3 = arith.addf %1, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64x128xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x128xf32>) outs(%fl : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<64x128xf32>, tensor<64xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x128xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<64x128xf32>) outs(%fz : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.addf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %sum : tensor<64x128xf32>, tensor<64xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %0 = arith.divf %a, %b : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Heads of one tensor are read where they lie: the transposes are erased. Two queries'
// heads share one of the keys. The result is written where the next op wants it.
// CHECK-LABEL: @heads(
// CHECK-SAME:  %[[QKV:.*]]: tensor<64x8x32xbf16>, %[[K:.*]]: tensor<2x64x32xbf16>, %[[V:.*]]: tensor<2x64x32xbf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[DEST:.*]] = tensor.empty() : tensor<64x128xbf16>
// CHECK:       %[[PART:.*]] = tensor.expand_shape %[[DEST]] {{.*}}: tensor<64x128xbf16> into tensor<64x2x2x32xbf16>
// CHECK:       %[[Q:.*]] = tensor.expand_shape %{{.*}} : tensor<64x4x32xbf16> into tensor<64x2x2x32xbf16>
// CHECK:       linalg.generic {{.*}} ins(%[[Q]], %[[K]] : tensor<64x2x2x32xbf16>, tensor<2x64x32xbf16>)
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %[[V]] : tensor<2x2x64x64xf32>, tensor<2x64x32xbf16>)
// CHECK:       linalg.generic {{.*}} outs(%[[PART]] : tensor<64x2x2x32xbf16>) {{.*}} {alcop.chain = {role = "result"}}
// CHECK:       tensor.collapse_shape %{{.*}} {{.*}}: tensor<64x2x2x32xbf16> into tensor<64x128xbf16>
#id = affine_map<(h, m, n) -> (h, m, n)>
#row = affine_map<(h, m, n) -> (h, m)>
func.func @heads(%qkv: tensor<64x8x32xbf16>, %k: tensor<2x64x32xbf16>, %v: tensor<2x64x32xbf16>) -> tensor<64x128xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %sq = tensor.extract_slice %qkv[0, 0, 0] [64, 4, 32] [1, 1, 1] : tensor<64x8x32xbf16> to tensor<64x4x32xbf16>
  %eq = tensor.empty() : tensor<4x64x32xbf16>
  %q = linalg.transpose ins(%sq : tensor<64x4x32xbf16>) outs(%eq : tensor<4x64x32xbf16>) permutation = [1, 0, 2]
  %ek = tensor.empty() : tensor<2x2x64x32xbf16>
  %bk = linalg.broadcast ins(%k : tensor<2x64x32xbf16>) outs(%ek : tensor<2x2x64x32xbf16>) dimensions = [1]
  %bv = linalg.broadcast ins(%v : tensor<2x64x32xbf16>) outs(%ek : tensor<2x2x64x32xbf16>) dimensions = [1]
  %ck = tensor.collapse_shape %bk [[0, 1], [2], [3]] : tensor<2x2x64x32xbf16> into tensor<4x64x32xbf16>
  %cv = tensor.collapse_shape %bv [[0, 1], [2], [3]] : tensor<2x2x64x32xbf16> into tensor<4x64x32xbf16>
  %et = tensor.empty() : tensor<4x32x64xbf16>
  %kt = linalg.transpose ins(%ck : tensor<4x64x32xbf16>) outs(%et : tensor<4x32x64xbf16>) permutation = [0, 2, 1]
  %e = tensor.empty() : tensor<4x64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x64x32xbf16>, tensor<4x32x64xbf16>) outs(%z : tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %er = tensor.empty() : tensor<4x64xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<4x64xf32>) -> tensor<4x64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<4x64x64xf32>) outs(%fl : tensor<4x64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maxnumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<4x64xf32>
  %ep = tensor.empty() : tensor<4x64x64xbf16>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %max : tensor<4x64x64xf32>, tensor<4x64xf32>) outs(%ep : tensor<4x64x64xbf16>) {
  ^bb0(%a: f32, %b: f32, %c: bf16):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp2 %0 : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  } -> tensor<4x64x64xbf16>
  %eo = tensor.empty() : tensor<4x64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %o = linalg.batch_matmul ins(%p, %cv : tensor<4x64x64xbf16>, tensor<4x64x32xbf16>) outs(%zo : tensor<4x64x32xf32>) -> tensor<4x64x32xf32>
  %en = tensor.empty() : tensor<4x64x32xbf16>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%o : tensor<4x64x32xf32>) outs(%en : tensor<4x64x32xbf16>) {
  ^bb0(%a: f32, %c: bf16):
    %0 = arith.truncf %a : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<4x64x32xbf16>
  %eu = tensor.empty() : tensor<64x4x32xbf16>
  %u = linalg.transpose ins(%n : tensor<4x64x32xbf16>) outs(%eu : tensor<64x4x32xbf16>) permutation = [1, 0, 2]
  %r = tensor.collapse_shape %u [[0], [1, 2]] : tensor<64x4x32xbf16> into tensor<64x128xbf16>
  return %r : tensor<64x128xbf16>
}

// -----

// Two contractions without reductions between them are left unchanged.
// CHECK-LABEL: @no_reduction(
// CHECK-NOT:   scf.execute_region
func.func @no_reduction(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>, %d: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %s = linalg.matmul ins(%a, %b : tensor<64x32xf16>, tensor<32x64xf16>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  %v = tensor.empty() : tensor<64x32xf32>
  %o = linalg.matmul ins(%s, %v : tensor<64x64xf32>, tensor<64x32xf32>) outs(%d : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}
