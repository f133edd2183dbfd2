// One tile, from an argument as a whole: what the TMA rewriting can take.
#ws = #gpu.address_space<workgroup>
func.func @tma_copy(%A: memref<128x32xf16>) {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<128x32xf16, #ws>
    linalg.copy ins(%A : memref<128x32xf16>) outs(%a : memref<128x32xf16, #ws>)
    gpu.terminator
  }
  return
}
