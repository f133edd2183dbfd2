// Three kernels for limit_shared.py: one that fits, one whose buffer has a size known at
// run time only, one that allocates nothing.

#shared = #gpu.address_space<workgroup>

func.func @fits() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<64x32xf16, #shared>
    %b = memref.alloc() : memref<32x64xf16, #shared>
    "own.use"(%a, %b)
        : (memref<64x32xf16, #shared>, memref<32x64xf16, #shared>) -> ()
    gpu.terminator
  }
  return
}

func.func @unknown(%n: index) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %a = memref.alloc(%n) : memref<?xf16, #shared>
    "own.use"(%a) : (memref<?xf16, #shared>) -> ()
    gpu.terminator
  }
  return
}

func.func @none() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  return
}
