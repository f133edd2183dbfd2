// RUN: alcop-opt %s --alcop-raise-contractions=target=sm_89 --split-input-file | FileCheck %s --check-prefixes=CHECK,NATIVE
// RUN: alcop-opt %s --alcop-raise-contractions=target=sm_90 --split-input-file --verify-diagnostics | FileCheck %s --check-prefixes=CHECK,WIDE

// Two types may be multiplied by each other; a target without such an mma.sync widens.
// CHECK-LABEL: @two_types
// NATIVE:      linalg.generic
// NATIVE-SAME: alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "nk"}>
// WIDE:        linalg.generic
// WIDE-SAME:   alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", multiplied = "f16", rhs = "nk"}>
func.func @two_types(%a: memref<32x64xf8E4M3FN>, %b: memref<32x64xf8E5M2>, %c: memref<32x32xbf16>) {
  // expected-remark @+1 {{'linalg.generic' multiplies f8E4M3FN by f8E5M2 as f16, at half the rate: behind mma.sync, the tensor cores of sm_90 multiply no f8E4M3FN or f8E5M2, those of sm_89 or sm_120 do}}
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                   affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<32x64xf8E4M3FN>, memref<32x64xf8E5M2>) outs(%c : memref<32x32xbf16>) {
  ^bb0(%x: f8E4M3FN, %y: f8E5M2, %z: bf16):
    %0 = arith.extf %x : f8E4M3FN to f32
    %1 = arith.extf %y : f8E5M2 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.extf %z : bf16 to f32
    %4 = arith.addf %3, %2 : f32
    %5 = arith.truncf %4 : f32 to bf16
    linalg.yield %5 : bf16
  }
  return
}

// -----

// One of sixteen bits is what both are multiplied as, on all targets: no remark.
// CHECK-LABEL: @half_of_eight_bits
// CHECK:       linalg.generic
// CHECK-SAME:  alcop.contraction = #alcop.contraction<{init = "read", lhs = "mk", rhs = "kn"}>
func.func @half_of_eight_bits(%a: memref<32x64xbf16>, %b: memref<64x32xf8E5M2>, %c: memref<32x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                   affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<32x64xbf16>, memref<64x32xf8E5M2>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: bf16, %y: f8E5M2, %z: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = arith.extf %y : f8E5M2 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }
  return
}
