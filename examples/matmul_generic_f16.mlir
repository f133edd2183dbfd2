// A contraction as a `linalg.generic`. Any whose body multiplies and adds, and whose
// loops are those of a matmul, is recognised; their order does not matter.

#lhs = affine_map<(k, m, n) -> (m, k)>
#rhs = affine_map<(k, m, n) -> (k, n)>
#out = affine_map<(k, m, n) -> (m, n)>

func.func @matmul_generic_f16(%A: memref<256x384xf16>, %B: memref<384x128xf16>,
                              %C: memref<256x128xf32>) {
  linalg.generic {
    indexing_maps = [#lhs, #rhs, #out],
    iterator_types = ["reduction", "parallel", "parallel"]
  } ins(%A, %B : memref<256x384xf16>, memref<384x128xf16>)
    outs(%C : memref<256x128xf32>) {
  ^body(%a: f16, %b: f16, %c: f32):
    %wide_a = arith.extf %a : f16 to f32
    %wide_b = arith.extf %b : f16 to f32
    %product = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %c, %product : f32
    linalg.yield %sum : f32
  }
  return
}
