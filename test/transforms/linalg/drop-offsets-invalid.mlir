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
