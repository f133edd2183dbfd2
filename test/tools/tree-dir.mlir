// RUN: rm -rf %t
// RUN: alcop-opt %s --load=%S/fixtures/passes.py --mlir-print-ir-tree-dir=%t -o %t.out \
// RUN:   --pass-pipeline='builtin.module(test-mark,func.func(cse,test-mark{label=b}),cse)'
// RUN: ls %t/builtin_module_no-symbol-name | FileCheck %s --check-prefix=MODULE
// RUN: ls %t/builtin_module_no-symbol-name/func_func_f \
// RUN:   | FileCheck %s --check-prefix=FUNC
// RUN: cat %t/builtin_module_no-symbol-name/func_func_f/0_1_test-mark.mlir \
// RUN:   | FileCheck %s
// RUN: rm -rf %t && echo "" > %t
// RUN: not alcop-opt %s --cse --mlir-print-ir-tree-dir=%t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNWRITABLE

// Numbers before the name: of the pass on the op, after those of the ops around it.
// MODULE-DAG: 0_test-mark.mlir
// MODULE-DAG: 1_cse.mlir
// MODULE-DAG: func_func_f
// FUNC-DAG:   0_0_cse.mlir
// FUNC-DAG:   0_1_test-mark.mlir
// CHECK:      func.func private @f() attributes {test.marks = ["b"]}
// UNWRITABLE: error: cannot make folder '{{.*}}'
func.func private @f()
