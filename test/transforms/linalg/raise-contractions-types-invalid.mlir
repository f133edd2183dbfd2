// RUN: alcop-opt %s --alcop-raise-contractions --split-input-file --verify-diagnostics | FileCheck %s

// Nothing here is marked.
// CHECK-NOT: alcop.contraction

func.func @tf32(%a: memref<32x32xf32>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{'linalg.matmul' runs as a SIMT fallback: has f32 inputs, which tensor cores round to tf32 (10 bits of mantissa): done with the option 'allow-tf32' only}}
  linalg.matmul ins(%a, %a : memref<32x32xf32>, memref<32x32xf32>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @two_types(%a: memref<32x32xf16>, %b: memref<32x32xf32>, %c: memref<32x32xf32>) {
  // expected-remark @+1 {{'linalg.matmul' runs as a SIMT fallback: multiplies f32, which tensor cores round to tf32 (10 bits of mantissa): done with the option 'allow-tf32' only}}
  linalg.matmul ins(%a, %b : memref<32x32xf16>, memref<32x32xf32>) outs(%c : memref<32x32xf32>)
  return
}

// -----

func.func @wide_integers(%a: memref<32x32xi16>, %c: memref<32x32xi32>) {
  // expected-remark @+1 {{'linalg.matmul' runs as a SIMT fallback: has i16 inputs, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i8}}
  linalg.matmul ins(%a, %a : memref<32x32xi16>, memref<32x32xi16>) outs(%c : memref<32x32xi32>)
  return
}

// -----

// The inputs as unsigned: another contraction.
func.func @unsigned(%a: memref<32x32xi8>, %c: memref<32x32xi32>) {
  // expected-remark @+1 {{'linalg.matmul' runs as a SIMT fallback: multiplies i32, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i8}}
  linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %a : memref<32x32xi8>, memref<32x32xi8>) outs(%c : memref<32x32xi32>)
  return
}

// -----

// Sums that wrap around at 8 bits: not those of i32, cut.
func.func @narrow_sum(%a: memref<32x32xi8>, %c: memref<32x32xi8>) {
  // expected-remark @+1 {{'linalg.matmul' runs as a SIMT fallback: computes in i8, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i32: accumulators are f32, or i32 for integers}}
  linalg.matmul ins(%a, %a : memref<32x32xi8>, memref<32x32xi8>) outs(%c : memref<32x32xi8>)
  return
}
