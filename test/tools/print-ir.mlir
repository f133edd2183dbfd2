// RUN: alcop-opt %s --load=%S/fixtures/passes.py --mlir-print-ir-after-all -o %t \
// RUN:   --pass-pipeline='builtin.module(func.func(test-mark{label=z},cse),canonicalize)' \
// RUN:   2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: alcop-opt %s --load=%S/fixtures/passes.py --mlir-print-ir-before-all -o %t \
// RUN:   --cse --test-mark 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: alcop-opt %s --mlir-print-ir-after=cse --canonicalize --cse -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ONE
// RUN: alcop-opt %s --mlir-print-ir-after-change --cse --canonicalize -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CHANGE
// RUN: alcop-opt %s --load=%S/fixtures/passes.py --mlir-print-ir-after-all \
// RUN:   --mlir-print-ir-module-scope --mlir-print-op-generic --mlir-print-debuginfo \
// RUN:   --test-mark-func -o %t 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: not alcop-opt %s --load=%S/fixtures/passes.py --mlir-print-ir-after-failure \
// RUN:   --cse --test-refuse 2>&1 | FileCheck %s --check-prefix=FAILURE

// Passes of ours and of MLIR are printed alike, those on functions one function a time.
// AFTER:     IR Dump After Mark{{.*}}test-mark
// AFTER:     func.func @f{{.*}}"z"
// AFTER:     IR Dump After CSE
// AFTER:     func.func @f
// AFTER-NOT: @g
// AFTER:     IR Dump After Mark{{.*}}test-mark
// AFTER:     func.func private @g{{.*}}"z"
// AFTER:     IR Dump After CSE
// AFTER:     IR Dump After Canonicalizer
// AFTER:     module {
// AFTER-NOT: IR Dump

// BEFORE:     IR Dump Before CSE
// BEFORE:     IR Dump Before Mark
// BEFORE-NOT: IR Dump

// ONE:     IR Dump After CSE
// ONE-NOT: IR Dump

// CHANGE-NOT: IR Dump After CSE
// CHANGE:     IR Dump After Canonicalizer
// CHANGE:     @f

// FULL: IR Dump After MarkFunc
// FULL: "builtin.module"() ({
// FULL: loc(

// FAILURE-NOT: IR Dump After CSE
// FAILURE:     IR Dump After Refuse Failed: test-refuse
// FAILURE:     @f
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  return %1 : i32
}
func.func private @g()
