// RUN: alcop-opt %s --alcop-split-phases=assume-noalias-args --split-input-file --mlir-print-local-scope | FileCheck %s

// Zeros between pixels: even rows of the output meet the middle row of the filter, odd
// ones the other two; columns likewise. No zero is stored.
// CHECK-LABEL: @spread
// CHECK-SAME:  %[[X:.*]]: memref<1x7x7x32xf16>, %[[W:.*]]: memref<3x3x32x16xf16>, %[[Y:.*]]: memref<1x13x13x16xf32>
// CHECK-NOT:   memref.alloc
// CHECK:       %[[Y0:.*]] = memref.subview %[[Y]][0, 0, 0, 0] [1, 7, 7, 16] [1, 2, 2, 1]
// CHECK-NEXT:  linalg.fill ins(%{{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK-NEXT:  %[[W0:.*]] = memref.subview %[[W]][1, 1, 0, 0] [1, 1, 32, 16] [1, 1, 1, 1]
// CHECK-NEXT:  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>]{{.*}} ins(%[[X]], %[[W0]] : {{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK:       %[[Y1:.*]] = memref.subview %[[Y]][0, 0, 1, 0] [1, 7, 6, 16] [1, 2, 2, 1]
// CHECK:       %[[W1:.*]] = memref.subview %[[W]][1, 0, 0, 0] [1, 2, 32, 16] [1, 2, 1, 1]
// CHECK-NEXT:  linalg.generic {{.*}} ins(%[[X]], %[[W1]] : {{.*}}) outs(%[[Y1]] : {{.*}})
// CHECK:       memref.subview %[[Y]][0, 1, 0, 0] [1, 6, 7, 16] [1, 2, 2, 1]
// CHECK:       memref.subview %[[W]][0, 1, 0, 0] [2, 1, 32, 16] [2, 1, 1, 1]
// CHECK:       memref.subview %[[Y]][0, 1, 1, 0] [1, 6, 6, 16] [1, 2, 2, 1]
// CHECK:       memref.subview %[[W]][0, 0, 0, 0] [2, 2, 32, 16] [2, 2, 1, 1]
// CHECK:       linalg.generic
// CHECK-NOT:   linalg.generic
// CHECK-NOT:   linalg.conv
func.func @spread(%x: memref<1x7x7x32xf16>, %w: memref<3x3x32x16xf16>, %y: memref<1x13x13x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<1x15x15x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<1x15x15x32xf16>)
  %s = memref.subview %p[0, 1, 1, 0] [1, 7, 7, 32] [1, 2, 2, 1] : memref<1x15x15x32xf16> to memref<1x7x7x32xf16, strided<[7200, 960, 64, 1], offset: 512>>
  memref.copy %x, %s : memref<1x7x7x32xf16> to memref<1x7x7x32xf16, strided<[7200, 960, 64, 1], offset: 512>>
  linalg.fill ins(%none : f32) outs(%y : memref<1x13x13x16xf32>)
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : memref<1x15x15x32xf16>, memref<3x3x32x16xf16>) outs(%y : memref<1x13x13x16xf32>)
  return
}

// -----

// An op that adds to windows of its output. Outputs before the first pixel and after the
// last meet zeros, which a copy of the image has around it.
// CHECK-LABEL: @scattered
// CHECK-SAME:  %[[X:.*]]: memref<4x8x32xf16>, %[[W:.*]]: memref<3x32x16xf16>, %[[Y:.*]]: memref<4x17x16xf32>
// CHECK:       %[[P:.*]] = memref.alloc() : memref<4x10x32xf16>
// CHECK:       linalg.fill ins(%{{.*}} : f16) outs(%[[P]] : memref<4x10x32xf16>)
// CHECK:       %[[S:.*]] = memref.subview %[[P]][0, 1, 0] [4, 8, 32] [1, 1, 1]
// CHECK:       memref.copy %[[X]], %[[S]]
// CHECK:       %[[Y0:.*]] = memref.subview %[[Y]][0, 0, 0] [4, 9, 16] [1, 2, 1]
// CHECK-NEXT:  %[[W0:.*]] = memref.subview %[[W]][0, 0, 0] [2, 32, 16] [2, 1, 1]
// CHECK-NEXT:  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 - d3 + 1, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%[[P]], %[[W0]] : {{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK:       %[[Y1:.*]] = memref.subview %[[Y]][0, 1, 0] [4, 8, 16] [1, 2, 1]
// CHECK-NEXT:  %[[W1:.*]] = memref.subview %[[W]][1, 0, 0] [1, 32, 16] [1, 1, 1]
// CHECK-NEXT:  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3 + 1, d4)>
func.func @scattered(%x: memref<4x8x32xf16>, %w: memref<3x32x16xf16>, %y: memref<4x17x16xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(n, w, f, s, c) -> (n, w, c)>,
                     affine_map<(n, w, f, s, c) -> (s, c, f)>,
                     affine_map<(n, w, f, s, c) -> (n, w * 2 + s, f)>],
    iterator_types = ["parallel", "reduction", "parallel", "reduction", "reduction"]}
    ins(%x, %w : memref<4x8x32xf16>, memref<3x32x16xf16>) outs(%y : memref<4x17x16xf32>) {
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

// A window that is smaller than its steps: what meets no pixel is only filled.
// CHECK-LABEL: @pixels
// CHECK-SAME:  %[[X:.*]]: memref<4x8x32xf16>, %[[W:.*]]: memref<1x32x16xf16>, %[[Y:.*]]: memref<4x16x16xf32>
// CHECK:       %[[Y0:.*]] = memref.subview %[[Y]][0, 0, 0] [4, 8, 16] [1, 2, 1]
// CHECK-NEXT:  linalg.fill ins(%{{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK-NEXT:  linalg.generic {{.*}} ins(%[[X]], %[[W]] : {{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK:       %[[Y1:.*]] = memref.subview %[[Y]][0, 1, 0] [4, 8, 16] [1, 2, 1]
// CHECK-NEXT:  linalg.fill ins(%{{.*}}) outs(%[[Y1]] : {{.*}})
// CHECK-NEXT:  return
func.func @pixels(%x: memref<4x8x32xf16>, %w: memref<1x32x16xf16>, %y: memref<4x16x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<4x16x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<4x16x32xf16>)
  %s = memref.subview %p[0, 0, 0] [4, 8, 32] [1, 2, 1] : memref<4x16x32xf16> to memref<4x8x32xf16, strided<[512, 64, 1]>>
  memref.copy %x, %s : memref<4x8x32xf16> to memref<4x8x32xf16, strided<[512, 64, 1]>>
  linalg.fill ins(%none : f32) outs(%y : memref<4x16x16xf32>)
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%p, %w : memref<4x16x32xf16>, memref<1x32x16xf16>) outs(%y : memref<4x16x16xf32>)
  return
}

// -----

// Zeros around an image alone are no business of this pass.
// CHECK-LABEL: @padded
// CHECK:       linalg.conv_1d_nwc_wcf
func.func @padded(%x: memref<4x8x32xf16>, %w: memref<3x32x16xf16>, %y: memref<4x8x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<4x10x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<4x10x32xf16>)
  %s = memref.subview %p[0, 1, 0] [4, 8, 32] [1, 1, 1] : memref<4x10x32xf16> to memref<4x8x32xf16, strided<[320, 32, 1], offset: 32>>
  memref.copy %x, %s : memref<4x8x32xf16> to memref<4x8x32xf16, strided<[320, 32, 1], offset: 32>>
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%p, %w : memref<4x10x32xf16>, memref<3x32x16xf16>) outs(%y : memref<4x8x16xf32>)
  return
}

// -----

// Sizes known at run time only: of H pixels there are H even outputs, and H - 1 odd ones.
// CHECK-LABEL: @spread_of_unknown_size
// CHECK-SAME:  %[[X:.*]]: memref<?x?x32xf16>, %[[W:.*]]: memref<3x32x16xf16>, %[[Y:.*]]: memref<?x?x16xf32>
// CHECK:       arith.addi
// CHECK:       %[[H:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK:       %[[TWICE:.*]] = arith.muli %[[H]], %{{.*}}
// CHECK:       %[[EXPECTED:.*]] = arith.addi %[[TWICE]], %{{.*}}
// CHECK:       %[[P:.*]] = memref.dim %[[Y]], %{{.*}}
// CHECK:       %[[SAME:.*]] = arith.cmpi eq, %[[EXPECTED]], %[[P]]
// CHECK:       cf.assert %[[SAME]]
// CHECK:       %[[EVEN:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK:       %[[Y0:.*]] = memref.subview %[[Y]][0, 0, 0] [%{{.*}}, %[[EVEN]], 16] [1, 2, 1]
// CHECK:       linalg.fill ins(%{{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d3, d4)>{{.*}} ins(%[[X]], %{{.*}}) outs(%[[Y0]] : {{.*}})
// CHECK:       %[[LESS:.*]] = arith.constant -1 : index
// CHECK:       %[[ODD:.*]] = arith.addi %{{.*}}, %[[LESS]]
// CHECK:       %[[Y1:.*]] = memref.subview %[[Y]][0, 1, 0] [%{{.*}}, %[[ODD]], 16] [1, 2, 1]
// CHECK:       linalg.generic {{.*}} outs(%[[Y1]] : {{.*}})
// CHECK-NOT:   linalg.conv
func.func @spread_of_unknown_size(%x: memref<?x?x32xf16>, %w: memref<3x32x16xf16>, %y: memref<?x?x16xf32>) {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = memref.dim %x, %c0 : memref<?x?x32xf16>
  %n = memref.dim %x, %c1 : memref<?x?x32xf16>
  %t = arith.muli %n, %c2 : index
  %m = arith.addi %t, %c1 : index
  %p = memref.alloc(%b, %m) : memref<?x?x32xf16>
  linalg.fill ins(%zero : f16) outs(%p : memref<?x?x32xf16>)
  %s = memref.subview %p[0, 1, 0] [%b, %n, 32] [1, 2, 1] : memref<?x?x32xf16> to memref<?x?x32xf16, strided<[?, 64, 1], offset: 32>>
  memref.copy %x, %s : memref<?x?x32xf16> to memref<?x?x32xf16, strided<[?, 64, 1], offset: 32>>
  linalg.fill ins(%none : f32) outs(%y : memref<?x?x16xf32>)
  linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%p, %w : memref<?x?x32xf16>, memref<3x32x16xf16>) outs(%y : memref<?x?x16xf32>)
  return
}

// -----

// An output that windows are added to may have more than they reach: all of it is filled.
// CHECK-LABEL: @scattered_of_unknown_size
// CHECK-SAME:  %[[X:.*]]: memref<4x?x32xf16>, %{{.*}}, %[[Y:.*]]: memref<4x?x16xf32>
// CHECK:       linalg.fill ins(%{{.*}}) outs(%[[Y]] : {{.*}})
// CHECK:       %[[FITS:.*]] = arith.cmpi sle, %{{.*}}, %{{.*}}
// CHECK:       cf.assert %[[FITS]]
// CHECK:       memref.subview %[[Y]][0, 0, 0] [4, %{{.*}}, 16] [1, 2, 1]
// CHECK:       linalg.fill
// CHECK:       linalg.generic
// CHECK:       memref.subview %[[Y]][0, 1, 0] [4, %{{.*}}, 16] [1, 2, 1]
// CHECK:       linalg.fill
// CHECK:       linalg.generic
func.func @scattered_of_unknown_size(%x: memref<4x?x32xf16>, %w: memref<3x32x16xf16>, %y: memref<4x?x16xf32>) {
  %none = arith.constant 0.0 : f32
  linalg.fill ins(%none : f32) outs(%y : memref<4x?x16xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(n, w, f, s, c) -> (n, w, c)>,
                     affine_map<(n, w, f, s, c) -> (s, c, f)>,
                     affine_map<(n, w, f, s, c) -> (n, w * 2 + s, f)>],
    iterator_types = ["parallel", "reduction", "parallel", "reduction", "reduction"]}
    ins(%x, %w : memref<4x?x32xf16>, memref<3x32x16xf16>) outs(%y : memref<4x?x16xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %aw = arith.extf %a : f16 to f32
    %bw = arith.extf %b : f16 to f32
    %m = arith.mulf %aw, %bw : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  }
  return
}
