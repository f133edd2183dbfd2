// RUN: alcop-opt %s --alcop-normalize-loops --split-input-file | FileCheck %s

// The bounds keep their sign; what the loop carries and yields stays.
// CHECK-LABEL: @signed
// CHECK-SAME:    (%[[L:.*]]: i32, %[[U:.*]]: i32,
// CHECK:         %[[LOWER:.*]] = arith.index_cast %[[L]] : i32 to index
// CHECK:         %[[UPPER:.*]] = arith.index_cast %[[U]] : i32 to index
// CHECK:         %[[STEP:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK:         %[[SUM:.*]] = scf.for %[[I:.*]] = %[[LOWER]] to %[[UPPER]] step %[[STEP]] iter_args(%[[ACC:.*]] = %{{.*}}) -> (i32) {
// CHECK:           %[[K:.*]] = arith.index_cast %[[I]] : index to i32
// CHECK:           arith.addi %[[ACC]], %[[K]]
// CHECK:         } {kept}
// CHECK:         return %[[SUM]]
func.func @signed(%lower: i32, %upper: i32, %zero: i32) -> i32 {
  %c2 = arith.constant 2 : i32
  %sum = scf.for %k = %lower to %upper step %c2 iter_args(%acc = %zero) -> (i32) : i32 {
    %next = arith.addi %acc, %k : i32
    scf.yield %next : i32
  } {kept}
  return %sum : i32
}

// -----

// Inner loops too.
// CHECK-LABEL: @nested
// CHECK-COUNT-2: scf.for {{.*}} step %{{[^ ]*}} {
func.func @nested(%n: i64, %C: memref<?xi64>, %at: index) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %k = %c0 to %n step %c1 : i64 {
    scf.for %j = %k to %n step %c1 : i64 {
      %s = arith.addi %k, %j : i64
      memref.store %s, %C[%at] : memref<?xi64>
    }
  }
  return
}

// -----

// Without a sign: zeros before the bits, where an index has more of them.
// CHECK-LABEL: @unsigned
// CHECK-COUNT-3: arith.index_castui
// CHECK:         scf.for %{{[^ ]*}} = %{{[^ ]*}} to %{{[^ ]*}} step %{{[^ ]*}} {
// CHECK:         scf.for unsigned {{.*}} : i64
func.func @unsigned(%n: i32, %m: i64, %C: memref<?xi32>, %D: memref<?xi64>, %at: index) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for unsigned %k = %c0 to %n step %c1 : i32 {
    memref.store %k, %C[%at] : memref<?xi32>
  }
  %d0 = arith.constant 0 : i64
  %d1 = arith.constant 1 : i64
  scf.for unsigned %k = %d0 to %m step %d1 : i64 {
    memref.store %k, %D[%at] : memref<?xi64>
  }
  return
}

// -----

// CHECK-LABEL: @index
// CHECK-NOT:     index_cast
func.func @index(%n: index, %C: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    memref.store %k, %C[%k] : memref<?xindex>
  }
  return
}
