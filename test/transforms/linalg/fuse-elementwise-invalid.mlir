// RUN: alcop-opt %s --alcop-fuse-elementwise=assume-noalias-args=true --split-input-file --verify-diagnostics
// RUN: alcop-opt %s --alcop-fuse-elementwise=assume-noalias-args=true --split-input-file | FileCheck %s
// CHECK-NOT: role

// The output is transposed.
#mn = affine_map<(m, n) -> (m, n)>
#nm = affine_map<(m, n) -> (n, m)>
func.func @transposed(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction: writes its output by other loops than it reads the contraction's: transposed, or broadcast}}
  linalg.generic {indexing_maps = [#mn, #nm], iterator_types = ["parallel", "parallel"]} ins(%C : memref<64x64xf32>) outs(%D : memref<64x64xf16>) {
  ^bb0(%x: f32, %o: f16):
    %h = arith.truncf %x : f32 to f16
    linalg.yield %h : f16
  }
  return
}

// -----

// A broadcast of the output has more loops.
func.func @broadcast(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>, %D: memref<2x64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  // expected-remark @+1 {{'linalg.broadcast' is not fused into the contraction: has 3 loops, expected the 2 of the contraction's output}}
  linalg.broadcast ins(%C : memref<64x64xf32>) outs(%D : memref<2x64x64xf32>) dimensions = [0]
  return
}

// -----

// Other blocks still read A.
func.func @writes_an_input(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf16>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf16>)
  // expected-remark @+1 {{'linalg.exp' is not fused into the contraction: writes memory that the contraction's kernel may use elsewhere (memref<64x64xf16> and memref<64x64xf16> may overlap)}}
  linalg.exp ins(%C : memref<64x64xf16>) outs(%A : memref<64x64xf16>)
  return
}

// -----

// The row that is read everywhere would be overwritten by one block.
func.func @writes_the_bias(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  // expected-remark @+1 {{may use elsewhere}}
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (0, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%C, %D : memref<64x64xf32>, memref<64x64xf32>) outs(%D : memref<64x64xf32>) {
  ^bb0(%x: f32, %b: f32, %o: f32):
    %s = arith.addf %x, %b : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// What comes in between writes what the op reads.
func.func @input_written(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %R: memref<64x64xf32>, %X: memref<64x64xf32>, %D: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  memref.copy %X, %R : memref<64x64xf32> to memref<64x64xf32>
  // expected-remark @+1 {{'linalg.add' is not fused into the contraction: 'memref.copy' between the two writes what it reads}}
  linalg.add ins(%C, %R : memref<64x64xf32>, memref<64x64xf32>) outs(%D : memref<64x64xf32>)
  return
}

// -----

// What comes in between reads what the op overwrites.
func.func @output_read(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %X: memref<64x64xf32>, %D: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  memref.copy %D, %X : memref<64x64xf32> to memref<64x64xf32>
  // expected-remark @+1 {{'linalg.exp' is not fused into the contraction: 'memref.copy' between the two uses what it writes}}
  linalg.exp ins(%C : memref<64x64xf32>) outs(%D : memref<64x64xf32>)
  return
}

// -----

// The output was overwritten: the op reads something else. No remark.
func.func @overwritten(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %X: memref<64x64xf32>, %D: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  memref.copy %X, %C : memref<64x64xf32> to memref<64x64xf32>
  linalg.exp ins(%C : memref<64x64xf32>) outs(%D : memref<64x64xf32>)
  return
}

// -----

// An op that may do anything ends the search.
func.func private @anything()
func.func @call(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  func.call @anything() : () -> ()
  linalg.exp ins(%C : memref<64x64xf32>) outs(%D : memref<64x64xf32>)
  return
}

// -----

// Elements that lanes do not move.
func.func @f64(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf64>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  // expected-remark @+1 {{'linalg.copy' is not fused into the contraction: has f64 elements, expected 8, 16 or 32 bits}}
  linalg.copy ins(%C : memref<64x64xf32>) outs(%D : memref<64x64xf64>)
  return
}

// -----

// A scalar that is not constant.
func.func @scalar(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>, %s: f32) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  // expected-remark @+1 {{uses a value computed outside of it that is not constant}}
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%C : memref<64x64xf32>) {
  ^bb0(%x: f32):
    %r = arith.mulf %x, %s : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// Nothing is summed: C is filled, not computed.
func.func @no_sum(%A: memref<64x0xf16>, %B: memref<0x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x0xf16>, memref<0x64xf16>) outs(%C : memref<64x64xf32>)
  // expected-remark @+1 {{'linalg.exp' is not fused into the contraction: the contraction reduces a loop of size 0}}
  linalg.exp ins(%C : memref<64x64xf32>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// The sum of each row would read squares of 32 bits; from what is stored it computes them.
#mn = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
func.func @squares(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %R: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %C = memref.alloc() : memref<64x32xf16>
  %S = memref.alloc() : memref<64x32xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x32xf16>) outs(%C : memref<64x32xf16>)
  // expected-remark @below {{'linalg.generic' is not fused into the contraction: the rows that read it are computed from less that is stored}}
  linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%C : memref<64x32xf16>) outs(%S : memref<64x32xf32>) {
  ^bb0(%x: f16, %o: f32):
    %w = arith.extf %x : f16 to f32
    %q = arith.mulf %w, %w : f32
    linalg.yield %q : f32
  }
  linalg.fill ins(%zero : f32) outs(%R : memref<64xf32>)
  linalg.generic {indexing_maps = [#mn, #m], iterator_types = ["parallel", "reduction"]} ins(%S : memref<64x32xf32>) outs(%R : memref<64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// A warp has the columns of one part only.
#mn = affine_map<(m, n) -> (m, n)>
#p0 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16)>
#p1 = affine_map<(m, n) -> (m, n floordiv 16 * 32 + n mod 16 + 16)>
func.func @half_a_turn(%A: memref<64x32xf16>, %B: memref<32x128xf16>, %D: memref<64x64xf32>) {
  %C = memref.alloc() : memref<64x128xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [32, 64, 32], warp = [32, 16], stages = [1, 1]}>} ins(%A, %B : memref<64x32xf16>, memref<32x128xf16>) outs(%C : memref<64x128xf32>)
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction: reads columns that 2 contractions have in turn: a warp has 16, expected a multiple of 32}}
  linalg.generic {indexing_maps = [#p0, #p1, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %C : memref<64x128xf32>, memref<64x128xf32>) outs(%D : memref<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// Groups of 8 columns are not those of a pair of fragments: no epilogue, no remark.
#mn = affine_map<(m, n) -> (m, n)>
#p0 = affine_map<(m, n) -> (m, n floordiv 8 * 16 + n mod 8)>
#p1 = affine_map<(m, n) -> (m, n floordiv 8 * 16 + n mod 8 + 8)>
func.func @other_groups(%A: memref<64x32xf16>, %B: memref<32x128xf16>, %D: memref<64x64xf32>) {
  %C = memref.alloc() : memref<64x128xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>, alcop.schedule = #alcop.schedule<{block = [32, 64, 32], warp = [32, 32], stages = [1, 1]}>} ins(%A, %B : memref<64x32xf16>, memref<32x128xf16>) outs(%C : memref<64x128xf32>)
  linalg.generic {indexing_maps = [#p0, #p1, #mn], iterator_types = ["parallel", "parallel"]} ins(%C, %C : memref<64x128xf32>, memref<64x128xf32>) outs(%D : memref<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  }
  return
}

// -----

// Two parts of each row, as where halves of features are turned into each other. What
// reduces rows, or adds up parts of K, is no epilogue anyway: no remark.
#mn = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
func.func @parts(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %D: memref<64x32xf32>, %E: memref<64xf32>) {
  %C = memref.alloc() : memref<64x64xf32>
  linalg.matmul {alcop.contraction = #alcop.contraction<{lhs = "mk", rhs = "kn", init = "zero"}>} ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>) outs(%C : memref<64x64xf32>)
  %l = memref.subview %C[0, 0] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1]>>
  %r = memref.subview %C[0, 32] [64, 32] [1, 1] : memref<64x64xf32> to memref<64x32xf32, strided<[64, 1], offset: 32>>
  // expected-remark @+1 {{'linalg.sub' is not fused into the contraction: reads a part, or other dimensions, of what the contraction makes, memref<64x32xf32, strided<[64, 1]>>, expected its rows and columns}}
  linalg.sub ins(%l, %r : memref<64x32xf32, strided<[64, 1]>>, memref<64x32xf32, strided<[64, 1], offset: 32>>) outs(%D : memref<64x32xf32>)
  linalg.reduce { arith.addf } ins(%l : memref<64x32xf32, strided<[64, 1]>>) outs(%E : memref<64xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%r : memref<64x32xf32, strided<[64, 1], offset: 32>>) outs(%D : memref<64x32xf32>) attrs = {alcop.added_parts} {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  }
  return
}
