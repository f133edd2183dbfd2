// RUN: not alcop-opt %s --verify-diagnostics --load=%S/fixtures/passes.py --test-remark \
// RUN:   -o %t 2>&1 | FileCheck %s
// RUN: not alcop-opt %s --verify-diagnostics=only-expected --test-remark \
// RUN:   --load=%S/fixtures/passes.py -o %t 2>&1 | FileCheck %s --check-prefix=ONLY
// RUN: not alcop-opt %s --verify-diagnostics=some 2>&1 | FileCheck %s --check-prefix=VALUE

// What nobody expected, and what was expected and not said: with their places.
// CHECK:      verify-diagnostics-invalid.mlir:17:1: error: unexpected remark: seen
// CHECK:      verify-diagnostics-invalid.mlir:17:1: error: unexpected warning: looked at
// CHECK:      verify-diagnostics-invalid.mlir:16:4: error: expected remark "another" was not produced
// CHECK-NEXT: {{^}}// expected-remark
// CHECK-NEXT: {{^   \^$}}
// ONLY-NOT:   unexpected
// ONLY:       error: expected remark "another" was not produced
// VALUE:      error: '--verify-diagnostics' is 'some', expected all or only-expected
// expected-remark@+1 {{another}}
func.func private @f()
