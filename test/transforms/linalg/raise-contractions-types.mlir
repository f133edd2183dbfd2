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

// -----

// Factors that are computed: mixed types, of which the narrower is exact in the other.
// CHECK-LABEL: @mixed
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>} ins(%arg0, %arg1 :
// CHECK:       linalg.matmul {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", precision = "tf32", rhs = "kn"}>} ins(%arg0, %arg2 :
func.func @mixed(%a: memref<32x32xf16>, %b: memref<32x32xi8>, %d: memref<32x32xf32>, %c: memref<32x32xf32>) {
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xi8>) outs(%c : memref<32x32xf32>)
  linalg.matmul ins(%a, %d : memref<32x32xf16>, memref<32x32xf32>) outs(%c : memref<32x32xf32>)
  return
}

// -----

// A body that computes what it multiplies, with a scalar from memory: its inputs stay in
// their order, as the body tells them apart.
// CHECK-LABEL: @computed
// CHECK:       alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn", swapped = true}>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#none = affine_map<(m, n, k) -> ()>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @computed(%a: memref<32x128xf16>, %b: memref<128x32xi8>, %f: memref<f16>, %c: memref<32x32xf16>) {
  linalg.generic {indexing_maps = [#kn, #mk, #none, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%b, %a, %f : memref<128x32xi8>, memref<32x128xf16>, memref<f16>) outs(%c : memref<32x32xf16>) {
  ^bb0(%x: i8, %y: f16, %z: f16, %t: f16):
    %0 = arith.sitofp %x : i8 to f16
    %1 = arith.mulf %0, %z : f16
    %2 = arith.mulf %1, %y : f16
    %3 = arith.addf %t, %2 : f16
    linalg.yield %3 : f16
  }
  return
}
