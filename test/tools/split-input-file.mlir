// RUN: not alcop-opt %S/fixtures/parts.mlir --split-input-file --mlir-print-debuginfo \
// RUN:   --load=%S/fixtures/passes.py --test-remark > %t.out 2> %t.err
// RUN: FileCheck %s < %t.out
// RUN: FileCheck %s --check-prefix=SAID < %t.err
// RUN: not alcop-opt --split-input-file --load=%S/fixtures/passes.py --test-refuse \
// RUN:   < %S/fixtures/parts.mlir 2>&1 | FileCheck %s --check-prefix=STDIN
// RUN: not alcop-opt %S/fixtures/parts.mlir --split-input-file='// other' -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER

// A part that is not MLIR leaves the others alone; the exit status says that one was.
// Names and lines are those of the file.
// CHECK:      func.func @same
// CHECK:      loc("{{.*}}parts.mlir":2:1)
// CHECK:      {{^// -----$}}
// CHECK-NEXT: module
// CHECK:      func.func @same
// CHECK:      loc("{{.*}}parts.mlir":12:1)

// SAID:      parts.mlir:2:1: remark: seen
// SAID-NEXT: func.func @same() {
// SAID-NEXT: {{^\^$}}
// SAID:      parts.mlir:8:15: error: expected
// SAID-NEXT: func.func @bad { return }
// SAID:      parts.mlir:12:1: remark: seen

// STDIN: <stdin>:2:1: error: test-refuse: refused
// STDIN: <stdin>:12:1: error: test-refuse: refused

// OTHER:     parts.mlir:8:15: error: expected
// OTHER-NOT: error
