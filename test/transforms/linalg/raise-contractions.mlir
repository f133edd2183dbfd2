// RUN: alcop-opt %s --alcop-raise-contractions --split-input-file | FileCheck %s

// A zero fill just above is folded in.
// CHECK-LABEL: @zero
// CHECK-NOT:   linalg.fill
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>}
func.func @zero(%a: memref<64x32xf16>, %b: memref<32x128xf16>, %c: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<64x128xf32>)
  linalg.matmul ins(%a, %b : memref<64x32xf16>, memref<32x128xf16>)
                outs(%c : memref<64x128xf32>)
  return
}

// -----

// Without a fill the sum starts from what C holds; B may be stored transposed.
// CHECK-LABEL: @read_nt
// CHECK:       linalg.matmul
// CHECK-SAME:  alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "nk"}>
func.func @read_nt(%a: memref<64x32xf16>, %b: memref<128x32xf16>, %c: memref<64x128xf16>) {
  linalg.matmul
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>]
    ins(%a, %b : memref<64x32xf16>, memref<128x32xf16>) outs(%c : memref<64x128xf16>)
  return
}

// -----

// What bufferization leaves where C is read: the sum starts from the copy's source.
// CHECK-LABEL: @copy
// CHECK-SAME:  %[[IN:[a-z0-9]+]]: memref<64x128xf32>, %[[OUT:[a-z0-9]+]]: memref<64x128xf32>
// CHECK:       arith.constant
// CHECK-NEXT:  memref.copy %[[IN]], %[[OUT]] {alcop.contraction = #alcop.contraction<{role = "init"}>}
// CHECK-NEXT:  linalg.matmul {{.*}}init = "copy"
func.func @copy(%a: memref<64x32xf16>, %b: memref<32x128xf16>, %in: memref<64x128xf32>,
                %out: memref<64x128xf32>) {
  memref.copy %in, %out : memref<64x128xf32> to memref<64x128xf32>
  %0 = arith.constant 0 : index
  linalg.matmul ins(%a, %b : memref<64x32xf16>, memref<32x128xf16>)
                outs(%out : memref<64x128xf32>)
  return
}

// -----

// A generic op: loops in any order, casts anywhere, factors and addends commuted, and
// the inputs in the order B, A, which the pass puts right.
// CHECK-DAG:   #[[A:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG:   #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG:   #[[C:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @generic
// CHECK-SAME:  %[[AA:[a-z0-9]+]]: memref<64x32xf16>, %[[BB:[a-z0-9]+]]: memref<128x32xf16>
// CHECK:       linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]]
// CHECK-SAME:  ins(%[[AA]], %[[BB]] : memref<64x32xf16>, memref<128x32xf16>)
// CHECK-SAME:  alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "nk"}>
func.func @generic(%a: memref<64x32xf16>, %b: memref<128x32xf16>, %c: memref<64x128xf16>) {
  linalg.generic {
    indexing_maps = [affine_map<(k, n, m) -> (n, k)>, affine_map<(k, n, m) -> (m, k)>,
                     affine_map<(k, n, m) -> (m, n)>],
    iterator_types = ["reduction", "parallel", "parallel"]
  } ins(%b, %a : memref<128x32xf16>, memref<64x32xf16>) outs(%c : memref<64x128xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %product = arith.mulf %y, %x : f16
    %wide = arith.extf %product : f16 to f32
    %sum = arith.extf %z : f16 to f32
    %total = arith.addf %wide, %sum : f32
    %narrow = arith.truncf %total : f32 to f16
    linalg.yield %narrow : f16
  }
  return
}

// -----

// Two contractions in a row: each finds its own fill, and passes over the other's ops.
// CHECK-LABEL: @two
// CHECK-NOT:   linalg.fill
// CHECK:       linalg.matmul {{.*}}init = "zero"
// CHECK:       linalg.matmul {{.*}}init = "zero"
func.func @two(%a: memref<32x32xf16>, %b: memref<32x32xf16>, %c: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %zero16 = arith.constant 0.0 : f16
  %d = memref.alloc() : memref<32x32xf16>
  linalg.fill ins(%zero : f32) outs(%c : memref<32x32xf32>)
  linalg.fill ins(%zero16 : f16) outs(%d : memref<32x32xf16>)
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>)
                outs(%c : memref<32x32xf32>)
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>)
                outs(%d : memref<32x32xf16>)
  return
}

// -----

// Something reads C between fill and contraction, or may: the fill stays.
// CHECK-LABEL: @read_between
// CHECK:       linalg.fill
// CHECK:       linalg.matmul {{.*}}init = "read"
func.func @read_between(%a: memref<32x32xf16>, %b: memref<32x32xf16>,
                        %c: memref<32x32xf32>, %other: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<32x32xf32>)
  memref.copy %other, %other : memref<32x32xf32> to memref<32x32xf32>
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>)
                outs(%c : memref<32x32xf32>)
  return
}

// -----

// A call may touch anything, and a fill with one is not a fill with zero.
// CHECK-LABEL: @unknown_between
// CHECK:       linalg.fill
// CHECK:       linalg.matmul {{.*}}init = "read"
// CHECK:       linalg.fill
// CHECK:       linalg.matmul {{.*}}init = "read"
func.func private @touch()
func.func @unknown_between(%a: memref<32x32xf16>, %b: memref<32x32xf16>,
                           %c: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<32x32xf32>)
  call @touch() : () -> ()
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>)
                outs(%c : memref<32x32xf32>)
  linalg.fill ins(%one : f32) outs(%c : memref<32x32xf32>)
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>)
                outs(%c : memref<32x32xf32>)
  return
}

// -----

// The copy's source changes before the contraction: the copy stays, C is read.
// CHECK-LABEL: @source_changes
// CHECK:       memref.copy %{{.*}}, %{{.*}} : memref
// CHECK:       linalg.fill
// CHECK:       linalg.matmul {{.*}}init = "read"
func.func @source_changes(%a: memref<32x32xf16>, %b: memref<32x32xf16>,
                          %in: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<32x32xf32>
  memref.copy %in, %c : memref<32x32xf32> to memref<32x32xf32>
  linalg.fill ins(%zero : f32) outs(%in : memref<32x32xf32>)
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>)
                outs(%c : memref<32x32xf32>)
  return
}

// -----

// Run again, the pass changes nothing.
// CHECK-LABEL: @marked
// CHECK:       linalg.fill
// CHECK:       linalg.matmul {{.*}}init = "read"
func.func @marked(%a: memref<32x32xf16>, %b: memref<32x32xf16>, %c: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<32x32xf32>)
  linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>}
    ins(%a, %b : memref<32x32xf16>, memref<32x32xf16>) outs(%c : memref<32x32xf32>)
  return
}
