// RUN: alcop-run %s | FileCheck %s
// CHECK: result1 {{.*}} out
// CHECK: check
func.func @f(%A: tensor<0x8xf32>, %B: tensor<8x0xf16>) -> (tensor<0x8xf32>, tensor<8x0xf32>) {
  %e = tensor.empty() : tensor<0x8xf32>
  %exp = linalg.exp ins(%A : tensor<0x8xf32>) outs(%e : tensor<0x8xf32>) -> tensor<0x8xf32>
  %W = arith.constant dense<1.0> : tensor<8x8xf16>
  %z = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<8x0xf32>
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<8x0xf32>) -> tensor<8x0xf32>
  %C = linalg.matmul ins(%W, %B : tensor<8x8xf16>, tensor<8x0xf16>) outs(%f : tensor<8x0xf32>) -> tensor<8x0xf32>
  return %exp, %C : tensor<0x8xf32>, tensor<8x0xf32>
}
