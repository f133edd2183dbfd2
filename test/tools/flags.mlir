// RUN: alcop-opt %s --load=%S/fixtures/passes.py --test-mark-func --test-mark=label=m \
// RUN:   -cse --test-mark-func='label="b c" depth=2' --test-mark-kernel \
// RUN:   | FileCheck %s
// RUN: alcop-opt %s --load=%S/fixtures/passes.py --test-mark-func --cse \
// RUN:   --promote-buffers-to-stack --test-mark-func --convert-gpu-to-nvvm \
// RUN:   --dump-pass-pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=NESTED

// A pass given as a flag goes to the ops that it must run on, others to the module.
// CHECK: module attributes {{.*}}test.marks = ["m"]
// CHECK: func.func @f() attributes {test.marks = ["a", "b c:2"]}
// CHECK: gpu.func @kernel() kernel attributes {test.marks = ["a"]}

// Neighbours with the same op share it.
// NESTED: builtin.module(func.func(test-mark-func),cse,func.func(promote-buffers-to-stack,test-mark-func),gpu.module(convert-gpu-to-nvvm))
module attributes {gpu.container_module} {
  func.func @f() {
    return
  }
  gpu.module @kernels {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
}
