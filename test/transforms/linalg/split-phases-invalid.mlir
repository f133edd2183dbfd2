// RUN: alcop-opt %s --alcop-split-phases=assume-noalias-args --split-input-file --verify-diagnostics

func.func @unknown_filters_of_windows(%x: memref<?x8x32xf16>, %w: memref<3x32x?xf16>, %y: memref<?x17x?xf32>) {
  // expected-remark @below {{is not split into phases: adds to windows of its output, and a size of its filter is known at run time only}}
  linalg.generic {
    indexing_maps = [affine_map<(n, w, f, s, c) -> (n, w, c)>,
                     affine_map<(n, w, f, s, c) -> (s, c, f)>,
                     affine_map<(n, w, f, s, c) -> (n, w * 2 + s, f)>],
    iterator_types = ["parallel", "reduction", "parallel", "reduction", "reduction"]}
    ins(%x, %w : memref<?x8x32xf16>, memref<3x32x?xf16>) outs(%y : memref<?x17x?xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %m = arith.mulf %aw, %bw : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Both loops of a window belong to the image.
func.func @no_windows(%x: memref<4x8x3x32xf16>, %w: memref<32x16xf16>, %y: memref<4x17x16xf32>) {
  // expected-remark @below {{is not split into phases: adds to its output at indices that are no windows over an image}}
  linalg.generic {
    indexing_maps = [affine_map<(n, w, f, s, c) -> (n, w, s, c)>,
                     affine_map<(n, w, f, s, c) -> (c, f)>,
                     affine_map<(n, w, f, s, c) -> (n, w * 2 + s, f)>],
    iterator_types = ["parallel", "reduction", "parallel", "reduction", "reduction"]}
    ins(%x, %w : memref<4x8x3x32xf16>, memref<32x16xf16>) outs(%y : memref<4x17x16xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %m = arith.mulf %aw, %bw : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  return
}

// -----

func.func @unknown_filters(%x: memref<4x8x32xf16>, %w: memref<3x32x?xf16>, %y: memref<4x13x?xf32>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<4x15x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<4x15x32xf16>)
  %s = memref.subview %p[0, 0, 0] [4, 8, 32] [1, 2, 1] : memref<4x15x32xf16> to memref<4x8x32xf16, strided<[480, 64, 1]>>
  memref.copy %x, %s : memref<4x8x32xf16> to memref<4x8x32xf16, strided<[480, 64, 1]>>
  // expected-remark @below {{is not split into phases: its image is spread out, and a size of its filter is known at run time only}}
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%p, %w : memref<4x15x32xf16>, memref<3x32x?xf16>) outs(%y : memref<4x13x?xf32>)
  return
}

// -----

// How many outputs a phase has were a division of the size.
func.func @stride_of_unknown_size(%x: memref<4x?x32xf16>, %w: memref<3x32x16xf16>, %y: memref<4x?x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %x, %c1 : memref<4x?x32xf16>
  %m = arith.muli %n, %c3 : index
  %p = memref.alloc(%m) : memref<4x?x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<4x?x32xf16>)
  %s = memref.subview %p[0, 0, 0] [4, %n, 32] [1, 3, 1] : memref<4x?x32xf16> to memref<4x?x32xf16, strided<[?, 96, 1]>>
  memref.copy %x, %s : memref<4x?x32xf16> to memref<4x?x32xf16, strided<[?, 96, 1]>>
  // expected-remark @below {{is not split into phases: its image is spread out, with a size that is known at run time only and a stride of its own}}
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>}
    ins(%p, %w : memref<4x?x32xf16>, memref<3x32x16xf16>) outs(%y : memref<4x?x16xf32>)
  return
}
