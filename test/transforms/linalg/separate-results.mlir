// RUN: alcop-opt %s --alcop-separate-results | FileCheck %s

// A buffer that is returned twice is copied; the copy has its sizes.
// CHECK-LABEL: func.func @twice(
// CHECK:         %[[X:.*]] = memref.alloc(%{{.*}}) : memref<?x8xf32>
// CHECK:         %[[N:.*]] = memref.dim %[[X]], %{{.*}}
// CHECK-NEXT:    %[[Y:.*]] = memref.alloc(%[[N]]) : memref<?x8xf32>
// CHECK-NEXT:    memref.copy %[[X]], %[[Y]]
// CHECK-NEXT:    return %[[X]], %[[Y]]
func.func @twice(%n: index) -> (memref<?x8xf32>, memref<?x8xf32>) {
  %x = memref.alloc(%n) : memref<?x8xf32>
  return %x, %x : memref<?x8xf32>, memref<?x8xf32>
}

// Others are left as they are, and numbers may be returned twice.
// CHECK-LABEL: func.func @once(
// CHECK-NOT:     memref.copy
func.func @once(%n: index, %a: memref<8xf32>) -> (memref<8xf32>, memref<8xf32>, index, index) {
  %x = memref.alloc() : memref<8xf32>
  return %x, %a, %n, %n : memref<8xf32>, memref<8xf32>, index, index
}

// A reshape of a buffer is the buffer, in the shape that is returned.
// CHECK-LABEL: func.func @reshaped(
// CHECK:         %[[X:.*]] = memref.alloc() : memref<4x16x8xf32>
// CHECK:         %[[T:.*]] = memref.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : memref<4x16x8xf32> into memref<64x8xf32>
// CHECK:         linalg.fill {{.*}} outs(%[[T]] : memref<64x8xf32>)
// CHECK-NEXT:    return %[[X]]
func.func @reshaped(%a: f32) -> memref<4x16x8xf32> {
  %t = memref.alloc() : memref<64x8xf32>
  linalg.fill ins(%a : f32) outs(%t : memref<64x8xf32>)
  %x = memref.expand_shape %t [[0, 1], [2]] output_shape [4, 16, 8] : memref<64x8xf32> into memref<4x16x8xf32>
  return %x : memref<4x16x8xf32>
}

// One buffer in two shapes is left as it is, and so is a reshape of an argument.
// CHECK-LABEL: func.func @shapes(
// CHECK:         %[[T:.*]] = memref.alloc() : memref<8xf32>
// CHECK:         %[[X:.*]] = memref.expand_shape %[[T]]
// CHECK:         %[[R:.*]] = memref.collapse_shape %{{.*}}
// CHECK:         return %[[X]], %[[T]], %[[R]]
func.func @shapes(%a: memref<4x2xf32>) -> (memref<4x2xf32>, memref<8xf32>, memref<8xf32>) {
  %t = memref.alloc() : memref<8xf32>
  %x = memref.expand_shape %t [[0, 1]] output_shape [4, 2] : memref<8xf32> into memref<4x2xf32>
  %r = memref.collapse_shape %a [[0, 1]] : memref<4x2xf32> into memref<8xf32>
  return %x, %t, %r : memref<4x2xf32>, memref<8xf32>, memref<8xf32>
}
