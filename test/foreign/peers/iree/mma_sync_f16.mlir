// source: iree-org/iree b48a5955575cf8924ffc191f3b0804976e5738b9 compiler/src/iree/compiler/Codegen/Common/GPU/test/gpu_pipeline.mlir
// function: nvidia_tenscore_schedule_f16
// does: asynchronous copies into slots that the program numbers, by the index divided by the step modulo 3; `ldmatrix` of two steps and `mma.sync`
// expect: pipelined shared=3
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<16x224xf16>, %B: memref<224x8xf16>, %C: memref<16x8xf16>, %n: index)
        workgroup(%a : memref<3x16x32xf16, #ws>, %b : memref<3x32x8xf16, #ws>)
        kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %t = gpu.thread_id x
      %odd = arith.remui %t, %c2 : index
      %none = arith.constant dense<0.0> : vector<2x2xf16>
      %arow = arith.divui %t, %c2 : index
      %acol = arith.muli %odd, %c16 : index
      %acol1 = arith.addi %acol, %c8 : index
      %mrow = arith.remui %t, %c16 : index
      %mhalf = arith.divui %t, %c16 : index
      %mcol = arith.muli %mhalf, %c8 : index
      %mcol1 = arith.addi %mcol, %c16 : index
      %mrow1 = arith.addi %mrow, %c16 : index
      %last = arith.muli %n, %c32 : index
      %sum = scf.for %k = %c0 to %last step %c32 iter_args(%acc = %none) -> (vector<2x2xf16>) {
        gpu.barrier
        %step = arith.divui %k, %c32 : index
        %slot = arith.remui %step, %c3 : index
        %ka = arith.addi %k, %acol : index
        %ka1 = arith.addi %k, %acol1 : index
        %kb = arith.addi %k, %t : index
        %ca = nvgpu.device_async_copy %A[%arow, %ka], %a[%slot, %arow, %acol], 8 {bypassL1} : memref<16x224xf16> to memref<3x16x32xf16, #ws>
        %cb = nvgpu.device_async_copy %A[%arow, %ka1], %a[%slot, %arow, %acol1], 8 {bypassL1} : memref<16x224xf16> to memref<3x16x32xf16, #ws>
        %cc = nvgpu.device_async_copy %B[%kb, %c0], %b[%slot, %t, %c0], 8 {bypassL1} : memref<224x8xf16> to memref<3x32x8xf16, #ws>
        %g = nvgpu.device_async_create_group %ca, %cb, %cc
        nvgpu.device_async_wait %g
        gpu.barrier
        %a0 = nvgpu.ldmatrix %a[%slot, %mrow, %mcol] {numTiles = 4 : i32, transpose = false} : memref<3x16x32xf16, #ws> -> vector<4x2xf16>
        %a1 = nvgpu.ldmatrix %a[%slot, %mrow, %mcol1] {numTiles = 4 : i32, transpose = false} : memref<3x16x32xf16, #ws> -> vector<4x2xf16>
        %b0 = nvgpu.ldmatrix %b[%slot, %mrow, %c0] {numTiles = 2 : i32, transpose = true} : memref<3x32x8xf16, #ws> -> vector<2x2xf16>
        %b1 = nvgpu.ldmatrix %b[%slot, %mrow1, %c0] {numTiles = 2 : i32, transpose = true} : memref<3x32x8xf16, #ws> -> vector<2x2xf16>
        %d0 = nvgpu.mma.sync (%a0, %b0, %acc) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
        %d1 = nvgpu.mma.sync (%a1, %b1, %d0) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
        scf.yield %d1 : vector<2x2xf16>
      }
      %r = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %col = arith.muli %q, %c2 : index
      %r8 = arith.addi %r, %c8 : index
      %top = vector.extract %sum[0] : vector<2xf16> from vector<2x2xf16>
      %low = vector.extract %sum[1] : vector<2xf16> from vector<2x2xf16>
      vector.store %top, %C[%r, %col] : memref<16x8xf16>, vector<2xf16>
      vector.store %low, %C[%r8, %col] : memref<16x8xf16>, vector<2xf16>
      gpu.return
    }
  }
}
