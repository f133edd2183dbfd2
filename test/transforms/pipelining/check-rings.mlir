// RUN: alcop-opt %s --alcop-check-pipelines --split-input-file | FileCheck %s

// A warp copies, the other multiplies: right for every %n, which nobody knows.
// CHECK-LABEL: gpu.func @right
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @right(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 512 : index
  %false = arith.constant false
  %true = arith.constant true
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %pad = arith.constant 0.0 : f16
  %t = gpu.thread_id x
  %lane = arith.remui %t, %c32 : index
  %is_first = arith.cmpi eq, %lane, %c0 : index
  %is_copying = arith.cmpi uge, %t, %c32 : index
  %a = memref.alloc() : memref<2x16x16xf16, #ws>
  %full = nvgpu.mbarrier.create -> !bars
  %empty = nvgpu.mbarrier.create -> !bars
  %is_zero = arith.cmpi eq, %t, %c0 : index
  scf.if %is_zero {
    scf.for %s = %c0 to %c2 step %c1 {
      nvgpu.mbarrier.init %full[%s], %c1 : !bars
      nvgpu.mbarrier.init %empty[%s], %c1 : !bars
    }
  }
  gpu.barrier
  scf.if %is_copying {
    scf.if %is_first {
      scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %p = %true) -> (index, i1) {
        nvgpu.mbarrier.try_wait.parity %empty[%s], %p, %c1 : !bars
        nvgpu.mbarrier.arrive.expect_tx %full[%s], %bytes : !bars
        %at = arith.muli %s, %c256 : index
        %box = memref.reinterpret_cast %a to offset: [%at], sizes: [16, 16], strides: [16, 1] : memref<2x16x16xf16, #ws> to !box
        %k = arith.muli %i, %c16 : index
        nvgpu.tma.async.load %map[%k, %c0], %full[%s] to %box : !map, !bars -> !box
        %up = arith.addi %s, %c1 : index
        %wraps = arith.cmpi eq, %up, %c2 : index
        %next = arith.select %wraps, %c0, %up : index
        %other = arith.xori %p, %wraps : i1
        scf.yield %next, %other : index, i1
      }
    }
  } else {
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %s = %c0, %p = %false) -> (vector<16x16xf32>, index, i1) {
      nvgpu.mbarrier.try_wait.parity %full[%s], %p, %c1 : !bars
      %tile = memref.subview %a[%s, 0, 0] [1, 16, 16] [1, 1, 1] : memref<2x16x16xf16, #ws> to !box
      %fa = vector.transfer_read %tile[%c0, %c0], %pad {in_bounds = [true, true]} : !box, vector<16x16xf16>
      %sum = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fa, %acc {alcop.wgmma} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      nvvm.wgmma.wait.group.sync.aligned 0
      scf.if %is_first {
        %token = nvgpu.mbarrier.arrive %empty[%s] : !bars -> !nvgpu.mbarrier.token
      }
      %up = arith.addi %s, %c1 : index
      %wraps = arith.cmpi eq, %up, %c2 : index
      %next = arith.select %wraps, %c0, %up : index
      %other = arith.xori %p, %wraps : i1
      scf.yield %sum, %next, %other : vector<16x16xf32>, index, i1
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    vector.transfer_write %r#0, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  }
  gpu.return
}
}

// -----

// Tiles, of which nobody knows how many there are, nor how many iterations each has.
// CHECK-LABEL: gpu.func @tiles
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @tiles(%map: !map, %m: index, %first: index, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 512 : index
  %false = arith.constant false
  %true = arith.constant true
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %pad = arith.constant 0.0 : f16
  %t = gpu.thread_id x
  %lane = arith.remui %t, %c32 : index
  %is_first = arith.cmpi eq, %lane, %c0 : index
  %is_copying = arith.cmpi uge, %t, %c32 : index
  %a = memref.alloc() : memref<2x16x16xf16, #ws>
  %full = nvgpu.mbarrier.create -> !bars
  %empty = nvgpu.mbarrier.create -> !bars
  %is_zero = arith.cmpi eq, %t, %c0 : index
  scf.if %is_zero {
    scf.for %s = %c0 to %c2 step %c1 {
      nvgpu.mbarrier.init %full[%s], %c1 : !bars
      nvgpu.mbarrier.init %empty[%s], %c1 : !bars
    }
  }
  gpu.barrier
  scf.if %is_copying {
    scf.if %is_first {
      scf.for %j = %first to %m step %c16 iter_args(%s0 = %c0, %p0 = %true) -> (index, i1) {

      %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %s0, %p = %p0) -> (index, i1) {
        nvgpu.mbarrier.try_wait.parity %empty[%s], %p, %c1 : !bars
        nvgpu.mbarrier.arrive.expect_tx %full[%s], %bytes : !bars
        %at = arith.muli %s, %c256 : index
        %box = memref.reinterpret_cast %a to offset: [%at], sizes: [16, 16], strides: [16, 1] : memref<2x16x16xf16, #ws> to !box
        %k = arith.muli %i, %c16 : index
        nvgpu.tma.async.load %map[%k, %c0], %full[%s] to %box : !map, !bars -> !box
        %up = arith.addi %s, %c1 : index
        %wraps = arith.cmpi eq, %up, %c2 : index
        %next = arith.select %wraps, %c0, %up : index
        %other = arith.xori %p, %wraps : i1
        scf.yield %next, %other : index, i1
      }
      scf.yield %end#0, %end#1 : index, i1
      }
    }
  } else {
    scf.for %j = %first to %m step %c16 iter_args(%s0 = %c0, %p0 = %false) -> (index, i1) {
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %s = %s0, %p = %p0) -> (vector<16x16xf32>, index, i1) {
      nvgpu.mbarrier.try_wait.parity %full[%s], %p, %c1 : !bars
      %tile = memref.subview %a[%s, 0, 0] [1, 16, 16] [1, 1, 1] : memref<2x16x16xf16, #ws> to !box
      %fa = vector.transfer_read %tile[%c0, %c0], %pad {in_bounds = [true, true]} : !box, vector<16x16xf16>
      %sum = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fa, %acc {alcop.wgmma} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      nvvm.wgmma.wait.group.sync.aligned 0
      scf.if %is_first {
        %token = nvgpu.mbarrier.arrive %empty[%s] : !bars -> !nvgpu.mbarrier.token
      }
      %up = arith.addi %s, %c1 : index
      %wraps = arith.cmpi eq, %up, %c2 : index
      %next = arith.select %wraps, %c0, %up : index
      %other = arith.xori %p, %wraps : i1
      scf.yield %sum, %next, %other : vector<16x16xf32>, index, i1
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    vector.transfer_write %r#0, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    scf.yield %r#1, %r#2 : index, i1
    }
  }
  gpu.return
}
}
