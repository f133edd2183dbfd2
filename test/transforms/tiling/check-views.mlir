// RUN: alcop-opt %s --alcop-check-views --canonicalize --cse --split-input-file | FileCheck %s

// Offsets that are computed may be negative; ends may lie behind the buffer. What is
// sure is not asserted.
// CHECK-LABEL: func.func @computed(
// CHECK-SAME:    %[[A:.*]]: memref<?x?xf16>, %[[B:.*]]: memref<?x24xf16>, %[[C:.*]]: memref<?x24xf32>)
// CHECK-DAG:     %[[M:.*]] = memref.dim %[[C]], %c0
// CHECK-DAG:     %[[K:.*]] = memref.dim %[[B]], %c0
// CHECK-DAG:     %[[W:.*]] = memref.dim %[[A]], %c1
// CHECK-DAG:     %[[AT:.*]] = arith.subi %[[W]], %[[K]]
// CHECK-DAG:     %[[H:.*]] = memref.dim %[[A]], %c0
// CHECK:         %[[ROWS:.*]] = arith.cmpi sle, %[[M]], %[[H]]
// CHECK:         cf.assert %[[ROWS]]
// CHECK:         %[[FIRST:.*]] = arith.cmpi sge, %[[AT]], %c0
// CHECK:         cf.assert %[[FIRST]]
// CHECK:         %[[END:.*]] = arith.addi %[[AT]], %c24
// CHECK:         %[[LAST:.*]] = arith.cmpi sle, %[[END]], %[[W]]
// CHECK:         cf.assert %[[LAST]]
// CHECK:         memref.subview %[[A]][0, %[[AT]]]
// CHECK:         %[[WIDE:.*]] = arith.cmpi sge, %[[W]], %c24
// CHECK-NOT:     cmpi
// CHECK:         cf.assert %[[WIDE]]
// CHECK-NEXT:    memref.subview %[[A]][0, 0]
func.func @computed(%A: memref<?x?xf16>, %B: memref<?x24xf16>, %C: memref<?x24xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %C, %c0 : memref<?x24xf32>
  %k = memref.dim %B, %c0 : memref<?x24xf16>
  %w = memref.dim %A, %c1 : memref<?x?xf16>
  %at = arith.subi %w, %k : index
  %a = memref.subview %A[0, %at] [%m, 24] [1, 1] : memref<?x?xf16> to memref<?x24xf16, strided<[?, 1], offset: ?>>
  linalg.exp ins(%a : memref<?x24xf16, strided<[?, 1], offset: ?>>) outs(%B : memref<?x24xf16>)
  %rows = memref.dim %A, %c0 : memref<?x?xf16>
  %whole = memref.subview %A[0, 0] [%rows, 24] [1, 1] : memref<?x?xf16> to memref<?x24xf16, strided<[?, 1]>>
  linalg.exp ins(%whole : memref<?x24xf16, strided<[?, 1]>>) outs(%B : memref<?x24xf16>)
  return
}

// -----

// Numbers in a buffer of open size; every other element, of which the last counts; a
// view of a view, whose size is that of the first.
// CHECK-LABEL: func.func @numbers(
// CHECK-SAME:    %[[X:.*]]: memref<?xf32>, %[[N:.*]]: memref<?xf32>)
// CHECK-DAG:     %[[SIZE:.*]] = memref.dim %[[N]], %c0
// CHECK-DAG:     %[[S:.*]] = memref.dim %[[X]], %c0
// CHECK:         arith.cmpi sge, %[[S]], %c12
// CHECK:         %[[LESS:.*]] = arith.subi %[[SIZE]], %c1
// CHECK:         %[[TWICE:.*]] = arith.muli %[[LESS]], %c2
// CHECK:         %[[END:.*]] = affine.apply
// CHECK:         arith.cmpi sle, %[[END]], %c8
func.func @numbers(%x: memref<?xf32>, %n: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %size = memref.dim %n, %c0 : memref<?xf32>
  %a = memref.subview %x[4] [8] [1] : memref<?xf32> to memref<8xf32, strided<[1], offset: 4>>
  %b = memref.subview %a[0] [%size] [2] : memref<8xf32, strided<[1], offset: 4>> to memref<?xf32, strided<[2], offset: 4>>
  linalg.exp ins(%b : memref<?xf32, strided<[2], offset: 4>>) outs(%n : memref<?xf32>)
  return
}

// -----

// What a dimension is split into has as many elements; what was divided from its size
// has not where a rest is left, which is not read.
// CHECK-LABEL: func.func @expanded(
// CHECK-SAME:    %[[X:.*]]: memref<?x32xf32>, %[[Y:.*]]: memref<?x?x32xf32>)
// CHECK-DAG:     %[[B:.*]] = memref.dim %[[Y]], %c0
// CHECK-DAG:     %[[S:.*]] = memref.dim %[[Y]], %c1
// CHECK-DAG:     %[[ALL:.*]] = memref.dim %[[X]], %c0
// CHECK-DAG:     %[[PRODUCT:.*]] = arith.muli %[[B]], %[[S]]
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[PRODUCT]], %[[ALL]]
// CHECK-NEXT:    cf.assert %[[SAME]]
// CHECK-NEXT:    memref.expand_shape
// CHECK-NOT:     cf.assert
func.func @expanded(%x: memref<?x32xf32>, %y: memref<?x?x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = memref.dim %y, %c0 : memref<?x?x32xf32>
  %s = memref.dim %y, %c1 : memref<?x?x32xf32>
  %v = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 32] : memref<?x32xf32> into memref<?x?x32xf32>
  linalg.exp ins(%v : memref<?x?x32xf32>) outs(%y : memref<?x?x32xf32>)
  %rows = memref.dim %x, %c0 : memref<?x32xf32>
  %quarter = arith.divui %rows, %c4 : index
  %q = memref.expand_shape %x [[0, 1], [2, 3]] output_shape [%quarter, 4, 8, 4] : memref<?x32xf32> into memref<?x4x8x4xf32>
  linalg.exp ins(%q : memref<?x4x8x4xf32>) outs(%q : memref<?x4x8x4xf32>)
  return
}

// -----

// Of sizes that are known the verifier checks it; a number that the host does not know
// is left to who gives it.
// CHECK-LABEL: func.func @left_alone(
// CHECK-NOT:     cf.assert
func.func @left_alone(%x: memref<64xf32>, %y: memref<?xf32>, %i: index, %n: memref<8xf32>) {
  %a = memref.subview %x[4] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: 4>>
  %b = memref.subview %y[%i] [8] [1] : memref<?xf32> to memref<8xf32, strided<[1], offset: ?>>
  linalg.exp ins(%a : memref<8xf32, strided<[1], offset: 4>>) outs(%n : memref<8xf32>)
  linalg.exp ins(%b : memref<8xf32, strided<[1], offset: ?>>) outs(%n : memref<8xf32>)
  return
}
