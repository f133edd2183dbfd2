// RUN: alcop-opt %s --load=%S/fixtures/passes.py --pass-pipeline='any(any(test-mark,cse))' \
// RUN:   | FileCheck %s

// `any` stands for every isolated op; the pass may not run on others.
// CHECK:     func.func private @f() attributes {test.marks = ["a"]}
func.func private @f()

// CHECK:     module @inner attributes {test.marks = ["a"]}
module @inner {
}

// CHECK:     memref.global "private" @data
// CHECK-NOT: test.marks
memref.global "private" @data : memref<4xf32>
