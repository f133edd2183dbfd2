// RUN: alcop-opt %s --alcop-lower-mma --canonicalize --cse --split-input-file | FileCheck %s

// Rows that are not aligned go through shared memory, eight at a time: what the quads
// hold of them, and out again, lane by lane along the rows. All warps must be done with
// the tiles that the buffer lies over; after that a warp waits for itself only.
// CHECK-LABEL: @staged
// CHECK:       %[[STAGE:.*]] = memref.alloc() {alcop.overlaid} : memref<640xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-4: nvgpu.mma.sync
// CHECK-NOT:   gpu.shuffle
// CHECK:       gpu.barrier
// CHECK:       llvm.inline_asm
// CHECK:       %[[WARP:.*]] = arith.divui %{{.*}}, %c32
// CHECK:       %[[QUAD:.*]] = arith.divui %[[LANE:.*]], %c4
// CHECK:       %[[OWN:.*]] = arith.muli %[[WARP]], %c320
// CHECK:       %[[ROW:.*]] = arith.muli %[[QUAD]], %c40
// CHECK:       %[[FIRST:.*]] = arith.addi %[[OWN]], %[[ROW]]
// CHECK:       %[[AT:.*]] = arith.addi %[[FIRST]], %{{.*}}
// CHECK:       vector.store %{{.*}}, %[[STAGE]][%[[AT]]] {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK-COUNT-3: vector.store %{{.*}}, %[[STAGE]][%{{.*}}] {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// CHECK:       nvvm.bar.warp.sync
// CHECK:       %[[V:.*]] = memref.load %[[STAGE]][%{{.*}}]
// CHECK:       memref.store %[[V]], %{{.*}}[%c0, %[[LANE]]] : memref<16x33xf32>
// CHECK:       nvvm.bar.warp.sync
// CHECK-COUNT-4: vector.store %{{.*}}, %[[STAGE]]
// CHECK:       memref.store %{{.*}}, %{{.*}}[%c8, %[[LANE]]] : memref<16x33xf32>
// CHECK-NOT:   gpu.barrier
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @staged(%C: memref<16x33xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    gpu.terminator
  }
  return
}

// -----

// One barrier for all stores in an op, and one buffer; both stand where all threads come.
// CHECK-LABEL: @in_a_branch
// CHECK:       memref.alloc() {alcop.overlaid}
// CHECK-NOT:   memref.alloc() {alcop.overlaid}
// CHECK:       gpu.barrier
// CHECK-NEXT:  scf.if
// CHECK-NOT:   gpu.barrier
// CHECK:       nvvm.bar.warp.sync
// CHECK:       } else {
// CHECK:       nvvm.bar.warp.sync
// CHECK-NOT:   gpu.barrier
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @in_a_branch(%C: memref<16x33xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    scf.if %go {
      vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    } else {
      vector.transfer_write %s, %C[%c0, %c1] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    }
    gpu.terminator
  }
  return
}

// -----

// Two elements at once where that is what rows allow.
// CHECK-LABEL: @pairs
// CHECK:       %[[PAIR:.*]] = vector.load %{{.*}} {alignment = 8 : i64} : memref<640xf32, #gpu.address_space<workgroup>>, vector<2xf32>
// CHECK:       vector.store %[[PAIR]], %{{.*}} {alignment = 8 : i64} : memref<16x34xf32>, vector<2xf32>
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @pairs(%C: memref<16x34xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x34xf32>
    gpu.terminator
  }
  return
}

// -----

// Rows of 16 bytes that begin within sectors.
// CHECK-LABEL: @within_sectors
// CHECK-NOT:   gpu.shuffle
// CHECK:       nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @within_sectors(%C: memref<16x36xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x36xf32>
    gpu.terminator
  }
  return
}

// -----

// Whole sectors: the quads exchange what they hold by themselves.
// CHECK-LABEL: @aligned
// CHECK-NOT:   alcop.overlaid
// CHECK:       gpu.shuffle
// CHECK-NOT:   nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @aligned(%C: memref<16x40xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x40xf32>
    gpu.terminator
  }
  return
}

// -----

// The tiles are smaller than a row of each quad of each warp: stored by each lane.
// CHECK-LABEL: @no_room
// CHECK-NOT:   alcop.overlaid
// CHECK-NOT:   nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @no_room(%C: memref<16x33xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    gpu.terminator
  }
  return
}

// -----

// The tiles are used again.
// CHECK-LABEL: @used_later
// CHECK-NOT:   alcop.overlaid
// CHECK-NOT:   nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @used_later(%C: memref<16x33xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    %x = memref.load %b[%c0, %tx] : memref<16x32xf16, #ws>
    memref.store %x, %a[%c0, %tx] : memref<64x32xf16, #ws>
    gpu.terminator
  }
  return
}

// -----

// In a loop the tiles may be filled again.
// CHECK-LABEL: @in_a_loop
// CHECK-NOT:   alcop.overlaid
// CHECK-NOT:   nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @in_a_loop(%C: memref<16x33xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    scf.for %i = %c0 to %n step %c1 {
      vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    }
    gpu.terminator
  }
  return
}

// -----

// Where some threads do not come, none can wait for them.
// CHECK-LABEL: @some_threads
// CHECK-NOT:   alcop.overlaid
// CHECK-NOT:   nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @some_threads(%C: memref<16x33xf32>, %n: index, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    %few = arith.cmpi ult, %tx, %c4 : index
    scf.if %few {
      vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x33xf32>
    }
    gpu.terminator
  }
  return
}

// -----

// Two warps side by side hold parts of the same rows: each stores half of these, and the
// block waits. Where a row begins within a sector, columns move around in it.
// CHECK-LABEL: @side_by_side
// CHECK:       %[[STAGE:.*]] = memref.alloc() {alcop.overlaid}
// CHECK:       gpu.barrier
// CHECK:       %[[MEMBER:.*]] = arith.remui %{{.*}}, %c2
// CHECK:       gpu.barrier
// CHECK:       arith.muli %[[MEMBER]], %c4
// CHECK:       arith.remui %{{.*}}, %c8_i32
// CHECK:       arith.remui %{{.*}}, %c64_i32
// CHECK:       memref.load %[[STAGE]]
// CHECK:       memref.store
// CHECK:       gpu.barrier
// CHECK-NOT:   nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @side_by_side(%C: memref<16x65xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x64xf16, #ws>
    %warp = arith.divui %tx, %c32 : index
    %row = arith.divui %warp, %c2 : index
    %member = arith.remui %warp, %c2 : index
    %column = arith.muli %member, %c32 : index
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %column], %h {in_bounds = [true, true]} : memref<16x64xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%row, %column] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x65xf32>
    gpu.terminator
  }
  return
}

// -----

// Warps whose columns follow from something else than their number store by themselves;
// so do those whose rows differ.
// CHECK-LABEL: @by_themselves
// CHECK:       nvvm.bar.warp.sync
// CHECK:       nvvm.bar.warp.sync
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @by_themselves(%C: memref<?x65xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant dense<0.0> : vector<16x32xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<16x64xf16, #ws>
    %number = arith.divui %bx, %c32 : index
    %other = arith.remui %number, %c2 : index
    %column = arith.muli %other, %c32 : index
    %warp = arith.divui %tx, %c32 : index
    %member = arith.remui %warp, %c2 : index
    %own = arith.muli %member, %c32 : index
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x64xf16, #ws>, vector<16x32xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %f : vector<16x16xf16>, vector<16x32xf16> into vector<16x32xf32>
    vector.transfer_write %s, %C[%c0, %column] {in_bounds = [true, true]} : vector<16x32xf32>, memref<?x65xf32>
    vector.transfer_write %s, %C[%own, %own] {in_bounds = [true, true]} : vector<16x32xf32>, memref<?x65xf32>
    gpu.terminator
  }
  return
}
