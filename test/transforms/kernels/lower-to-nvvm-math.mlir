// RUN: alcop-opt %s --alcop-lower-to-nvvm --split-input-file | FileCheck %s

// A function of libdevice has a body of ours, and so has what that calls; once each.
// CHECK-LABEL: gpu.module @functions
// CHECK-DAG:   llvm.func internal @__nv_tanhf(%{{.*}}: f32) -> f32 attributes {always_inline}
// CHECK-DAG:   llvm.func internal @__nv_expf(%{{.*}}: f32) -> f32 attributes {always_inline}
// CHECK-DAG:   llvm.func internal @__nv_exp2f(%{{.*}}: f32) -> f32 attributes {always_inline}
// CHECK:       llvm.func @f
// CHECK-COUNT-4: llvm.call @__nv_tanhf
// CHECK:       llvm.call @__nv_expf
// CHECK-NOT:   llvm.func @__nv
module attributes {gpu.container_module} {
  gpu.module @functions {
    gpu.func @f(%p: memref<4xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %v = vector.load %p[%c0] : memref<4xf32>, vector<4xf32>
      %w = math.tanh %v : vector<4xf32>
      vector.store %w, %p[%c0] : memref<4xf32>, vector<4xf32>
      %x = memref.load %p[%c0] : memref<4xf32>
      %y = math.exp %x : f32
      memref.store %y, %p[%c0] : memref<4xf32>
      gpu.return
    }
  }
}

// -----

// Squares and cubes are multiplications; clamping and rounding need no function.
// CHECK-LABEL: gpu.module @simple
// CHECK-NOT:   llvm.call
// CHECK:       llvm.fmul
// CHECK:       llvm.fmul
// CHECK:       llvm.fmul
// CHECK:       llvm.intr.trunc
// CHECK-NOT:   llvm.call
module attributes {gpu.container_module} {
  gpu.module @simple {
    gpu.func @f(%p: memref<4xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %two = arith.constant 2.0 : f32
      %three = arith.constant 3.0 : f32
      %x = memref.load %p[%c0] : memref<4xf32>
      %a = math.powf %x, %two : f32
      %b = math.powf %a, %three : f32
      %c = math.clampf %b to [%two, %three] : f32
      %d = math.trunc %c : f32
      memref.store %d, %p[%c0] : memref<4xf32>
      gpu.return
    }
  }
}

// -----

// Other powers are left to a function: as exp(y log x) they would lose precision.
// CHECK-LABEL: gpu.module @power
// CHECK:       llvm.call @__nv_powf
module attributes {gpu.container_module} {
  gpu.module @power {
    gpu.func @f(%p: memref<4xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %some = arith.constant 1.7 : f32
      %x = memref.load %p[%c0] : memref<4xf32>
      %a = math.powf %x, %some : f32
      memref.store %a, %p[%c0] : memref<4xf32>
      gpu.return
    }
  }
}
