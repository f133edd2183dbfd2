// RUN: alcop-opt %s --alcop-lower-to-nvvm | FileCheck %s

// One instruction for each power of two in f32 that may be approximated; others are
// right for subnormal numbers too.
// CHECK-LABEL: llvm.func @powers
// CHECK-COUNT-6: llvm.inline_asm "ex2.approx.ftz.f32 $0, $1;"
// CHECK-NOT:   ex2.approx.ftz
// CHECK:       llvm.call @__nv_exp2f
// CHECK:       llvm.call @__nv_exp2f
gpu.module @powers {
  gpu.func @powers(%in: memref<16xf32>, %out: memref<16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %v = vector.load %in[%c0] : memref<16xf32>, vector<4xf32>
    %x = memref.load %in[%c4] : memref<16xf32>
    %v2 = math.exp2 %v fastmath<afn> : vector<4xf32>
    vector.store %v2, %out[%c0] : memref<16xf32>, vector<4xf32>
    %x1 = math.exp2 %x fastmath<nnan,afn> : f32
    memref.store %x1, %out[%c4] : memref<16xf32>
    %z = memref.load %in[%c5] : memref<16xf32>
    %x2 = math.exp2 %z fastmath<fast> : f32
    memref.store %x2, %out[%c5] : memref<16xf32>
    %x3 = math.exp2 %x : f32
    %x4 = math.exp2 %z fastmath<nnan,contract> : f32
    %x5 = arith.addf %x3, %x4 : f32
    memref.store %x5, %out[%c6] : memref<16xf32>
    gpu.return
  }
}
