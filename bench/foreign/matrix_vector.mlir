// y = A * x, one row per thread: x is staged by asynchronous copies that the kernel waits
// for at once, 128 elements at a time, and zero beyond its end.
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @matrix_vector(%A: memref<4000x4096xf32>, %x: memref<4096xf32>,
        %y: memref<4096xf32>, %n: index)
        workgroup(%part : memref<128xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %block = gpu.block_id x
      %first = arith.muli %block, %c128 : index
      %column = arith.addi %first, %t : index
      %sum = scf.for %k = %c0 to %n step %c128 iter_args(%acc = %zero) -> (f32) {
        %from = arith.addi %k, %t : index
        %inside = arith.cmpi slt, %from, %n : index
        %count = arith.select %inside, %c1, %c0 : index
        %c = nvgpu.device_async_copy %x[%from], %part[%t], 1, %count : memref<4096xf32> to memref<128xf32, #ws>
        %g = nvgpu.device_async_create_group %c
        nvgpu.device_async_wait %g {numGroups = 0 : i32}
        gpu.barrier
        %in = scf.for %i = %c0 to %c128 step %c1 iter_args(%s = %acc) -> (f32) {
          %row = arith.addi %k, %i : index
          %a = memref.load %A[%row, %column] : memref<4000x4096xf32>
          %b = memref.load %part[%i] : memref<128xf32, #ws>
          %p = arith.mulf %a, %b : f32
          %q = arith.addf %s, %p : f32
          scf.yield %q : f32
        }
        gpu.barrier
        scf.yield %in : f32
      }
      memref.store %sum, %y[%column] : memref<4096xf32>
      gpu.return
    }
  }
}
