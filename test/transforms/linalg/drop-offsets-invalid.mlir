// RUN: alcop-opt %s --alcop-drop-offsets --split-input-file --verify-diagnostics

// Who calls a function knows its type.
// expected-remark @+1 {{offsets of its arguments are left unchanged: it is called}}
func.func private @called(%A: memref<4xf32, strided<[1], offset: ?>>) {
  return
}

func.func @caller(%A: memref<4xf32>) {
  %a = memref.cast %A : memref<4xf32> to memref<4xf32, strided<[1], offset: ?>>
  call @called(%a) : (memref<4xf32, strided<[1], offset: ?>>) -> ()
  return
}

// -----

func.func private @other(memref<4xf32, strided<[1], offset: 2>>)

func.func @passes_on(%A: memref<4xf32, strided<[1], offset: 2>>) {
  // expected-remark @+1 {{'func.call' needs memref<4xf32, strided<[1], offset: 2>>: its offset is left unchanged}}
  call @other(%A) : (memref<4xf32, strided<[1], offset: 2>>) -> ()
  return
}

// -----

// expected-error @+1 {{'alcop.row_alignment' is -16, expected a number of bytes from 1 to 1048576}}
func.func @negative(%A: memref<?x?xf16> {alcop.row_alignment = -16}) {
  return
}

// -----

// expected-error @+1 {{'alcop.row_alignment' is "x", expected a number of bytes from 1 to 1048576}}
func.func @no_number(%A: memref<?x?xf16> {alcop.row_alignment = "x"}) {
  return
}

// -----

// expected-error @+1 {{'alcop.alignment' is 3, expected a power of two from 1 to 1048576}}
func.func @odd(%A: memref<?x?xf16> {alcop.alignment = 3}) {
  return
}

// -----

// expected-error @+1 {{'alcop.row_alignment' is 16, but rows are of 34 bytes}}
func.func @known_rows(%A: memref<?x17xf16> {alcop.row_alignment = 16}) {
  return
}
