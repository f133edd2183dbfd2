// RUN: alcop-opt %s --load=%S/fixtures/passes.py --mlir-timing -o %t \
// RUN:   --pass-pipeline='builtin.module(func.func(test-mark,cse),cse)' 2>&1 | FileCheck %s

// A row per pass, ours and MLIR's, summed over functions, nested as the pipeline is.
// CHECK:      Execution time report
// CHECK:      Total Execution Time: {{[0-9]+\.[0-9]+}} seconds
// CHECK:      {{^ +[0-9.]+ \( *[0-9.]+%\)  Parser}}
// CHECK-NEXT: {{^ +[0-9.]+ \( *[0-9.]+%\)  'func.func' Pipeline}}
// CHECK-NEXT: {{^ +[0-9.]+ \( *[0-9.]+%\)    test-mark$}}
// CHECK-NEXT: {{^ +[0-9.]+ \( *[0-9.]+%\)    cse$}}
// CHECK-NEXT: {{^ +[0-9.]+ \( *[0-9.]+%\)  cse$}}
// CHECK-NEXT: {{^ +[0-9.]+ \( *[0-9.]+%\)  Output$}}
// CHECK-NEXT: {{^ +[0-9.]+ \(100.0%\)  Total$}}
func.func private @f()
func.func private @g()
