// Each error is one line with the column, then the text and a caret; nothing is read.
// RUN: not alcop-opt %t.none --pass-pipeline='builtin.module(cse' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OPEN --strict-whitespace
// OPEN:      error: pipeline:1:15: '(' is never closed
// OPEN-NEXT: {{^}}builtin.module(cse
// OPEN-NEXT: {{^              \^$}}
// OPEN-NOT:  {{.}}

// RUN: not alcop-opt --pass-pipeline='builtin.module(cse canonicalize)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=COMMA
// COMMA: pipeline:1:20: expected ',' or ')'

// RUN: not alcop-opt --pass-pipeline='builtin.module(cse,)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NAME
// NAME: pipeline:1:20: expected the name of a pass or op

// RUN: not alcop-opt --pass-pipeline='cse,canonicalize' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: pipeline:1:1: a pipeline starts with the op that it runs on, write 'builtin.module(cse,canonicalize)'

// RUN: not alcop-opt --pass-pipeline='builtin.module(cse{' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=BRACE
// BRACE: pipeline:1:19: '{' is never closed

// RUN: not alcop-opt --pass-pipeline='builtin.module(canonicalise)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: pipeline:1:16: unknown pass 'canonicalise', did you mean 'canonicalize'

// RUN: not alcop-opt --pass-pipeline='builtin.module(cse(canonicalize))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NO-OP
// NO-OP: pipeline:1:16: 'cse' is no op to run on, expected one such as 'func.func'

// A pass on the wrong op: what to write instead. Some of these abort in C++.
// RUN: not alcop-opt --pass-pipeline='builtin.module(cse,alcop-tile-to-blocks)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OURS
// OURS: pipeline:1:20: 'alcop-tile-to-blocks' runs on 'func.func', not on 'builtin.module'; write 'func.func(alcop-tile-to-blocks)'

// RUN: not alcop-opt --pass-pipeline='builtin.module(func.func(gpu-kernel-outlining))' \
// RUN:   2>&1 | FileCheck %s --check-prefix=THEIRS
// THEIRS: pipeline:1:26: 'gpu-kernel-outlining' runs on 'builtin.module', not on 'func.func'

// RUN: not alcop-opt --pass-pipeline='builtin.module(func.func(sparsifier))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PIPELINE
// PIPELINE: pipeline:1:26: 'sparsifier' runs on 'builtin.module', not on 'func.func'

// RUN: not alcop-opt --pass-pipeline='any(any(convert-gpu-to-nvvm))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ANY
// ANY: pipeline:1:9: 'convert-gpu-to-nvvm' runs on 'gpu.module', not on 'any'

// RUN: not alcop-opt %s --pass-pipeline='func.func(cse)' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ROOT
// ROOT: error: the pipeline runs on 'func.func', got a 'builtin.module'
