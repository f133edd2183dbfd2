// RUN: alcop-opt %s | FileCheck %s
// RUN: alcop-opt < %s | FileCheck %s
// RUN: alcop-opt - -o %t --mlir-print-debuginfo < %s && FileCheck %s < %t
// RUN: alcop-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC
// RUN: alcop-opt %s --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=LOCAL
// RUN: alcop-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: not alcop-opt %S/fixtures/unregistered.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNREGISTERED
// RUN: alcop-opt %S/fixtures/unregistered.mlir --allow-unregistered-dialect \
// RUN:   | FileCheck %s --check-prefix=ALLOWED
// RUN: alcop-opt %S/fixtures/unregistered.mlir -allow-unregistered-dialect \
// RUN:   --no-implicit-module --pass-pipeline='func.func(cse)' \
// RUN:   | FileCheck %s --check-prefix=BARE

// CHECK:      module {
// CHECK-NEXT:   func.func private @f()
// LOC:        func.func private @f(){{.*}} loc(#[[LOC:loc.*]])
// LOC:        #[[LOC]] = loc("{{.*}}input-output.mlir":{{[0-9]+}}:1)
// LOCAL:      func.func private @f(){{.*}} loc("{{.*}}input-output.mlir":{{.*}})
// GENERIC:    "func.func"()
// UNREGISTERED: error: {{.*}}unregistered
// ALLOWED:    "nobody.knows"() : () -> ()
// BARE:       {{^}}func.func
func.func private @f()
