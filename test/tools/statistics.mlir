// RUN: alcop-opt %s --load=%S/fixtures/passes.py --mlir-pass-statistics -o %t \
// RUN:   --pass-pipeline='builtin.module(func.func(test-mark,cse),canonicalize)' 2>&1 \
// RUN:   | FileCheck %s

// Ours and MLIR's, summed over functions, nested as the pipeline is.
// CHECK:      Pass statistics report
// CHECK:      {{^}}'func.func' Pipeline
// CHECK-NEXT: {{^}}  test-mark
// CHECK-NEXT:     (S) 2 num-runs
// CHECK-NEXT:     (S) 2 num-changed
// CHECK-NEXT:     (S) 0 num-ops-added
// CHECK-NEXT:     (S) 0 num-ops-erased
// CHECK-NEXT: {{^}}  cse
// CHECK-NEXT:     (S) 2 num-runs
// CHECK-NEXT:     (S) 1 num-changed
// CHECK-NEXT:     (S) 0 num-ops-added
// CHECK-NEXT:     (S) 1 num-ops-erased
// CHECK-NEXT: {{^}}canonicalize
// CHECK-NEXT:   (S) 1 num-runs
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
func.func private @g()
