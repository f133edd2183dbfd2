// RUN: alcop-opt %s --alcop-lower-to-nvvm=target=sm_89 | FileCheck %s
// RUN: alcop-opt %s --alcop-lower-to-nvvm=target=sm_80 | FileCheck %s --check-prefix=OLD

// Two elements by each cvt, of an odd number the last one twice; the second element is
// the upper byte.
// CHECK-LABEL: llvm.func @rounded
// CHECK:       %[[LOW:.*]] = llvm.extractelement %[[X:.*]][%{{.*}}] : vector<3xf32>
// CHECK:       %[[HIGH:.*]] = llvm.extractelement %[[X]][%{{.*}}] : vector<3xf32>
// CHECK:       nvvm.convert.f32x2.to.f8x2 %[[HIGH]], %[[LOW]] {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>} : i16(f8E4M3FN)
// CHECK:       nvvm.convert.f32x2.to.f8x2
// CHECK-NOT:   nvvm.convert
// OLD-LABEL:   llvm.func @rounded
// OLD-NOT:     nvvm.convert
// OLD:         llvm.call @__nv_fminf
gpu.module @to_eight_bits {
  gpu.func @rounded(%in: memref<3xf32>, %out: memref<3xf8E4M3FN>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.load %in[%c0] : memref<3xf32>, vector<3xf32>
    %w = arith.truncf %v : vector<3xf32> to vector<3xf8E4M3FN>
    vector.store %w, %out[%c0] : memref<3xf8E4M3FN>, vector<3xf8E4M3FN>
    gpu.return
  }
}

// By way of f16, which has all of their values.
// CHECK-LABEL: llvm.func @widened
// CHECK:       %[[H:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2) -> vector<2xf16>
// CHECK:       llvm.fpext %[[H]] : vector<2xf16> to vector<2xf32>
// CHECK-NOT:   nvvm.convert
// OLD-LABEL:   llvm.func @widened
// OLD-NOT:     nvvm.convert
// OLD:         llvm.fpext %{{.*}} : vector<2xf16> to vector<2xf32>
gpu.module @of_eight_bits {
  gpu.func @widened(%in: memref<1xf8E5M2>, %out: memref<1xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = memref.load %in[%c0] : memref<1xf8E5M2>
    %y = arith.extf %x : f8E5M2 to f32
    memref.store %y, %out[%c0] : memref<1xf32>
    gpu.return
  }
}

// Arithmetic is done in f32, of integers as well.
// CHECK-LABEL: llvm.func @computed
// CHECK:       llvm.sitofp %{{.*}} : i32 to f32
// CHECK:       llvm.fadd %{{.*}} : f32
gpu.module @in_f32 {
  gpu.func @computed(%in: memref<1xf8E5M2>, %n: memref<1xi32>) kernel {
    %c0 = arith.constant 0 : index
    %x = memref.load %in[%c0] : memref<1xf8E5M2>
    %i = memref.load %n[%c0] : memref<1xi32>
    %j = arith.sitofp %i : i32 to f8E5M2
    %y = arith.addf %x, %j : f8E5M2
    memref.store %y, %in[%c0] : memref<1xf8E5M2>
    gpu.return
  }
}
