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

func.func @gather_of_a_matrix(%a: memref<8x8xf16>, %b: memref<4x8xf16, 3>, %rows: vector<4xindex>, %valid: vector<4xi1>) {
  // expected-error@+1 {{expects a source of one dimension and a target of two known ones, of one element type, got memref<8x8xf16> and memref<4x8xf16, 3>}}
  "alcop.gather"(%a, %b, %rows, %valid) : (memref<8x8xf16>, memref<4x8xf16, 3>, vector<4xindex>, vector<4xi1>) -> ()
  return
}

// -----

func.func @gather_of_other_rows(%a: memref<64xf16>, %b: memref<4x8xf16, 3>, %rows: vector<8xindex>, %valid: vector<4xi1>) {
  // expected-error@+1 {{expects vector<4xindex> for memref<4x8xf16, 3>, got vector<8xindex>}}
  "alcop.async_gather"(%a, %b, %rows, %valid) : (memref<64xf16>, memref<4x8xf16, 3>, vector<8xindex>, vector<4xi1>) -> ()
  return
}

// -----

func.func @im2col_without_strides(%x: memref<2x4x4x8xf16>) {
  // expected-error@+1 {{expects a window with strides}}
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [1, 1], dilations = [1, 1], low = [0, 0], high = [0, 0], groups = 1}>} : (memref<2x4x4x8xf16>) -> memref<32x8xf16>
  return
}

// -----

func.func @im2col_of_other_rank(%x: memref<2x4x8xf16>) {
  // expected-error@+1 {{expects 1 size of at least 1 for memref<2x4x8xf16>, got [1, 1]}}
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [1, 1], strides = [1, 1], dilations = [1, 1], low = [0, 0], high = [0, 0], groups = 1}>} : (memref<2x4x8xf16>) -> memref<8x8xf16>
  return
}

// -----

func.func @im2col_of_uneven_groups(%x: memref<2x4x4x8xf16>) {
  // expected-error@+1 {{expects groups that divide 8, got 3}}
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [1, 1], strides = [1, 1], dilations = [1, 1], low = [0, 0], high = [0, 0], groups = 3}>} : (memref<2x4x4x8xf16>) -> memref<32x3x2xf16>
  return
}

// -----

func.func @im2col_of_short_rows(%x: memref<2x4x4x8xf16>) {
  // expected-error@+1 {{expects rows of [72] elements, got memref<32x8xf16>}}
  %A = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1], dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>} : (memref<2x4x4x8xf16>) -> memref<32x8xf16>
  return
}

// -----

func.func @take_of_other_matrices(%table: memref<10x8x4xf16>, %indices: memref<5xi32>) {
  // expected-error@+1 {{a matrix of the table for each index}}
  %A = "alcop.take"(%table, %indices) : (memref<10x8x4xf16>, memref<5xi32>) -> memref<5x4x8xf16>
  return
}

// -----

func.func @take_of_other_rows(%table: memref<10x8xf16>, %indices: memref<4xi32>) {
  // expected-error@+1 {{expects a table and indices, and a matrix, or a batch of them, with a row or a matrix of the table for each index}}
  %A = "alcop.take"(%table, %indices) : (memref<10x8xf16>, memref<4xi32>) -> memref<5x8xf16>
  return
}

// -----

func.func @rows_of_another_matrix(%y: memref<4x5x8xf16>) {
  // expected-error@+1 {{expects a memref without gaps in its rows, and a matrix of these rows}}
  %C = "alcop.rows"(%y) : (memref<4x5x8xf16>) -> memref<4x40xf16>
  return
}

// -----

func.func @rectangles_without_sides(%y: memref<24x8xf16>) {
  // expected-error@+1 {{expects rectangles = {places = [P, Q], sides = [high, wide]} and a matrix of whole images, got {places = [3, 4]} and memref<24x8xf16>}}
  %C = "alcop.rows"(%y) {alcop.rectangles = {places = [3, 4]}} : (memref<24x8xf16>) -> memref<32x8xf16>
  return
}

// -----

func.func @rectangles_of_parts_of_images(%y: memref<24x8xf16>) {
  // expected-error@+1 {{and a matrix of whole images, got {places = [5, 4], sides = [2, 4]} and memref<24x8xf16>}}
  %C = "alcop.rows"(%y) {alcop.rectangles = {places = [5, 4], sides = [2, 4]}} : (memref<24x8xf16>) -> memref<32x8xf16>
  return
}

// -----

func.func @rectangles_of_other_rows(%y: memref<24x8xf16>) {
  // expected-error@+1 {{expects a memref without gaps in its rows, and a matrix of these rows}}
  %C = "alcop.rows"(%y) {alcop.rectangles = {places = [3, 4], sides = [2, 4]}} : (memref<24x8xf16>) -> memref<24x8xf16>
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
