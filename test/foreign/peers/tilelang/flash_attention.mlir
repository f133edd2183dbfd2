// source: tile-ai/tilelang a35008a42531c62b976ae4cec3855d4383db0f3c examples/flash_attention/test_example_flash_attention.py
// function: test_example_mha_fwd_bhsd
// does: attention: Q copied before the loop, K and V tiles in it, scores pass between threads by shuffles
// expect: pipelined shared=2
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%Q: memref<8x8xf32>, %K: memref<32x8xf32>, %V: memref<32x8xf32>, %C: memref<8x8xf32>)
        workgroup(%QS : memref<8x8xf32, #ws>, %KS : memref<8x8xf32, #ws>, %VS : memref<8x8xf32, #ws>)
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
      %w1 = arith.constant 1 : i32
      %w2 = arith.constant 2 : i32
      %w4 = arith.constant 4 : i32
      %w7 = arith.constant 7 : i32
      %w32 = arith.constant 32 : i32
      %ti = arith.index_cast %t : index to i32
      %in8 = arith.andi %ti, %w7 : i32
      %first = arith.subi %ti, %in8 : i32
      %w31 = arith.constant 31 : i32
      %lane = arith.andi %first, %w31 : i32
      gpu.barrier
      %o, %m, %l = scf.for %k = %c0 to %c32 step %c8 iter_args(%oi = %zero, %mi = %low, %li = %zero) -> (f32, f32, f32) {
        %kr = arith.addi %k, %row : index
        %kv = memref.load %K[%kr, %col] : memref<32x8xf32>
        memref.store %kv, %KS[%row, %col] : memref<8x8xf32, #ws>
        gpu.barrier
        %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%in = %zero) -> (f32) {
          %x = memref.load %QS[%row, %j] : memref<8x8xf32, #ws>
          %y = memref.load %KS[%col, %j] : memref<8x8xf32, #ws>
          %p = arith.mulf %x, %y : f32
          %r = arith.addf %in, %p : f32
          scf.yield %r : f32
        }
        %s1, %v1 = gpu.shuffle xor %s, %w1, %w32 : f32
        %m1 = arith.maximumf %s, %s1 : f32
        %s2, %v2 = gpu.shuffle xor %m1, %w2, %w32 : f32
        %m2 = arith.maximumf %m1, %s2 : f32
        %s4, %v4 = gpu.shuffle xor %m2, %w4, %w32 : f32
        %m4 = arith.maximumf %m2, %s4 : f32
        %mx = arith.maximumf %mi, %m4 : f32
        %d = arith.subf %s, %mx : f32
        %e = math.exp2 %d : f32
        %shrink0 = arith.subf %mi, %mx : f32
        %shrink = math.exp2 %shrink0 : f32
        %vv = memref.load %V[%kr, %col] : memref<32x8xf32>
        memref.store %vv, %VS[%row, %col] : memref<8x8xf32, #ws>
        gpu.barrier
        %o0 = arith.mulf %oi, %shrink : f32
        %l0 = arith.mulf %li, %shrink : f32
        %on, %ln = scf.for %j = %c0 to %c8 step %c1 iter_args(%ino = %o0, %inl = %l0) -> (f32, f32) {
          %ji = arith.index_cast %j : index to i32
          %from = arith.addi %lane, %ji : i32
          %ej, %vj = gpu.shuffle idx %e, %from, %w32 : f32
          %y = memref.load %VS[%j, %col] : memref<8x8xf32, #ws>
          %p = arith.mulf %ej, %y : f32
          %r = arith.addf %ino, %p : f32
          %z = arith.addf %inl, %ej : f32
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
