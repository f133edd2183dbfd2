// source: llvm/llvm-project 2811a388560edd7c9bd7136c42a47371ac09d3f2 mlir/test/Dialect/NVGPU/transform-pipeline-shared.mlir
// function: simple_depth_2_unpeeled
// does: copies that nothing in the loop reads, next to an addition; without a peeled tail it cannot predicate them
// expect: refused: (rule 2): where it writes in its buffer changes from iteration to iteration
// there: refused
// sizes: 1 2 7
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<1792xf32>, %C: memref<64xf32>, %n: index)
        workgroup(%a : memref<1792xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %t = gpu.thread_id x
      %other = arith.subi %c63, %t : index
      %c256 = arith.constant 256 : index
      %t4 = arith.muli %t, %c4 : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %i = arith.muli %k, %c256 : index
        %at = arith.addi %i, %t4 : index
        %v = vector.load %A[%at] : memref<1792xf32>, vector<4xf32>
        vector.store %v, %a[%at] : memref<1792xf32, #ws>, vector<4xf32>

        %next = arith.addf %acc, %one : f32
        scf.yield %next : f32
      }
      gpu.barrier
      %end = memref.load %a[%other] : memref<1792xf32, #ws>
      %r = arith.addf %end, %sum : f32
      memref.store %r, %C[%t] : memref<64xf32>
      gpu.return
    }
  }
}
