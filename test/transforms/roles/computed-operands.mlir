// RUN: alcop-opt %s --alcop-plan-pipelines=target=sm_90a --alcop-multi-buffer --alcop-specialize-warps --canonicalize --cse | FileCheck %s
// RUN: alcop-opt %s --alcop-plan-pipelines=target=sm_90a --alcop-multi-buffer --alcop-specialize-warps --canonicalize --cse --alcop-lower-mma --fold-memref-alias-ops --alcop-swizzle-shared --canonicalize --cse | FileCheck %s --check-prefix=LOWERED

// A is computed of bytes: its fragments are in registers, which the same step of the
// next iteration writes when its group of wgmma has ended.
// CHECK-LABEL: @bytes
// CHECK:       memref.alloc() {alcop.boxes = {columns = 64 : i64, swizzle = 64 : i64}, alignment = 512 : i64} : memref<4x64x64xi8
// CHECK:       memref.alloc() {alcop.boxes = {columns = 64 : i64, swizzle = 128 : i64}, alignment = 1024 : i64} : memref<4x64x64xf16
// CHECK:       } else {
// The first iteration has registers of its own.
// CHECK-NOT:   nvvm.wgmma.wait
// CHECK:       vector.contract {{.*}} {alcop.wgmma}
// CHECK:       scf.for
// CHECK:         nvgpu.mbarrier.try_wait.parity
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 3
// CHECK:         %[[BYTES:.*]] = vector.transfer_read %{{.*}} : memref<64x64xi8
// CHECK:         %[[A:.*]] = arith.sitofp %[[BYTES]]
// CHECK:         vector.contract {{.*}} %[[A]], {{.*}} {alcop.wgmma}
// CHECK-COUNT-3: nvvm.wgmma.wait.group.sync.aligned 3
// CHECK:         vector.contract
// No other wait: those of the steps are for all groups of the iteration before.
// CHECK-NOT:     nvvm.wgmma.wait
// CHECK:         nvgpu.mbarrier.arrive
// CHECK:       nvvm.wgmma.wait.group.sync.aligned 0

// LOWERED-LABEL: @bytes
// Lanes read pairs of bytes, where TMA has swizzled them to; B is read by descriptor.
// LOWERED:       } else {
// LOWERED:         %[[PHASE:.*]] = arith.andi %{{.*}}, %c3
// LOWERED:         %[[UNIT:.*]] = arith.shli %[[PHASE]], %c4
// LOWERED:         %[[AT:.*]] = arith.xori %{{.*}}, %[[UNIT]]
// LOWERED:         vector.load %{{.*}}[%{{.*}}, %{{.*}}, %[[AT]]] {{.*}} : memref<4x64x64xi8, {{.*}}>, vector<2xi8>
// LOWERED-NOT:     nvvm.wgmma.fence
// LOWERED:         "alcop.warpgroup_mma"({{.*}}) {adds = 0 : i32, shape = array<i32: 64, 64, 16>, transpose_b = 0 : i32, types = ["f16", "f16", "f32"]}
// LOWERED:         nvvm.wgmma.commit.group.sync.aligned
// LOWERED:         scf.for
// LOWERED:           nvvm.wgmma.wait.group.sync.aligned 3
// LOWERED:           vector.load
// LOWERED:           "alcop.warpgroup_mma"({{.*}}) {adds = 1 : i32
// LOWERED:           nvvm.wgmma.commit.group.sync.aligned
// LOWERED:           nvvm.wgmma.wait.group.sync.aligned 3
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @bytes(%A: memref<64x512xi8>, %B: memref<64x512xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %byte = arith.constant 0 : i8
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xi8, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x512xi8> to memref<64x64xi8, strided<[512, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xi8, strided<[512, 1], offset: ?>> to memref<64x64xi8, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x512xf16> to memref<64x64xf16, strided<[512, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[512, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %bytes = vector.transfer_read %a[%row, %kk], %byte {in_bounds = [true, true]} : memref<64x64xi8, #ws>, vector<16x16xi8>
        %fa = arith.sitofp %bytes : vector<16x16xi8> to vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [4, 2], engine = "wgmma"}>}
  return
}
