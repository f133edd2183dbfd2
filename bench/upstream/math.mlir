// Functions that an epilogue may hold, in a kernel.
gpu.module @kernels {
  gpu.func @functions(%x: memref<4xf32>, %h: memref<4xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = memref.load %x[%c0] : memref<4xf32>
    %e = math.exp %a : f32
    %t = math.tanh %e : f32
    %r = math.erf %t : f32
    memref.store %r, %x[%c1] : memref<4xf32>
    %b = memref.load %h[%c0] : memref<4xf16>
    %s = math.tanh %b : f16
    memref.store %s, %h[%c2] : memref<4xf16>
    gpu.return
  }
}
