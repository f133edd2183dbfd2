// The same matmul as tiled_matmul.mlir; each thread copies 16 bytes of A and B. The two
// fragment steps are written out: upstream's pipeliner refuses loops that hold loops.
#ws = #gpu.address_space<workgroup>
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @thread_matmul(%A: memref<512x1024xf16>, %B: memref<1024x512xf16>,
    %C: memref<512x512xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<32x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c4, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c512, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<128x32xf16, #ws>
    %b = memref.alloc() : memref<32x128xf16, #ws>
    %m0 = arith.muli %by, %c128 : index
    %n0 = arith.muli %bx, %c128 : index
    %warp = arith.divui %tx, %c32 : index
    %warp_row = arith.divui %warp, %c4 : index
    %warp_column = arith.remui %warp, %c4 : index
    %wm = arith.muli %warp_row, %c32 : index
    %wn = arith.muli %warp_column, %c32 : index
    %ar = arith.divui %tx, %c4 : index
    %ac0 = arith.remui %tx, %c4 : index
    %ac = arith.muli %ac0, %c8 : index
    %br = arith.divui %tx, %c16 : index
    %bc0 = arith.remui %tx, %c16 : index
    %bc = arith.muli %bc0, %c8 : index
    %am = arith.addi %m0, %ar : index
    %bn = arith.addi %n0, %bc : index
    %sum = scf.for %k = %c0 to %c1024 step %c32 iter_args(%acc = %zero)
        -> (vector<32x32xf32>) {
      %ka = arith.addi %k, %ac : index
      %va = vector.transfer_read %A[%am, %ka], %pad {in_bounds = [true]}
        : memref<512x1024xf16>, vector<8xf16>
      vector.transfer_write %va, %a[%ar, %ac] {in_bounds = [true]}
        : vector<8xf16>, memref<128x32xf16, #ws>
      %kb = arith.addi %k, %br : index
      %vb = vector.transfer_read %B[%kb, %bn], %pad {in_bounds = [true]}
        : memref<1024x512xf16>, vector<8xf16>
      vector.transfer_write %vb, %b[%br, %bc] {in_bounds = [true]}
        : vector<8xf16>, memref<32x128xf16, #ws>
      gpu.barrier
      %fa0 = vector.transfer_read %a[%wm, %c0], %pad {in_bounds = [true, true]}
        : memref<128x32xf16, #ws>, vector<32x16xf16>
      %fb0 = vector.transfer_read %b[%c0, %wn], %pad {in_bounds = [true, true]}
        : memref<32x128xf16, #ws>, vector<16x32xf16>
      %s0 = vector.contract {indexing_maps = [#lhs, #rhs, #out],
          iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>} %fa0, %fb0, %acc
        : vector<32x16xf16>, vector<16x32xf16> into vector<32x32xf32>
      %fa1 = vector.transfer_read %a[%wm, %c16], %pad {in_bounds = [true, true]}
        : memref<128x32xf16, #ws>, vector<32x16xf16>
      %fb1 = vector.transfer_read %b[%c16, %wn], %pad {in_bounds = [true, true]}
        : memref<32x128xf16, #ws>, vector<16x32xf16>
      %s1 = vector.contract {indexing_maps = [#lhs, #rhs, #out],
          iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>} %fa1, %fb1, %s0
        : vector<32x16xf16>, vector<16x32xf16> into vector<32x32xf32>
      gpu.barrier
      scf.yield %s1 : vector<32x32xf32>
    }
    %cm = arith.addi %m0, %wm : index
    %cn = arith.addi %n0, %wn : index
    vector.transfer_write %sum, %C[%cm, %cn] {in_bounds = [true, true]}
      : vector<32x32xf32>, memref<512x512xf32>
    gpu.terminator
  }
  return
}
