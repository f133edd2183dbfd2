// A matmul of floats of eight bits, with a scale per row of A and per column of B, rounded
// to bf16: one kernel. On sm_89 and sm_120 by mma.sync of e4m3, elsewhere as f16.
//
//   alcop-run examples/matmul_scaled_f8.mlir --target sm_89 --device emulator

func.func @matmul(%A: tensor<128x256xf8E4M3FN>, %B: tensor<128x256xf8E4M3FN>,
                  %rows: tensor<128xf32>, %columns: tensor<128xf32>)
    -> tensor<128x128xbf16> {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%none : tensor<128x128xf32>)
      -> tensor<128x128xf32>
  %product = linalg.generic {
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%A, %B : tensor<128x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>)
    outs(%zeros : tensor<128x128xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %c: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    %1 = arith.extf %b : f8E4M3FN to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<128x128xf32>
  %out = tensor.empty() : tensor<128x128xbf16>
  %scaled = linalg.generic {
    indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>,
                     affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%product, %rows, %columns : tensor<128x128xf32>, tensor<128xf32>, tensor<128xf32>)
    outs(%out : tensor<128x128xbf16>) {
  ^bb0(%c: f32, %row: f32, %column: f32, %old: bf16):
    %0 = arith.mulf %c, %row : f32
    %1 = arith.mulf %0, %column : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  } -> tensor<128x128xbf16>
  return %scaled : tensor<128x128xbf16>
}
