// RUN: alcop-opt %s --alcop-distribute-copies --split-input-file --verify-diagnostics

#ws = #gpu.address_space<workgroup>
func.func @between_shared_buffers() {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    %b = memref.alloc() : memref<64x32xf16, #ws>
    // expected-remark @+1 {{'memref.copy' is left unchanged: it is not between global and workgroup memory}}
    memref.copy %a, %b : memref<64x32xf16, #ws> to memref<64x32xf16, #ws>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @unknown_block_size(%A: memref<64x32xf16>, %threads: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #ws>
    // expected-error @+1 {{cannot distribute the copy to threads: the thread block is ?x1x1, expected constant sizes, 1 along y and z}}
    "alcop.async_copy"(%A, %a) : (memref<64x32xf16>, memref<64x32xf16, #ws>) -> ()
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @dynamic_size(%A: memref<?x32xf16>, %a: memref<?x32xf16, #ws>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{cannot distribute the copy to threads: copies to memref<?x32xf16, #gpu.address_space<workgroup>>, expected static sizes of rank 1 or more}}
    memref.copy %A, %a : memref<?x32xf16> to memref<?x32xf16, #ws>
    gpu.terminator
  }
  return
}

// -----

func.func @to_global_memory(%A: memref<64x32xf16>, %B: memref<64x32xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{cannot distribute the copy to threads: copies to memref<64x32xf16>, expected workgroup memory}}
    "alcop.async_copy"(%A, %B) : (memref<64x32xf16>, memref<64x32xf16>) -> ()
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @on_the_host(%A: memref<64x32xf16>, %a: memref<64x32xf16, #ws>) {
  // expected-error @+1 {{alcop-distribute-copies: copy outside a kernel, expected a gpu.launch}}
  "alcop.async_copy"(%A, %a) : (memref<64x32xf16>, memref<64x32xf16, #ws>) -> ()
  return
}

// -----

// Neighbours in memory of a thread's element of one vector are those of other threads.
#ws = #gpu.address_space<workgroup>
func.func @rows_of_other_rows(%x: memref<4096xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf16, #ws>
    %step = vector.step : vector<16xindex>
    // expected-error @+1 {{alcop-distribute-copies: makes the rows of an 'alcop.async_gather', expected vector.step, vector.broadcast of a number, a constant of equal elements, arith, or a vector read from a row}}
    %rows = vector.shuffle %step, %step [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0] : vector<16xindex>, vector<16xindex>
    %valid = arith.constant dense<true> : vector<16xi1>
    "alcop.async_gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<16x32xf16, #ws>, vector<16xindex>, vector<16xi1>) -> ()
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @gather_on_the_host(%x: memref<4096xf16>, %a: memref<16x32xf16, #ws>) {
  %rows = vector.step : vector<16xindex>
  %valid = arith.constant dense<true> : vector<16xi1>
  // expected-error @+1 {{alcop-distribute-copies: copy outside a kernel, expected a gpu.launch}}
  "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<16x32xf16, #ws>, vector<16xindex>, vector<16xi1>) -> ()
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @vectors_of_the_host(%x: memref<4096xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %step = vector.step : vector<16xindex>
  %far = arith.constant dense<64> : vector<16xindex>
  // expected-error @+1 {{makes the rows of an 'alcop.gather', expected it in the kernel}}
  %rows = arith.muli %step, %far : vector<16xindex>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf16, #ws>
    %valid = arith.constant dense<true> : vector<16xi1>
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<16x32xf16, #ws>, vector<16xindex>, vector<16xi1>) -> ()
    gpu.terminator
  }
  return
}
