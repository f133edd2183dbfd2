// RUN: alcop-opt %s --alcop-compile=target=sm_80 | FileCheck %s
// RUN: alcop-opt %s --cse --sparsifier --alcop-compile --dump-pass-pipeline -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DUMP

// A function without work comes through untouched. Our pipelines and MLIR's stand next
// to passes.
// CHECK: func.func @nothing
// DUMP:  builtin.module(cse,sparsifier,alcop-compile)
func.func @nothing() {
  return
}
