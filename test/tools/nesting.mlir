// RUN: alcop-opt %s --load=%S/fixtures/passes.py \
// RUN:   --pass-pipeline='builtin.module(test-mark{label="a b" depth=3}, cse, func.func(test-mark{sizes=1,2 loud}, canonicalize{top-down=false}, test-mark-func), gpu.module(test-mark, gpu.func(cse, test-mark{label={x y}})))' \
// RUN:   | FileCheck %s

// Passes of ours and of MLIR at one level and below each other, options in every form.
// CHECK:       module attributes {gpu.container_module, test.marks = ["a b:3"]}
// CHECK:       func.func @folded() -> i32 attributes {test.marks = ["A:1:2", "a"]}
// CHECK-NEXT:    arith.constant 3 : i32
// CHECK-NEXT:    return
module attributes {gpu.container_module} {
  func.func @folded() -> i32 {
    %0 = arith.constant 1 : i32
    %1 = arith.constant 2 : i32
    %2 = arith.addi %0, %1 : i32
    return %2 : i32
  }

  // Only what stands just below is reached: not a function in a module in the module.
  // CHECK:     func.func private @deeper()
  // CHECK-NOT: test.marks
  // CHECK:     }
  module {
    func.func private @deeper()
  }

  // CHECK:     gpu.module @kernels attributes {test.marks = ["a"]}
  // CHECK:     gpu.func @kernel() kernel attributes {test.marks = ["x y"]}
  gpu.module @kernels {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
}
