// RUN: alcop-opt %s --alcop-launch-loops --split-input-file --verify-diagnostics | FileCheck %s

// Nothing here becomes a kernel.
// CHECK-NOT: gpu.launch

func.func @tensors(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @+1 {{'linalg.exp' is left unchanged: works on tensors, expected memrefs: bufferize first}}
  %0 = linalg.exp ins(%a : tensor<8xf32>) outs(%b : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The reason is an attribute as well, unless a pass before gave another.
// CHECK-LABEL: @softmax
// CHECK:       linalg.softmax {alcop.reason = "is not a loop nest: expected an op with indexing maps"}
// CHECK:       linalg.softmax {alcop.reason = "is odd"}
func.func @softmax(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  // expected-remark @+1 {{'linalg.softmax' is left unchanged: is not a loop nest: expected an op with indexing maps}}
  linalg.softmax dimension(1) ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)
  // expected-remark @+1 {{'linalg.softmax' is left unchanged: is not a loop nest: expected an op with indexing maps}}
  linalg.softmax {alcop.reason = "is odd"} dimension(1) ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)
  return
}

// -----

func.func @space(%a: memref<8xf32, 3>, %b: memref<8xf32>) {
  // expected-remark @+1 {{'linalg.exp' is left unchanged: uses memref<8xf32, 3>, expected no memory space}}
  linalg.exp ins(%a : memref<8xf32, 3>) outs(%b : memref<8xf32>)
  return
}

// -----

// The sum would be read while it is made.
func.func @in_place_sum(%a: memref<8x8xf32>) {
  %column = memref.subview %a[0, 0] [8, 1] [1, 1] : memref<8x8xf32> to memref<8xf32, strided<[8]>>
  // expected-remark @+1 {{'linalg.reduce' is left unchanged: reduces into a memref that is also an input, expected another output}}
  linalg.reduce { arith.addf } ins(%a : memref<8x8xf32>) outs(%column : memref<8xf32, strided<[8]>>) dimensions = [1]
  return
}

// -----

func.func @writes_along_a_diagonal(%a: memref<4x4xf32>, %b: memref<7xf32>) {
  // expected-remark @+1 {{'linalg.generic' is left unchanged: writes at (d0, d1) -> (d0 + d1), expected loops only}}
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i + j)>],
    iterator_types = ["reduction", "reduction"]
  } ins(%a : memref<4x4xf32>) outs(%b : memref<7xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

func.func @outputs_of_two_shapes(%a: memref<4x4xf32>, %b: memref<4xf32>) {
  // expected-remark @+1 {{'linalg.generic' is left unchanged: indexes its outputs by different loops, expected the same}}
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } outs(%a, %b : memref<4x4xf32>, memref<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %x, %0 : f32, f32
  }
  return
}

// -----

func.func @divided(%a: memref<?xf32>, %b: memref<8xf32>) {
  // expected-remark @+1 {{'linalg.generic' is left unchanged: indexes by (d0) -> (d0 floordiv 2) with sizes known at run time: expected additions of loops, whose bounds are checked at launch}}
  linalg.generic {
    indexing_maps = [affine_map<(i) -> (i floordiv 2)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%a : memref<?xf32>) outs(%b : memref<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

// Its fill is folded into the mark: only alcop-tile-to-blocks knows what it starts from.
func.func @marked(%a: memref<32x32xf16>, %b: memref<32x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{'linalg.matmul' is left unchanged: is marked as a contraction: expected alcop-tile-to-blocks, which compiles it, to run before}}
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @parallel_loops(%a: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{'scf.parallel' is left unchanged: has other bounds, expected loops from 0 by steps of 1}}
  scf.parallel (%i) = (%c1) to (%n) step (%c1) {
    memref.store %zero, %a[%i] : memref<8xf32>
    scf.reduce
  }
  // expected-remark @+1 {{'scf.parallel' is left unchanged: reduces to values, expected stores to memrefs}}
  %0 = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %x = memref.load %a[%i] : memref<8xf32>
    scf.reduce(%x : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  memref.store %0, %a[%c0] : memref<8xf32>
  return
}

// -----

func.func @elements_that_nothing_computes_with(%a: memref<8xf8E4M3>, %b: memref<8xf32>) {
  // expected-remark @+1 {{'linalg.generic' is left unchanged: has f8E4M3 elements, expected one of f16, bf16, f8E4M3FN, f8E5M2, f32, f64, i1, i8, i16, i32, i64, index}}
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                  iterator_types = ["parallel"]}
      ins(%a : memref<8xf8E4M3>) outs(%b : memref<8xf32>) {
    ^bb0(%in: f8E4M3, %out: f32):
      %wide = arith.extf %in : f8E4M3 to f32
      linalg.yield %wide : f32
  }
  return
}
