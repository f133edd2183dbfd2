// RUN: alcop-opt %s --split-input-file --verify-diagnostics -o %t

func.func @shape(%a: memref<4x8xf16>, %b: memref<8x4xf16>) {
  // expected-error@+1 {{'alcop.async_copy' op expects source and target of one element type, and the source of the target's rank and nowhere larger, got memref<4x8xf16> and memref<8x4xf16>}}
  "alcop.async_copy"(%a, %b) : (memref<4x8xf16>, memref<8x4xf16>) -> ()
  return
}

// -----

func.func @element_type(%a: memref<4xf16>, %b: memref<4xf32>) {
  // expected-error@+1 {{'alcop.async_copy' op expects source and target of one element type, and the source of the target's rank and nowhere larger, got memref<4xf16> and memref<4xf32>}}
  "alcop.async_copy"(%a, %b) : (memref<4xf16>, memref<4xf32>) -> ()
  return
}

// -----

func.func @rank(%a: memref<4xf16>, %b: memref<4x1xf16>) {
  // expected-error@+1 {{'alcop.copy' op expects source and target of one element type, and the source of the target's rank and nowhere larger, got memref<4xf16> and memref<4x1xf16>}}
  "alcop.copy"(%a, %b) : (memref<4xf16>, memref<4x1xf16>) -> ()
  return
}

// -----

func.func @no_memref(%a: memref<4xf16>, %b: vector<4xf16>) {
  // expected-error@+1 {{'alcop.async_copy' op expects two memrefs, got memref<4xf16> and vector<4xf16>}}
  "alcop.async_copy"(%a, %b) : (memref<4xf16>, vector<4xf16>) -> ()
  return
}

// -----

func.func @one_operand(%a: memref<4xf16>) {
  // expected-error@+1 {{'alcop.async_copy' op expects 2 operands, got 1}}
  "alcop.async_copy"(%a) : (memref<4xf16>) -> ()
  return
}

// -----

func.func @no_group(%a: index) {
  // expected-error@+1 {{'alcop.consumer_wait' op expects one !nvgpu.device.async.token, got index}}
  "alcop.consumer_wait"(%a) : (index) -> ()
  return
}

// -----

func.func @wait_for_nothing() {
  // expected-error@+1 {{'alcop.consumer_wait' op expects one !nvgpu.device.async.token, got none}}
  "alcop.consumer_wait"() : () -> ()
  return
}

// -----

func.func @commit_without_result() {
  // expected-error@+1 {{'alcop.producer_commit' op expects one !nvgpu.device.async.token, got none}}
  "alcop.producer_commit"() : () -> ()
  return
}

// -----

func.func @acquire_with_operand(%a: index) {
  // expected-error@+1 {{op expects exactly 0 operands, but got 1}}
  "alcop.producer_acquire"(%a) : (index) -> ()
  return
}

// -----

func.func @unknown_op() {
  // expected-error@+1 {{unregistered operation 'alcop.produce'}}
  "alcop.produce"() : () -> ()
  return
}

// -----

// expected-error@+1 {{expected base attribute 'builtin.dictionary' but got 'builtin.integer'}}
func.func private @parameter() attributes {a = #alcop.pipeline<3>}

// -----

// expected-error@+1 {{expected dynamic attribute}}
func.func private @unknown_attribute() attributes {a = #alcop.plan<{}>}
