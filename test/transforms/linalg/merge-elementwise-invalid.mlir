// RUN: alcop-opt %s --alcop-merge-elementwise=assume-noalias-args=true --split-input-file | FileCheck %s

// Another op reads the intermediate buffer.
// CHECK-LABEL: @needed
// CHECK:       linalg.exp
// CHECK-NEXT:  linalg.add
func.func @needed(%X: memref<8xf32>, %D: memref<8xf32>, %E: memref<8xf32>) {
  %T = memref.alloc() : memref<8xf32>
  linalg.exp ins(%X : memref<8xf32>) outs(%T : memref<8xf32>)
  linalg.add ins(%X, %T : memref<8xf32>, memref<8xf32>) outs(%D : memref<8xf32>)
  memref.copy %T, %E : memref<8xf32> to memref<8xf32>
  return
}

// -----

// A view of it may be read anywhere.
// CHECK-LABEL: @viewed
// CHECK:       linalg.exp
// CHECK-NEXT:  linalg.add
// CHECK-NEXT:  memref.copy
func.func @viewed(%X: memref<8xf32>, %D: memref<8xf32>, %E: memref<4xf32>) {
  %T = memref.alloc() : memref<8xf32>
  %V = memref.subview %T[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  linalg.exp ins(%X : memref<8xf32>) outs(%T : memref<8xf32>)
  linalg.add ins(%X, %T : memref<8xf32>, memref<8xf32>) outs(%D : memref<8xf32>)
  memref.copy %V, %E : memref<4xf32, strided<[1]>> to memref<4xf32>
  return
}

// -----

// The buffer between the ops is an argument: the caller sees it.
// CHECK-LABEL: @argument
// CHECK:       linalg.exp
// CHECK-NEXT:  linalg.add
func.func @argument(%X: memref<8xf32>, %T: memref<8xf32>, %D: memref<8xf32>) {
  linalg.exp ins(%X : memref<8xf32>) outs(%T : memref<8xf32>)
  linalg.add ins(%X, %T : memref<8xf32>, memref<8xf32>) outs(%D : memref<8xf32>)
  return
}

// -----

// What the first op reads is overwritten before the second.
// CHECK-LABEL: @input_written
// CHECK:       linalg.exp
// CHECK-NEXT:  memref.copy
// CHECK-NEXT:  linalg.sqrt
func.func @input_written(%X: memref<8xf32>, %Y: memref<8xf32>, %D: memref<8xf32>) {
  %T = memref.alloc() : memref<8xf32>
  linalg.exp ins(%X : memref<8xf32>) outs(%T : memref<8xf32>)
  memref.copy %Y, %X : memref<8xf32> to memref<8xf32>
  linalg.sqrt ins(%T : memref<8xf32>) outs(%D : memref<8xf32>)
  return
}

// -----

// The second op overwrites what the first reads, at another element.
// CHECK-LABEL: @overwrites_input
// CHECK:       linalg.exp
// CHECK-NEXT:  linalg.transpose
func.func @overwrites_input(%X: memref<8x8xf32>) {
  %T = memref.alloc() : memref<8x8xf32>
  linalg.exp ins(%X : memref<8x8xf32>) outs(%T : memref<8x8xf32>)
  linalg.transpose ins(%T : memref<8x8xf32>) outs(%X : memref<8x8xf32>) permutation = [1, 0]
  return
}

// -----

// Computed once per element of a vector, not once per element of a matrix.
// CHECK-LABEL: @costly
// CHECK:       linalg.exp
// CHECK-NEXT:  linalg.broadcast
func.func @costly(%X: memref<8xf32>, %D: memref<4x8xf32>) {
  %T = memref.alloc() : memref<8xf32>
  linalg.exp ins(%X : memref<8xf32>) outs(%T : memref<8xf32>)
  linalg.broadcast ins(%T : memref<8xf32>) outs(%D : memref<4x8xf32>) dimensions = [0]
  return
}

// -----

// A sum is not element-wise.
// CHECK-LABEL: @sum
// CHECK:       linalg.exp
// CHECK-NEXT:  linalg.reduce
func.func @sum(%X: memref<4x8xf32>, %D: memref<8xf32>) {
  %T = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%X : memref<4x8xf32>) outs(%T : memref<4x8xf32>)
  linalg.reduce { arith.addf } ins(%T : memref<4x8xf32>) outs(%D : memref<8xf32>) dimensions = [0]
  return
}

// -----

// The first op adds to what the buffer held before.
// CHECK-LABEL: @accumulates
// CHECK:       linalg.generic
// CHECK:       linalg.exp
#i = affine_map<(i) -> (i)>
func.func @accumulates(%X: memref<8xf32>, %D: memref<8xf32>) {
  %T = memref.alloc() : memref<8xf32>
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%X : memref<8xf32>) outs(%T : memref<8xf32>) {
  ^bb0(%x: f32, %t: f32):
    %s = arith.addf %x, %t : f32
    linalg.yield %s : f32
  }
  linalg.exp ins(%T : memref<8xf32>) outs(%D : memref<8xf32>)
  return
}

// -----

// Both could be epilogues, each of a contraction of its own, of 16 bits between them.
// CHECK-LABEL: @of_two_contractions
// CHECK:       linalg.matmul
// CHECK:       linalg.matmul
// CHECK:       linalg.generic {{.*}} outs(%[[G:.*]] : memref<64x32xf16>)
// CHECK:       linalg.generic {{.*}} outs(%[[U:.*]] : memref<64x32xf16>)
// CHECK:       linalg.generic {{.*}} ins(%[[G]], %[[U]] : memref<64x32xf16>, memref<64x32xf16>)
#all = affine_map<(m, n) -> (m, n)>
func.func @of_two_contractions(%x: memref<64x16xf16>, %w: memref<16x32xf16>, %v: memref<16x32xf16>, %y: memref<64x32xf16>) {
  %a = memref.alloc() : memref<64x32xf32>
  %b = memref.alloc() : memref<64x32xf32>
  %g = memref.alloc() : memref<64x32xf16>
  %u = memref.alloc() : memref<64x32xf16>
  linalg.matmul ins(%x, %w : memref<64x16xf16>, memref<16x32xf16>) outs(%a : memref<64x32xf32>)
  linalg.matmul ins(%x, %v : memref<64x16xf16>, memref<16x32xf16>) outs(%b : memref<64x32xf32>)
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%a : memref<64x32xf32>) outs(%g : memref<64x32xf16>) {
  ^bb0(%s: f32, %o: f16):
    %e = math.exp %s : f32
    %t = arith.truncf %e : f32 to f16
    linalg.yield %t : f16
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%b : memref<64x32xf32>) outs(%u : memref<64x32xf16>) {
  ^bb0(%s: f32, %o: f16):
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  }
  linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%g, %u : memref<64x32xf16>, memref<64x32xf16>) outs(%y : memref<64x32xf16>) {
  ^bb0(%s: f16, %t: f16, %o: f16):
    %p = arith.mulf %s, %t : f16
    linalg.yield %p : f16
  }
  return
}

// -----

// The contractions write rows of images that element-wise ops read pixel by pixel.
// CHECK-LABEL: @of_two_contractions_of_images
// CHECK:       linalg.matmul
// CHECK:       linalg.matmul
// CHECK:       linalg.generic {{.*}} outs(%[[G:.*]] : memref<4x16x32xf16>)
// CHECK:       linalg.generic {{.*}} outs(%[[U:.*]] : memref<4x16x32xf16>)
// CHECK:       linalg.generic {{.*}} ins(%[[G]], %[[U]] : memref<4x16x32xf16>, memref<4x16x32xf16>)
#pixels = affine_map<(h, w, c) -> (h, w, c)>
func.func @of_two_contractions_of_images(%x: memref<64x16xf16>, %w: memref<16x32xf16>, %v: memref<16x32xf16>, %y: memref<4x16x32xf16>) {
  %a = memref.alloc() : memref<4x16x32xf32>
  %b = memref.alloc() : memref<4x16x32xf32>
  %g = memref.alloc() : memref<4x16x32xf16>
  %u = memref.alloc() : memref<4x16x32xf16>
  %r = memref.collapse_shape %a [[0, 1], [2]] : memref<4x16x32xf32> into memref<64x32xf32>
  %q = memref.collapse_shape %b [[0, 1], [2]] : memref<4x16x32xf32> into memref<64x32xf32>
  linalg.matmul ins(%x, %w : memref<64x16xf16>, memref<16x32xf16>) outs(%r : memref<64x32xf32>)
  linalg.matmul ins(%x, %v : memref<64x16xf16>, memref<16x32xf16>) outs(%q : memref<64x32xf32>)
  linalg.generic {indexing_maps = [#pixels, #pixels], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : memref<4x16x32xf32>) outs(%g : memref<4x16x32xf16>) {
  ^bb0(%s: f32, %o: f16):
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  }
  linalg.generic {indexing_maps = [#pixels, #pixels], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b : memref<4x16x32xf32>) outs(%u : memref<4x16x32xf16>) {
  ^bb0(%s: f32, %o: f16):
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  }
  linalg.generic {indexing_maps = [#pixels, #pixels, #pixels], iterator_types = ["parallel", "parallel", "parallel"]} ins(%g, %u : memref<4x16x32xf16>, memref<4x16x32xf16>) outs(%y : memref<4x16x32xf16>) {
  ^bb0(%s: f16, %t: f16, %o: f16):
    %p = arith.addf %s, %t : f16
    linalg.yield %p : f16
  }
  return
}
