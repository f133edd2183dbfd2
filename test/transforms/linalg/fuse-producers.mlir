// RUN: alcop-opt %s --alcop-fuse-producers='assume-noalias-args=true' --split-input-file --mlir-print-local-scope | FileCheck %s

// The conversion of A is computed by the product, which reads A itself. The array in
// between is gone.
// CHECK-LABEL: @conversion(
// CHECK-SAME:      %[[A:.*]]: memref<64x128xf32>, %[[B:.*]]: memref<128x32xf16>, %[[C:.*]]: memref<64x32xf32>)
// CHECK-NOT:   memref.alloc
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] : {{.*}}) {
// CHECK-NEXT:  ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f16, %[[S:.*]]: f32):
// CHECK-NEXT:    %[[H:.*]] = arith.truncf %[[X]] : f32 to f16
// CHECK-NEXT:    %[[L:.*]] = arith.extf %[[H]] : f16 to f32
// CHECK-NEXT:    %[[R:.*]] = arith.extf %[[Y]] : f16 to f32
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[L]], %[[R]] : f32
// CHECK-NEXT:    %[[T:.*]] = arith.addf %[[S]], %[[P]] : f32
// CHECK-NEXT:    linalg.yield %[[T]] : f32
// CHECK-NOT:   linalg
#id = affine_map<(a, b) -> (a, b)>
func.func @conversion(%A: memref<64x128xf32>, %B: memref<128x32xf16>, %C: memref<64x32xf32>) {
  %half = memref.alloc() : memref<64x128xf16>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x128xf32>) outs(%half : memref<64x128xf16>) {
  ^bb0(%e: f32, %o: f16):
    %h = arith.truncf %e : f32 to f16
    linalg.yield %h : f16
  }
  linalg.matmul ins(%half, %B : memref<64x128xf16>, memref<128x32xf16>) outs(%C : memref<64x32xf32>)
  memref.dealloc %half : memref<64x128xf16>
  return
}

// -----

// Several in a row, a scalar from memory, a fill of C in between, another order of loops
// (B is stored n x k), a schedule that was given.
// CHECK-LABEL: @in_a_row(
// CHECK-SAME:      %[[A:.*]]: memref<64x128xf16>, %[[B:.*]]: memref<32x128xi8>, %[[F:.*]]: memref<f16>
// CHECK-NOT:   memref.alloc
// CHECK:       linalg.fill
// CHECK-NEXT:  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> ()>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME:      ins(%[[A]], %[[B]], %[[F]] :
// CHECK-SAME:      attrs =  {alcop.schedule = #alcop.schedule<{block = [64, 32, 32]}>}
// CHECK-NEXT:  ^bb0(%{{.*}}: f16, %[[Y:.*]]: i8, %[[G:.*]]: f16, %{{.*}}: f32):
// CHECK-NEXT:    %[[H:.*]] = arith.sitofp %[[Y]] : i8 to f16
// CHECK-NEXT:    arith.mulf %[[H]], %[[G]] : f16
#id = affine_map<(a, b) -> (a, b)>
#swap = affine_map<(a, b) -> (b, a)>
#none = affine_map<(a, b) -> ()>
func.func @in_a_row(%A: memref<64x128xf16>, %B: memref<32x128xi8>, %F: memref<f16>, %C: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %half = memref.alloc() : memref<128x32xf16>
  %scaled = memref.alloc() : memref<128x32xf16>
  linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]} ins(%B : memref<32x128xi8>) outs(%half : memref<128x32xf16>) {
  ^bb0(%e: i8, %o: f16):
    %h = arith.sitofp %e : i8 to f16
    linalg.yield %h : f16
  }
  linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%half, %F : memref<128x32xf16>, memref<f16>) outs(%scaled : memref<128x32xf16>) {
  ^bb0(%e: f16, %f: f16, %o: f16):
    %h = arith.mulf %e, %f : f16
    linalg.yield %h : f16
  }
  linalg.fill ins(%zero : f32) outs(%C : memref<64x32xf32>)
  linalg.matmul {alcop.schedule = #alcop.schedule<{block = [64, 32, 32]}>} ins(%A, %scaled : memref<64x128xf16>, memref<128x32xf16>) outs(%C : memref<64x32xf32>)
  return
}

// -----

// Both inputs; a named op, whose output's element has no name.
// CHECK-LABEL: @both(
// CHECK:       linalg.generic
// CHECK-SAME:      ins(%arg0, %arg1 : memref<2x16x16xf16>, memref<2x16x16xf16>)
// CHECK:         math.absf
// CHECK:         arith.negf
// CHECK-NOT:   linalg.abs
func.func @both(%A: memref<2x16x16xf16>, %B: memref<2x16x16xf16>, %C: memref<2x16x16xf32>) {
  %a = memref.alloc() : memref<2x16x16xf16>
  %b = memref.alloc() : memref<2x16x16xf16>
  linalg.negf ins(%A : memref<2x16x16xf16>) outs(%a : memref<2x16x16xf16>)
  linalg.abs ins(%B : memref<2x16x16xf16>) outs(%b : memref<2x16x16xf16>)
  linalg.batch_matmul ins(%a, %b : memref<2x16x16xf16>, memref<2x16x16xf16>) outs(%C : memref<2x16x16xf32>)
  return
}

// -----

// What works on the output of a product is computed there, not here. A fill, a copy
// and an argument are no producers.
// CHECK-LABEL: @left(
// CHECK:       linalg.matmul
// CHECK:       linalg.negf
// CHECK:       linalg.matmul
// CHECK:       memref.copy
// CHECK:       linalg.matmul
func.func @left(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf32>) {
  %p = memref.alloc() : memref<16x16xf16>
  %n = memref.alloc() : memref<16x16xf16>
  %c = memref.alloc() : memref<16x16xf16>
  linalg.matmul ins(%A, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%p : memref<16x16xf16>)
  linalg.negf ins(%p : memref<16x16xf16>) outs(%n : memref<16x16xf16>)
  linalg.matmul ins(%n, %B : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf32>)
  memref.copy %A, %c : memref<16x16xf16> to memref<16x16xf16>
  linalg.matmul ins(%A, %c : memref<16x16xf16>, memref<16x16xf16>) outs(%C : memref<16x16xf32>)
  return
}

// -----

// A function of many instructions is computed again for each tile of A that is read:
// where C has few columns, that is cheap enough.
// CHECK-LABEL: @activation(
// CHECK-NOT:   memref.alloc
// CHECK:       math.tanh
// CHECK:       arith.addf
func.func @activation(%A: memref<64x64xf16>, %B: memref<64x256xf16>, %C: memref<64x256xf32>) {
  %a = memref.alloc() : memref<64x64xf16>
  linalg.tanh ins(%A : memref<64x64xf16>) outs(%a : memref<64x64xf16>)
  linalg.matmul ins(%a, %B : memref<64x64xf16>, memref<64x256xf16>) outs(%C : memref<64x256xf32>)
  return
}

// -----

// One value per column of B.
// CHECK-LABEL: @per_column(
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME:      ins(%arg0, %arg1, %arg2 : memref<64x128xf16>, memref<128x32xi8>, memref<32xf16>)
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (b)>
func.func @per_column(%A: memref<64x128xf16>, %B: memref<128x32xi8>, %S: memref<32xf16>, %C: memref<64x32xf32>) {
  %scaled = memref.alloc() : memref<128x32xf16>
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%B, %S : memref<128x32xi8>, memref<32xf16>) outs(%scaled : memref<128x32xf16>) {
  ^bb0(%e: i8, %s: f16, %o: f16):
    %h = arith.sitofp %e : i8 to f16
    %r = arith.mulf %h, %s : f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%A, %scaled : memref<64x128xf16>, memref<128x32xf16>) outs(%C : memref<64x32xf32>)
  return
}
