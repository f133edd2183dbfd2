// RUN: alcop-opt %s --alcop-merge-paddings --split-input-file --mlir-print-local-scope | FileCheck %s

// Zeros around an image: one op, which asks of the dimensions that have any.
// CHECK-LABEL: @padded
// CHECK-SAME:  %[[X:.*]]: memref<2x5x3xf16>, %[[P:.*]]: memref<2x8x4xf16>
// CHECK:       %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NOT:   memref.subview
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%[[P]] : memref<2x8x4xf16>) {
// CHECK:         %[[N:.*]] = linalg.index 0
// CHECK-NEXT:    %[[W:.*]] = linalg.index 1
// CHECK-NEXT:    %[[C:.*]] = linalg.index 2
// CHECK:         %[[AT:.*]] = arith.subi %[[W]], %{{.*}}
// CHECK:         %[[INW:.*]] = arith.cmpi ult, %[[AT]]
// CHECK:         %[[INC:.*]] = arith.cmpi ult, %[[C]]
// CHECK:         %[[IN:.*]] = arith.andi %[[INW]], %[[INC]]
// CHECK-NEXT:    %[[V:.*]] = scf.if %[[IN]] -> (f16) {
// CHECK:           %[[L:.*]] = memref.load %[[X]][%[[N]], %[[AT]], %[[C]]]
// CHECK-NEXT:      scf.yield %[[L]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[ZERO]]
// CHECK:         linalg.yield %[[V]]
// CHECK-NOT:   memref.copy
func.func @padded(%x: memref<2x5x3xf16>, %p: memref<2x8x4xf16>) {
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%p : memref<2x8x4xf16>)
  %s = memref.subview %p[0, 1, 0] [2, 5, 3] [1, 1, 1] : memref<2x8x4xf16> to memref<2x5x3xf16, strided<[32, 4, 1], offset: 4>>
  memref.copy %x, %s : memref<2x5x3xf16> to memref<2x5x3xf16, strided<[32, 4, 1], offset: 4>>
  return
}

// -----

// In another order of dimensions, and converted.
// CHECK-LABEL: @turned
// CHECK-SAME:  %[[X:.*]]: memref<3x5xf32>
// CHECK-NOT:   linalg.fill
// CHECK:       linalg.generic
// CHECK:         %[[W:.*]] = linalg.index 0
// CHECK:         %[[C:.*]] = linalg.index 1
// CHECK:         scf.if
// CHECK:           %[[L:.*]] = memref.load %[[X]][%[[C]], %[[W]]]
// CHECK-NEXT:      %[[T:.*]] = arith.truncf %[[L]]
// CHECK-NEXT:      scf.yield %[[T]]
func.func @turned(%x: memref<3x5xf32>) -> memref<5x4xf16> {
  %one = arith.constant 1.0 : f16
  %p = memref.alloc() : memref<5x4xf16>
  linalg.fill ins(%one : f16) outs(%p : memref<5x4xf16>)
  %s = memref.subview %p[0, 0] [5, 3] [1, 1] : memref<5x4xf16> to memref<5x3xf16, strided<[4, 1]>>
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<3x5xf32>) outs(%s : memref<5x3xf16, strided<[4, 1]>>) {
  ^bb0(%a: f32, %b: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  }
  return %p : memref<5x4xf16>
}

// -----

// Sizes known at run time only: where part and buffer have one size, as the value that
// both are made with, nothing is asked of that dimension.
// CHECK-LABEL: @open_sizes
// CHECK-SAME:  %[[X:.*]]: memref<?x?xf16>, %[[N:.*]]: index, %[[W:.*]]: index, %[[M:.*]]: index
// CHECK-NOT:   linalg.fill
// CHECK:       linalg.generic
// CHECK:         %[[H:.*]] = linalg.index 0
// CHECK-NEXT:    %[[C:.*]] = linalg.index 1
// CHECK:         %[[AT:.*]] = arith.subi %[[C]], %{{.*}}
// CHECK-NEXT:    %[[IN:.*]] = arith.cmpi ult, %[[AT]], %[[W]]
// CHECK-NEXT:    scf.if %[[IN]]
// CHECK:           memref.load %[[X]][%[[H]], %[[AT]]]
func.func @open_sizes(%x: memref<?x?xf16>, %n: index, %w: index, %m: index) -> memref<?x?xf16> {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc(%n, %m) : memref<?x?xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<?x?xf16>)
  %s = memref.subview %p[0, 1] [%n, %w] [1, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1], offset: 1>>
  memref.copy %x, %s : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1], offset: 1>>
  return %p : memref<?x?xf16>
}

// -----

// Not where steps leave elements out, or what was filled is read.
// CHECK-LABEL: @unchanged
// CHECK-COUNT-2: linalg.fill
// CHECK-NOT:   linalg.index
func.func @unchanged(%x: memref<4xf16>, %p: memref<8xf16>, %q: memref<8xf16>) {
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%p : memref<8xf16>)
  %s = memref.subview %p[0] [4] [2] : memref<8xf16> to memref<4xf16, strided<[2]>>
  memref.copy %x, %s : memref<4xf16> to memref<4xf16, strided<[2]>>
  linalg.fill ins(%zero : f16) outs(%q : memref<8xf16>)
  memref.copy %q, %p : memref<8xf16> to memref<8xf16>
  %t = memref.subview %q[0] [4] [1] : memref<8xf16> to memref<4xf16, strided<[1]>>
  memref.copy %x, %t : memref<4xf16> to memref<4xf16, strided<[1]>>
  return
}

// -----

// A fill as bufferization makes it of `tensor.pad`, with numbers that nothing uses, and
// arithmetic on what is written into it.
// CHECK-LABEL: @padded
// CHECK-SAME:  %[[X:.*]]: memref<4x8xf32>, %[[P:.*]]: memref<6x8xf16>
// CHECK-NOT:   linalg.map
// CHECK:       linalg.generic {{.*}} outs(%[[P]] : memref<6x8xf16>)
// CHECK:         scf.if
// CHECK:           %[[E:.*]] = memref.load %[[X]]
// CHECK:           arith.truncf %[[E]] : f32 to f16
#all = affine_map<(m, n) -> (m, n)>
func.func @padded(%x: memref<4x8xf32>, %p: memref<6x8xf16>) {
  %low = arith.constant 0xFC00 : f16
  linalg.map outs(%p : memref<6x8xf16>)
    (%init: f16) {
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      linalg.yield %low : f16
    }
  %s = memref.subview %p[1, 0] [4, 8] [1, 1] : memref<6x8xf16> to memref<4x8xf16, strided<[8, 1], offset: 8>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x : memref<4x8xf32>) outs(%s : memref<4x8xf16, strided<[8, 1], offset: 8>>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  }
  return
}
