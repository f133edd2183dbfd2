#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @main(%arg0: tensor<64xf16> {alcop.weight}, %arg1: tensor<64xf16> {alcop.weight}, %arg2: tensor<64xf16> {alcop.weight}, %arg3: tensor<6x64xf16>, %arg4: tensor<6x64xf16>) -> (tensor<6x64xf16>, tensor<6x64xf16>) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e-05 : f64
    %cst_1 = arith.constant 6.400000e+01 : f32
    %0 = tensor.empty() : tensor<6x64xf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3, %arg0 : tensor<6x64xf16>, tensor<64xf16>) outs(%0 : tensor<6x64xf16>) {
    ^bb0(%in: f16, %in_2: f16, %out: f16):
      %19 = arith.addf %in, %in_2 : f16
      linalg.yield %19 : f16
    } -> tensor<6x64xf16>
    %2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %arg4 : tensor<6x64xf16>, tensor<6x64xf16>) outs(%0 : tensor<6x64xf16>) {
    ^bb0(%in: f16, %in_2: f16, %out: f16):
      %19 = arith.addf %in, %in_2 : f16
      linalg.yield %19 : f16
    } -> tensor<6x64xf16>
    %3 = tensor.empty() : tensor<6x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<6x64xf16>) outs(%3 : tensor<6x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      linalg.yield %19 : f32
    } -> tensor<6x64xf32>
    %5 = tensor.empty() : tensor<6x1xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<6x1xf32>) -> tensor<6x1xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%4 : tensor<6x64xf32>) outs(%6 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst_1 : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %8 : tensor<6x64xf32>, tensor<6x1xf32>) outs(%3 : tensor<6x64xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.subf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<6x64xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%9, %9 : tensor<6x64xf32>, tensor<6x64xf32>) outs(%3 : tensor<6x64xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.mulf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<6x64xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%10 : tensor<6x64xf32>) outs(%6 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst_1 : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.truncf %cst_0 : f64 to f32
      %20 = arith.addf %in, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<6x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<6x1xf32>) outs(%5 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = math.rsqrt %in : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%9, %14 : tensor<6x64xf32>, tensor<6x1xf32>) outs(%3 : tensor<6x64xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.mulf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<6x64xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%15, %arg1 : tensor<6x64xf32>, tensor<64xf16>) outs(%3 : tensor<6x64xf32>) {
    ^bb0(%in: f32, %in_2: f16, %out: f32):
      %19 = arith.extf %in_2 : f16 to f32
      %20 = arith.mulf %in, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<6x64xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%16, %arg2 : tensor<6x64xf32>, tensor<64xf16>) outs(%3 : tensor<6x64xf32>) {
    ^bb0(%in: f32, %in_2: f16, %out: f32):
      %19 = arith.extf %in_2 : f16 to f32
      %20 = arith.addf %in, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<6x64xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%17 : tensor<6x64xf32>) outs(%0 : tensor<6x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<6x64xf16>
    return %18, %2 : tensor<6x64xf16>, tensor<6x64xf16>
  }
}
