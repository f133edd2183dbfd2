// RUN: alcop-opt %s --alcop-reinterpret-shapes --split-input-file | FileCheck %s

// CHECK-LABEL: @collapsed
// CHECK:       %[[W:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [128, 576], strides: [576, 1] : memref<128x3x3x64xf16> to memref<128x576xf16>
// CHECK:       memref.load %[[W]]
func.func @collapsed(%w: memref<128x3x3x64xf16>, %i: index) -> f16 {
  %m = memref.collapse_shape %w [[0], [1, 2, 3]] : memref<128x3x3x64xf16> into memref<128x576xf16>
  %v = memref.load %m[%i, %i] : memref<128x576xf16>
  return %v : f16
}

// -----

// Open sizes, gaps, an offset, and shared memory, whose indices are swizzled.
// CHECK-LABEL: @left
// CHECK-COUNT-4: memref.collapse_shape
#ws = #gpu.address_space<workgroup>
func.func @left(%a: memref<?x4x8xf16>, %b: memref<4x8x8xf16, strided<[128, 8, 1]>>,
                %c: memref<4x8x8xf16, strided<[64, 8, 1], offset: 8>>, %d: memref<4x8x8xf16, #ws>,
                %i: index) -> (f16, f16, f16, f16) {
  %p = memref.collapse_shape %a [[0], [1, 2]] : memref<?x4x8xf16> into memref<?x32xf16>
  %q = memref.collapse_shape %b [[0], [1, 2]] : memref<4x8x8xf16, strided<[128, 8, 1]>> into memref<4x64xf16, strided<[128, 1]>>
  %r = memref.collapse_shape %c [[0], [1, 2]] : memref<4x8x8xf16, strided<[64, 8, 1], offset: 8>> into memref<4x64xf16, strided<[64, 1], offset: 8>>
  %s = memref.collapse_shape %d [[0], [1, 2]] : memref<4x8x8xf16, #ws> into memref<4x64xf16, #ws>
  %e = memref.load %p[%i, %i] : memref<?x32xf16>
  %f = memref.load %q[%i, %i] : memref<4x64xf16, strided<[128, 1]>>
  %g = memref.load %r[%i, %i] : memref<4x64xf16, strided<[64, 1], offset: 8>>
  %h = memref.load %s[%i, %i] : memref<4x64xf16, #ws>
  return %e, %f, %g, %h : f16, f16, f16, f16
}
