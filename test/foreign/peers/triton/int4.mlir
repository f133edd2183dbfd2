// source: triton-lang/triton 004311d2a0780ccae8d030069745b50f42eb9144 test/TritonGPU/loop-pipeline.mlir
// function: int4_matmul_ampere
// does: tiles of f32 and of packed 4-bit integers; these are unpacked and converted after they are read
// expect: pipelined shared=2
// tables: 100
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %B: memref<7x256xi8>, %C: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>, %b : memref<256xi8, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %four8 = arith.constant dense<4> : vector<4xi8>
      %t4 = arith.muli %t, %c4 : index
      %o4 = arith.muli %other, %c4 : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        %w = vector.load %B[%k, %t4] : memref<7x256xi8>, vector<4xi8>
        vector.store %w, %b[%t4] : memref<256xi8, #ws>, vector<4xi8>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %p = vector.load %b[%o4] : memref<256xi8, #ws>, vector<4xi8>
        %up = arith.shli %p, %four8 : vector<4xi8>
        %low = arith.shrsi %up, %four8 : vector<4xi8>
        %high = arith.shrsi %p, %four8 : vector<4xi8>
        %l = vector.extract %low[1] : i8 from vector<4xi8>
        %h = vector.extract %high[2] : i8 from vector<4xi8>
        %lf = arith.sitofp %l : i8 to f32
        %hf = arith.sitofp %h : i8 to f32
        %y = arith.addf %lf, %hf : f32
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
