// The sums of 64 rows per block: rows are staged in shared memory 128 columns at a time,
// so that loads are coalesced; each thread then adds up a row of its own.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @row_reduction(%A: memref<4096x4096xf32>, %sums: memref<4096xf32>)
        workgroup(%tile : memref<64x33xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
          %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %c4096 = arith.constant 4096 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %first = arith.muli %block, %c64 : index
      %lane = arith.remui %t, %c32 : index
      %warp = arith.divui %t, %c32 : index
      %o0 = arith.constant 0 : index
      %r0 = arith.addi %warp, %o0 : index
      %g0 = arith.addi %first, %r0 : index
      %o1 = arith.constant 2 : index
      %r1 = arith.addi %warp, %o1 : index
      %g1 = arith.addi %first, %r1 : index
      %o2 = arith.constant 4 : index
      %r2 = arith.addi %warp, %o2 : index
      %g2 = arith.addi %first, %r2 : index
      %o3 = arith.constant 6 : index
      %r3 = arith.addi %warp, %o3 : index
      %g3 = arith.addi %first, %r3 : index
      %o4 = arith.constant 8 : index
      %r4 = arith.addi %warp, %o4 : index
      %g4 = arith.addi %first, %r4 : index
      %o5 = arith.constant 10 : index
      %r5 = arith.addi %warp, %o5 : index
      %g5 = arith.addi %first, %r5 : index
      %o6 = arith.constant 12 : index
      %r6 = arith.addi %warp, %o6 : index
      %g6 = arith.addi %first, %r6 : index
      %o7 = arith.constant 14 : index
      %r7 = arith.addi %warp, %o7 : index
      %g7 = arith.addi %first, %r7 : index
      %o8 = arith.constant 16 : index
      %r8 = arith.addi %warp, %o8 : index
      %g8 = arith.addi %first, %r8 : index
      %o9 = arith.constant 18 : index
      %r9 = arith.addi %warp, %o9 : index
      %g9 = arith.addi %first, %r9 : index
      %o10 = arith.constant 20 : index
      %r10 = arith.addi %warp, %o10 : index
      %g10 = arith.addi %first, %r10 : index
      %o11 = arith.constant 22 : index
      %r11 = arith.addi %warp, %o11 : index
      %g11 = arith.addi %first, %r11 : index
      %o12 = arith.constant 24 : index
      %r12 = arith.addi %warp, %o12 : index
      %g12 = arith.addi %first, %r12 : index
      %o13 = arith.constant 26 : index
      %r13 = arith.addi %warp, %o13 : index
      %g13 = arith.addi %first, %r13 : index
      %o14 = arith.constant 28 : index
      %r14 = arith.addi %warp, %o14 : index
      %g14 = arith.addi %first, %r14 : index
      %o15 = arith.constant 30 : index
      %r15 = arith.addi %warp, %o15 : index
      %g15 = arith.addi %first, %r15 : index
      %o16 = arith.constant 32 : index
      %r16 = arith.addi %warp, %o16 : index
      %g16 = arith.addi %first, %r16 : index
      %o17 = arith.constant 34 : index
      %r17 = arith.addi %warp, %o17 : index
      %g17 = arith.addi %first, %r17 : index
      %o18 = arith.constant 36 : index
      %r18 = arith.addi %warp, %o18 : index
      %g18 = arith.addi %first, %r18 : index
      %o19 = arith.constant 38 : index
      %r19 = arith.addi %warp, %o19 : index
      %g19 = arith.addi %first, %r19 : index
      %o20 = arith.constant 40 : index
      %r20 = arith.addi %warp, %o20 : index
      %g20 = arith.addi %first, %r20 : index
      %o21 = arith.constant 42 : index
      %r21 = arith.addi %warp, %o21 : index
      %g21 = arith.addi %first, %r21 : index
      %o22 = arith.constant 44 : index
      %r22 = arith.addi %warp, %o22 : index
      %g22 = arith.addi %first, %r22 : index
      %o23 = arith.constant 46 : index
      %r23 = arith.addi %warp, %o23 : index
      %g23 = arith.addi %first, %r23 : index
      %o24 = arith.constant 48 : index
      %r24 = arith.addi %warp, %o24 : index
      %g24 = arith.addi %first, %r24 : index
      %o25 = arith.constant 50 : index
      %r25 = arith.addi %warp, %o25 : index
      %g25 = arith.addi %first, %r25 : index
      %o26 = arith.constant 52 : index
      %r26 = arith.addi %warp, %o26 : index
      %g26 = arith.addi %first, %r26 : index
      %o27 = arith.constant 54 : index
      %r27 = arith.addi %warp, %o27 : index
      %g27 = arith.addi %first, %r27 : index
      %o28 = arith.constant 56 : index
      %r28 = arith.addi %warp, %o28 : index
      %g28 = arith.addi %first, %r28 : index
      %o29 = arith.constant 58 : index
      %r29 = arith.addi %warp, %o29 : index
      %g29 = arith.addi %first, %r29 : index
      %o30 = arith.constant 60 : index
      %r30 = arith.addi %warp, %o30 : index
      %g30 = arith.addi %first, %r30 : index
      %o31 = arith.constant 62 : index
      %r31 = arith.addi %warp, %o31 : index
      %g31 = arith.addi %first, %r31 : index
      %sum = scf.for %k = %c0 to %c4096 step %c32 iter_args(%acc = %zero) -> (f32) {
        %column = arith.addi %k, %lane : index
        %v0 = memref.load %A[%g0, %column] : memref<4096x4096xf32>
        memref.store %v0, %tile[%r0, %lane] : memref<64x33xf32, #ws>
        %v1 = memref.load %A[%g1, %column] : memref<4096x4096xf32>
        memref.store %v1, %tile[%r1, %lane] : memref<64x33xf32, #ws>
        %v2 = memref.load %A[%g2, %column] : memref<4096x4096xf32>
        memref.store %v2, %tile[%r2, %lane] : memref<64x33xf32, #ws>
        %v3 = memref.load %A[%g3, %column] : memref<4096x4096xf32>
        memref.store %v3, %tile[%r3, %lane] : memref<64x33xf32, #ws>
        %v4 = memref.load %A[%g4, %column] : memref<4096x4096xf32>
        memref.store %v4, %tile[%r4, %lane] : memref<64x33xf32, #ws>
        %v5 = memref.load %A[%g5, %column] : memref<4096x4096xf32>
        memref.store %v5, %tile[%r5, %lane] : memref<64x33xf32, #ws>
        %v6 = memref.load %A[%g6, %column] : memref<4096x4096xf32>
        memref.store %v6, %tile[%r6, %lane] : memref<64x33xf32, #ws>
        %v7 = memref.load %A[%g7, %column] : memref<4096x4096xf32>
        memref.store %v7, %tile[%r7, %lane] : memref<64x33xf32, #ws>
        %v8 = memref.load %A[%g8, %column] : memref<4096x4096xf32>
        memref.store %v8, %tile[%r8, %lane] : memref<64x33xf32, #ws>
        %v9 = memref.load %A[%g9, %column] : memref<4096x4096xf32>
        memref.store %v9, %tile[%r9, %lane] : memref<64x33xf32, #ws>
        %v10 = memref.load %A[%g10, %column] : memref<4096x4096xf32>
        memref.store %v10, %tile[%r10, %lane] : memref<64x33xf32, #ws>
        %v11 = memref.load %A[%g11, %column] : memref<4096x4096xf32>
        memref.store %v11, %tile[%r11, %lane] : memref<64x33xf32, #ws>
        %v12 = memref.load %A[%g12, %column] : memref<4096x4096xf32>
        memref.store %v12, %tile[%r12, %lane] : memref<64x33xf32, #ws>
        %v13 = memref.load %A[%g13, %column] : memref<4096x4096xf32>
        memref.store %v13, %tile[%r13, %lane] : memref<64x33xf32, #ws>
        %v14 = memref.load %A[%g14, %column] : memref<4096x4096xf32>
        memref.store %v14, %tile[%r14, %lane] : memref<64x33xf32, #ws>
        %v15 = memref.load %A[%g15, %column] : memref<4096x4096xf32>
        memref.store %v15, %tile[%r15, %lane] : memref<64x33xf32, #ws>
        %v16 = memref.load %A[%g16, %column] : memref<4096x4096xf32>
        memref.store %v16, %tile[%r16, %lane] : memref<64x33xf32, #ws>
        %v17 = memref.load %A[%g17, %column] : memref<4096x4096xf32>
        memref.store %v17, %tile[%r17, %lane] : memref<64x33xf32, #ws>
        %v18 = memref.load %A[%g18, %column] : memref<4096x4096xf32>
        memref.store %v18, %tile[%r18, %lane] : memref<64x33xf32, #ws>
        %v19 = memref.load %A[%g19, %column] : memref<4096x4096xf32>
        memref.store %v19, %tile[%r19, %lane] : memref<64x33xf32, #ws>
        %v20 = memref.load %A[%g20, %column] : memref<4096x4096xf32>
        memref.store %v20, %tile[%r20, %lane] : memref<64x33xf32, #ws>
        %v21 = memref.load %A[%g21, %column] : memref<4096x4096xf32>
        memref.store %v21, %tile[%r21, %lane] : memref<64x33xf32, #ws>
        %v22 = memref.load %A[%g22, %column] : memref<4096x4096xf32>
        memref.store %v22, %tile[%r22, %lane] : memref<64x33xf32, #ws>
        %v23 = memref.load %A[%g23, %column] : memref<4096x4096xf32>
        memref.store %v23, %tile[%r23, %lane] : memref<64x33xf32, #ws>
        %v24 = memref.load %A[%g24, %column] : memref<4096x4096xf32>
        memref.store %v24, %tile[%r24, %lane] : memref<64x33xf32, #ws>
        %v25 = memref.load %A[%g25, %column] : memref<4096x4096xf32>
        memref.store %v25, %tile[%r25, %lane] : memref<64x33xf32, #ws>
        %v26 = memref.load %A[%g26, %column] : memref<4096x4096xf32>
        memref.store %v26, %tile[%r26, %lane] : memref<64x33xf32, #ws>
        %v27 = memref.load %A[%g27, %column] : memref<4096x4096xf32>
        memref.store %v27, %tile[%r27, %lane] : memref<64x33xf32, #ws>
        %v28 = memref.load %A[%g28, %column] : memref<4096x4096xf32>
        memref.store %v28, %tile[%r28, %lane] : memref<64x33xf32, #ws>
        %v29 = memref.load %A[%g29, %column] : memref<4096x4096xf32>
        memref.store %v29, %tile[%r29, %lane] : memref<64x33xf32, #ws>
        %v30 = memref.load %A[%g30, %column] : memref<4096x4096xf32>
        memref.store %v30, %tile[%r30, %lane] : memref<64x33xf32, #ws>
        %v31 = memref.load %A[%g31, %column] : memref<4096x4096xf32>
        memref.store %v31, %tile[%r31, %lane] : memref<64x33xf32, #ws>
        gpu.barrier
        %in = scf.for %i = %c0 to %c32 step %c1 iter_args(%s = %acc) -> (f32) {
          %x = memref.load %tile[%t, %i] : memref<64x33xf32, #ws>
          %n = arith.addf %s, %x : f32
          scf.yield %n : f32
        }
        gpu.barrier
        scf.yield %in : f32
      }
      %mine = arith.addi %first, %t : index
      memref.store %sum, %sums[%mine] : memref<4096xf32>
      gpu.return
    }
  }
}
