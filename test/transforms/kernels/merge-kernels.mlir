// RUN: alcop-opt %s --alcop-merge-kernels --split-input-file | FileCheck %s

// Of equal kernels, in one function and in two, the first is kept.
// CHECK-LABEL: func.func @f
// CHECK:       gpu.launch_func @f_kernels::@f_fill
// CHECK:       gpu.launch_func @f_kernels::@f_fill
// CHECK:       gpu.launch_func @f_kernels::@f_other
// CHECK:       gpu.module @f_kernels
// CHECK:         gpu.func @f_fill
// CHECK-NOT:     gpu.func @f_fill_1
// CHECK:         gpu.func @f_other
// CHECK-LABEL: func.func @g
// CHECK:       gpu.launch_func @f_kernels::@f_fill
// CHECK-NOT:   gpu.module
module attributes {gpu.container_module} {
  func.func @f(%A: memref<1xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @f_kernels::@f_fill
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    gpu.launch_func @f_kernels::@f_fill_1
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    gpu.launch_func @f_kernels::@f_other
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    return
  }
  gpu.module @f_kernels {
    gpu.func @f_fill(%p: memref<1xf32>) kernel {
      %c = arith.constant 0 : index
      %v = arith.constant 1.0 : f32
      memref.store %v, %p[%c] : memref<1xf32>
      gpu.return
    }
    gpu.func @f_fill_1(%p: memref<1xf32>) kernel {
      %zero = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      memref.store %one, %p[%zero] : memref<1xf32>
      gpu.return
    }
    gpu.func @f_other(%p: memref<1xf32>) kernel {
      %c = arith.constant 0 : index
      %v = arith.constant 2.0 : f32
      memref.store %v, %p[%c] : memref<1xf32>
      gpu.return
    }
  }
  func.func @g(%A: memref<1xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @g_kernels::@g
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    return
  }
  gpu.module @g_kernels {
    gpu.func @g(%p: memref<1xf32>) kernel {
      %c = arith.constant 0 : index
      %v = arith.constant 1.0 : f32
      memref.store %v, %p[%c] : memref<1xf32>
      gpu.return
    }
  }
}

// -----

// Kernels that read a constant of the same name: equal if the constants are. A kernel
// that nothing launches stays, and so does a function that kernels call.
// CHECK-LABEL: func.func @h
// CHECK:       gpu.launch_func @one::@first
// CHECK:       gpu.launch_func @one::@first
// CHECK:       gpu.launch_func @other::@third
// CHECK:       gpu.module @one
// CHECK:         gpu.func @first
// CHECK:       gpu.module @same
// CHECK:         gpu.func @not_launched
// CHECK:         gpu.func @called
// CHECK:       gpu.module @other
// CHECK:         gpu.func @third
module attributes {gpu.container_module} {
  func.func @h(%A: memref<1xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @one::@first
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    gpu.launch_func @one::@second
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    gpu.launch_func @other::@third
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<1xf32>)
    return
  }
  gpu.module @one {
    memref.global constant @k : memref<1xf32> = dense<1.0>
    gpu.func @first(%p: memref<1xf32>) kernel {
      %k = memref.get_global @k : memref<1xf32>
      memref.copy %k, %p : memref<1xf32> to memref<1xf32>
      gpu.return
    }
    gpu.func @second(%p: memref<1xf32>) kernel {
      %k = memref.get_global @k : memref<1xf32>
      memref.copy %k, %p : memref<1xf32> to memref<1xf32>
      gpu.return
    }
  }
  gpu.module @same {
    gpu.func @not_launched(%p: memref<1xf32>) kernel {
      gpu.return
    }
    gpu.func @called(%p: memref<1xf32>) {
      gpu.return
    }
  }
  gpu.module @other {
    memref.global constant @k : memref<1xf32> = dense<2.0>
    gpu.func @third(%p: memref<1xf32>) kernel {
      %k = memref.get_global @k : memref<1xf32>
      memref.copy %k, %p : memref<1xf32> to memref<1xf32>
      gpu.return
    }
  }
}
