// RUN: alcop-opt %s --alcop-lower-to-nvvm=target=sm_90a | FileCheck %s

// wgmma with A in registers is text: a fence, and the instruction.
// CHECK-LABEL: llvm.func @of_registers
// CHECK:       llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, 1, 0;\0Awgmma.fence.sync.aligned;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p, 1, 1, 1;\0A}", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l"
// Integers have no signs; bytes along K no transposition.
// CHECK:       llvm.inline_asm has_side_effects "{\0A.reg .pred p;\0Asetp.ne.b32 p, 0, 0;\0Awgmma.fence.sync.aligned;\0Awgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $12, p;\0A}", "=r,=r,=r,=r,0,1,2,3,r,r,r,r,l"
!floats = !llvm.struct<(f32, f32, f32, f32)>
!whole = !llvm.struct<(i32, i32, i32, i32)>
gpu.module @kernels {
  gpu.func @of_registers(%p: memref<4xf32>, %q: memref<4xi32>, %a: i32, %b: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %f = llvm.mlir.undef : !floats
    %i = llvm.mlir.undef : !whole
    %s = "alcop.warpgroup_mma"(%f, %a, %a, %a, %a, %b) {adds = 1 : i32, shape = array<i32: 64, 8, 16>, transpose_b = 1 : i32, types = ["bf16", "bf16", "f32"]} : (!floats, i32, i32, i32, i32, i64) -> !floats
    %t = "alcop.warpgroup_mma"(%i, %a, %a, %a, %a, %b) {adds = 0 : i32, shape = array<i32: 64, 8, 32>, transpose_b = 0 : i32, types = ["s8", "s8", "s32"]} : (!whole, i32, i32, i32, i32, i64) -> !whole
    %x = llvm.extractvalue %s[0] : !floats
    %y = llvm.extractvalue %t[0] : !whole
    memref.store %x, %p[%c0] : memref<4xf32>
    memref.store %y, %q[%c0] : memref<4xi32>
    gpu.return
  }
}
