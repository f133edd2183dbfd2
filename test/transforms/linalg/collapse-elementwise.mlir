// RUN: alcop-opt %s --alcop-collapse-elementwise --split-input-file --mlir-print-local-scope | FileCheck %s

// Initial value, contraction, and two ops on its output: all get its loops. A buffer that
// only they use is allocated with them; an argument, and what another op reads, is not.
// CHECK-LABEL: @chain
// CHECK-SAME:  %[[A:.*]]: memref<32x16xf16>, %[[B:.*]]: memref<16x8xf16>, %[[BIAS:.*]]: memref<8xf32>, %[[R:.*]]: memref<2x16x8xf32>, %[[Z:.*]]: memref<2x16x8xf32>
// CHECK-DAG:   %[[VR:.*]] = memref.collapse_shape %[[R]] {{\[\[}}0, 1], [2]]
// CHECK-DAG:   %[[VZ:.*]] = memref.collapse_shape %[[Z]] {{\[\[}}0, 1], [2]]
// CHECK-DAG:   %[[C:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x8xf32>
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[BIAS]] : memref<8xf32>) outs(%[[C]] : memref<32x8xf32>)
// CHECK:       linalg.matmul ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] : memref<32x8xf32>)
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[C]], %[[VR]] : memref<32x8xf32>, memref<32x8xf32>) outs(%[[T:.*]] : memref<32x8xf32>)
// CHECK-NEXT:  ^bb0(%[[x:.*]]: f32, %[[y:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:    arith.addf %[[x]], %[[y]]
// CHECK:       linalg.exp ins(%[[T]] : memref<32x8xf32>) outs(%[[VZ]] : memref<32x8xf32>)
// CHECK:       memref.dealloc %[[C]] : memref<32x8xf32>
func.func @chain(%A: memref<32x16xf16>, %B: memref<16x8xf16>, %bias: memref<8xf32>, %R: memref<2x16x8xf32>, %Z: memref<2x16x8xf32>) {
  %y = memref.alloc() {alignment = 64 : i64} : memref<2x16x8xf32>
  linalg.broadcast ins(%bias : memref<8xf32>) outs(%y : memref<2x16x8xf32>) dimensions = [0, 1]
  %C = memref.collapse_shape %y [[0, 1], [2]] : memref<2x16x8xf32> into memref<32x8xf32>
  linalg.matmul ins(%A, %B : memref<32x16xf16>, memref<16x8xf16>) outs(%C : memref<32x8xf32>)
  %t = memref.alloc() : memref<2x16x8xf32>
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y, %R : memref<2x16x8xf32>, memref<2x16x8xf32>) outs(%t : memref<2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  linalg.exp ins(%t : memref<2x16x8xf32>) outs(%Z : memref<2x16x8xf32>)
  memref.dealloc %y : memref<2x16x8xf32>
  return
}

// -----

// Sizes known at run time only, with which a buffer stays as it is allocated; a number
// for all rows, at the index 0; a fill.
// CHECK-LABEL: @open_sizes
// CHECK:       %[[Y:.*]] = memref.alloc(%{{.*}}, %{{.*}}) : memref<?x?x8xf32>
// CHECK:       %[[C:.*]] = memref.collapse_shape %[[Y]]
// CHECK:       linalg.fill ins(%{{.*}} : f32) outs(%[[C]] : memref<?x8xf32>)
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, 0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[C]], %{{.*}} : memref<?x8xf32>, memref<1x1x8xf32>) outs(%{{.*}} : memref<?x8xf32>)
func.func @open_sizes(%A: memref<?x16xf16>, %B: memref<16x8xf16>, %bias: memref<1x1x8xf32>, %n: index, %h: index, %Z: memref<?x?x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = memref.alloc(%n, %h) : memref<?x?x8xf32>
  linalg.fill ins(%zero : f32) outs(%y : memref<?x?x8xf32>)
  %C = memref.collapse_shape %y [[0, 1], [2]] : memref<?x?x8xf32> into memref<?x8xf32>
  linalg.matmul ins(%A, %B : memref<?x16xf16>, memref<16x8xf16>) outs(%C : memref<?x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (0, 0, n)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y, %bias : memref<?x?x8xf32>, memref<1x1x8xf32>) outs(%Z : memref<?x?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Left unchanged: a number per image, a transposed output, gaps between images, and an
// op that asks for its indices. What they read stays as it is allocated.
// CHECK-LABEL: @unchanged
// CHECK:       memref.alloc() : memref<2x16x8xf32>
// CHECK-COUNT-4: iterator_types = ["parallel", "parallel", "parallel"]
func.func @unchanged(%A: memref<32x16xf16>, %B: memref<16x8xf16>, %scale: memref<2xf32>, %R: memref<2x16x8xf32, strided<[256, 8, 1]>>, %Z: memref<2x16x8xf32>, %T: memref<2x8x16xf32>) {
  %y = memref.alloc() : memref<2x16x8xf32>
  %C = memref.collapse_shape %y [[0, 1], [2]] : memref<2x16x8xf32> into memref<32x8xf32>
  linalg.matmul ins(%A, %B : memref<32x16xf16>, memref<16x8xf16>) outs(%C : memref<32x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y, %scale : memref<2x16x8xf32>, memref<2xf32>) outs(%Z : memref<2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, n, m)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y : memref<2x16x8xf32>) outs(%T : memref<2x8x16xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y, %R : memref<2x16x8xf32>, memref<2x16x8xf32, strided<[256, 8, 1]>>) outs(%Z : memref<2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>],
                  iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%y : memref<2x16x8xf32>) outs(%Z : memref<2x16x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %s = arith.addf %a, %f : f32
    linalg.yield %s : f32
  }
  return
}
