// Five points of a 2-D grid, marched down the rows: each row is staged with its halo of 4
// columns on either side, zero beyond the grid, and added to the two rows before.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @stencil(%A: memref<2048x2056xf32>, %out: memref<2048x2048xf32>, %rows: index)
        workgroup(%line : memref<136xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %c34 = arith.constant 34 : index
      %c128 = arith.constant 128 : index
      %zero = arith.constant 0.0 : f32
          %quarter = arith.constant 0.25 : f32
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %left = arith.muli %block, %c128 : index
      %mine = arith.remui %t, %c34 : index
      %place = arith.muli %mine, %c4 : index
      %from = arith.addi %left, %place : index
      %west = arith.addi %t, %c3 : index
      %here = arith.addi %t, %c4 : index
      %east = arith.addi %t, %c5 : index
      %column = arith.addi %left, %t : index
      %last:2 = scf.for %row = %c0 to %rows step %c1
      iter_args(%above = %zero, %middle = %zero) -> (f32, f32) {
        %v = vector.load %A[%row, %from] : memref<2048x2056xf32>, vector<4xf32>
        vector.store %v, %line[%place] : memref<136xf32, #ws>, vector<4xf32>
        gpu.barrier
        %w = memref.load %line[%west] : memref<136xf32, #ws>
        %h = memref.load %line[%here] : memref<136xf32, #ws>
        %e = memref.load %line[%east] : memref<136xf32, #ws>
        %sides = arith.addf %w, %e : f32
        %column_sum = arith.addf %above, %h : f32
        %all = arith.addf %sides, %column_sum : f32
        %scaled = arith.mulf %all, %quarter : f32
        %value = arith.addf %scaled, %middle : f32
        memref.store %value, %out[%row, %column] : memref<2048x2048xf32>
        gpu.barrier
        scf.yield %middle, %h : f32, f32
      }
      gpu.return
    }
  }
}
