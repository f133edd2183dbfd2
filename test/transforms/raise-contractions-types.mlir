// RUN: alcop-opt %s --alcop-raise-contractions=allow-tf32=true --split-input-file | FileCheck %s

// All four storage orders.
// CHECK-LABEL: @layouts
// CHECK:       lhs = "km", rhs = "kn"
// CHECK:       lhs = "km", rhs = "nk"
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @layouts(%a: memref<32x32xbf16>, %b: memref<32x32xbf16>, %c: memref<32x32xf32>) {
  linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%a, %b : memref<32x32xbf16>, memref<32x32xbf16>) outs(%c : memref<32x32xf32>)
  linalg.matmul indexing_maps = [#km, #nk, #mn] ins(%a, %b : memref<32x32xbf16>, memref<32x32xbf16>) outs(%c : memref<32x32xf32>)
  return
}

// -----

// s8 into i32; a fill with the integer zero is folded in.
// CHECK-LABEL: @integers
// CHECK-NOT:   linalg.fill
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "kn"}>}
func.func @integers(%a: memref<32x32xi8>, %b: memref<32x32xi8>, %c: memref<32x32xi32>) {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%c : memref<32x32xi32>)
  linalg.matmul ins(%a, %b : memref<32x32xi8>, memref<32x32xi8>) outs(%c : memref<32x32xi32>)
  return
}

// -----

// f32, as the option allows: what is done to the inputs is written down.
// CHECK-LABEL: @tf32
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", precision = "tf32", rhs = "kn"}>}
func.func @tf32(%a: memref<32x32xf32>, %b: memref<32x32xf32>, %c: memref<32x32xf32>) {
  linalg.matmul ins(%a, %b : memref<32x32xf32>, memref<32x32xf32>) outs(%c : memref<32x32xf32>)
  return
}
