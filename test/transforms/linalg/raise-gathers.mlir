// RUN: alcop-opt %s --alcop-raise-gathers --split-input-file --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: @embedding
// CHECK-SAME:  %[[T:.*]]: memref<100x64xf16>, %[[I:.*]]: memref<40xi32>, %[[W:.*]]: memref<64x32xf16>, %[[C:.*]]: memref<40x32xf32>
// CHECK-NEXT:  %[[A:.*]] = "alcop.take"(%[[T]], %[[I]]) : (memref<100x64xf16>, memref<40xi32>) -> memref<40x64xf16>
// CHECK-NEXT:  linalg.matmul ins(%[[A]], %[[W]] : {{.*}}) outs(%[[C]]
// CHECK-NEXT:  return
func.func @embedding(%t: memref<100x64xf16>, %i: memref<40xi32>, %w: memref<64x32xf16>, %c: memref<40x32xf32>) {
  %rows = memref.alloc() : memref<40x64xf16>
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : memref<40xi32>) outs(%rows : memref<40x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 1 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  linalg.matmul ins(%rows, %w : memref<40x64xf16>, memref<64x32xf16>) outs(%c : memref<40x32xf32>)
  return
}

// -----

// Indices of two dimensions; rows that another op reads are copied as well.
// CHECK-LABEL: @tokens
// CHECK:       memref.load
// CHECK:       %[[I:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0, 1]] : memref<2x20xindex> into memref<40xindex>
// CHECK:       "alcop.take"(%{{.*}}, %[[I]]) : (memref<100x64xf16>, memref<40xindex>) -> memref<40x64xf16>
// CHECK:       memref.copy
func.func @tokens(%t: memref<100x64xf16>, %i: memref<2x20xindex>, %w: memref<64x32xf16>, %c: memref<40x32xf32>, %other: memref<2x20x64xf16>) {
  %rows = memref.alloc() : memref<2x20x64xf16>
  linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%i : memref<2x20xindex>) outs(%rows : memref<2x20x64xf16>) {
  ^bb0(%r: index, %o: f16):
    %k = linalg.index 2 : index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  %a = memref.collapse_shape %rows [[0, 1], [2]] : memref<2x20x64xf16> into memref<40x64xf16>
  linalg.matmul ins(%a, %w : memref<40x64xf16>, memref<64x32xf16>) outs(%c : memref<40x32xf32>)
  memref.copy %rows, %other : memref<2x20x64xf16> to memref<2x20x64xf16>
  return
}

// -----

// Left unchanged: indices that are written in between, columns from elsewhere, a part
// of each row, and what is no contraction.
// CHECK-LABEL: @written
// CHECK-NOT:   alcop.take
func.func @written(%t: memref<100x64xf16>, %i: memref<40xi32>, %w: memref<64x32xf16>, %c: memref<40x32xf32>) {
  %zero = arith.constant 0 : i32
  %rows = memref.alloc() : memref<40x64xf16>
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : memref<40xi32>) outs(%rows : memref<40x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 1 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  linalg.fill ins(%zero : i32) outs(%i : memref<40xi32>)
  linalg.matmul ins(%rows, %w : memref<40x64xf16>, memref<64x32xf16>) outs(%c : memref<40x32xf32>)
  return
}

// CHECK-LABEL: @other_forms
// CHECK-NOT:   alcop.take
func.func @other_forms(%t: memref<100x64xf16>, %wide: memref<100x80xf16>, %i: memref<64xi32>, %w: memref<64x32xf16>, %c: memref<64x32xf32>, %d: memref<64x64xf16>) {
  %columns = memref.alloc() : memref<64x64xf16>
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : memref<64xi32>) outs(%columns : memref<64x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 0 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  linalg.matmul ins(%columns, %w : memref<64x64xf16>, memref<64x32xf16>) outs(%c : memref<64x32xf32>)
  %part = memref.alloc() : memref<64x64xf16>
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : memref<64xi32>) outs(%part : memref<64x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 1 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %wide[%r, %k] : memref<100x80xf16>
    linalg.yield %v : f16
  }
  linalg.matmul ins(%part, %w : memref<64x64xf16>, memref<64x32xf16>) outs(%c : memref<64x32xf32>)
  %rows = memref.alloc() : memref<64x64xf16>
  linalg.generic {indexing_maps = [affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : memref<64xi32>) outs(%rows : memref<64x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 1 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  linalg.exp ins(%rows : memref<64x64xf16>) outs(%d : memref<64x64xf16>)
  return
}

// -----

// Rows for each matrix of a batch: of one table, and of a table for each.
// CHECK-LABEL: @tokens_of_experts
// CHECK-NOT:   memref.alloc
// CHECK:       %[[A:.*]] = "alcop.take"(%{{.*}}, %{{.*}}) : (memref<100x64xf16>, memref<3x40xi32>) -> memref<3x40x64xf16>
// CHECK-NEXT:  linalg.batch_matmul ins(%[[A]]
func.func @tokens_of_experts(%t: memref<100x64xf16>, %i: memref<3x40xi32>, %x: memref<3x64x32xf16>, %y: memref<3x40x32xf32>) {
  %rows = memref.alloc() : memref<3x40x64xf16>
  linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%i : memref<3x40xi32>) outs(%rows : memref<3x40x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  linalg.batch_matmul ins(%rows, %x : memref<3x40x64xf16>, memref<3x64x32xf16>) outs(%y : memref<3x40x32xf32>)
  return
}

// -----

// CHECK-LABEL: @tokens_of_sequences
// CHECK-NOT:   memref.alloc
// CHECK:       %[[A:.*]] = "alcop.take"(%{{.*}}, %{{.*}}) : (memref<3x100x64xf16>, memref<3x40xi32>) -> memref<3x40x64xf16>
// CHECK-NEXT:  linalg.batch_matmul ins(%[[A]]
func.func @tokens_of_sequences(%t: memref<3x100x64xf16>, %i: memref<3x40xi32>, %x: memref<3x64x32xf16>, %y: memref<3x40x32xf32>) {
  %rows = memref.alloc() : memref<3x40x64xf16>
  linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%i : memref<3x40xi32>) outs(%rows : memref<3x40x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %b = linalg.index 0 : index
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%b, %r, %k] : memref<3x100x64xf16>
    linalg.yield %v : f16
  }
  linalg.batch_matmul ins(%rows, %x : memref<3x40x64xf16>, memref<3x64x32xf16>) outs(%y : memref<3x40x32xf32>)
  return
}

// -----

// Whole matrices, of an expert for each of a batch.
// CHECK-LABEL: @experts
// CHECK-NOT:   memref.alloc
// CHECK:       %[[A:.*]] = "alcop.take"(%{{.*}}, %{{.*}}) : (memref<8x64x32xf16>, memref<3xi32>) -> memref<3x64x32xf16>
// CHECK-NEXT:  linalg.batch_matmul ins(%{{.*}}, %[[A]]
func.func @experts(%t: memref<8x64x32xf16>, %i: memref<3xi32>, %x: memref<3x40x64xf16>, %y: memref<3x40x32xf32>) {
  %rows = memref.alloc() : memref<3x64x32xf16>
  linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%i : memref<3xi32>) outs(%rows : memref<3x64x32xf16>) {
  ^bb0(%n: i32, %o: f16):
    %m = linalg.index 1 : index
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %m, %k] : memref<8x64x32xf16>
    linalg.yield %v : f16
  }
  linalg.batch_matmul ins(%x, %rows : memref<3x40x64xf16>, memref<3x64x32xf16>) outs(%y : memref<3x40x32xf32>)
  return
}

// -----

// Left unchanged: other dimensions of the table, and a batch that is not outermost.
// CHECK-LABEL: @transposed_experts
// CHECK-NOT:   alcop.take
func.func @transposed_experts(%t: memref<8x64x64xf16>, %i: memref<3xi32>, %x: memref<3x40x64xf16>, %y: memref<3x40x64xf32>) {
  %rows = memref.alloc() : memref<3x64x64xf16>
  linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%i : memref<3xi32>) outs(%rows : memref<3x64x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %m = linalg.index 1 : index
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k, %m] : memref<8x64x64xf16>
    linalg.yield %v : f16
  }
  linalg.batch_matmul ins(%x, %rows : memref<3x40x64xf16>, memref<3x64x64xf16>) outs(%y : memref<3x40x64xf32>)
  return
}
// CHECK-LABEL: @batch_inside
// CHECK-NOT:   alcop.take
func.func @batch_inside(%t: memref<100x64xf16>, %i: memref<40x3xi32>, %x: memref<3x64x32xf16>, %y: memref<3x40x32xf32>) {
  %rows = memref.alloc() : memref<40x3x64xf16>
  linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (b, m)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%i : memref<40x3xi32>) outs(%rows : memref<40x3x64xf16>) {
  ^bb0(%n: i32, %o: f16):
    %k = linalg.index 2 : index
    %r = arith.index_cast %n : i32 to index
    %v = memref.load %t[%r, %k] : memref<100x64xf16>
    linalg.yield %v : f16
  }
  linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%rows, %x : memref<40x3x64xf16>, memref<3x64x32xf16>) outs(%y : memref<3x40x32xf32>)
  return
}
