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
