// RUN: alcop-opt %s --alcop-lower-to-nvvm --split-input-file --verify-diagnostics \
// RUN:   --allow-unregistered-dialect

// An op that no conversion takes; the casts around it are not to blame.
gpu.module @unknown {
  gpu.func @f(%a: memref<4xf32>) kernel {
    // expected-error @+1 {{alcop-lower-to-nvvm: 'test.use' is left after all conversions, expected llvm and nvvm only}}
    "test.use"(%a) : (memref<4xf32>) -> ()
    gpu.return
  }
}

// -----

// An op that a conversion refuses.
gpu.module @refused {
  gpu.func @f(%a: memref<4xf16>, %x: f16) kernel {
    %c0 = arith.constant 0 : index
    // expected-error @+1 {{alcop-lower-to-nvvm: failed to legalize operation 'gpu.subgroup_reduce'}}
    %sum = gpu.subgroup_reduce add %x : (f16) -> f16
    memref.store %sum, %a[%c0] : memref<4xf16>
    gpu.return
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @too_much() {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %bytes = arith.constant 200000 : i32
    // expected-error @+1 {{a block needs 200000 bytes of shared memory, sm_80 has 166912: fewer stages or a smaller block}}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) dynamic_shared_memory_size %bytes
    return
  }
  gpu.module @kernels {
    gpu.func @f() kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @too_many() {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    // expected-error @+1 {{a block has 2048 threads, sm_80 takes 1024}}
    gpu.launch_func @kernels::@f blocks in (%c1, %c1, %c1) threads in (%c64, %c32, %c1)
    return
  }
  gpu.module @kernels {
    gpu.func @f() kernel {
      gpu.return
    }
  }
}

// -----

gpu.module @buffer_in_a_loop {
  gpu.func @f(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      // expected-error @+1 {{shared buffer is allocated inside of a loop or branch, expected the kernel's top level}}
      %s = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
      "test.use"(%s) : (memref<64xf32, #gpu.address_space<workgroup>>) -> ()
    }
    gpu.return
  }
}

// -----

gpu.module @buffer_of_unknown_size {
  gpu.func @f(%n: index) kernel {
    // expected-error @+1 {{shared buffer memref<?xf32, #gpu.address_space<workgroup>> has no static size, expected constants}}
    %s = memref.alloc(%n) : memref<?xf32, #gpu.address_space<workgroup>>
    "test.use"(%s) : (memref<?xf32, #gpu.address_space<workgroup>>) -> ()
    gpu.return
  }
}

// -----

gpu.module @too_large_buffers {
  gpu.func @f() kernel {
    %s = memref.alloc() : memref<8192xf32, #gpu.address_space<workgroup>>
    // expected-error @+1 {{a kernel's own shared buffers are 65536 bytes, of static shared memory a block has 49152: allocate them in a gpu.launch, or view gpu.dynamic_shared_memory}}
    %t = memref.alloc() : memref<8192xf32, #gpu.address_space<workgroup>>
    "test.use"(%s, %t) : (memref<8192xf32, #gpu.address_space<workgroup>>, memref<8192xf32, #gpu.address_space<workgroup>>) -> ()
    gpu.return
  }
}
