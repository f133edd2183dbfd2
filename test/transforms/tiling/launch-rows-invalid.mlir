// RUN: alcop-opt %s --alcop-launch-rows --split-input-file --verify-diagnostics

#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @too_long(%x: memref<4x20000xf32>, %sum: memref<4xf32>, %y: memref<4x20000xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%sum : memref<4xf32>)
  // expected-remark @below {{'linalg.reduce' is not computed row by row with others: its rows have 20000 elements, and 2 of them are needed at once: expected at most 16384, which the registers of a block hold}}
  linalg.reduce { arith.addf } ins(%x : memref<4x20000xf32>) outs(%sum : memref<4xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : memref<4x20000xf32>, memref<4xf32>) outs(%y : memref<4x20000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @of_any_length(%x: memref<4x?xf32>, %sum: memref<4xf32>, %y: memref<4x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%sum : memref<4xf32>)
  // expected-remark @below {{'linalg.reduce' is not computed row by row with others: the length of its rows is known at run time only, expected a number}}
  linalg.reduce { arith.addf } ins(%x : memref<4x?xf32>) outs(%sum : memref<4xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : memref<4x?xf32>, memref<4xf32>) outs(%y : memref<4x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
