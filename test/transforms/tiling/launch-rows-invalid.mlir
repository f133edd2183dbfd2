// RUN: alcop-opt %s --alcop-launch-rows --split-input-file --verify-diagnostics

// Threads exchange 32 bits, and sums of f16 depend on the order of their terms.
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @of_halves(%x: memref<4x64xf16>, %sum: memref<4xf16>, %y: memref<4x64xf16>) {
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%sum : memref<4xf16>)
  // expected-remark @below {{'linalg.reduce' is not computed row by row with others: threads cannot share it: it combines f16 by arith.addf, expected additions of f32 or i32, extremes of f32, f16, bf16, i32, or where one of these is}}
  linalg.reduce { arith.addf } ins(%x : memref<4x64xf16>) outs(%sum : memref<4xf16>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : memref<4x64xf16>, memref<4xf16>) outs(%y : memref<4x64xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %0 = arith.subf %a, %b : f16
    linalg.yield %0 : f16
  }
  return
}

// -----

// Each term depends on what was there: the largest so far, plus one.
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @in_order(%x: memref<4x64xf32>, %best: memref<4xf32>, %at: memref<4xi64>, %y: memref<4x64xf32>) {
  // expected-remark @below {{threads cannot share it: it combines f32, i64 by arith.maximumf, arith.select, expected}}
  linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<4x64xf32>) outs(%best, %at : memref<4xf32>, memref<4xi64>) {
  ^bb0(%a: f32, %b: f32, %n: i64):
    %one = arith.constant 1 : i64
    %more = arith.addi %n, %one : i64
    %0 = arith.maximumf %a, %b : f32
    %is = arith.cmpf ogt, %a, %b : f32
    %k = arith.select %is, %more, %n : i64
    linalg.yield %0, %k : f32, i64
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %best : memref<4x64xf32>, memref<4xf32>) outs(%y : memref<4x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
