// RUN: alcop-opt %s --alcop-check-pipelines --verify-diagnostics

// Of text of PTX nothing is known: what is around it is not checked, which is said.
#ws = #gpu.address_space<workgroup>
!full = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 1>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, #ws>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!sums = !llvm.struct<(f32, f32, f32, f32)>
func.func @text(%map: !map) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %full = nvgpu.mbarrier.create -> !full
    nvgpu.tma.async.load %map[%c0, %c0], %full[%c0] to %a : !map, !full -> memref<64x64xf16, #ws>
    %none = llvm.mlir.undef : !sums
    %word = arith.constant 0 : i32
    %b = arith.constant 0 : i64
    // Computing a number is no harm.
    %same = llvm.inline_asm "mov.b32 $0, $1;", "=r,r" %word : (i32) -> i32
    // expected-remark @below {{rings of mbarriers are not checked: this is text of PTX, which may copy, wait or multiply}}
    llvm.inline_asm has_side_effects "bar.warp.sync -1;", "" : () -> ()
    %sum = "alcop.warpgroup_mma"(%none, %same, %word, %word, %word, %b) {adds = 0 : i32, shape = array<i32: 64, 8, 16>, transpose_b = 0 : i32, types = ["f16", "f16", "f32"]} : (!sums, i32, i32, i32, i32, i64) -> !sums
    gpu.terminator
  }
  return
}
