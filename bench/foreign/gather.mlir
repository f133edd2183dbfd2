// Rows picked by a table and added up. Which row an iteration copies is loaded an
// iteration before the copy.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @gather(%table: memref<4096xi32>, %A: memref<65536x128xf32>,
        %out: memref<128xf32>, %n: index)
        workgroup(%line : memref<128xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c127 = arith.constant 127 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c127, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %entry = memref.load %table[%k] : memref<4096xi32>
        %row = arith.index_cast %entry : i32 to index
        %v = memref.load %A[%row, %t] : memref<65536x128xf32>
        memref.store %v, %line[%t] : memref<128xf32, #ws>
        gpu.barrier
        %a = memref.load %line[%t] : memref<128xf32, #ws>
        %b = memref.load %line[%other] : memref<128xf32, #ws>
        %p = arith.mulf %a, %b : f32
        %q = arith.addf %acc, %p : f32
        gpu.barrier
        scf.yield %q : f32
      }
      memref.store %sum, %out[%t] : memref<128xf32>
      gpu.return
    }
  }
}
