// C = A * B in tiles: whole tiles are copied by memref.copy, warps read fragments of them
// into vectors and contract them. 4 warps, 64 x 64 x 32.
#ws = #gpu.address_space<workgroup>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @tile_matmul(%A: memref<4096x4096xf16>, %B: memref<4096x4096xf16>,
    %C: memref<4096x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c4096 = arith.constant 4096 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %c64, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<32x32xf32>
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<32x64xf16, #ws>
    %warp = arith.divui %tx, %c32 : index
    %warp_row = arith.divui %warp, %c2 : index
    %warp_column = arith.remui %warp, %c2 : index
    %wm = arith.muli %warp_row, %c32 : index
    %wn = arith.muli %warp_column, %c32 : index
    %m0 = arith.muli %by, %c64 : index
    %n0 = arith.muli %bx, %c64 : index
    %sum = scf.for %k = %c0 to %c4096 step %c32 iter_args(%acc = %zero)
        -> (vector<32x32xf32>) {
      %ga = memref.subview %A[%m0, %k] [64, 32] [1, 1] : memref<4096x4096xf16>
        to memref<64x32xf16, strided<[4096, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x32xf16, strided<[4096, 1], offset: ?>>
        to memref<64x32xf16, #ws>
      %gb = memref.subview %B[%k, %n0] [32, 64] [1, 1] : memref<4096x4096xf16>
        to memref<32x64xf16, strided<[4096, 1], offset: ?>>
      memref.copy %gb, %b : memref<32x64xf16, strided<[4096, 1], offset: ?>>
        to memref<32x64xf16, #ws>
      gpu.barrier
      %in = scf.for %kk = %c0 to %c32 step %c16 iter_args(%s = %acc)
          -> (vector<32x32xf32>) {
        %fa = vector.transfer_read %a[%wm, %kk], %pad {in_bounds = [true, true]}
          : memref<64x32xf16, #ws>, vector<32x16xf16>
        %fb = vector.transfer_read %b[%kk, %wn], %pad {in_bounds = [true, true]}
          : memref<32x64xf16, #ws>, vector<16x32xf16>
        %n = vector.contract {indexing_maps = [#lhs, #rhs, #out],
            iterator_types = ["parallel", "parallel", "reduction"],
            kind = #vector.kind<add>} %fa, %fb, %s
          : vector<32x16xf16>, vector<16x32xf16> into vector<32x32xf32>
        scf.yield %n : vector<32x32xf32>
      }
      gpu.barrier
      scf.yield %in : vector<32x32xf32>
    }
    %cm = arith.addi %m0, %wm : index
    %cn = arith.addi %n0, %wn : index
    vector.transfer_write %sum, %C[%cm, %cn] {in_bounds = [true, true]}
      : vector<32x32xf32>, memref<4096x4096xf32>
    gpu.terminator
  }
  return
}
