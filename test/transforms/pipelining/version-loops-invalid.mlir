// RUN: alcop-opt %s --alcop-version-loops --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @unknown_bytes
// CHECK-NOT:     scf.if
#ws = #gpu.address_space<workgroup>
func.func @unknown_bytes(%A: memref<64x64xf32>, %C: memref<64xcomplex<f32>>, %n: index,
                         %z: complex<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  // expected-remark @below {{has no check at run time: the bytes of a memref of type memref<64xcomplex<f32>> are not known}}
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %z, %C[%t] : memref<64xcomplex<f32>>
    gpu.barrier
  }
  return
}

// -----

// CHECK-LABEL: @inside
// CHECK-NOT:     scf.if
#ws = #gpu.address_space<workgroup>
memref.global @table : memref<64x64xf32>
func.func @inside(%C: memref<64x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  // expected-remark @below {{has no check at run time: 'memref.get_global' is in the loop, expected it before}}
  scf.for %k = %c0 to %n step %c1 {
    %A = memref.get_global @table : memref<64x64xf32>
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  }
  return
}

// -----

// Threads may call a function with different memrefs, and take different ways.
// CHECK-LABEL: @called
// CHECK-NOT:     scf.if
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @called(%A: memref<64x64xf32>, %C: memref<64xf32>)
      workgroup(%a: memref<64xf32, #ws>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %t = gpu.thread_id x
    // expected-remark @below {{has no check at run time: an argument may be another memref for each thread}}
    scf.for %k = %c0 to %c8 step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<64xf32, #ws>
      memref.store %x, %C[%t] : memref<64xf32>
      gpu.barrier
    }
    gpu.return
  }
}
