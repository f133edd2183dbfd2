// RUN: alcop-opt %s --split-input-file --verify-diagnostics \
// RUN:   --load=%S/fixtures/passes.py --test-remark | FileCheck %s

// Each place that a comment may name, and every severity.
// CHECK: func.func @below
// expected-remark@below {{seen}}
// expected-warning@+1 {{looked at}}
func.func @below() {
  return
}

// expected-warning@+1 {{looked at}}
func.func private @same() // expected-remark {{seen}}

// -----

func.func private @above()
// expected-warning@above {{looked at}}
// expected-remark@above {{seen}}

// -----

// The text of errors, of the parser and of the verifier, with notes.
func.func @twice(%a: i32) {
  // expected-note@+1 {{previously defined here}}
  %0 = arith.addi %a, %a : i32
  // expected-error@+1 {{redefinition of SSA value '%0'}}
  %0 = arith.addi %a, %a : i32
  return
}

// -----

func.func @regex() -> i32 {
  // expected-error-re@+1 {{has {{[0-9]}} operands, but enclosing function (@{{[a-z]+}}) returns 1}}
  return
}

// -----

func.func @further_above() {
  return
}
// expected-remark@-3 {{see}}
// expected-warning@-4 {{at}}
