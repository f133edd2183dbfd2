// RUN: alcop-opt %s --alcop-plan-pipelines="target=sm_90a assume-noalias-args=true" --verify-diagnostics --split-input-file
// The same loops pipeline as any other, by all warps.
// RUN: alcop-opt %s --alcop-plan-pipelines="target=sm_90a assume-noalias-args=true" --split-input-file 2>/dev/null | FileCheck %s

// TMA takes arrays whose rows are multiples of 16 bytes apart.
// CHECK-LABEL: @unaligned_rows
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @unaligned_rows(%A: memref<64x258xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x258xf16> to memref<64x64xf16, strided<[258, 1], offset: ?>>
      // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'memref.copy' cannot be a copy by TMA: dimension 0 of memref<64x258xf16> has a distance that is a multiple of 516 bytes, 16 are needed}}
      memref.copy %ga, %a : memref<64x64xf16, strided<[258, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// Warps of a warpgroup have neighbouring rows.
// CHECK-LABEL: @other_rows
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @other_rows(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'vector.contract' is not computed by wgmma: rows of a warp are not 16 times the number of the warp}}
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// What else a loop does is in no role.
// CHECK-LABEL: @read_otherwise
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @read_otherwise(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      // expected-remark @below {{not pipelined (rule 3): the loop also reads its shared buffers in ways that are not pipelined}}
      %one = vector.transfer_read %a[%row, %c0], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
      // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'vector.transfer_write' is in the loop, expected copies and contractions alone}}
      vector.transfer_write %one, %D[%row, %c0] {in_bounds = [true, true]} : vector<16x16xf16>, memref<64x64xf16>
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// The warps that copy would not come to a barrier of the others.
// CHECK-LABEL: @barrier_before
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @barrier_before(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'gpu.barrier' is a barrier of all warps outside of the loop}}
    gpu.barrier
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// Who copies would not have what only the others load.
// CHECK-LABEL: @loaded_address
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @loaded_address(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>, %I: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %i = memref.load %I[%c0] : memref<1xindex>
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[%i, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'memref.copy' needs 'memref.load' for its address, which one role does}}
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// TMA would fill the rest of the slot with what follows in memory, not with zero.
// CHECK-LABEL: @smaller_tile
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @smaller_tile(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x256xf16> to memref<64x32xf16, strided<[256, 1], offset: ?>>
      // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'alcop.copy' cannot be a copy by TMA: the extent of the tile along dimension 1 is neither 64 nor what is left of the memref}}
      "alcop.copy"(%ga, %a) : (memref<64x32xf16, strided<[256, 1], offset: ?>>, memref<64x64xf16, #ws>) -> ()
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// Two groups of warps have nothing to take in turn: one group computes the tile.
// CHECK-LABEL: @one_tile
// CHECK:       {in_flight = 1 : i64, name = "compute"}
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @one_tile(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    // expected-remark @below {{no tiles in turn: each block computes one tile}}
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma", mode = "pingpong"}>}
  return
}

// -----

// Blocks of a cluster fill each other's slots: all have to run the loop equally often.
// CHECK-LABEL: @uneven_blocks
// CHECK-NOT:   warps = 4
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @uneven_blocks(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>, %D: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch clusters(%cx, %cy, %cz) in (%scx = %c2, %scy = %c1, %scz = %c1) blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %rank = gpu.cluster_block_id x
    %more = arith.addi %rank, %c1 : index
    %end = arith.muli %more, %c128 : index
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'scf.for' may run more often in one block than in others of its cluster}}
    %sum = scf.for %k = %c0 to %end step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma", cluster = 2}>}
  return
}

// -----

// wgmma takes no fragments of B.
// CHECK-LABEL: @computed_b
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @computed_b(%A: memref<64x512xf16>, %B: memref<64x512xf32>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %pa = arith.constant 0.0 : f16
  %pb = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf32, #ws>
    %sum = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x512xf16> to memref<64x64xf16, strided<[512, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[512, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x512xf32> to memref<64x64xf32, strided<[512, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf32, strided<[512, 1], offset: ?>> to memref<64x64xf32, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %wa = vector.transfer_read %a[%row, %kk], %pa {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %wb = vector.transfer_read %b[%c0, %kk], %pb {in_bounds = [true, true]} : memref<64x64xf32, #ws>, vector<64x16xf32>
        %fb = arith.truncf %wb : vector<64x16xf32> to vector<64x16xf16>
        // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'vector.contract' is not computed by wgmma: B is computed, which wgmma takes of A alone}}
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %wa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// Rows of 256 bytes are two boxes.
// CHECK-LABEL: @wide_rows
// CHECK-NOT:   warps = 4
// CHECK:       rings = {{.*}}slots = 3 : i64}]
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @wide_rows(%A: memref<64x512xf32>, %B: memref<64x512xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %pa = arith.constant 0.0 : f32
  %pb = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf32, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    %sum = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x512xf32> to memref<64x64xf32, strided<[512, 1], offset: ?>>
      // expected-remark @below {{no roles of warps, and mma.sync instead of wgmma: 'memref.copy' copies rows of 256 bytes that A is computed of, expected 128 at most}}
      memref.copy %ga, %a : memref<64x64xf32, strided<[512, 1], offset: ?>> to memref<64x64xf32, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x512xf16> to memref<64x64xf16, strided<[512, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[512, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %wa = vector.transfer_read %a[%row, %kk], %pa {in_bounds = [true, true]} : memref<64x64xf32, #ws>, vector<16x16xf32>
        %wb = vector.transfer_read %b[%c0, %kk], %pb {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %fa = arith.truncf %wa : vector<16x16xf32> to vector<16x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %wb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [3, 2], engine = "wgmma"}>}
  return
}

// -----

// Fewer groups in flight than asked for: a slot that a group reads is not free.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @two_slots(%A: memref<64x256xf16>, %B: memref<64x256xf16>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x64xf16, #ws>
    // expected-remark @below {{1 register stages instead of 3: 2 groups of wgmma in flight need a ring of 4 slots, it has 2}}
    %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %ga = memref.subview %A[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %ga, %a : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      %gb = memref.subview %B[0, %k] [64, 64] [1, 1] : memref<64x256xf16> to memref<64x64xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x64xf16, strided<[256, 1], offset: ?>> to memref<64x64xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x64xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%c0, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<64x16xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<64x16xf16> into vector<16x64xf32>
        scf.yield %s : vector<16x64xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x64xf32>
    }
    vector.transfer_write %sum, %C[%row, %c0] {in_bounds = [true, true]} : vector<16x64xf32>, memref<64x64xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 64, 64], warp = [16, 64], stages = [2, 3], engine = "wgmma"}>}
  return
}
