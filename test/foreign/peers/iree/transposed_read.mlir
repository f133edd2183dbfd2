// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/LLVMGPU/test/prefetch_shared_memory.mlir
// function: prefetch_transpose_load
// does: the buffer is read by an op that transposes between the lanes of a warp
// expect: pipelined shared=1
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<22x16xf16>, %C: memref<32x8xf16>, %n: index)
        workgroup(%a : memref<16x16xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      %odd = arith.remui %t, %c2 : index
      %flat = arith.constant dense<0.0> : vector<4x2xf16>
      %half = arith.divui %t, %c2 : index
      %odd8 = arith.muli %odd, %c8 : index
      %mrow = arith.remui %t, %c16 : index
      %mhalf = arith.divui %t, %c16 : index
      %mcol = arith.muli %mhalf, %c8 : index
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %flat) -> (vector<4x2xf16>) {
        %from = arith.addi %k, %half : index
        %v = vector.load %A[%from, %odd8] : memref<22x16xf16>, vector<8xf16>
        vector.store %v, %a[%half, %odd8] : memref<16x16xf16, #ws>, vector<8xf16>
        gpu.barrier
        %x = nvgpu.ldmatrix %a[%mrow, %mcol] {numTiles = 4 : i32, transpose = true} : memref<16x16xf16, #ws> -> vector<4x2xf16>
        %next = arith.addf %acc, %x : vector<4x2xf16>
        gpu.barrier
        scf.yield %next : vector<4x2xf16>
      }
      %out = vector.shape_cast %sum : vector<4x2xf16> to vector<8xf16>
      vector.store %out, %C[%t, %c0] : memref<32x8xf16>, vector<8xf16>
      gpu.return
    }
  }
}
