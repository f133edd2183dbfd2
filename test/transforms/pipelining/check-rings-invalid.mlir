// RUN: alcop-opt %s --alcop-check-pipelines --split-input-file --verify-diagnostics

// The group that reads a slot is unfinished when the slot is freed.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @freed_early(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
        // expected-error @below {{alcop-check-pipelines: slot 0 of 'memref<2x16x16xf16, #gpu.address_space<workgroup>>' is filled while warps may still read it: no wait is for its release by all of them (iteration 2)}}
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
      nvvm.wgmma.wait.group.sync.aligned 1
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

// A box has 512 bytes.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @more_bytes(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 1024 : index
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
        // expected-error @below {{alcop-check-pipelines: phase 0 of full[0] expects 1024 bytes, and copies bring 512}}
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

// Who reads begins with the parity of who copies: the first wait is for nothing.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @parity(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %s = %c0, %p = %true) -> (vector<16x16xf32>, index, i1) {
      nvgpu.mbarrier.try_wait.parity %full[%s], %p, %c1 : !bars
      %tile = memref.subview %a[%s, 0, 0] [1, 16, 16] [1, 1, 1] : memref<2x16x16xf16, #ws> to !box
      %fa = vector.transfer_read %tile[%c0, %c0], %pad {in_bounds = [true, true]} : !box, vector<16x16xf16>
      // expected-error @below {{alcop-check-pipelines: slot 0 of 'memref<2x16x16xf16, #gpu.address_space<workgroup>>' is read and was never filled (iteration 0)}}
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

// One iteration fewer is read than filled: seen with one iteration, not with none.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @fewer(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
        // expected-error @below {{alcop-check-pipelines: slot 0 of 'memref<2x16x16xf16, #gpu.address_space<workgroup>>' is filled, and nothing has read it when the kernel ends}}
        nvgpu.tma.async.load %map[%k, %c0], %full[%s] to %box : !map, !bars -> !box
        %up = arith.addi %s, %c1 : index
        %wraps = arith.cmpi eq, %up, %c2 : index
        %next = arith.select %wraps, %c0, %up : index
        %other = arith.xori %p, %wraps : i1
        scf.yield %next, %other : index, i1
      }
    }
  } else {
    %r:3 = scf.for %i = %c1 to %n step %c1 iter_args(%acc = %zero, %s = %c0, %p = %false) -> (vector<16x16xf32>, index, i1) {
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

// Nobody knows that mbarriers are there.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @no_barrier(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
      // expected-error @below {{alcop-check-pipelines: full[0] is used with no barrier since it is initialised (iteration 0)}}
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

// No wait for the copies.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @no_wait(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
      %tile = memref.subview %a[%s, 0, 0] [1, 16, 16] [1, 1, 1] : memref<2x16x16xf16, #ws> to !box
      %fa = vector.transfer_read %tile[%c0, %c0], %pad {in_bounds = [true, true]} : !box, vector<16x16xf16>
      // expected-error @below {{alcop-check-pipelines: slot 0 of 'memref<2x16x16xf16, #gpu.address_space<workgroup>>' is read and was never filled (iteration 0)}}
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

// Accumulators are stored while the last group computes.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @accumulators(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
      nvvm.wgmma.wait.group.sync.aligned 1
      scf.if %is_first {
        %token = nvgpu.mbarrier.arrive %empty[%s] : !bars -> !nvgpu.mbarrier.token
      }
      %up = arith.addi %s, %c1 : index
      %wraps = arith.cmpi eq, %up, %c2 : index
      %next = arith.select %wraps, %c0, %up : index
      %other = arith.xori %p, %wraps : i1
      scf.yield %sum, %next, %other : vector<16x16xf32>, index, i1
    }

    // expected-error @below {{alcop-check-pipelines: reads accumulators of a group of wgmma that is unfinished}}
    vector.transfer_write %r#0, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  }
  gpu.return
}
}

// -----

// What is not known is refused: a number of %C decides how often warps copy.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @unknown(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
      %x = memref.load %C[%c0, %c0] : memref<16x16xf32>
      // expected-error @below {{alcop-check-pipelines: its rings are not shown to be right: makes a number that roles depend on}}
      %m = arith.fptosi %x : f32 to i32
      %o = arith.index_cast %m : i32 to index
      scf.for %i = %c0 to %o step %c1 iter_args(%s = %c0, %p = %true) -> (index, i1) {
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

// Wrong in iteration 40 alone, which the first thirty do not show.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @late(%map: !map, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
      // expected-error @below {{alcop-check-pipelines: waits for ever: phase 21 of full[0] lacks 1 of 1 arrivals (iteration 42)}}
      nvgpu.mbarrier.try_wait.parity %full[%s], %p, %c1 : !bars
      %tile = memref.subview %a[%s, 0, 0] [1, 16, 16] [1, 1, 1] : memref<2x16x16xf16, #ws> to !box
      %fa = vector.transfer_read %tile[%c0, %c0], %pad {in_bounds = [true, true]} : !box, vector<16x16xf16>
      %sum = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fa, %acc {alcop.wgmma} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      nvvm.wgmma.wait.group.sync.aligned 0
      %c40 = arith.constant 40 : index
      %is_other = arith.cmpi ne, %i, %c40 : index
      %frees = arith.andi %is_first, %is_other : i1
      scf.if %frees {
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

// Who reads begins each tile with slot 0.
#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!bars = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 2>
!map = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!box = memref<16x16xf16, strided<[16, 1], offset: ?>, #ws>
gpu.module @m {
gpu.func @each_tile_anew(%map: !map, %m: index, %first: index, %n: index, %C: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
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
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %s = %c0, %p = %p0) -> (vector<16x16xf32>, index, i1) {
      nvgpu.mbarrier.try_wait.parity %full[%s], %p, %c1 : !bars
      %tile = memref.subview %a[%s, 0, 0] [1, 16, 16] [1, 1, 1] : memref<2x16x16xf16, #ws> to !box
      %fa = vector.transfer_read %tile[%c0, %c0], %pad {in_bounds = [true, true]} : !box, vector<16x16xf16>
      %sum = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fa, %acc {alcop.wgmma} : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      nvvm.wgmma.wait.group.sync.aligned 0
      scf.if %is_first {
        // expected-error @below {{alcop-check-pipelines: arrives at empty[0] knowing the end of 0 of its phases, and 1 may have ended: no wait tells which one this is (iteration 0 of iteration 2)}}
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
