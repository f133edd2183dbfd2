// C = A * B for every M, N and K: one kernel, which is given the sizes when it runs.
//
// The promise that rows are multiples of 16 bytes lets threads copy 16 bytes at a time;
// it is checked at launch. `alcop-run --sizes M=1000,N=312,K=248` chooses the sizes.

func.func @matmul_any_size_f16(%A: memref<?x?xf16> {alcop.row_alignment = 16 : i64},
                               %B: memref<?x?xf16> {alcop.row_alignment = 16 : i64},
                               %C: memref<?x?xf32> {alcop.row_alignment = 16 : i64}) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<?x?xf32>)
  linalg.matmul ins(%A, %B : memref<?x?xf16>, memref<?x?xf16>)
                outs(%C : memref<?x?xf32>)
  return
}
