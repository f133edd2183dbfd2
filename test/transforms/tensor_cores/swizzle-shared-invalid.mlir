// RUN: alcop-opt %s --alcop-swizzle-shared --split-input-file --verify-diagnostics | FileCheck %s
// CHECK-NOT: arith.xori

// Through a view the rows are not seen: fold-memref-alias-ops comes first.
#ws = #gpu.address_space<workgroup>
func.func @view(%s: index, %r: index, %c: index) -> f16 {
  %a = memref.alloc() : memref<3x32x32xf16, #ws>
  // expected-remark @+1 {{shared buffer is not swizzled: it is used by 'memref.subview'}}
  %slot = memref.subview %a[%s, 0, 0] [1, 32, 32] [1, 1, 1] : memref<3x32x32xf16, #ws> to memref<32x32xf16, strided<[32, 1], offset: ?>, #ws>
  %e = memref.load %slot[%r, %c] : memref<32x32xf16, strided<[32, 1], offset: ?>, #ws>
  return %e : f16
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @across_chunks(%r: index, %c: index) -> vector<8xf16> {
  %a = memref.alloc() : memref<32x32xf16, #ws>
  // expected-remark @+1 {{shared buffer is not swizzled: 'vector.load' may cross a chunk of 16 bytes}}
  %v = vector.load %a[%r, %c] : memref<32x32xf16, #ws>, vector<8xf16>
  return %v : vector<8xf16>
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @wider_than_a_chunk(%r: index, %v: vector<16xf16>) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<32x32xf16, #ws>
  // expected-remark @+1 {{shared buffer is not swizzled: 'vector.store' may cross a chunk of 16 bytes}}
  vector.store %v, %a[%r, %c0] : memref<32x32xf16, #ws>, vector<16xf16>
  return
}
