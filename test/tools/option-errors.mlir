// A wrong option, of our passes and of MLIR's: the column of its name or value.
// RUN: not alcop-opt --load=%S/fixtures/passes.py \
// RUN:   --pass-pipeline='builtin.module(test-mark{label=b dept=2})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: pipeline:1:34: pass 'test-mark' has no option 'dept', expected one of label, depth, sizes, loud

// RUN: not alcop-opt --load=%S/fixtures/passes.py --test-mark='label=b depth=two' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=VALUE --strict-whitespace
// VALUE:      error: pipeline:1:25: pass 'test-mark': option 'depth' is 'two', expected an integer
// VALUE-NEXT: {{^}}test-mark{label=b depth=two}
// VALUE-NEXT: {{^                        \^$}}

// RUN: not alcop-opt --load=%S/fixtures/passes.py --test-mark='loud=maybe' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BOOL
// BOOL: option 'loud' is 'maybe', expected true or false

// RUN: not alcop-opt --load=%S/fixtures/passes.py --test-mark='sizes=1,x' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LIST
// LIST: option 'sizes' is '1,x', expected integers separated by commas

// RUN: not alcop-opt --load=%S/fixtures/passes.py --test-mark=depth=-1 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CHECKED
// CHECKED: error: pipeline:1:1: depth is -1, expected 0 or more

// RUN: not alcop-opt --load=%S/fixtures/passes.py --test-mark='label=b 5' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=FORM
// FORM: pipeline:1:19: expected the name of an option

// RUN: not alcop-opt --pass-pipeline='builtin.module(canonicalize{top=1})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UPSTREAM
// UPSTREAM: error: pipeline:1:29: pass 'canonicalize' has no option 'top', expected one of {{.*}}top-down

// RUN: not alcop-opt --canonicalize='top-down=true max-iterations=many' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UPSTREAM-VALUE
// UPSTREAM-VALUE-NOT: for the --max-iterations
// UPSTREAM-VALUE:     error: pipeline:1:43: pass 'canonicalize': option 'max-iterations': 'many' value invalid

// RUN: not alcop-opt --cse=foo=1 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: pipeline:1:5: pass 'cse' has no option 'foo'{{$}}

// Of a named pipeline: its own options, and what it hands on.
// RUN: not alcop-opt --alcop-compile=tarjet=sm_80 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NAMED
// NAMED: error: pipeline:1:15: pipeline 'alcop-compile' has no option 'tarjet', expected one of target, schedule

// RUN: not alcop-opt --alcop-compile=target=sm_1 2>&1 \
// RUN:   | FileCheck %s --check-prefix=INNER
// INNER: error: pipeline:1:1: in pipeline 'alcop-compile': unknown target 'sm_1'
