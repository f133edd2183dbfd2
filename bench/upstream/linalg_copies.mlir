// C = A * B, 512x512x1024, in tiles of 128x128x32: tiled_matmul.mlir with linalg.copy.
#ws = #gpu.address_space<workgroup>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @linalg_copies(%A: memref<512x1024xf16>, %B: memref<1024x512xf16>,
    %C: memref<512x512xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c4, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %a = memref.alloc() : memref<128x32xf16, #ws>
    %b = memref.alloc() : memref<32x128xf16, #ws>
    %warp = arith.divui %tx, %c32 : index
    %warp_row = arith.divui %warp, %c2 : index
    %warp_column = arith.remui %warp, %c2 : index
    %wm = arith.muli %warp_row, %c64 : index
    %wn = arith.muli %warp_column, %c64 : index
    %m0 = arith.muli %by, %c128 : index
    %n0 = arith.muli %bx, %c128 : index
    %sum = scf.for %k = %c0 to %c1024 step %c32 iter_args(%acc = %zero)
        -> (vector<64x64xf32>) {
      %ga = memref.subview %A[%m0, %k] [128, 32] [1, 1] : memref<512x1024xf16>
        to memref<128x32xf16, strided<[1024, 1], offset: ?>>
      linalg.copy ins(%ga : memref<128x32xf16, strided<[1024, 1], offset: ?>>)
          outs(%a : memref<128x32xf16, #ws>)
      %gb = memref.subview %B[%k, %n0] [32, 128] [1, 1] : memref<1024x512xf16>
        to memref<32x128xf16, strided<[512, 1], offset: ?>>
      linalg.copy ins(%gb : memref<32x128xf16, strided<[512, 1], offset: ?>>)
          outs(%b : memref<32x128xf16, #ws>)
      gpu.barrier
      %in = scf.for %kk = %c0 to %c32 step %c16 iter_args(%s = %acc)
          -> (vector<64x64xf32>) {
        %fa = vector.transfer_read %a[%wm, %kk], %pad {in_bounds = [true, true]}
          : memref<128x32xf16, #ws>, vector<64x16xf16>
        %fb = vector.transfer_read %b[%kk, %wn], %pad {in_bounds = [true, true]}
          : memref<32x128xf16, #ws>, vector<16x64xf16>
        %n = vector.contract {indexing_maps = [#lhs, #rhs, #out],
            iterator_types = ["parallel", "parallel", "reduction"],
            kind = #vector.kind<add>} %fa, %fb, %s
          : vector<64x16xf16>, vector<16x64xf16> into vector<64x64xf32>
        scf.yield %n : vector<64x64xf32>
      }
      gpu.barrier
      scf.yield %in : vector<64x64xf32>
    }
    %cm = arith.addi %m0, %wm : index
    %cn = arith.addi %n0, %wn : index
    vector.transfer_write %sum, %C[%cm, %cn] {in_bounds = [true, true]}
      : vector<64x64xf32>, memref<512x512xf32>
    gpu.terminator
  }
  return
}
