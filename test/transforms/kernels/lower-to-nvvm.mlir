// RUN: alcop-opt %s --alcop-lower-to-nvvm=target=sm_86 --split-input-file | FileCheck %s

// Pointers, an exact block size, and the dynamic shared memory as an external symbol.
// CHECK-LABEL: func.func @host
// CHECK:       gpu.launch_func @kernels::@copy
// CHECK:       gpu.module @kernels [#nvvm.target<chip = "sm_86">]
// CHECK:       llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK:       llvm.func @copy(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64}) attributes {
// CHECK-NOT:   nvvm.maxntid
// CHECK-SAME:  nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>}
// CHECK:       nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK:       nvvm.cp.async.wait.group 1
// CHECK:       nvvm.barrier
// CHECK:       nvvm.ldmatrix
// CHECK:       llvm.return
module attributes {gpu.container_module} {
  func.func @host(%a: memref<1xf16>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %bytes = arith.constant 4096 : i32
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
      dynamic_shared_memory_size %bytes args(%a : memref<1xf16>)
    return
  }
  gpu.module @kernels {
    gpu.func @copy(%p: memref<1xf16> {llvm.align = 16 : i64}) kernel
        attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %a = memref.reinterpret_cast %p to offset: [0], sizes: [64, 32], strides: [32, 1]
        : memref<1xf16> to memref<64x32xf16>
      %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %s = memref.view %memory[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<64x32xf16, #gpu.address_space<workgroup>>
      %thread = gpu.thread_id x
      %row = arith.remui %thread, %c16 : index
      %copy = nvgpu.device_async_copy %a[%row, %c0], %s[%row, %c0], 8 {bypassL1}
        : memref<64x32xf16> to memref<64x32xf16, #gpu.address_space<workgroup>>
      %group = nvgpu.device_async_create_group %copy
      nvgpu.device_async_wait %group {numGroups = 1 : i32}
      gpu.barrier
      %f = nvgpu.ldmatrix %s[%row, %c0] {numTiles = 4 : i32, transpose = false}
        : memref<64x32xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
      %v = vector.extract %f[0] : vector<2xf16> from vector<4x2xf16>
      vector.store %v, %a[%row, %c0] : memref<64x32xf16>, vector<2xf16>
      gpu.return
    }
  }
}

// -----

// Without kernels there is nothing to do.
// CHECK-LABEL: func.func @host_only
// CHECK:         scf.for
func.func @host_only(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
  }
  return
}

// -----

// Buffers that a kernel allocates itself are static shared memory.
// CHECK-LABEL: gpu.module @own_buffers
// CHECK:       llvm.mlir.global private @reverse_shared_0() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<64 x f32>
// CHECK:       llvm.func @reverse
// CHECK-NOT:   malloc
// CHECK:         llvm.mlir.addressof @reverse_shared_0 : !llvm.ptr<3>
// CHECK:         nvvm.barrier
gpu.module @own_buffers {
  gpu.func @reverse(%A: memref<64xf32>, %R: memref<64xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c63 = arith.constant 63 : index
    %t = gpu.thread_id x
    %s = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %v = memref.load %A[%t] : memref<64xf32>
    memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %o = arith.subi %c63, %t : index
    %x = memref.load %s[%o] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %x, %R[%t] : memref<64xf32>
    memref.dealloc %s : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// -----

// Loops of affine become loops of llvm.
// CHECK-LABEL: llvm.func @affine_loop
// CHECK:         llvm.cond_br
gpu.module @affine_loops {
  gpu.func @affine_loop(%A: memref<64xf32>, %R: memref<64xf32>) kernel {
    affine.for %i = 0 to 64 {
      %v = affine.load %A[%i] : memref<64xf32>
      affine.store %v, %R[%i] : memref<64xf32>
    }
    gpu.return
  }
}
