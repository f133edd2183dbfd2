// RUN: alcop-run %s | FileCheck %s
// CHECK: check {{ *}} OK
#c = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%a: memref<33x32xi8>, %b: memref<32x40xi8>, %e: memref<40xi32>, %c: memref<33x40xi32>) {
  %z = arith.constant 0 : i32
  %t = memref.alloc() : memref<33x40xi32>
  linalg.fill ins(%z : i32) outs(%t : memref<33x40xi32>)
  linalg.matmul ins(%a, %b : memref<33x32xi8>, memref<32x40xi8>) outs(%t : memref<33x40xi32>)
  linalg.generic {indexing_maps = [#c, #c, #n, #c], iterator_types = ["parallel", "parallel"]}
      ins(%t, %t, %e : memref<33x40xi32>, memref<33x40xi32>, memref<40xi32>) outs(%c : memref<33x40xi32>) {
  ^bb0(%x: i32, %y: i32, %v: i32, %o: i32):
    %s = arith.subi %x, %y : i32
    %r = arith.addi %s, %v : i32
    linalg.yield %r : i32
  }
  return
}
