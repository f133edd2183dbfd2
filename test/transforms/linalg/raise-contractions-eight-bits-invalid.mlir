// RUN: alcop-opt %s --alcop-raise-contractions=target=sm_89 --split-input-file --verify-diagnostics

// Of sixteen bits rounded to eight the fragments are not loaded across K.
func.func @rounded_across_k(%a: memref<32x64xf8E4M3FN>, %b: memref<64x32xf16>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{has an operand transform of f16 to f8E4M3FN stored across K, expected along K}}
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                   affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<32x64xf8E4M3FN>, memref<64x32xf16>) outs(%c : memref<32x32xf32>) {
  ^bb0(%x: f8E4M3FN, %y: f16, %z: f32):
    %0 = arith.truncf %y : f16 to f8E4M3FN
    %1 = arith.extf %x : f8E4M3FN to f32
    %2 = arith.extf %0 : f8E4M3FN to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %z, %3 : f32
    linalg.yield %4 : f32
  }
  return
}

// -----

// Sums are of f32, never of integers.
func.func @integers_of_eight_bits(%a: memref<32x64xf8E4M3FN>, %b: memref<64x32xi8>, %c: memref<32x32xi32>) {
  // expected-remark @+1 {{multiplies i32, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i8}}
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                                   affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<32x64xf8E4M3FN>, memref<64x32xi8>) outs(%c : memref<32x32xi32>) {
  ^bb0(%x: f8E4M3FN, %y: i8, %z: i32):
    %0 = arith.fptosi %x : f8E4M3FN to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %z, %2 : i32
    linalg.yield %3 : i32
  }
  return
}
