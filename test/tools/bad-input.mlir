// One clear line each, exit status 1, no traceback.
// RUN: not alcop-opt %t.none 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING:     error: cannot read '{{.*}}.none': No such file or directory
// MISSING-NOT: {{.}}

// RUN: not alcop-opt %S 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: cannot read '{{.*}}': Is a directory

// RUN: not alcop-opt %S/fixtures/passes.py 2>&1 | FileCheck %s --check-prefix=NOT-MLIR
// NOT-MLIR: passes.py:1:1: error:

// RUN: echo "func.func @f( {" | not alcop-opt 2>&1 | FileCheck %s --check-prefix=STDIN
// STDIN:      <stdin>:1:14: error: expected
// STDIN-NEXT: func.func @f( {
// STDIN-NEXT: {{^             \^$}}

// RUN: not alcop-opt %s -o %t.none/out.mlir 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: cannot write '{{.*}}.none/out.mlir': No such file or directory

// RUN: not alcop-opt %s --canonicalise 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: error: unknown flag '--canonicalise', did you mean '--canonicalize'

// RUN: not alcop-opt %s -o 2>&1 | FileCheck %s --check-prefix=VALUE
// VALUE: error: '-o' needs a value: -o FILE

// RUN: not alcop-opt %s --verify-each=maybe 2>&1 | FileCheck %s --check-prefix=SWITCH
// SWITCH: error: '--verify-each' is 'maybe', expected true or false

// RUN: not alcop-opt %s %s 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: error: expected one input file, got {{.*}} and

// RUN: not alcop-opt %s --pass-pipeline='builtin.module()' --cse 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BOTH
// BOTH: error: '--pass-pipeline' and '--cse' cannot be used together

// RUN: not alcop-opt %s --load=%t.none.py 2>&1 | FileCheck %s --check-prefix=LOAD
// LOAD: error: cannot load '{{.*}}.none.py'{{.*}}FileNotFoundError

// RUN: not alcop-opt %s --load=%s 2>&1 | FileCheck %s --check-prefix=LOAD-KIND
// LOAD-KIND: error: cannot load '{{.*}}': expected a Python file

// RUN: echo "import nothing_like_it" > %t.py
// RUN: not alcop-opt %s --load=%t.py 2>&1 | FileCheck %s --check-prefix=LOAD-FAILS
// LOAD-FAILS: error: cannot load '{{.*}}.py', line 1: ModuleNotFoundError

// RUN: echo "x = 1" > %t.empty.py
// RUN: not alcop-opt %s --load=%t.empty.py 2>&1 | FileCheck %s --check-prefix=LOAD-NONE
// LOAD-NONE: error: '{{.*}}' defines no subclass of Pass that has a name

// The output file keeps its old content where a pass fails.
// RUN: echo "before" > %t.out
// RUN: not alcop-opt %s -o %t.out --load=%S/fixtures/passes.py --test-refuse
// RUN: FileCheck %s --check-prefix=KEPT < %t.out
// KEPT: before
func.func @f() {
  return
}
