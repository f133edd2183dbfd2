// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c examples/deepseek_v32/test_tilelang_example_deepseek_v32.py
// function: test_example_sparse_mla_fwd
// does: sparse attention: each row of K is gathered by an index of its own, and used twice; scores pass through shared memory
// expect: pipelined shared=1
// options: noalias
// tables: 32
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%Q: memref<8x8xf32>, %K: memref<32x8xf32>, %ids: memref<32xi32>, %C: memref<8x8xf32>)
        workgroup(%QS : memref<8x8xf32, #ws>, %KS : memref<8x8xf32, #ws>, %PS : memref<8x8xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %row = arith.divui %t, %c8 : index
      %col = arith.remui %t, %c8 : index
      %q = memref.load %Q[%row, %col] : memref<8x8xf32>
      memref.store %q, %QS[%row, %col] : memref<8x8xf32, #ws>
      %low = arith.constant 0xFF800000 : f32
      gpu.barrier
      %o, %m, %l = scf.for %k = %c0 to %c32 step %c8 iter_args(%oi = %zero, %mi = %low, %li = %zero) -> (f32, f32, f32) {
        %kr = arith.addi %k, %row : index
        %id = memref.load %ids[%kr] : memref<32xi32>
        %ix = arith.index_cast %id : i32 to index
        %kv = memref.load %K[%ix, %col] : memref<32x8xf32>
        memref.store %kv, %KS[%row, %col] : memref<8x8xf32, #ws>
        gpu.barrier
        %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%in = %zero) -> (f32) {
          %x = memref.load %QS[%row, %j] : memref<8x8xf32, #ws>
          %y = memref.load %KS[%col, %j] : memref<8x8xf32, #ws>
          %p = arith.mulf %x, %y : f32
          %r = arith.addf %in, %p : f32
          scf.yield %r : f32
        }
        memref.store %s, %PS[%row, %col] : memref<8x8xf32, #ws>
        gpu.barrier
        %mx = scf.for %j = %c0 to %c8 step %c1 iter_args(%in = %mi) -> (f32) {
          %x = memref.load %PS[%row, %j] : memref<8x8xf32, #ws>
          %r = arith.maximumf %in, %x : f32
          scf.yield %r : f32
        }
        %shrink0 = arith.subf %mi, %mx : f32
        %shrink = math.exp2 %shrink0 : f32
        %o0 = arith.mulf %oi, %shrink : f32
        %l0 = arith.mulf %li, %shrink : f32
        %on, %ln = scf.for %j = %c0 to %c8 step %c1 iter_args(%ino = %o0, %inl = %l0) -> (f32, f32) {
          %x = memref.load %PS[%row, %j] : memref<8x8xf32, #ws>
          %d = arith.subf %x, %mx : f32
          %e = math.exp2 %d : f32
          %y = memref.load %KS[%j, %col] : memref<8x8xf32, #ws>
          %p = arith.mulf %e, %y : f32
          %r = arith.addf %ino, %p : f32
          %z = arith.addf %inl, %e : f32
          scf.yield %r, %z : f32, f32
        }
        gpu.barrier
        scf.yield %on, %mx, %ln : f32, f32, f32
      }
      %res = arith.divf %o, %l : f32
      memref.store %res, %C[%row, %col] : memref<8x8xf32>
      gpu.return
    }
  }
}
