// RUN: alcop-opt %s --alcop-tile-to-blocks --split-input-file --verify-diagnostics | FileCheck %s

// Tiles are copied as memory holds them; the factors are computed on what the warp
// reads of them. A scalar is loaded once, before the loops.
// CHECK-LABEL: func.func @factors(
// CHECK-SAME:      %{{.*}}: memref<64x128xf32>, %{{.*}}: memref<64x128xi8>, %[[F:.*]]: memref<f16>
// CHECK-DAG:   %[[A:.*]] = memref.alloc() : memref<64x32xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:   %[[B:.*]] = memref.alloc() : memref<64x32xi8, #gpu.address_space<workgroup>>
// CHECK:       %[[FACTOR:.*]] = memref.load %[[F]][] : memref<f16>
// CHECK:       scf.for
// CHECK:         memref.copy %{{.*}}, %[[A]]
// CHECK:         memref.copy %{{.*}}, %[[B]]
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to %c32{{.*}} step %c16
// CHECK:           %[[X:.*]] = vector.transfer_read %[[A]][%{{.*}}, %[[K]]], {{.*}}, vector<32x16xf32>
// CHECK:           %[[Z:.*]] = arith.constant dense<0.000000e+00> : vector<32x16xf32>
// CHECK:           %[[RELU:.*]] = arith.maximumf %[[X]], %[[Z]] : vector<32x16xf32>
// CHECK:           %[[L:.*]] = arith.truncf %[[RELU]] : vector<32x16xf32> to vector<32x16xf16>
// CHECK:           %[[Y:.*]] = vector.transfer_read %[[B]][%{{.*}}, %[[K]]], {{.*}}, vector<32x16xi8>
// CHECK:           %[[H:.*]] = arith.sitofp %[[Y]] : vector<32x16xi8> to vector<32x16xf16>
// CHECK:           %[[S:.*]] = vector.broadcast %[[FACTOR]] : f16 to vector<32x16xf16>
// CHECK:           %[[R:.*]] = arith.mulf %[[H]], %[[S]] : vector<32x16xf16>
// CHECK:           vector.contract {{.*}} %[[L]], %[[R]], %{{.*}} : vector<32x16xf16>, vector<32x16xf16> into vector<32x32xf32>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#none = affine_map<(m, n, k) -> ()>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @factors(%A: memref<64x128xf32>, %B: memref<64x128xi8>, %F: memref<f16>, %C: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#mk, #nk, #none, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B, %F : memref<64x128xf32>, memref<64x128xi8>, memref<f16>) outs(%C : memref<64x64xf32>)
      attrs = {alcop.contraction = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "nk"}>,
               alcop.schedule = #alcop.schedule<{block = [64, 64, 32], stages = [3, 2], warp = [32, 32]}>} {
  ^bb0(%a: f32, %b: i8, %f: f16, %c: f32):
    %relu = arith.maximumf %a, %zero : f32
    %half = arith.truncf %relu : f32 to f16
    %whole = arith.sitofp %b : i8 to f16
    %scaled = arith.mulf %whole, %f : f16
    %l = arith.extf %half : f16 to f32
    %r = arith.extf %scaled : f16 to f32
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// An integer of 8 bits that became f32 is exact in f16.
// CHECK-LABEL: func.func @mixed(
// CHECK:       %[[Y:.*]] = vector.transfer_read {{.*}}, vector<16x32xi8>
// CHECK:       %[[W:.*]] = arith.sitofp %[[Y]] : vector<16x32xi8> to vector<16x32xf32>
// CHECK:       %[[R:.*]] = arith.truncf %[[W]] : vector<16x32xf32> to vector<16x32xf16>
// CHECK:       vector.contract {{.*}}, %[[R]], %{{.*}} : vector<32x16xf16>, vector<16x32xf16>
func.func @mixed(%A: memref<64x128xf16>, %B: memref<128x64xi8>, %C: memref<64x64xf32>) {
  linalg.matmul {
    alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
    alcop.schedule = #alcop.schedule<{block = [64, 64, 32], stages = [3, 2], warp = [32, 32]}>
  } ins(%A, %B : memref<64x128xf16>, memref<128x64xi8>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// B is the op's first input.
// CHECK-LABEL: func.func @swapped(
// CHECK:       %[[A:.*]] = vector.transfer_read {{.*}}, vector<32x16xf16>
// CHECK:       %[[Y:.*]] = vector.transfer_read {{.*}}, vector<16x32xf32>
// CHECK:       %[[B:.*]] = arith.truncf %[[Y]]
// CHECK:       vector.contract {{.*}} %[[A]], %[[B]], %{{.*}} : vector<32x16xf16>, vector<16x32xf16>
#kn = affine_map<(m, n, k) -> (k, n)>
#mk = affine_map<(m, n, k) -> (m, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @swapped(%A: memref<64x128xf16>, %B: memref<128x32xf32>, %C: memref<64x32xf16>) {
  linalg.generic {indexing_maps = [#kn, #mk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%B, %A : memref<128x32xf32>, memref<64x128xf16>) outs(%C : memref<64x32xf16>)
      attrs = {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn", swapped = true}>,
               alcop.schedule = #alcop.schedule<{block = [32, 32, 32], stages = [3, 2], warp = [32, 32]}>} {
  ^bb0(%b: f32, %a: f16, %c: f16):
    %half = arith.truncf %b : f32 to f16
    %p = arith.mulf %half, %a : f16
    %s = arith.addf %c, %p : f16
    linalg.yield %s : f16
  }
  return
}

// -----

// Both factors are 1 where the last step is filled up.
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @disturbed(%A: memref<64x128xf16>, %B: memref<64x128xf16>, %C: memref<64x64xf16>) {
  %one = arith.constant 1.0 : f16
  // expected-error @+1 {{alcop-tile-to-blocks: tiles are filled up with zeros, for which its operand transforms are not zero, and K is not known to be a multiple of the K step of 48: choose a step that divides it}}
  linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B : memref<64x128xf16>, memref<64x128xf16>) outs(%C : memref<64x64xf16>)
      attrs = {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "nk"}>,
               alcop.schedule = #alcop.schedule<{block = [64, 64, 48], stages = [3, 2], warp = [32, 32]}>} {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %x = arith.addf %a, %one : f16
    %y = arith.addf %b, %one : f16
    %p = arith.mulf %x, %y : f16
    %s = arith.addf %c, %p : f16
    linalg.yield %s : f16
  }
  return
}

// -----

// One value per column, of which not all blocks have 64: read before the loops, within
// its bounds.
// CHECK-LABEL: func.func @along(
// CHECK-SAME:      %{{.*}}: memref<64x128xf16>, %{{.*}}: memref<128x96xi8>, %[[S:.*]]: memref<96xf16>
// CHECK:       %[[A:.*]] = vector.transfer_read %[[S]][%{{.*}}], %{{.*}} {in_bounds = [true, false], permutation_map = #{{.*}}} : memref<96xf16>, vector<16x32xf16>
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK:           arith.mulf %{{.*}}, %[[A]] : vector<16x32xf16>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#n = affine_map<(m, n, k) -> (n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @along(%A: memref<64x128xf16>, %B: memref<128x96xi8>, %S: memref<96xf16>, %C: memref<64x96xf16>) {
  linalg.generic {indexing_maps = [#mk, #kn, #n, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%A, %B, %S : memref<64x128xf16>, memref<128x96xi8>, memref<96xf16>) outs(%C : memref<64x96xf16>)
      attrs = {alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>,
               alcop.schedule = #alcop.schedule<{block = [64, 64, 32], stages = [3, 2], warp = [32, 32]}>} {
  ^bb0(%a: f16, %b: i8, %s: f16, %c: f16):
    %h = arith.sitofp %b : i8 to f16
    %y = arith.mulf %h, %s : f16
    %p = arith.mulf %a, %y : f16
    %t = arith.addf %c, %p : f16
    linalg.yield %t : f16
  }
  return
}
