// RUN: alcop-opt %s --alcop-fold-constants --split-input-file --mlir-print-local-scope | FileCheck %s

// A transpose.
// CHECK:       memref.global "private" constant @copied_0 : memref<3x2x1xi32> = dense<{{\[\[\[}}1], [4]], {{\[\[}}2], [5]], {{\[\[}}3], [6]]]>
// CHECK-LABEL: @transposed
// CHECK-NEXT:  %[[T:.*]] = memref.get_global @copied_0
// CHECK-NEXT:  memref.copy %[[T]], %arg0
// CHECK-NEXT:  return
memref.global "private" constant @w : memref<1x2x3xi32> = dense<[[[1, 2, 3], [4, 5, 6]]]>
func.func @transposed(%out: memref<3x2x1xi32>) {
  %w = memref.get_global @w : memref<1x2x3xi32>
  %t = memref.alloc() : memref<3x2x1xi32>
  linalg.transpose ins(%w : memref<1x2x3xi32>) outs(%t : memref<3x2x1xi32>) permutation = [2, 1, 0]
  memref.copy %t, %out : memref<3x2x1xi32> to memref<3x2x1xi32>
  memref.dealloc %t : memref<3x2x1xi32>
  return
}

// -----

// Every other column, backwards, into a buffer of zeros; and a copy of that, collapsed.
// CHECK:       memref.global "private" constant @copied_2 : memref<6xi32> = dense<[0, 3, 1, 0, 6, 4]>
// CHECK:       memref.global "private" constant @copied_1 : memref<2x3xi32> = dense<{{\[\[}}0, 3, 1], [0, 6, 4]]>
// CHECK-LABEL: @parts
// CHECK:       %[[A:.*]] = memref.get_global @copied_1
// CHECK:       %[[B:.*]] = memref.get_global @copied_2
// CHECK-NOT:   linalg
// CHECK:       memref.copy %[[A]], %arg0
// CHECK:       memref.copy %[[B]], %arg1
memref.global "private" constant @copied_0 : memref<2x3xi32> = dense<[[1, 2, 3], [4, 5, 6]]>
func.func @parts(%out: memref<2x3xi32>, %row: memref<6xi32>) {
  %zero = arith.constant 0 : i32
  %w = memref.get_global @copied_0 : memref<2x3xi32>
  %s = memref.subview %w[0, 0] [2, 2] [1, 2] : memref<2x3xi32> to memref<2x2xi32, strided<[3, 2]>>
  %t = memref.alloc() : memref<2x3xi32>
  linalg.fill ins(%zero : i32) outs(%t : memref<2x3xi32>)
  %p = memref.subview %t[0, 1] [2, 2] [1, 1] : memref<2x3xi32> to memref<2x2xi32, strided<[3, 1], offset: 1>>
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, -j + 1)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%s : memref<2x2xi32, strided<[3, 2]>>) outs(%p : memref<2x2xi32, strided<[3, 1], offset: 1>>) {
  ^bb0(%a: i32, %b: i32):
    linalg.yield %a : i32
  }
  %c = memref.collapse_shape %t [[0, 1]] : memref<2x3xi32> into memref<6xi32>
  %u = memref.alloc() : memref<6xi32>
  memref.copy %c, %u : memref<6xi32> to memref<6xi32>
  memref.copy %t, %out : memref<2x3xi32> to memref<2x3xi32>
  memref.copy %u, %row : memref<6xi32> to memref<6xi32>
  return
}

// -----

// Not of what is computed, written later or in part only, or no constant.
// CHECK-NOT:   @copied
// CHECK-LABEL: @unchanged
// CHECK-COUNT-7: linalg
memref.global "private" constant @w : memref<2x3xi32> = dense<[[1, 2, 3], [4, 5, 6]]>
memref.global "private" @v : memref<2x3xi32> = dense<[[1, 2, 3], [4, 5, 6]]>
func.func @unchanged(%out: memref<2x3xi32>) {
  %zero = arith.constant 0 : i32
  %w = memref.get_global @w : memref<2x3xi32>
  %v = memref.get_global @v : memref<2x3xi32>
  %computed = memref.alloc() : memref<2x3xi32>
  linalg.add ins(%w, %w : memref<2x3xi32>, memref<2x3xi32>) outs(%computed : memref<2x3xi32>)
  %later = memref.alloc() : memref<2x3xi32>
  linalg.copy ins(%w : memref<2x3xi32>) outs(%later : memref<2x3xi32>)
  linalg.copy ins(%later : memref<2x3xi32>) outs(%out : memref<2x3xi32>)
  linalg.fill ins(%zero : i32) outs(%later : memref<2x3xi32>)
  %part = memref.alloc() : memref<3x3xi32>
  %p = memref.subview %part[0, 0] [2, 3] [1, 1] : memref<3x3xi32> to memref<2x3xi32, strided<[3, 1]>>
  linalg.copy ins(%w : memref<2x3xi32>) outs(%p : memref<2x3xi32, strided<[3, 1]>>)
  %other = memref.alloc() : memref<2x3xi32>
  linalg.copy ins(%v : memref<2x3xi32>) outs(%other : memref<2x3xi32>)
  %passed = memref.alloc() : memref<2x3xi32>
  linalg.copy ins(%w : memref<2x3xi32>) outs(%passed : memref<2x3xi32>)
  func.call @use(%passed) : (memref<2x3xi32>) -> ()
  return
}
func.func private @use(memref<2x3xi32>)
