// 16x8x16 of a tile, as one contraction: B is read transposed, C starts from memory.
#ws = #gpu.address_space<workgroup>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
func.func @warp_contract(%a: memref<128x32xf16, #ws>, %b: memref<32x128xf16, #ws>,
    %C: memref<128x128xf32>, %m: index, %n: index, %k: index) {
  %pad = arith.constant 0.0 : f16
  %padc = arith.constant 0.0 : f32
  %fa = vector.transfer_read %a[%m, %k], %pad {in_bounds = [true, true]}
    : memref<128x32xf16, #ws>, vector<16x16xf16>
  %fb = vector.transfer_read %b[%k, %n], %pad {
      in_bounds = [true, true], permutation_map = #transposed}
    : memref<32x128xf16, #ws>, vector<8x16xf16>
  %c = vector.transfer_read %C[%m, %n], %padc {in_bounds = [true, true]}
    : memref<128x128xf32>, vector<16x8xf32>
  %s = vector.contract {indexing_maps = [#lhs, #rhs, #out],
      iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %fa, %fb, %c
    : vector<16x16xf16>, vector<8x16xf16> into vector<16x8xf32>
  vector.transfer_write %s, %C[%m, %n] {in_bounds = [true, true]}
    : vector<16x8xf32>, memref<128x128xf32>
  return
}
