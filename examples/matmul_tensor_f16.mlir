// A matmul as a function on tensors, f16 in and out. The result becomes an array at the
// end of the argument list: Python calls it as `program(A, B, result)`.
//
// Accumulators are f32 all the same, and rounded to f16 once.

func.func @matmul_tensor_f16(%A: tensor<256x512xf16>, %B: tensor<512x256xf16>)
    -> tensor<256x256xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<256x256xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<256x256xf16>)
      -> tensor<256x256xf16>
  %C = linalg.matmul ins(%A, %B : tensor<256x512xf16>, tensor<512x256xf16>)
                     outs(%init : tensor<256x256xf16>) -> tensor<256x256xf16>
  return %C : tensor<256x256xf16>
}
