// RUN: alcop-opt %s --alcop-decompose-softmax --alcop-group-chains --split-input-file | FileCheck %s

// linalg.softmax is its reductions and element-wise ops, and so one chain.
// CHECK-LABEL: @softmax(
// CHECK-NOT:   linalg.
// CHECK:       scf.execute_region
// CHECK:         role = "scores"
// CHECK:         role = "maximum"
// CHECK:         role = "weights"
// CHECK:         role = "total"
// CHECK:         role = "contracted"
// CHECK:         role = "result"{{.*}}
#id = affine_map<(m, n) -> (m, n)>
func.func @softmax(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// How many columns a row sees is read: a number of 64 bits becomes one of 32, and the
// largest or least of them where it is not. No column has these.
// CHECK-LABEL: @lengths(
// CHECK-SAME:  %[[L:[^:]*]]: tensor<64xi64>)
// CHECK:       linalg.generic {{.*}} ins(%[[L]], %{{.*}} {alcop.chain = {role = "elements"}}
// CHECK-NEXT:  ^bb0(%[[LENGTH:.*]]: i64, %[[S:.*]]: f32, %{{.*}}: f32):
// CHECK:         %[[COLUMN:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:         %[[LEAST:.*]] = arith.constant -2147483648 : i64
// CHECK:         %[[CUT:.*]] = arith.maxsi %[[LENGTH]], %[[LEAST]]
// CHECK:         %[[MOST:.*]] = arith.constant 2147483647 : i64
// CHECK:         %[[WITHIN:.*]] = arith.minsi %[[CUT]], %[[MOST]]
// CHECK:         %[[WORD:.*]] = arith.trunci %[[WITHIN]] : i64 to i32
// CHECK:         %[[SEES:.*]] = arith.cmpi slt, %[[COLUMN]], %[[WORD]] : i32
// CHECK:         arith.select %[[SEES]], %[[S]]
#id = affine_map<(m, n) -> (m, n)>
func.func @lengths(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<64xi64>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<64xi64>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: i64, %c: f32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %sees = arith.cmpi slt, %n, %b : i64
    %y = arith.select %sees, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// What is added to a number of 64 bits is computed in these.
// CHECK-LABEL: @cached(
// CHECK:       role = "elements"
// CHECK-NEXT:  ^bb0(%[[BEFORE:.*]]: i64,
// CHECK:         %[[ROW:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK:         arith.addi %[[BEFORE]], %[[ROW]] : i64
// CHECK:         arith.trunci
// CHECK:         arith.cmpi sle, %{{.*}} : i32
#id = affine_map<(m, n) -> (m, n)>
func.func @cached(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<64xi64>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<64xi64>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: i64, %c: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %before = arith.index_cast %b : i64 to index
    %m = arith.addi %before, %i : index
    %sees = arith.cmpi sle, %j, %m : index
    %y = arith.select %sees, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Fewer bits are exact in 32.
// CHECK-LABEL: @bytes(
// CHECK:       role = "elements"
// CHECK-NEXT:  ^bb0(%[[BYTE:.*]]: i8,
// CHECK:         %[[WORD:.*]] = arith.extsi %[[BYTE]] : i8 to i32
// CHECK:         arith.cmpi ne, %[[WORD]], %{{.*}} : i32
#id = affine_map<(m, n) -> (m, n)>
func.func @bytes(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<128xi8>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<128xi8>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: i8, %c: f32):
    %none = arith.constant 0 : i8
    %sees = arith.cmpi ne, %b, %none : i8
    %y = arith.select %sees, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Two numbers of 64 bits are compared as they are.
// CHECK-LABEL: @segments(
// CHECK:       role = "elements"
// CHECK:         arith.cmpi eq, %{{.*}}, %{{.*}} : i64
#id = affine_map<(m, n) -> (m, n)>
func.func @segments(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<64xi64>, %of_keys: tensor<128xi64>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask, %of_keys : tensor<64x128xf32>, tensor<64xi64>, tensor<128xi64>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: i64, %d: i64, %c: f32):
    %sees = arith.cmpi eq, %b, %d : i64
    %y = arith.select %sees, %a, %low : f32
    linalg.yield %y : f32
  } -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// What all rows share is computed again of what it was made of: each tile has one row.
// CHECK-LABEL: @padding(
// CHECK-SAME:  %[[KEEP:[^ ]*]]: tensor<128xf16>
// CHECK-NOT:   linalg.
// CHECK:       scf.execute_region
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %[[KEEP]] : tensor<64x128xf32>, tensor<128xf16>) {{.*}} {alcop.chain = {role = "elements"}}
// CHECK:           arith.subf
// CHECK:           arith.mulf
// CHECK:           arith.addf
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
func.func @padding(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %keep: tensor<128xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f16
  %least = arith.constant -65504.0 : f16
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ec = tensor.empty() : tensor<128xf16>
  %lost = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%keep : tensor<128xf16>) outs(%ec : tensor<128xf16>) {
  ^bb0(%a: f16, %c: f16):
    %0 = arith.subf %one, %a : f16
    %1 = arith.mulf %0, %least : f16
    linalg.yield %1 : f16
  } -> tensor<128xf16>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %lost : tensor<64x128xf32>, tensor<128xf16>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f16, %c: f32):
    %0 = arith.extf %b : f16 to f32
    %1 = arith.addf %a, %0 : f32
    linalg.yield %1 : f32
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
