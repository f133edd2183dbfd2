// source: triton-lang/triton 0218ea0a95d8a0164a56ed25298c6b8d3b308a26 test/TritonGPU/pipeline-lower-loop.mlir
// function: used_by_if_yield
// does: the loaded tile, or another, is what an `scf.if` yields
// expect: pipelined shared=1
// stages: 4,1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<7x64xf32>, %C: memref<7x64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = memref.load %A[%k, %t] : memref<7x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %some = arith.cmpi ugt, %n, %c3 : index
        %z = scf.if %some -> (f32) {
          scf.yield %x : f32
        } else {
          scf.yield %one : f32
        }
        %next = arith.addf %acc, %z : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%c0, %t] : memref<7x64xf32>
      gpu.return
    }
  }
}
