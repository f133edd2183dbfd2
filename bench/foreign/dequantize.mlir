// y = W * x with weights of 8 bits: a thread widens and scales four weights of a row
// before it stores them, so that the hardware cannot copy them by itself.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @dequantize(%W: memref<1024x4096xi8>, %scale: f32, %x: memref<4096xf32>,
        %y: memref<1024xf32>)
        workgroup(%tile : memref<16x32xf32, #ws>, %xs : memref<32xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c31 = arith.constant 31 : index
      %c32 = arith.constant 32 : index
      %c4096 = arith.constant 4096 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %first = arith.muli %block, %c16 : index
      %copied = arith.divui %t, %c8 : index
      %place = arith.remui %t, %c8 : index
      %from = arith.muli %place, %c4 : index
      %row = arith.addi %first, %copied : index
      %mine = arith.remui %t, %c16 : index
      %one = arith.andi %t, %c31 : index
      %factor = vector.broadcast %scale : f32 to vector<4xf32>
      %sum = scf.for %k = %c0 to %c4096 step %c32 iter_args(%acc = %zero) -> (f32) {
        %kw = arith.addi %k, %from : index
        %w = vector.load %W[%row, %kw] : memref<1024x4096xi8>, vector<4xi8>
        %wide = arith.sitofp %w : vector<4xi8> to vector<4xf32>
        %scaled = arith.mulf %wide, %factor : vector<4xf32>
        vector.store %scaled, %tile[%copied, %from] : memref<16x32xf32, #ws>, vector<4xf32>
        %kx = arith.addi %k, %one : index
        %vx = memref.load %x[%kx] : memref<4096xf32>
        memref.store %vx, %xs[%one] : memref<32xf32, #ws>
        gpu.barrier
        %in = scf.for %i = %c0 to %c32 step %c1 iter_args(%s = %acc) -> (f32) {
          %p = memref.load %tile[%mine, %i] : memref<16x32xf32, #ws>
          %q = memref.load %xs[%i] : memref<32xf32, #ws>
          %m = arith.mulf %p, %q : f32
          %n = arith.addf %s, %m : f32
          scf.yield %n : f32
        }
        gpu.barrier
        scf.yield %in : f32
      }
      %out = arith.addi %first, %mine : index
      memref.store %sum, %y[%out] : memref<1024xf32>
      gpu.return
    }
  }
}
