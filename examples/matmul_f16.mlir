// C = A * B in half precision: f16 in, f32 out, accumulated in f32.
//
//   alcop-run examples/matmul_f16.mlir
//   alcop-run examples/matmul_f16.mlir --schedule 'block=128,128,32 warp=64,64 stages=3,2'
//   alcop-compile examples/matmul_f16.mlir --target sm_90 -o matmul.zip
//   alcop-run matmul.zip
//
// Without the zero fill it would be `C += A * B`. The fill is folded into the kernel,
// whose accumulators start at zero.

func.func @matmul_f16(%A: memref<512x1024xf16>, %B: memref<1024x512xf16>,
                      %C: memref<512x512xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<512x512xf32>)
  linalg.matmul ins(%A, %B : memref<512x1024xf16>, memref<1024x512xf16>)
                outs(%C : memref<512x512xf32>)
  return
}
