// Attention with a rectifier for the exponential: a block has 32 queries, kept in shared
// memory over the loop; each iteration copies 16 keys and 16 values, and passes the
// weights from the threads that compute them to those that use them.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @attention(%Q: memref<1024x32xf32>, %K: memref<4096x32xf32>,
        %V: memref<4096x32xf32>, %O: memref<1024x32xf32>, %keys: index)
        workgroup(%q : memref<32x32xf32, #ws>, %kt : memref<16x32xf32, #ws>,
                  %vt : memref<16x32xf32, #ws>, %w : memref<32x16xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %zero = arith.constant 0.0 : f32
      %zeros = arith.constant dense<0.0> : vector<8xf32>
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %first = arith.muli %block, %c32 : index
      %query = arith.divui %t, %c4 : index
      %part = arith.remui %t, %c4 : index
      %four = arith.muli %part, %c4 : index
      %eight = arith.muli %part, %c8 : index
      %row = arith.addi %first, %query : index
      %vq = vector.load %Q[%row, %eight] : memref<1024x32xf32>, vector<8xf32>
      vector.store %vq, %q[%query, %eight] : memref<32x32xf32, #ws>, vector<8xf32>
      %copied = arith.divui %t, %c8 : index
      %place = arith.remui %t, %c8 : index
      %from = arith.muli %place, %c4 : index
      %sum = scf.for %k = %c0 to %keys step %c16 iter_args(%acc = %zeros) -> (vector<8xf32>) {
        %key = arith.addi %k, %copied : index
        %vk = vector.load %K[%key, %from] : memref<4096x32xf32>, vector<4xf32>
        vector.store %vk, %kt[%copied, %from] : memref<16x32xf32, #ws>, vector<4xf32>
        %vv = vector.load %V[%key, %from] : memref<4096x32xf32>, vector<4xf32>
        vector.store %vv, %vt[%copied, %from] : memref<16x32xf32, #ws>, vector<4xf32>
        gpu.barrier
        scf.for %j = %c0 to %c4 step %c1 {
          %column = arith.addi %four, %j : index
          %s = scf.for %i = %c0 to %c32 step %c1 iter_args(%r = %zero) -> (f32) {
            %x = memref.load %q[%query, %i] : memref<32x32xf32, #ws>
            %y = memref.load %kt[%column, %i] : memref<16x32xf32, #ws>
            %p = arith.mulf %x, %y : f32
            %n = arith.addf %r, %p : f32
            scf.yield %n : f32
          }
          %weight = arith.maximumf %s, %zero : f32
          memref.store %weight, %w[%query, %column] : memref<32x16xf32, #ws>
        }
        gpu.barrier
        %out = scf.for %j = %c0 to %c16 step %c1 iter_args(%r = %acc) -> (vector<8xf32>) {
          %x = memref.load %w[%query, %j] : memref<32x16xf32, #ws>
          %y = vector.load %vt[%j, %eight] : memref<16x32xf32, #ws>, vector<8xf32>
          %xs = vector.broadcast %x : f32 to vector<8xf32>
          %n = vector.fma %xs, %y, %r : vector<8xf32>
          scf.yield %n : vector<8xf32>
        }
        gpu.barrier
        scf.yield %out : vector<8xf32>
      }
      vector.store %sum, %O[%row, %eight] : memref<1024x32xf32>, vector<8xf32>
      gpu.return
    }
  }
}
