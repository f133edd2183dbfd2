// RUN: alcop-opt %s --alcop-tile-chains --verify-diagnostics

// A part of a chain has no meaning as tile code.
#map = affine_map<(m, n, k) -> (m, k)>
#map1 = affine_map<(m, n, k) -> (n, k)>
#map2 = affine_map<(m, n, k) -> (m, n)>
func.func @part(%q: memref<64x32xf16>, %k: memref<64x32xf16>, %s: memref<64x64xf32>) {
  // expected-error @below {{is no whole chain, it lacks contracted, maximum, result, weights}}
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%q, %k : memref<64x32xf16>, memref<64x32xf16>) outs(%s : memref<64x64xf32>)
        attrs = {alcop.chain = {role = "scores", batch = 0 : i64, start = 0.0 : f64, scale = 1.0 : f64}} {
    ^bb0(%a: f16, %b: f16, %c: f32):
      %0 = arith.extf %a : f16 to f32
      %1 = arith.extf %b : f16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    }
    scf.yield
  }
  return
}
