// RUN: alcop-opt %s --alcop-multi-buffer --split-input-file --verify-diagnostics

// A plan on what is not a copy: some pass between changed it.
#ws = #gpu.address_space<workgroup>
func.func @not_a_copy(%v: f16) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %c512 step %c32 {
    // expected-error @+1 {{alcop-multi-buffer: 'memref.store' is planned, expected a copy}}
    memref.store %v, %a[%c0, %c0] {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, #ws>
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}

// -----

// A plan on a copy into what someone else allocated.
#ws = #gpu.address_space<workgroup>
func.func @not_its_own(%A: memref<64x512xf16>, %a: memref<64x32xf16, #ws>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c512 = arith.constant 512 : index
  scf.for %k = %c0 to %c512 step %c32 {
    %tile = memref.subview %A[0, %k] [64, 32] [1, 1] : memref<64x512xf16> to memref<64x32xf16, strided<[512, 1], offset: ?>>
    // expected-error @+1 {{alcop-multi-buffer: is planned, but its buffer memref<64x32xf16, #gpu.address_space<workgroup>> is not an allocation of constant size, expected memref.alloc or a workgroup attribution}}
    memref.copy %tile, %a {alcop.pipeline = #alcop.pipeline<{shared = 2}>} : memref<64x32xf16, strided<[512, 1], offset: ?>> to memref<64x32xf16, #ws>
  } {alcop.pipeline = #alcop.pipeline<{shared = 2}>}
  return
}
