// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: not alcop-opt %s --load=%S/fixtures/passes.py --test-refuse 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFUSED
// RUN: not ls repro.mlir
// RUN: not alcop-opt %s --load=%S/fixtures/passes.py --cse --test-crash 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CRASH
// RUN: FileCheck %s --check-prefix=BEFORE < repro.mlir
// RUN: not alcop-opt repro.mlir --load=%S/fixtures/passes.py \
// RUN:   --pass-pipeline='builtin.module(func.func(test-crash))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CRASH
// RUN: not alcop-opt %s --load=%S/fixtures/passes.py --test-spoil 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SPOILT
// RUN: alcop-opt %s --load=%S/fixtures/passes.py --test-spoil --verify-each=false \
// RUN:   | FileCheck %s --check-prefix=UNVERIFIED
// RUN: not alcop-opt %s --gpu-module-to-binary 2>&1 | FileCheck %s --check-prefix=UPSTREAM

// A pass fails: its reason, at the op's location; no reproducer.
// REFUSED:      failures.mlir:35:1: error: test-refuse: refused
// REFUSED-NEXT: func.func @first
// REFUSED-NEXT: {{^\^$}}
// REFUSED-NOT:  {{error|repro}}

// A pass crashes: the traceback, the IR before it and how to run it again.
// CRASH: KeyError
// CRASH: error: pass 'test-crash' crashed: KeyError: 'first'
// CRASH: the IR before it is in repro.mlir; to run it again:
// CRASH: alcop-opt --load={{.*}}passes.py repro.mlir --pass-pipeline='builtin.module(func.func(test-crash))'
// BEFORE:     arith.constant 1 : i32
// BEFORE-NOT: arith.constant 1 : i32
// SPOILT: error: 'func.func' op entry block must have 0 arguments
// SPOILT: error: pass 'test-spoil' left IR that does not verify
// SPOILT: alcop-opt --load={{.*}}passes.py repro.mlir --pass-pipeline='builtin.module(func.func(test-spoil))'
// UNVERIFIED: func.func
// UPSTREAM: failures.mlir:41:1: error: the module has no target attributes
func.func @first(%a: i32) -> i32 {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
gpu.module @kernels {
}
