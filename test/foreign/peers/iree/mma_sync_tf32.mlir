// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/Common/GPU/test/gpu_pipeline.mlir
// function: nvidia_tenscore_schedule_f32
// does: the same in tf32, with one operand read by 32-bit loads
// expect: pipelined shared=2
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x56xf32>, %B: memref<56x8xf32>, %C: memref<16x8xf32>, %n: index)
        workgroup(%a : memref<3x16x8xf32, #ws>, %b : memref<3x8x8xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      %odd = arith.remui %t, %c2 : index
      %none = arith.constant dense<0.0> : vector<2x2xf32>
      %arow = arith.divui %t, %c2 : index
      %acol = arith.muli %odd, %c4 : index
      %mrow = arith.remui %t, %c16 : index
      %mhalf = arith.divui %t, %c16 : index
      %mcol = arith.muli %mhalf, %c4 : index
      %r = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %q4 = arith.addi %q, %c4 : index
      %blank = arith.constant dense<0.0> : vector<2x1xf32>
      %last = arith.muli %n, %c8 : index
      %sum = scf.for %k = %c0 to %last step %c8 iter_args(%acc = %none) -> (vector<2x2xf32>) {
        gpu.barrier
        %step = arith.divui %k, %c8 : index
        %slot = arith.remui %step, %c3 : index
        %ka = arith.addi %k, %acol : index
        %ca = nvgpu.device_async_copy %A[%arow, %ka], %a[%slot, %arow, %acol], 4 {bypassL1} : memref<16x56xf32> to memref<3x16x8xf32, #ws>
        %brow2 = arith.remui %t, %c8 : index
        %bcol = arith.divui %t, %c8 : index
        %bcol2 = arith.muli %bcol, %c2 : index
        %kb2 = arith.addi %k, %brow2 : index
        %cb = nvgpu.device_async_copy %B[%kb2, %bcol2], %b[%slot, %brow2, %bcol2], 2 : memref<56x8xf32> to memref<3x8x8xf32, #ws>
        %g = nvgpu.device_async_create_group %ca, %cb
        nvgpu.device_async_wait %g
        gpu.barrier
        %a0 = nvgpu.ldmatrix %a[%slot, %mrow, %mcol] {numTiles = 4 : i32, transpose = false} : memref<3x16x8xf32, #ws> -> vector<4x1xf32>
        %b0 = memref.load %b[%slot, %q, %r] : memref<3x8x8xf32, #ws>
        %b1 = memref.load %b[%slot, %q4, %r] : memref<3x8x8xf32, #ws>
        %bv0 = vector.insert %b0, %blank [0, 0] : f32 into vector<2x1xf32>
        %bv = vector.insert %b1, %bv0 [1, 0] : f32 into vector<2x1xf32>
        %d = nvgpu.mma.sync (%a0, %bv, %acc) {mmaShape = [16, 8, 8], tf32Enabled} : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
        scf.yield %d : vector<2x2xf32>
      }
      %col = arith.muli %q, %c2 : index
      %r8 = arith.addi %r, %c8 : index
      %top = vector.extract %sum[0] : vector<2xf32> from vector<2x2xf32>
      %low = vector.extract %sum[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %top, %C[%r, %col] : memref<16x8xf32>, vector<2xf32>
      vector.store %low, %C[%r8, %col] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
  }
}
