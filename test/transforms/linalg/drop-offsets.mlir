// RUN: alcop-opt %s --alcop-drop-offsets --split-input-file | FileCheck %s
// RUN: alcop-opt %s --alcop-drop-offsets --canonicalize --split-input-file \
// RUN:   | FileCheck %s --check-prefix=FOLDED

// Ops that take any layout use the argument itself, views a cast of it.
// CHECK-LABEL: func.func @at_run_time(
// CHECK-SAME:    %[[A:.*]]: memref<64x32xf16, strided<[?, 1]>> {alcop.alignment = 2 : i64}, %[[I:.*]]: index)
// CHECK:         %[[WHOLE:.*]] = memref.cast %[[A]] : memref<64x32xf16, strided<[?, 1]>> to memref<64x32xf16, strided<[?, 1], offset: ?>>
// CHECK:         memref.load %[[A]]
// CHECK:         memref.subview %[[WHOLE]]
// FOLDED-LABEL: func.func @at_run_time(
// FOLDED-NOT:    memref.cast
// FOLDED:        memref.subview %{{.*}}[8, 0] [16, 32] [1, 1] : memref<64x32xf16, strided<[?, 1]>> to memref<16x32xf16, strided<[?, 1], offset: ?>>
func.func @at_run_time(%A: memref<64x32xf16, strided<[?, 1], offset: ?>>, %i: index) {
  %x = memref.load %A[%i, %i] : memref<64x32xf16, strided<[?, 1], offset: ?>>
  %v = memref.subview %A[8, 0] [16, 32] [1, 1]
    : memref<64x32xf16, strided<[?, 1], offset: ?>>
    to memref<16x32xf16, strided<[?, 1], offset: ?>>
  memref.store %x, %v[%i, %i] : memref<16x32xf16, strided<[?, 1], offset: ?>>
  return
}

// -----

// Views of views begin where they begin, counted from the argument.
// CHECK-LABEL: func.func @constant(
// CHECK-SAME:    %[[A:.*]]: memref<64x32xf16, strided<[40, 1]>>
// CHECK:         %[[V:.*]] = memref.subview %[[A]][2, 8] [16, 16] [1, 1] : memref<64x32xf16, strided<[40, 1]>> to memref<16x16xf16, strided<[40, 1], offset: 88>>
// CHECK:         memref.subview %[[V]][1, 0] [8, 16] [1, 1] : memref<16x16xf16, strided<[40, 1], offset: 88>> to memref<8x16xf16, strided<[40, 1], offset: 128>>
// CHECK:         memref.cast %[[V]] : memref<16x16xf16, strided<[40, 1], offset: 88>> to memref<16x16xf16, strided<[40, 1], offset: ?>>
func.func @constant(%A: memref<64x32xf16, strided<[40, 1], offset: 24>>, %i: index) {
  %v = memref.subview %A[2, 8] [16, 16] [1, 1]
    : memref<64x32xf16, strided<[40, 1], offset: 24>>
    to memref<16x16xf16, strided<[40, 1], offset: 112>>
  %w = memref.subview %v[1, 0] [8, 16] [1, 1]
    : memref<16x16xf16, strided<[40, 1], offset: 112>>
    to memref<8x16xf16, strided<[40, 1], offset: 152>>
  %c = memref.cast %v : memref<16x16xf16, strided<[40, 1], offset: 112>>
    to memref<16x16xf16, strided<[40, 1], offset: ?>>
  %x = memref.load %w[%i, %i] : memref<8x16xf16, strided<[40, 1], offset: 152>>
  memref.store %x, %c[%i, %i] : memref<16x16xf16, strided<[40, 1], offset: ?>>
  return
}

// -----

// Strides that say no more than the sizes are left out, too.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %{{.*}}: memref<64x32xf16> {alcop.alignment = 2 : i64}, %{{.*}}: memref<?xf32> {alcop.alignment = 4 : i64})
func.func @plain(%A: memref<64x32xf16, strided<[32, 1], offset: ?>>,
                 %b: memref<?xf32, strided<[1], offset: 3>>) {
  return
}

// -----

// Arguments without an offset are left unchanged, and those that are no memrefs.
// CHECK-LABEL: func.func @nothing_to_do(
// CHECK-SAME:    %{{.*}}: memref<64x32xf16, strided<[40, 1]>>, %{{.*}}: memref<4x4xf16, #{{.*}}>, %{{.*}}: f32)
func.func @nothing_to_do(%A: memref<64x32xf16, strided<[40, 1]>>,
                         %t: memref<4x4xf16, affine_map<(i, j) -> (j, i)>>, %x: f32) {
  return
}

// -----

// An argument may begin anywhere if its offset, or the length or distance of its rows,
// is known at run time only; as its rows do if these are promised to be aligned; and
// as the user says. Other attributes are kept.
// CHECK-LABEL: func.func @beginnings(
// CHECK-SAME:    memref<?x?xi8> {alcop.alignment = 1 : i64},
// CHECK-SAME:    memref<4x8xf64, strided<[?, 1]>> {alcop.alignment = 8 : i64},
// CHECK-SAME:    memref<?x8xf16> {test.other},
// CHECK-SAME:    memref<?x?xf16> {alcop.row_alignment = 16 : i64},
// CHECK-SAME:    memref<4x8xf16> {alcop.alignment = 4 : i64, alcop.row_alignment = 4 : i64},
// CHECK-SAME:    memref<?xf16> {alcop.alignment = 16 : i64},
// CHECK-SAME:    memref<f32>)
func.func @beginnings(%a: memref<?x?xi8>, %b: memref<4x8xf64, strided<[?, 1]>>,
    %c: memref<?x8xf16> {test.other}, %d: memref<?x?xf16> {alcop.row_alignment = 16},
    %e: memref<4x8xf16, strided<[8, 1], offset: ?>> {alcop.row_alignment = 4},
    %f: memref<?xf16> {alcop.alignment = 16}, %g: memref<f32>) {
  return
}
