// f32, rounded to tf32 on tensor cores; else a SIMT fallback.
func.func @matmul_tf32(%A: memref<128x96xf32>, %B: memref<96x200xf32>,
                       %C: memref<128x200xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<128x200xf32>)
  linalg.matmul ins(%A, %B : memref<128x96xf32>, memref<96x200xf32>)
      outs(%C : memref<128x200xf32>)
  return
}
