// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-store-tiles{target=sm_90a}))' --split-input-file --verify-diagnostics | FileCheck %s

// A warp's 16x128 elements are two portions of 64 columns, 128 bytes: each passes through a
// slot of the warp, of which the eight that compute have two.
// CHECK-LABEL: @portions
// CHECK:       %[[MAP:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c16{{.*}}, %c64{{.*}}] : memref<*xf16> -> <tensor = memref<16x64xf16, 3>, swizzle = swizzle_128b
// CHECK:       gpu.launch
// CHECK:         %[[SLOTS:.*]] = memref.alloc() {alcop.boxes = {columns = 64 : i64, swizzle = 128 : i64}, alignment = 1024 : i64} : memref<16x16x64xf16
// CHECK:         scf.for
// CHECK:           %[[TILE:.*]] = arith.truncf
// CHECK:           %[[ELECTED:.*]] = nvvm.elect.sync
// The slot is free: the engine has read all but the last portion.
// CHECK:           nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK:           nvvm.bar.warp.sync
// CHECK:           %[[PART:.*]] = vector.extract_strided_slice %[[TILE]] {offsets = [0, 0], sizes = [16, 64]
// CHECK:           %[[SLOT:.*]] = memref.reinterpret_cast %[[SLOTS]]
// CHECK:           vector.transfer_write %[[PART]], %[[SLOT]]
// CHECK-NEXT:      nvvm.fence.proxy {{.*}}async.shared
// CHECK:           nvvm.bar.warp.sync
// CHECK:           scf.if %[[ELECTED]] {
// CHECK:             nvgpu.tma.async.store %{{.*}} to %[[MAP]]
// CHECK-NEXT:        nvvm.cp.async.bulk.commit.group
// CHECK-NEXT:      }
// CHECK:           nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK:           vector.extract_strided_slice %[[TILE]] {offsets = [0, 64], sizes = [16, 64]
// CHECK:           nvgpu.tma.async.store
// CHECK-NOT:       vector.transfer_write
// CHECK:         }
// CHECK:         nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NEXT:    gpu.terminator
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @portions(%C: memref<512x256xf16>, %va: vector<16x16xf16>, %vb: vector<128x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c384 = arith.constant 384 : index
  %zero = arith.constant dense<0.0> : vector<16x128xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %ring = memref.alloc() : memref<4x128x64xf16, #ws>
    scf.for %tile = %c0 to %c2 step %c1 {
      %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %zero {alcop.wgmma} : vector<16x16xf16>, vector<128x16xf16> into vector<16x128xf32>
      %h = arith.truncf %s : vector<16x128xf32> to vector<16x128xf16>
      vector.transfer_write %h, %C[%tile, %bx] {in_bounds = [true, true]} : vector<16x128xf16>, memref<512x256xf16>
    }
    gpu.terminator
  }
  return
}

// -----

// The engine drops what is outside of C: of branches that differ in bounds one is left. Three
// portions of 32 columns are stored through one slot.
// CHECK-LABEL: @branches
// CHECK:         memref.alloc() {alcop.boxes = {columns = 32 : i64, swizzle = 64 : i64}, alignment = 512 : i64} : memref<8x16x32xf16
// CHECK-NOT:     scf.if %arg
// CHECK-COUNT-3: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:         nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NEXT:    gpu.terminator
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @branches(%C: memref<500x88xf16>, %inside: i1, %va: vector<16x16xf16>, %vb: vector<96x16xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c384 = arith.constant 384 : index
  %zero = arith.constant dense<0.0> : vector<16x96xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %ring = memref.alloc() : memref<4x128x64xf16, #ws>
    %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %zero {alcop.wgmma} : vector<16x16xf16>, vector<96x16xf16> into vector<16x96xf32>
    %h = arith.truncf %s : vector<16x96xf32> to vector<16x96xf16>
    scf.if %inside {
      vector.transfer_write %h, %C[%bx, %by] {in_bounds = [true, true]} : vector<16x96xf16>, memref<500x88xf16>
    } else {
      vector.transfer_write %h, %C[%bx, %by] : vector<16x96xf16>, memref<500x88xf16>
    }
    gpu.terminator
  }
  return
}

// -----

// Elements of a word: a pattern of 128 bytes is 32 columns.
// CHECK-LABEL: @words
// CHECK:       nvgpu.tma.create.descriptor %{{.*}} box[%c16{{.*}}, %c32{{.*}}] : memref<*xf32> -> <tensor = memref<16x32xf32, 3>, swizzle = swizzle_128b
// CHECK:         memref.alloc() {alcop.boxes = {columns = 32 : i64, swizzle = 128 : i64}, alignment = 1024 : i64} : memref<16x16x32xf32
// CHECK-COUNT-4: nvgpu.tma.async.store
// CHECK-NOT:     vector.transfer_write %{{.*}} : vector<16x128xf32>
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @words(%C: memref<500x132xf32>, %va: vector<16x16xf16>, %vb: vector<128x16xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c384 = arith.constant 384 : index
  %zero = arith.constant dense<0.0> : vector<16x128xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %ring = memref.alloc() : memref<4x128x64xf16, #ws>
    %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %zero {alcop.wgmma} : vector<16x16xf16>, vector<128x16xf16> into vector<16x128xf32>
    vector.transfer_write %s, %C[%bx, %by] : vector<16x128xf32>, memref<500x132xf32>
    gpu.terminator
  }
  return
}

// -----

// What does not fit stays, and says why.
// CHECK-LABEL: @refused
// CHECK-NOT:   nvgpu.tma.async.store
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @refused(%C: memref<512x132xf16>, %D: memref<512x128xf8E4M3FN>, %E: memref<512x256xf16>, %va: vector<16x16xf16>, %vb: vector<128x16xf16>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c384 = arith.constant 384 : index
  %zero = arith.constant dense<0.0> : vector<16x128xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c384, %sy = %c1, %sz = %c1) {
    %ring = memref.alloc() : memref<7x256x64xf16, #ws>
    %s = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %zero {alcop.wgmma} : vector<16x16xf16>, vector<128x16xf16> into vector<16x128xf32>
    %h = arith.truncf %s : vector<16x128xf32> to vector<16x128xf16>
    // expected-remark @below {{C is stored from registers, not by TMA: dimension 0 of memref<512x132xf16> has a distance that is a multiple of 264 bytes, 16 are needed}}
    vector.transfer_write %h, %C[%bx, %by] {in_bounds = [true, true]} : vector<16x128xf16>, memref<512x132xf16>
    %b = arith.truncf %s : vector<16x128xf32> to vector<16x128xf8E4M3FN>
    // expected-remark @below {{C is stored from registers, not by TMA: elements have 8 bits, expected 16 or 32}}
    vector.transfer_write %b, %D[%bx, %by] {in_bounds = [true, true]} : vector<16x128xf8E4M3FN>, memref<512x128xf8E4M3FN>
    %part = memref.subview %E[0, 0] [512, 128] [1, 1] : memref<512x256xf16> to memref<512x128xf16, strided<[256, 1]>>
    // expected-remark @below {{C is stored from registers, not by TMA: C is a part of a memref, whose edge it may exceed}}
    vector.transfer_write %h, %part[%bx, %by] : vector<16x128xf16>, memref<512x128xf16, strided<[256, 1]>>
    // expected-remark @below {{C is stored from registers, not by TMA: a slot for each warp needs 16384 bytes of shared memory, 2048 are left: fewer stages or a smaller block}}
    vector.transfer_write %h, %E[%bx, %by] {in_bounds = [true, true]} : vector<16x128xf16>, memref<512x256xf16>
    gpu.terminator
  }
  return
}
