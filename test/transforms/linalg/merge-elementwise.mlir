// RUN: alcop-opt %s --alcop-merge-elementwise=assume-noalias-args=true --mlir-print-local-scope --split-input-file | FileCheck %s

// The source of a broadcast is read; three ops become one, their buffers are erased.
// CHECK-LABEL: @chain
// CHECK-SAME:  (%[[X:.*]]: memref<4x8xf32>, %[[BIAS:.*]]: memref<8xf32>, %[[D:.*]]: memref<4x8xf16>)
// CHECK-NOT:   memref.alloc
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[BIAS]] : memref<4x8xf32>, memref<8xf32>) outs(%[[D]] : memref<4x8xf16>)
// CHECK-NEXT:  ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f16):
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[S]] : f32
// CHECK-NEXT:    %[[H:.*]] = arith.truncf %[[E]] : f32 to f16
// CHECK-NEXT:    linalg.yield %[[H]] : f16
// CHECK-NOT:   linalg.generic
func.func @chain(%X: memref<4x8xf32>, %bias: memref<8xf32>, %D: memref<4x8xf16>) {
  %T = memref.alloc() : memref<4x8xf32>
  %U = memref.alloc() : memref<4x8xf32>
  linalg.broadcast ins(%bias : memref<8xf32>) outs(%T : memref<4x8xf32>) dimensions = [0]
  linalg.add ins(%X, %T : memref<4x8xf32>, memref<4x8xf32>) outs(%U : memref<4x8xf32>)
  linalg.exp ins(%U : memref<4x8xf32>) outs(%U : memref<4x8xf32>)
  linalg.copy ins(%U : memref<4x8xf32>) outs(%D : memref<4x8xf16>)
  memref.dealloc %U : memref<4x8xf32>
  return
}

// -----

// A copy into what the op overwrites, though it is an argument: R is read instead.
// CHECK-LABEL: @overwritten
// CHECK-SAME:  (%[[X:.*]]: memref<4x8xf32>, %[[R:.*]]: memref<4x8xf32>, %[[D:.*]]: memref<4x8xf32>)
// CHECK-NOT:   memref.copy
// CHECK:       linalg.generic {{.*}} ins(%[[X]], %[[R]] : {{.*}}) outs(%[[D]] : memref<4x8xf32>)
#mn = affine_map<(m, n) -> (m, n)>
func.func @overwritten(%X: memref<4x8xf32>, %R: memref<4x8xf32>, %D: memref<4x8xf32>) {
  memref.copy %R, %D : memref<4x8xf32> to memref<4x8xf32>
  linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%X : memref<4x8xf32>) outs(%D : memref<4x8xf32>) {
  ^bb0(%x: f32, %d: f32):
    %s = arith.addf %d, %x : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Read twice, once transposed: computed for each.
// CHECK-LABEL: @twice
// CHECK-SAME:  (%[[X:.*]]: memref<8x8xf32>, %[[D:.*]]: memref<8x8xf32>)
// CHECK:       linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], {{.*}} ins(%[[X]], %[[X]] :
// CHECK-NEXT:  ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:    %[[P:.*]] = arith.negf %[[A]]
// CHECK-NEXT:    %[[Q:.*]] = arith.negf %[[B]]
// CHECK-NEXT:    arith.mulf %[[P]], %[[Q]]
#mn = affine_map<(m, n) -> (m, n)>
#nm = affine_map<(m, n) -> (n, m)>
func.func @twice(%X: memref<8x8xf32>, %D: memref<8x8xf32>) {
  %T = memref.alloc() : memref<8x8xf32>
  linalg.negf ins(%X : memref<8x8xf32>) outs(%T : memref<8x8xf32>)
  linalg.generic {indexing_maps = [#mn, #nm, #mn], iterator_types = ["parallel", "parallel"]} ins(%T, %T : memref<8x8xf32>, memref<8x8xf32>) outs(%D : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  }
  return
}

// -----

// A scalar fill.
// CHECK-LABEL: @fill
// CHECK:       %[[ONE:.*]] = arith.constant 1.0
// CHECK-NOT:   linalg.fill
// CHECK:       linalg.generic {{.*}} ins(%{{.*}}, %[[ONE]] : memref<8xf32>, f32)
func.func @fill(%X: memref<8xf32>, %D: memref<8xf32>) {
  %one = arith.constant 1.0 : f32
  %T = memref.alloc() : memref<8xf32>
  linalg.fill ins(%one : f32) outs(%T : memref<8xf32>)
  linalg.add ins(%X, %T : memref<8xf32>, memref<8xf32>) outs(%D : memref<8xf32>)
  return
}

// -----

// What reads an element twice computes it once.
// CHECK-LABEL: @squares
// CHECK:       linalg.generic
// CHECK-COUNT-3: arith.mulf
// CHECK-NOT:   arith.mulf
func.func @squares(%A: memref<8xf32>, %D: memref<8xf32>) {
  %T = memref.alloc() : memref<8xf32>
  %U = memref.alloc() : memref<8xf32>
  linalg.mul ins(%A, %A : memref<8xf32>, memref<8xf32>) outs(%T : memref<8xf32>)
  linalg.mul ins(%T, %T : memref<8xf32>, memref<8xf32>) outs(%U : memref<8xf32>)
  linalg.mul ins(%U, %U : memref<8xf32>, memref<8xf32>) outs(%D : memref<8xf32>)
  return
}

// -----

// In branches of the host too, but not with what is outside of them.
// CHECK-LABEL: @branch
// CHECK-SAME:  (%[[X:.*]]: memref<4x8xf32>, %[[D:.*]]: memref<4x8xf32>, %[[S:.*]]: i1)
// CHECK:       %[[T:.*]] = memref.alloc
// CHECK:       linalg.exp ins(%[[X]] : {{.*}}) outs(%[[T]] :
// CHECK-NEXT:  scf.if %[[S]] {
// CHECK-NOT:     memref.alloc
// CHECK:         linalg.generic {{.*}} ins(%[[T]] : {{.*}}) outs(%[[D]] :
// CHECK:           math.exp
// CHECK:           math.absf
// CHECK-NOT:     linalg.exp
func.func @branch(%X: memref<4x8xf32>, %D: memref<4x8xf32>, %small: i1) {
  %T = memref.alloc() : memref<4x8xf32>
  linalg.exp ins(%X : memref<4x8xf32>) outs(%T : memref<4x8xf32>)
  scf.if %small {
    %U = memref.alloc() : memref<4x8xf32>
    linalg.exp ins(%T : memref<4x8xf32>) outs(%U : memref<4x8xf32>)
    linalg.abs ins(%U : memref<4x8xf32>) outs(%D : memref<4x8xf32>)
  }
  return
}

// -----

// Of a program on tensors only what was made later is merged: a sum of parts with what
// follows, and what is copied.
// CHECK-LABEL: @from_tensors(
// CHECK:         linalg.exp
// CHECK:         linalg.generic {{.*}}alcop.added_parts
// CHECK:           arith.addf
// CHECK:           math.absf
// CHECK:         linalg.generic {{.*}}outs(%{{.*}} : memref<8xf32, strided<[1]>>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.negf
// CHECK-NOT:     memref.copy
#all = affine_map<(n) -> (n)>
func.func @from_tensors(%x: memref<8xf32>, %y: memref<8xf32>, %out: memref<8xf32>, %copy: memref<8xf32, strided<[1]>>) attributes {alcop.from_tensors} {
  %s = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%s : memref<8xf32>)
  %t = memref.alloc() : memref<8xf32>
  linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel"], alcop.added_parts} ins(%s, %y : memref<8xf32>, memref<8xf32>) outs(%t : memref<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %u = arith.addf %a, %b : f32
    linalg.yield %u : f32
  }
  linalg.abs ins(%t : memref<8xf32>) outs(%out : memref<8xf32>)
  %v = memref.alloc() : memref<8xf32>
  linalg.negf ins(%y : memref<8xf32>) outs(%v : memref<8xf32>)
  memref.copy %v, %copy : memref<8xf32> to memref<8xf32, strided<[1]>>
  return
}
