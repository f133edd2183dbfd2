// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: prefetch_add_with_if
// does: which row is copied depends on an element that is loaded: the result of an `scf.if`
// expect: pipelined shared=1
// options: noalias
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<12x64xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<64xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {

        %l = memref.load %A[%k, %t] : memref<12x64xf32>
        %same = arith.cmpf olt, %l, %zero : f32
        %row = scf.if %same -> (index) {
          %far = arith.addi %k, %c5 : index
          scf.yield %far : index
        } else {
          scf.yield %k : index
        }
        %v = memref.load %A[%row, %t] : memref<12x64xf32>
        memref.store %v, %a[%t] : memref<64xf32, #ws>
        gpu.barrier
        %x = memref.load %a[%other] : memref<64xf32, #ws>
        %next = arith.addf %x, %acc : f32
        gpu.barrier
        scf.yield %next : f32
      }
      memref.store %sum, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
