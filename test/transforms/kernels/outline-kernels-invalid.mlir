// RUN: alcop-opt %s --alcop-outline-kernels --split-input-file --verify-diagnostics \
// RUN:   --allow-unregistered-dialect

func.func @block_size(%n: index) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{alcop-outline-kernels: 'gpu.launch' has a block size that is not constant}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

func.func @nested_buffer(%go: i1) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    scf.if %go {
      // expected-error @+1 {{'memref.alloc' workgroup buffer allocated inside 'scf.if', expected at the top level of the launch}}
      %s = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
    }
    gpu.terminator
  }
  return
}

// -----

func.func @dynamic_buffer(%n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{workgroup buffer is memref<?xf32, #gpu.address_space<workgroup>>, expected static sizes without gaps}}
    %s = memref.alloc(%n) : memref<?xf32, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

func.func @global_allocation() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{allocates memref<4xf32> in a kernel, expected workgroup memory}}
    %s = memref.alloc() : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

func.func @two_kinds_of_shared_memory() {
  %c1 = arith.constant 1 : index
  %bytes = arith.constant 64 : i32
  // expected-error @+1 {{uses dynamic shared memory and allocates workgroup buffers, expected one of them, as after alcop-separate-views}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %s = memref.alloc() : memref<4xf32, #gpu.address_space<workgroup>>
    %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    gpu.terminator
  }
  return
}

// -----

func.func @attribution() {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{has private attributions, expected values or shared memory}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1)
             private(%s : memref<4xf32, #gpu.address_space<private>>) {
    gpu.terminator
  }
  return
}

// -----

func.func @clusters(%size: index) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{has clusters of a size that is not constant}}
  gpu.launch clusters(%cx, %cy, %cz) in (%nx = %size, %ny = %c1, %nz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

func.func @asynchronous() {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{is asynchronous, expected a launch that waits}}
  %token = gpu.launch async blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}

// -----

func.func @offset(%a: memref<4xf32, strided<[1], offset: ?>>) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{uses memref<4xf32, strided<[1], offset: ?>>, expected no offset: alcop-drop-offsets drops that of an argument}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%a) : (memref<4xf32, strided<[1], offset: ?>>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @layout(%a: memref<4x4xf32, affine_map<(i, j) -> (j, i)>>) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{uses memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>, expected a strided layout}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%a) : (memref<4x4xf32, affine_map<(i, j) -> (j, i)>>) -> ()
    gpu.terminator
  }
  return
}

// -----

func.func @vector(%v: vector<4xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{uses a value of type vector<4xf32>, expected memrefs and scalars}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    "test.use"(%v) : (vector<4xf32>) -> ()
    gpu.terminator
  }
  return
}

// -----

memref.global "private" @counter : memref<4xf32> = dense<0.0>
func.func @changing_global(%a: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{alcop-outline-kernels: reads 'counter', expected a constant memref.global}}
  %w = memref.get_global @counter : memref<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = memref.load %w[%tx] : memref<4xf32>
    memref.store %x, %a[%tx] : memref<4xf32>
    gpu.terminator
  }
  return
}

// -----

memref.global "private" constant @fixed : memref<17xf32> = dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]>
func.func @written_constant() {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %w = memref.get_global @fixed : memref<17xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{alcop-outline-kernels: writes 'fixed', which is constant}}
    memref.store %one, %w[%tx] : memref<17xf32>
    gpu.terminator
  }
  return
}
