// docs/writing-a-pass.md: examples/own_pass, by alcop-opt --load.

// RUN: alcop-opt %S/../../examples/own_pass/kernels.mlir --load %S/../../examples/own_pass/limit_shared.py --allow-unregistered-dialect --own-limit-shared 2>&1 | FileCheck %s
// RUN: not alcop-opt %S/../../examples/own_pass/kernels.mlir --load %S/../../examples/own_pass/limit_shared.py --allow-unregistered-dialect --own-limit-shared=limit=4096 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not alcop-opt %S/../../examples/own_pass/kernels.mlir --load %S/../../examples/own_pass/limit_shared.py --allow-unregistered-dialect --own-limit-shared=limit=much 2>&1 | FileCheck %s --check-prefix=OPTION

// CHECK:       kernels.mlir:21:3: remark: own-limit-shared: a buffer's size is unknown
// CHECK-LABEL: @fits
// CHECK:       own.shared_bytes = 8192 : i64
// CHECK-LABEL: @unknown
// CHECK-NOT:   own.shared_bytes
// CHECK-LABEL: @none
// CHECK:       own.shared_bytes = 0 : i64

// LIMIT:       kernels.mlir:8:3: error: own-limit-shared: allocates 8192 bytes of shared memory, expected at most 4096

// OPTION:      error: pipeline:1:24: pass 'own-limit-shared': option 'limit' is 'much', expected an integer
