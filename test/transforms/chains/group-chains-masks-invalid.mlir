// RUN: alcop-opt %s --alcop-decompose-softmax --alcop-group-chains --split-input-file --verify-diagnostics

// Rows of keys are too long for registers, whose number is known; of values too.
#id = affine_map<(m, n) -> (m, n)>
func.func @long_keys(%q: tensor<64x272xf16>, %k: tensor<272x128xf16>, %v: tensor<128x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x272xf16>, tensor<272x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  // expected-remark @below {{not one kernel with the contraction that its weights are of: rows of 272 elements are multiplied, expected a multiple of 16 up to 256}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

#id = affine_map<(m, n) -> (m, n)>
func.func @long_values(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x272xf16>) -> tensor<64x272xf32> {
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
  %eo = tensor.empty() : tensor<64x272xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x272xf32>) -> tensor<64x272xf32>
  // expected-remark @below {{not one kernel with the contraction that its weights are of: rows of 272 elements are multiplied, expected a multiple of 16 up to 256}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x272xf16>) outs(%zo : tensor<64x272xf32>) -> tensor<64x272xf32>
  return %o : tensor<64x272xf32>
}

// -----

#id = affine_map<(m, n) -> (m, n)>
func.func @few_columns(%q: tensor<64x32xf16>, %k: tensor<32x8xf16>, %v: tensor<8x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x8xf16>) outs(%z : tensor<64x8xf32>) -> tensor<64x8xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  %ep = tensor.empty() : tensor<64x8xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x8xf32>) outs(%ep : tensor<64x8xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x8xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  // expected-remark @below {{not one kernel with the contraction that its weights are of: has 64 rows and 8 columns of weights, expected 16 columns at least: fewer move few bytes}}
  %o = linalg.matmul ins(%p, %v : tensor<64x8xf16>, tensor<8x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Neighbours of a mask's row are not those of a tile.
#id = affine_map<(m, n) -> (m, n)>
func.func @diagonal(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<191xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m + n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<191xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
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
  // expected-remark @below {{not one kernel with the contraction that its weights are of: 'linalg.generic' reads at (d0, d1) -> (d0 + d1)}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Of several masks one is read, and not the first.
#id = affine_map<(m, n) -> (m, n)>
func.func @third_of_masks(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<3x64x128xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (2, m, n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<3x64x128xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
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
  // expected-remark @below {{not one kernel with the contraction that its weights are of: 'linalg.generic' reads at (d0, d1) -> (2, d0, d1)}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

#id = affine_map<(m, n) -> (m, n)>
func.func @doubles(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<64x128xf64>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m, n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<64x128xf64>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f64, %c: f32):
    %0 = arith.truncf %b : f64 to f32
    %y = arith.addf %a, %0 : f32
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
  // expected-remark @below {{not one kernel with the contraction that its weights are of: f64 elements are combined with the scores}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Shapes that contradict are MLIR's own error, at the op that they meet in.
#id = affine_map<(m, n) -> (m, n)>
func.func @mask_of_other_length(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<64x64xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  // expected-error @below {{inferred input/output operand #1 has shape's dimension #1 to be 128, but found 64}}
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m, n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<64x64xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
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

#id = affine_map<(m, n) -> (m, n)>
func.func @mask_of_other_rank(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>, %mask: tensor<64x128x1xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  // expected-error @below {{expected operand #1 rank (3) to match the result rank of indexing_map (2)}}
  %x = linalg.generic {indexing_maps = [#id, affine_map<(m, n) -> (m, n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<64x128xf32>, tensor<64x128x1xf32>) outs(%e : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %y = arith.addf %a, %b : f32
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

#id = affine_map<(m, n) -> (m, n)>
func.func @values_of_other_length(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<64x32xf16>) -> tensor<64x32xf32> {
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
  // expected-error @below {{inferred input/output operand #1 has shape's dimension #0 to be 128, but found 64}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<64x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Fragments of rows are held in registers, so many as their length says.
#id = affine_map<(m, n) -> (m, n)>
func.func @open_rows(%q: tensor<64x?xf16>, %k: tensor<?x128xf16>, %v: tensor<128x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x?xf16>, tensor<?x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %ep = tensor.empty() : tensor<64x128xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x128xf32>) outs(%ep : tensor<64x128xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<64x128xf16>
  %eo = tensor.empty() : tensor<64x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<64x32xf32>) -> tensor<64x32xf32>
  // expected-remark @below {{not one kernel with the contraction that its weights are of: rows of a length that is known at run time only are multiplied}}
  %o = linalg.matmul ins(%p, %v : tensor<64x128xf16>, tensor<128x32xf16>) outs(%zo : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}

// -----

// Of rows side by side no tile code could store neighbours.
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m)>
func.func @rows_side_by_side(%q: tensor<64x32xf16>, %k: tensor<32x128xf16>, %v: tensor<128x32xf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = linalg.matmul ins(%q, %k : tensor<64x32xf16>, tensor<32x128xf16>) outs(%z : tensor<64x128xf32>) -> tensor<64x128xf32>
  %er = tensor.empty() : tensor<64xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<64x128xf32>) outs(%fl : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %0 = arith.maximumf %a, %c : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %max : tensor<64x128xf32>, tensor<64xf32>) outs(%e : tensor<64x128xf32>) {
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
  %eo = tensor.empty() : tensor<32x64xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<32x64xf32>) -> tensor<32x64xf32>
  // expected-remark @+1 {{not one kernel with the contraction that its weights are of: neighbours in its result are of several rows}}
  %o = linalg.generic {indexing_maps = [affine_map<(d, m, n) -> (n, d)>, affine_map<(d, m, n) -> (m, n)>, affine_map<(d, m, n) -> (d, m)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%v, %p : tensor<128x32xf16>, tensor<64x128xf16>) outs(%zo : tensor<32x64xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<32x64xf32>
  return %o : tensor<32x64xf32>
}
