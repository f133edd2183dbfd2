// RUN: alcop-opt %s --alcop-raise-contractions --split-input-file --verify-diagnostics | FileCheck %s

// Nothing here is marked.
// CHECK-NOT: alcop.contraction

func.func @tensors(%a: tensor<32x32xf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  // expected-remark @+1 {{'linalg.matmul' is left unchanged: works on tensors, expected memrefs: bufferize first}}
  %0 = linalg.matmul ins(%a, %a : tensor<32x32xf16>, tensor<32x32xf16>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

func.func @integers(%a: memref<32x32xi32>) {
  // expected-remark @+1 {{'linalg.matmul' is left unchanged: has i32 inputs, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i8}}
  linalg.matmul ins(%a, %a : memref<32x32xi32>, memref<32x32xi32>) outs(%a : memref<32x32xi32>)
  return
}

// -----

func.func @double_sum(%a: memref<32x32xf16>, %c: memref<32x32xf64>) {
  // expected-remark @+1 {{'linalg.matmul' runs as a SIMT fallback: computes in f64, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i32: accumulators are f32}}
  linalg.matmul ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%c : memref<32x32xf64>)
  return
}

// -----

func.func @space(%a: memref<32x32xf16, 3>, %b: memref<32x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{has memref<32x32xf16, 3> in a memory space of its own, expected none}}
  linalg.matmul ins(%a, %b : memref<32x32xf16, 3>, memref<32x32xf16>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @gaps(%a: memref<32x32xf16, strided<[64, 2]>>, %b: memref<32x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{has the layout of memref<32x32xf16, strided<[64, 2]>>, expected rows without gaps}}
  linalg.matmul ins(%a, %b : memref<32x32xf16, strided<[64, 2]>>, memref<32x32xf16>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @offset(%a: memref<32x32xf16, strided<[32, 1], offset: 8>>, %b: memref<32x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{has an operand memref<32x32xf16, strided<[32, 1], offset: 8>>, expected no offset: alcop-drop-offsets drops that of an argument}}
  linalg.matmul ins(%a, %b : memref<32x32xf16, strided<[32, 1], offset: 8>>, memref<32x32xf16>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @batches(%a: memref<2x2x2x2x2x8x8xf16>, %c: memref<2x2x2x2x2x8x8xf32>) {
  // expected-remark @+1 {{'linalg.contract' runs as a SIMT fallback: has 5 batch loops, expected 4 at most}}
  linalg.contract indexing_maps = [affine_map<(a, b, c, d, e, m, n, k) -> (a, b, c, d, e, m, k)>, affine_map<(a, b, c, d, e, m, n, k) -> (a, c, b, d, e, k, n)>, affine_map<(a, b, c, d, e, m, n, k) -> (a, b, c, d, e, m, n)>]
    ins(%a, %a : memref<2x2x2x2x2x8x8xf16>, memref<2x2x2x2x2x8x8xf16>) outs(%c : memref<2x2x2x2x2x8x8xf32>)
  return
}

// -----

func.func @batch_innermost(%a: memref<32x32x2xf16>, %b: memref<2x32x32xf16>, %c: memref<2x32x32xf32>) {
  // expected-remark @+1 {{has the batch innermost, expected further out}}
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, k, b)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %b : memref<32x32x2xf16>, memref<2x32x32xf16>) outs(%c : memref<2x32x32xf32>)
  return
}

// -----

func.func @three_reductions(%a: memref<32x4x8x2xf16>, %b: memref<4x8x2x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{'linalg.contract' runs as a SIMT fallback: reduces 3 loops, expected one}}
  linalg.contract indexing_maps = [affine_map<(m, n, j, k, l) -> (m, j, k, l)>, affine_map<(m, n, j, k, l) -> (j, k, l, n)>, affine_map<(m, n, j, k, l) -> (m, n)>]
    ins(%a, %b : memref<32x4x8x2xf16>, memref<4x8x2x32xf16>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @dot(%a: memref<32xf16>, %c: memref<f32>) {
  // expected-remark @+1 {{'linalg.dot' runs as a SIMT fallback: has operands of rank 1, 1, 0, expected matrices}}
  linalg.dot ins(%a, %a : memref<32xf16>, memref<32xf16>) outs(%c : memref<f32>)
  return
}

// -----

func.func @strided_vector(%a: memref<32x32xf16>, %b: memref<32xf16, strided<[1], offset: ?>>, %c: memref<32xf32>) {
  // expected-remark @+1 {{'linalg.matvec' runs as a SIMT fallback: has an operand memref<32xf16, strided<[1], offset: ?>>, expected no offset: alcop-drop-offsets drops that of an argument}}
  linalg.matvec ins(%a, %b : memref<32x32xf16>, memref<32xf16, strided<[1], offset: ?>>) outs(%c : memref<32xf32>)
  return
}

// -----

// Of what nobody expects tensor cores to do nothing is said.
func.func @elementwise(%a: memref<32x32xf16>) {
  linalg.add ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%a : memref<32x32xf16>)
  return
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @bodies(%a: memref<32x32xf16>, %c: memref<32x32xf32>, %d: memref<32x32xf16>) {
  // expected-remark @+1 {{not a contraction: the body does not multiply its two inputs}}
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%d : memref<32x32xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %0 = arith.mulf %x, %x : f16
    %1 = arith.addf %z, %0 : f16
    linalg.yield %1 : f16
  }
  // expected-remark @+1 {{not a contraction: the body does not add to its output}}
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%d : memref<32x32xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %0 = arith.mulf %x, %y : f16
    linalg.yield %0 : f16
  }
  // expected-remark @+1 {{not a contraction: the body has 'arith.maximumf'}}
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%d : memref<32x32xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %0 = arith.mulf %x, %y : f16
    %1 = arith.maximumf %z, %0 : f16
    linalg.yield %1 : f16
  }
  // expected-remark @+1 {{rounds to f16, narrower than the output}}
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %0 = arith.mulf %x, %y : f16
    %1 = arith.truncf %z : f32 to f16
    %2 = arith.addf %1, %0 : f16
    %3 = arith.extf %2 : f16 to f32
    linalg.yield %3 : f32
  }
  // expected-remark @+1 {{computes in f64, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i32: accumulators are f32}}
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %0 = arith.extf %x : f16 to f64
    %1 = arith.extf %y : f16 to f64
    %2 = arith.extf %z : f32 to f64
    %3 = arith.mulf %0, %1 : f64
    %4 = arith.addf %2, %3 : f64
    %5 = arith.truncf %4 : f64 to f32
    linalg.yield %5 : f32
  }
  return
}

// -----

func.func @convolution(%a: memref<34x32xf16>, %b: memref<3x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{indexes an operand by (d0, d1, d2) -> (d0 + d2, d1), expected loops only}}
  linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m + k, n)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : memref<34x32xf16>, memref<3x32xf16>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: f16, %y: f16, %z: f32):
    %0 = arith.extf %x : f16 to f32
    %1 = arith.extf %y : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// -----

func.func @in_loop(%a: memref<32x32xf16>, %c: memref<32x32xf32>, %n: index) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    // expected-remark @+1 {{is inside 'scf.for', expected at the function's top level}}
    linalg.matmul ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>) outs(%c : memref<32x32xf32>)
  }
  return
}

// -----

// A word of 64 bits has no room for more positions.
func.func @long_window(%x: memref<1x80x16xf16>, %w: memref<1024x32xf16>, %y: memref<17x32xf32>) {
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [64], strides = [1],
    dilations = [1], low = [0], high = [0], groups = 1}>} : (memref<1x80x16xf16>) -> memref<17x1024xf16>
  // expected-remark @below {{has a window of 64 positions, all dimensions together, expected 63 at most}}
  linalg.matmul ins(%A, %w : memref<17x1024xf16>, memref<1024x32xf16>) outs(%y : memref<17x32xf32>)
  return
}

// -----

func.func @batch_inside(%t: memref<80x16xf16>, %i: memref<32x4xi32>, %w: memref<4x16x64xf16>, %y: memref<4x32x64xf32>) {
  %A = "alcop.take"(%t, %i) : (memref<80x16xf16>, memref<32x4xi32>) -> memref<32x4x16xf16>
  // expected-remark @below {{has a batch of rows of tables, expected it outermost}}
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%A, %w : memref<32x4x16xf16>, memref<4x16x64xf16>) outs(%y : memref<4x32x64xf32>)
  return
}

// -----

func.func @reduced_rows(%t: memref<80x16xf16>, %i: memref<32xi32>, %w: memref<32x64xf16>, %y: memref<16x64xf32>) {
  %A = "alcop.take"(%t, %i) : (memref<80x16xf16>, memref<32xi32>) -> memref<32x16xf16>
  // expected-remark @below {{reduces the rows of 'alcop.take', expected them kept}}
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%A, %w : memref<32x16xf16>, memref<32x64xf16>) outs(%y : memref<16x64xf32>)
  return
}

// -----

// Nothing is said of what has one input: threads share its rows.
func.func @sum(%A: memref<32x64xf32>, %C: memref<32xf32>) {
  linalg.reduce { arith.addf } ins(%A : memref<32x64xf32>) outs(%C : memref<32xf32>) dimensions = [1]
  return
}
