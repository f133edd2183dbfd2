// RUN: alcop-opt --help --load=%S/fixtures/passes.py | FileCheck %s
// RUN: alcop-opt --list-passes --load=%S/fixtures/passes.py \
// RUN:   | FileCheck %s --check-prefix=LIST
// RUN: alcop-opt --version | FileCheck %s --check-prefix=VERSION

// Made from the classes: ours, and those of a file given.
// CHECK:      usage: alcop-opt
// CHECK:      --pass-pipeline=TEXT
// CHECK:      --alcop-multi-buffer
// CHECK:      --test-mark-func [func.func] {{ *}}Mark, remark, refuse, crash and spoil.
// CHECK:          label=... {{ *}}the mark (text; default a)
// CHECK:          depth=... {{ *}}added to the mark, unless it is 0 (an integer; default
// CHECK-NEXT:     0)
// CHECK:      pipelines:
// CHECK-NEXT:   --alcop-compile
// CHECK:          target=...

// LIST: alcop-raise-contractions   Mark
// LIST: alcop-lower-to-nvvm
// LIST: test-mark
// LIST: alcop-compile
// LIST: of MLIR:
// LIST: canonicalize

// VERSION: alcop-opt {{[0-9]+\.[0-9]+}}
