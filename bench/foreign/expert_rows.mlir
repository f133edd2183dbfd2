// Rows picked by two tables, one after the other, as a mixture of experts does: an entry
// names an expert, the expert a row. A thread copies under the condition that the entry
// is there.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @expert_rows(%entries: memref<4096xi32>, %experts: memref<64xi32>,
        %A: memref<65536x128xf32>, %out: memref<128xf32>, %n: index)
        workgroup(%line : memref<128xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c127 = arith.constant 127 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c127, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %entry = memref.load %entries[%k] : memref<4096xi32>
        %expert = arith.index_cast %entry : i32 to index
        %first = memref.load %experts[%expert] : memref<64xi32>
        %row = arith.index_cast %first : i32 to index
        %is_there = arith.cmpi sge, %row, %c0 : index
        scf.if %is_there {
          %v = memref.load %A[%row, %t] : memref<65536x128xf32>
          memref.store %v, %line[%t] : memref<128xf32, #ws>
        } else {
          memref.store %zero, %line[%t] : memref<128xf32, #ws>
        }
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
