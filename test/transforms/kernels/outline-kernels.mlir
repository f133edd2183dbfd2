// RUN: alcop-opt %s --alcop-outline-kernels --split-input-file \
// RUN:   --allow-unregistered-dialect | FileCheck %s
// RUN: alcop-opt %s --alcop-outline-kernels=noalias=true --split-input-file \
// RUN:   --allow-unregistered-dialect | FileCheck %s --check-prefix=NOALIAS

// Memrefs come in the order of the function's arguments, constants and views are done
// again inside, buffers are parts of the dynamic block.
// CHECK-LABEL: module attributes {gpu.container_module}
// CHECK:       func.func @f(%[[A:.*]]: memref<64x32xf16>, %{{.*}}: memref<8xf32>, %[[C:.*]]: memref<64x32xf16>) {
// CHECK-NEXT:    %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[C4:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[C128:.*]] = arith.constant 128 : index
// CHECK-NEXT:    %[[PA:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [1], strides: [1] : memref<64x32xf16> to memref<1xf16>
// CHECK-NEXT:    %[[PC:.*]] = memref.reinterpret_cast %[[C]]
// CHECK-NEXT:    %[[BYTES:.*]] = arith.constant 512 : i32
// CHECK-NEXT:    gpu.launch_func @f_kernels::@f blocks in (%[[C4]], %[[C1]], %[[C1]]) threads in (%[[C128]], %[[C1]], %[[C1]]) dynamic_shared_memory_size %[[BYTES]] args(%[[PA]] : memref<1xf16>, %[[PC]] : memref<1xf16>)
// CHECK-NEXT:    return
// CHECK:       gpu.module @f_kernels
// CHECK:       gpu.func @f(%[[P:.*]]: memref<1xf16> {llvm.align = 16 : i64, llvm.readonly}, %[[Q:.*]]: memref<1xf16> {llvm.align = 16 : i64, llvm.writeonly}) kernel
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 4, 1, 1>
// CHECK-DAG:     %[[KA:.*]] = memref.reinterpret_cast %[[P]] to offset: [0], sizes: [64, 32], strides: [32, 1] : memref<1xf16> to memref<64x32xf16>
// CHECK-DAG:     %[[KC:.*]] = memref.reinterpret_cast %[[Q]]
// CHECK-DAG:     %[[ROW:.*]] = memref.subview %[[KA]][1, 0] [1, 32] [1, 1]
// CHECK:         %[[T:.*]] = gpu.thread_id x
// CHECK:         %[[DYN:.*]] = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
// CHECK:         %[[O0:.*]] = arith.constant 0 : index
// CHECK:         %[[S0:.*]] = memref.view %[[DYN]][%[[O0]]][] : {{.*}} to memref<3x33xf16, #gpu.address_space<workgroup>>
// CHECK:         %[[O1:.*]] = arith.constant 256 : index
// CHECK:         %[[S1:.*]] = memref.view %[[DYN]][%[[O1]]][] : {{.*}} to memref<64xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.load %[[ROW]]
// CHECK:         memref.store %{{.*}}, %[[S0]]
// CHECK:         "test.use"(%[[S1]])
// CHECK:         memref.store %{{.*}}, %[[KC]]
// CHECK:         gpu.return
// NOALIAS:     gpu.func @f(%{{.*}}: memref<1xf16> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: memref<1xf16> {llvm.align = 16 : i64, llvm.noalias, llvm.writeonly})
func.func @f(%a: memref<64x32xf16>, %unused: memref<8xf32>, %c: memref<64x32xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %row = memref.subview %a[1, 0] [1, 32] [1, 1]
    : memref<64x32xf16> to memref<1x32xf16, strided<[32, 1], offset: 32>>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %s = memref.alloc() : memref<3x33xf16, #gpu.address_space<workgroup>>
    %t = memref.alloc() {alignment = 16 : i64} : memref<64xf32, #gpu.address_space<workgroup>>
    %v = memref.load %row[%c0, %tx] : memref<1x32xf16, strided<[32, 1], offset: 32>>
    memref.store %v, %s[%c0, %tx] : memref<3x33xf16, #gpu.address_space<workgroup>>
    "test.use"(%t) : (memref<64xf32, #gpu.address_space<workgroup>>) -> ()
    memref.store %v, %c[%c1, %tx] : memref<64x32xf16>
    memref.dealloc %t : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

// The ids and sizes of a launch; two kernels of one function; a memref that is not an
// argument comes last.
// CHECK-LABEL: func.func @ids
// CHECK:       gpu.launch_func @ids_kernels::@ids blocks in (%{{.*}}, %{{.*}}, %{{.*}}) threads in
// CHECK-SAME:    args(%{{.*}} : memref<1xindex>, %{{.*}} : memref<1xf32>)
// CHECK:       gpu.launch_func @ids_kernels::@ids_1
// CHECK:       gpu.module @ids_kernels
// CHECK:       gpu.func @ids(
// CHECK:         %[[BY:.*]] = gpu.block_id y
// CHECK-NEXT:    %[[TZ:.*]] = gpu.thread_id z
// CHECK-NEXT:    %[[GX:.*]] = gpu.grid_dim x
// CHECK-NEXT:    %[[SX:.*]] = arith.constant 64 : index
// CHECK-NEXT:    "test.use"(%[[BY]], %[[TZ]], %[[GX]], %[[SX]])
// CHECK:       gpu.func @ids_1(
// CHECK-SAME:    known_grid_size
func.func @ids(%n: index, %a: memref<4xindex>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %temporary = memref.alloc() : memref<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    "test.use"(%by, %tz, %gx, %sx) : (index, index, index, index) -> ()
    "test.use"(%temporary, %a) : (memref<4xf32>, memref<4xindex>) -> ()
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// The size of a cluster is a property of the kernel.
// CHECK-LABEL: func.func @clusters
// CHECK:       gpu.func @clusters({{.*}} known_cluster_size = array<i32: 2, 1, 1>
// CHECK:         %[[C:.*]] = gpu.cluster_id x
// CHECK-NEXT:    %[[SIZE:.*]] = arith.constant 2 : index
// CHECK-NEXT:    "test.use"(%[[C]], %[[SIZE]])
func.func @clusters(%n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%scx = %c2, %scy = %c1, %scz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    "test.use"(%cx, %scx) : (index, index) -> ()
    gpu.terminator
  }
  return
}

// -----

// Sizes that are not static follow the pointers, scalars follow the sizes.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:    %[[A:.*]]: memref<?x?x8xf16>, %[[N:.*]]: index, %[[X:.*]]: f32
// CHECK:       %[[D0:.*]] = memref.dim %[[A]]
// CHECK:       %[[D1:.*]] = memref.dim %[[A]]
// CHECK-NEXT:  %[[I0:.*]] = arith.index_cast %[[D0]] : index to i64
// CHECK-NEXT:  %[[I1:.*]] = arith.index_cast %[[D1]]
// CHECK:       %[[I2:.*]] = arith.index_cast %[[N]]
// CHECK:       args(%{{.*}} : memref<1xf16>, %[[I0]] : i64, %[[I1]] : i64, %[[I2]] : i64, %[[X]] : f32)
// CHECK:       gpu.func @dynamic(%[[P:.*]]: memref<1xf16> {llvm.align = 16 : i64}, %[[J0:.*]]: i64, %[[J1:.*]]: i64, %[[J2:.*]]: i64, %[[Y:.*]]: f32)
// CHECK:         %[[E0:.*]] = arith.index_cast %[[J0]] : i64 to index
// CHECK:         %[[E1:.*]] = arith.index_cast %[[J1]]
// CHECK:         %[[C8:.*]] = arith.constant 8
// CHECK:         %[[S:.*]] = arith.muli %[[C8]], %[[E1]]
// CHECK:         %[[KA:.*]] = memref.reinterpret_cast %[[P]] to offset: [0], sizes: [%[[E0]], %[[E1]], 8], strides: [%[[S]], 8, 1] : memref<1xf16> to memref<?x?x8xf16>
// CHECK:         %[[M:.*]] = arith.index_cast %[[J2]]
// CHECK:         "test.use"(%[[KA]], %[[M]], %[[Y]])
func.func @dynamic(%a: memref<?x?x8xf16>, %n: index, %x: f32) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%a, %n, %x) : (memref<?x?x8xf16>, index, f32) -> ()
    gpu.terminator
  }
  return
}

// -----

// Strides that neither the type nor the sizes tell follow the sizes of their memref.
// CHECK-LABEL: func.func @strides
// CHECK-SAME:    %[[A:.*]]: memref<4x?xf16, strided<[?, 1]>>, %[[B:.*]]: memref<2x8xf32, strided<[16, ?]>>
// CHECK:       %[[D:.*]] = memref.dim %[[A]]
// CHECK:       %{{.*}}, %{{.*}}, %{{.*}}:2, %[[S:.*]]:2 = memref.extract_strided_metadata %[[A]]
// CHECK:       %[[I0:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK:       %[[I1:.*]] = arith.index_cast %[[S]]#0 : index to i64
// CHECK:       %{{.*}}, %{{.*}}, %{{.*}}:2, %[[T:.*]]:2 = memref.extract_strided_metadata %[[B]]
// CHECK:       %[[I2:.*]] = arith.index_cast %[[T]]#1 : index to i64
// CHECK:       args(%{{.*}} : memref<1xf16>, %{{.*}} : memref<1xf32>, %[[I0]] : i64, %[[I1]] : i64, %[[I2]] : i64)
// CHECK:       gpu.func @strides(%[[P:.*]]: memref<1xf16> {{{.*}}}, %[[Q:.*]]: memref<1xf32> {{{.*}}}, %[[J0:.*]]: i64, %[[J1:.*]]: i64, %[[J2:.*]]: i64)
// CHECK:         %[[E0:.*]] = arith.index_cast %[[J0]]
// CHECK:         %[[E1:.*]] = arith.index_cast %[[J1]]
// CHECK:         memref.reinterpret_cast %[[P]] to offset: [0], sizes: [4, %[[E0]]], strides: [%[[E1]], 1]
// CHECK:         %[[E2:.*]] = arith.index_cast %[[J2]]
// CHECK:         memref.reinterpret_cast %[[Q]] to offset: [0], sizes: [2, 8], strides: [16, %[[E2]]]
func.func @strides(%a: memref<4x?xf16, strided<[?, 1]>>, %b: memref<2x8xf32, strided<[16, ?]>>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%a, %b) : (memref<4x?xf16, strided<[?, 1]>>, memref<2x8xf32, strided<[16, ?]>>) -> ()
    gpu.terminator
  }
  return
}

// -----

// A body of several blocks, and what it captures in a nested region.
// CHECK-LABEL: gpu.func @blocks(
// CHECK:         %[[C7:.*]] = arith.constant 7 : index
// CHECK:         cf.cond_br %{{.*}}, ^[[YES:.*]], ^[[NO:.*]]
// CHECK:       ^[[YES]]:
// CHECK:         scf.if
// CHECK-NEXT:      "test.use"(%[[C7]])
// CHECK:         gpu.return
// CHECK:       ^[[NO]]:
// CHECK:         gpu.return
func.func @blocks(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %first = arith.cmpi eq, %tx, %c7 : index
    cf.cond_br %first, ^yes, ^no
  ^yes:
    scf.if %first {
      "test.use"(%c7) : (index) -> ()
    }
    gpu.terminator
  ^no:
    gpu.terminator
  }
  return
}

// -----

// Names are unique in the module, and such as PTX takes.
// CHECK-LABEL: func.func @a.b
// CHECK:         gpu.launch_func @a_b_kernels::@a_b blocks
// CHECK:         gpu.launch_func @a_b_kernels::@a_b_1 blocks
// CHECK:       func.func @a_b_1
// CHECK:         gpu.launch_func @a_b_1_kernels::@a_b_1_1 blocks
func.func @a.b() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}
func.func @a_b_1() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// A function without launches is left unchanged.
// CHECK-LABEL: module {
// CHECK:       func.func @nothing
// CHECK-NOT:   gpu.module
func.func @nothing(%a: memref<4xf32>) {
  return
}

// -----

// A constant global is copied, once; other ops of the module are left unchanged.
// CHECK-LABEL: gpu.module @reads_kernels
// CHECK-NEXT:    memref.global "private" constant @weights : memref<4xf32>
// CHECK-NOT:     memref.global
// CHECK:         gpu.func @reads(
// CHECK:           %[[W:.*]] = memref.get_global @weights
// CHECK:           memref.load %[[W]]
// CHECK:         gpu.func @reads_1(
// CHECK:           memref.get_global @weights
memref.global "private" constant @weights : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" constant @others : memref<4xf32> = dense<0.0>
func.func @reads(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w = memref.get_global @weights : memref<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %x = memref.load %w[%tx] : memref<4xf32>
    memref.store %x, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %x = memref.load %w[%tx] : memref<4xf32>
    memref.store %x, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

// Kernels are called after what they do where there are several.
// CHECK-LABEL: gpu.module @two_kernels
// CHECK:         gpu.func @two_exp(
// CHECK:         gpu.func @two_exp_1(
// CHECK-NOT:   alcop.kernel
// CHECK-NOT:   alcop.pipelines
func.func @two(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%a) : (memref<4xf32>) -> ()
    gpu.terminator
  } {alcop.kernel = "exp"}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%a) : (memref<4xf32>) -> ()
    gpu.terminator
  } {alcop.kernel = "exp"}
  return
}

// -----

// What was decided goes along, in attributes of MLIR's own kinds.
// CHECK-LABEL: func.func @decided
// CHECK:       gpu.launch_func @decided_kernels::@decided_matmul
// CHECK-SAME:    {alcop.decisions = {pipelines = [{buffer = "arg0 4xf32", level = "shared", stages = 3 : i64}], schedule = {block = [64, 64, 32]}, schedule_source = "record"}}
// CHECK:       gpu.launch_func @decided_kernels::@decided_map
// CHECK-SAME:    {alcop.decisions = {fallback = "is in f64", pipelines = []}}
// CHECK:       gpu.launch_func @decided_kernels::@decided
// CHECK-NOT:   alcop.
func.func @decided(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  } {alcop.kernel = "matmul", alcop.schedule = #alcop.schedule<{block = [64, 64, 32]}>, alcop.schedule_source = "record",
     alcop.pipelines = [{buffer = "arg0 4xf32", level = "shared", stages = 3 : i64}]}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  } {alcop.kernel = "map", alcop.fallback = "is in f64", alcop.pipelines = []}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

// One of more than 64 bytes is a pointer argument, after those of the function, and so is
// one that the launch itself gets; one of equal elements is copied.
// CHECK-LABEL: func.func @stores
// CHECK:         %[[LARGE:.*]] = memref.get_global @large
// CHECK:         %[[INNER:.*]] = memref.get_global @large
// CHECK:         %[[P:.*]] = memref.reinterpret_cast %[[LARGE]] {{.*}} to memref<1xf32>
// CHECK:         %[[Q:.*]] = memref.reinterpret_cast %[[INNER]] {{.*}} to memref<1xf32>
// CHECK:         gpu.launch_func @stores_kernels::@stores
// CHECK-SAME:      args(%{{.*}} : memref<1xf32>, %[[P]] : memref<1xf32>, %[[Q]] : memref<1xf32>)
// CHECK:       gpu.module @stores_kernels
// CHECK-NOT:     memref.global {{.*}} @large
// CHECK:         memref.global "private" constant @equal
// CHECK:         gpu.func @stores(
// CHECK-SAME:      %arg0: memref<1xf32> {llvm.align = 16 : i64, llvm.writeonly}
// CHECK-SAME:      %[[W:arg1]]: memref<1xf32> {llvm.align = 16 : i64, llvm.readonly}
// CHECK:           memref.reinterpret_cast %[[W]] {{.*}} to memref<17xf32>
memref.global "private" constant @large : memref<17xf32> = dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]>
memref.global "private" constant @equal : memref<64xf32> = dense<1.0>
func.func @stores(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w = memref.get_global @large : memref<17xf32>
  %e = memref.get_global @equal : memref<64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %v = memref.get_global @large : memref<17xf32>
    %x = memref.load %w[%tx] : memref<17xf32>
    %y = memref.load %v[%tx] : memref<17xf32>
    %z = memref.load %e[%tx] : memref<64xf32>
    %s = arith.addf %x, %y : f32
    %t = arith.addf %s, %z : f32
    memref.store %t, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

// What a guard has promised of rows is of no use any more, and equal kernels are equal.
// Other assumptions stay.
// CHECK-LABEL: func.func @promises(
// CHECK-SAME:    %[[A:.*]]: memref<8xf32>)
// CHECK-NOT:     row_alignment
// CHECK-NOT:     memref.assume_alignment %[[A]], 16
// CHECK:       gpu.func @promises(
// CHECK-NOT:     row_alignment
// CHECK:         memref.assume_alignment %{{.*}}, 64 : memref<8xf32>
func.func @promises(%a: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 1.0 : f32
  %aligned = memref.assume_alignment %a, 64 : memref<8xf32>
  %rows = memref.assume_alignment %aligned, 16 {alcop.row_alignment = 16} : memref<8xf32>
  %t = memref.alloc() {alcop.row_alignment = 16} : memref<8xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %x, %rows[%c0] : memref<8xf32>
    memref.store %x, %t[%c0] : memref<8xf32>
    gpu.terminator
  }
  return
}

// -----

// What alcop-merge-launches has merged is one kernel, launched where it was called;
// pipelines name the arrays of the caller.
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[A:.*]]: memref<4xf32>, %[[B:.*]]: memref<4xf32>)
// CHECK:       %[[T:.*]] = memref.alloc()
// CHECK:       gpu.launch_func @f_kernels::@f_map
// CHECK-SAME:    {alcop.decisions = {pipelines = [{buffer = "tmp0 4xf32", level = "register", stages = 2 : i64}]}}
// CHECK:       gpu.launch_func @f_kernels::@f_map
// CHECK-SAME:    {alcop.decisions = {pipelines = [{buffer = "arg1 4xf32", level = "register", stages = 2 : i64}]}}
// CHECK-NOT:   call
// CHECK:       gpu.module @f_kernels
// CHECK:         gpu.func @f_map(
// CHECK-NOT:     gpu.func
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @g(
// CHECK:       gpu.launch_func @f_kernels::@f_map
// CHECK-NOT:   gpu.module
func.func @f(%A: memref<4xf32>, %B: memref<4xf32>) {
  %t = memref.alloc() : memref<4xf32>
  call @f_map(%t) : (memref<4xf32>) -> ()
  call @f_map(%B) : (memref<4xf32>) -> ()
  return
}
func.func private @f_map(%p: memref<4xf32>) attributes {alcop.merged} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %v = memref.load %p[%c0] : memref<4xf32>
    memref.store %v, %p[%c0] : memref<4xf32>
    gpu.terminator
  } {alcop.kernel = "map", alcop.pipelines = [{buffer = "arg0 4xf32", level = "register", stages = 2 : i64}]}
  return
}
func.func @g(%A: memref<4xf32>) {
  call @f_map(%A) : (memref<4xf32>) -> ()
  return
}
