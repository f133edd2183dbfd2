// RUN: alcop-opt %s --alcop-plan-pipelines=target=sm_90a --alcop-multi-buffer --alcop-specialize-warps --canonicalize --cse --split-input-file | FileCheck %s

// The loop becomes one that fills slots by TMA, in one thread of a warpgroup more, and one
// that reads them; mbarriers say which slots are filled, and which are free.
// CHECK-LABEL: @roles
// CHECK:       %[[MAP_A:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c128{{.*}}, %c64{{.*}}] {{.*}} swizzle = swizzle_128b
// CHECK:       %[[MAP_B:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c64{{.*}}, %c64{{.*}}]
// CHECK:       gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c384
// CHECK:         %[[A:.*]] = memref.alloc() {alcop.boxes = {columns = 64 : i64, swizzle = 128 : i64}, alignment = 1024 : i64} : memref<4x128x64xf16
// CHECK:         %[[FULL:.*]] = nvgpu.mbarrier.create
// CHECK:         %[[EMPTY:.*]] = nvgpu.mbarrier.create
// CHECK:         scf.if
// CHECK:           nvgpu.mbarrier.init %[[FULL]][%c0{{.*}}], %c1
// CHECK:           nvgpu.mbarrier.init %[[EMPTY]][%c0{{.*}}], %c8
// CHECK:           nvvm.fence.mbarrier.init
// CHECK:         gpu.barrier
// CHECK:         scf.if
// CHECK:           nvvm.setmaxregister decrease 40
// CHECK:           nvvm.elect.sync
// CHECK:             nvgpu.tma.prefetch.descriptor %[[MAP_A]]
// CHECK:             nvgpu.tma.prefetch.descriptor %[[MAP_B]]
// CHECK:           scf.for {{.*}} iter_args(%[[SLOT:.*]] = %c0_i32{{.*}}, %[[PARITY:.*]] = %true)
// CHECK:             %[[AT:.*]] = arith.index_castui %[[SLOT]]
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[EMPTY]][%[[AT]]], %[[PARITY]]
// 16384 bytes of A, 16384 of B: two boxes of 64 columns.
// CHECK:             nvgpu.mbarrier.arrive.expect_tx %[[FULL]][%[[AT]]], %c32768
// CHECK:             nvgpu.tma.async.load %[[MAP_A]][{{.*}}], %[[FULL]][%[[AT]]]
// CHECK-COUNT-2:     nvgpu.tma.async.load %[[MAP_B]][{{.*}}], %[[FULL]][%[[AT]]]
// CHECK:         } else {
// CHECK:           nvvm.setmaxregister increase 232
// The first iteration adds to nothing.
// CHECK:           nvgpu.mbarrier.try_wait.parity %[[FULL]][%c0{{.*}}], %false
// CHECK-COUNT-4:   vector.contract {{.*}} {alcop.wgmma}
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %c1_i32{{.*}}, %[[PARITY:.*]] = %false, %[[OLD:.*]] = %c0_i32{{.*}})
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[FULL]]
// CHECK-NOT:         memref.copy
// CHECK-COUNT-4:     vector.contract {{.*}} {alcop.wgmma}
// A group stays in flight: the slot before is freed.
// CHECK:             nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:             %[[FREED:.*]] = arith.index_castui %[[OLD]]
// CHECK:             nvgpu.mbarrier.arrive %[[EMPTY]][%[[FREED]]]
// CHECK:           nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:           vector.transfer_write
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @roles(%A: memref<256x512xf16>, %B: memref<512x256xf16>, %C: memref<256x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x128xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %m = arith.muli %by, %c128 : index
    %n = arith.muli %bx, %c128 : index
    %a = memref.alloc() : memref<128x64xf16, #ws>
    %b = memref.alloc() : memref<64x128xf16, #ws>
    %sum = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (vector<16x128xf32>) {
      %ga = memref.subview %A[%m, %k] [128, 64] [1, 1] : memref<256x512xf16> to memref<128x64xf16, strided<[512, 1], offset: ?>>
      memref.copy %ga, %a : memref<128x64xf16, strided<[512, 1], offset: ?>> to memref<128x64xf16, #ws>
      %gb = memref.subview %B[%k, %n] [64, 128] [1, 1] : memref<512x256xf16> to memref<64x128xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x128xf16, strided<[256, 1], offset: ?>> to memref<64x128xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x128xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<128x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%kk, %c0], %pad {in_bounds = [true, true]} : memref<64x128xf16, #ws>, vector<16x128xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<16x128xf16> into vector<16x128xf32>
        scf.yield %s : vector<16x128xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x128xf32>
    }
    %at = arith.addi %m, %row : index
    vector.transfer_write %sum, %C[%at, %n] {in_bounds = [true, true]} : vector<16x128xf32>, memref<256x256xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 128, 64], warp = [16, 128], stages = [4, 2], engine = "wgmma"}>}
  return
}

// -----

// Both blocks of a cluster have the same columns: each copies one of the two boxes of B to
// both, and frees a slot in both.
// CHECK-LABEL: @clusters
// CHECK:       %[[MAP_A:.*]] = nvgpu.tma.create.descriptor
// CHECK:       %[[MAP_B:.*]] = nvgpu.tma.create.descriptor
// CHECK:         %[[FULL:.*]] = nvgpu.mbarrier.create
// CHECK:         %[[EMPTY:.*]] = nvgpu.mbarrier.create
// CHECK:           nvgpu.mbarrier.init %[[FULL]][%c0{{.*}}], %c1
// CHECK:           nvgpu.mbarrier.init %[[EMPTY]][%c0{{.*}}], %c16
// CHECK:         nvvm.cluster.arrive
// CHECK-NEXT:    nvvm.cluster.wait
// CHECK:             nvgpu.mbarrier.arrive.expect_tx %[[FULL]][%{{.*}}], %c32768
// CHECK:             nvgpu.tma.async.load %[[MAP_A]][{{.*}}], %[[FULL]][{{.*}}] to
// CHECK:             nvgpu.tma.async.load %[[MAP_B]][{{.*}}], %[[FULL]][{{.*}}] to %{{.*}} multicast_mask = %c3_i16
// CHECK-NOT:         nvgpu.tma.async.load
// CHECK:         } else {
// CHECK:           %[[FIRST:.*]] = nvgpu.mbarrier.get %[[EMPTY]][%c0{{.*}}]
// CHECK:           %[[OWN:.*]] = llvm.inttoptr %[[FIRST]]
// CHECK:           %[[REMOTE:.*]] = nvvm.mapa %[[OWN]]
// CHECK:             nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:             %[[FREED:.*]] = llvm.getelementptr %[[REMOTE]]
// CHECK:             nvvm.mbarrier.arrive %[[FREED]]
// CHECK:         nvvm.cluster.arrive
// CHECK-NEXT:    nvvm.cluster.wait
// CHECK-NEXT:    gpu.terminator
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @clusters(%A: memref<256x512xf16>, %B: memref<512x256xf16>, %C: memref<256x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x128xf32>
  gpu.launch clusters(%cx, %cy, %cz) in (%scx = %c2, %scy = %c1, %scz = %c1) blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %rank = gpu.cluster_block_id x
    %m = arith.muli %rank, %c128 : index
    %n = arith.muli %cx, %c128 : index
    %a = memref.alloc() : memref<128x64xf16, #ws>
    %b = memref.alloc() : memref<64x128xf16, #ws>
    %sum = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (vector<16x128xf32>) {
      %ga = memref.subview %A[%m, %k] [128, 64] [1, 1] : memref<256x512xf16> to memref<128x64xf16, strided<[512, 1], offset: ?>>
      memref.copy %ga, %a : memref<128x64xf16, strided<[512, 1], offset: ?>> to memref<128x64xf16, #ws>
      %gb = memref.subview %B[%k, %n] [64, 128] [1, 1] : memref<512x256xf16> to memref<64x128xf16, strided<[256, 1], offset: ?>>
      memref.copy %gb, %b : memref<64x128xf16, strided<[256, 1], offset: ?>> to memref<64x128xf16, #ws>
      gpu.barrier
      %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x128xf32>) {
        %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<128x64xf16, #ws>, vector<16x16xf16>
        %fb = vector.transfer_read %b[%kk, %c0], %pad {in_bounds = [true, true]} : memref<64x128xf16, #ws>, vector<16x128xf16>
        %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<16x128xf16> into vector<16x128xf32>
        scf.yield %s : vector<16x128xf32>
      }
      gpu.barrier
      scf.yield %next : vector<16x128xf32>
    }
    %at = arith.addi %m, %row : index
    vector.transfer_write %sum, %C[%at, %n] {in_bounds = [true, true]} : vector<16x128xf32>, memref<256x256xf32>
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [128, 128, 64], warp = [16, 128], stages = [4, 2], engine = "wgmma", cluster = 2}>}
  return
}

// -----

// Two groups of four warps take the tiles of a block in turn; the second one begins 8
// iterations later: in slot 2 of 3, and in the other phase of the ring or not.
// CHECK-LABEL: @turns
// CHECK:       gpu.launch {{.*}} threads({{.*}}) in (%{{.*}} = %c384
// CHECK:         %[[FULL:.*]] = nvgpu.mbarrier.create
// CHECK:         %[[EMPTY:.*]] = nvgpu.mbarrier.create
// CHECK:         %[[ORDER:.*]] = nvgpu.mbarrier.create
// CHECK:           nvgpu.mbarrier.init %[[EMPTY]][%c0{{.*}}], %c4
// CHECK:           nvgpu.mbarrier.init %[[ORDER]][%c1{{.*}}], %c4
// CHECK:         } else {
// CHECK:           %[[SECOND:.*]] = arith.cmpi uge, %{{.*}}, %c4_i32
// CHECK-DAG:       %[[NEXT:.*]] = arith.addi %[[FIRST:.*]], %c2
// CHECK-DAG:       %[[LOWER:.*]] = arith.select %[[SECOND]], %[[NEXT]], %[[FIRST]]
// CHECK-DAG:       %[[SLOT:.*]] = arith.select %[[SECOND]], %c2_i32, %c0_i32
// CHECK-DAG:       %[[TURN:.*]] = arith.cmpi ult, %{{.*}}, %c4_i32
// CHECK:           scf.for %{{.*}} = %[[LOWER]] to %c8{{.*}} step %c4{{.*}} iter_args(%{{.*}} = %[[SLOT]], %{{.*}} = %{{.*}}, %[[PHASE:.*]] = %[[TURN]])
// CHECK:             %[[OWN:.*]] = arith.select %[[SECOND]], %c1{{.*}}, %c0
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[ORDER]][%[[OWN]]], %[[PHASE]]
// CHECK:             nvgpu.mbarrier.try_wait.parity %[[FULL]]
// CHECK:             scf.for
// CHECK:               nvgpu.mbarrier.arrive %[[EMPTY]]
// CHECK:             %[[OTHER:.*]] = arith.select %[[SECOND]], %c0{{.*}}, %c1
// CHECK:             nvgpu.mbarrier.arrive %[[ORDER]][%[[OTHER]]]
// CHECK:             nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:             vector.transfer_write
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @turns(%A: memref<256x512xf16>, %B: memref<512x256xf16>, %C: memref<256x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x128xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %warp = arith.divui %tx, %c32 : index
    %row = arith.muli %warp, %c16 : index
    %a = memref.alloc() : memref<64x64xf16, #ws>
    %b = memref.alloc() : memref<64x128xf16, #ws>
    scf.for %tile = %bx to %c8 step %c2 {
      %y = arith.divui %tile, %c2 : index
      %x = arith.remui %tile, %c2 : index
      %m = arith.muli %y, %c64 : index
      %n = arith.muli %x, %c128 : index
      %sum = scf.for %k = %c0 to %c512 step %c64 iter_args(%acc = %zero) -> (vector<16x128xf32>) {
        %ga = memref.subview %A[%m, %k] [64, 64] [1, 1] : memref<256x512xf16> to memref<64x64xf16, strided<[512, 1], offset: ?>>
        memref.copy %ga, %a : memref<64x64xf16, strided<[512, 1], offset: ?>> to memref<64x64xf16, #ws>
        %gb = memref.subview %B[%k, %n] [64, 128] [1, 1] : memref<512x256xf16> to memref<64x128xf16, strided<[256, 1], offset: ?>>
        memref.copy %gb, %b : memref<64x128xf16, strided<[256, 1], offset: ?>> to memref<64x128xf16, #ws>
        gpu.barrier
        %next = scf.for %kk = %c0 to %c64 step %c16 iter_args(%part = %acc) -> (vector<16x128xf32>) {
          %fa = vector.transfer_read %a[%row, %kk], %pad {in_bounds = [true, true]} : memref<64x64xf16, #ws>, vector<16x16xf16>
          %fb = vector.transfer_read %b[%kk, %c0], %pad {in_bounds = [true, true]} : memref<64x128xf16, #ws>, vector<16x128xf16>
          %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %part : vector<16x16xf16>, vector<16x128xf16> into vector<16x128xf32>
          scf.yield %s : vector<16x128xf32>
        }
        gpu.barrier
        scf.yield %next : vector<16x128xf32>
      }
      %at = arith.addi %m, %row : index
      vector.transfer_write %sum, %C[%at, %n] {in_bounds = [true, true]} : vector<16x128xf32>, memref<256x256xf32>
    }
    gpu.terminator
  } {alcop.schedule = #alcop.schedule<{block = [64, 128, 64], warp = [16, 128], stages = [3, 2], engine = "wgmma", mode = "pingpong"}>}
  return
}
