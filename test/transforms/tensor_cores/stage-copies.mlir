// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-stage-copies))' \
// RUN:   --split-input-file | filecheck %s

// 32 threads copy 64 words of two f16: all loads, then all stores. A column beyond the
// end is zero; beyond the last row, whose stride is known at run time only, that is
// loaded again.
// CHECK-LABEL: func.func @rows
// CHECK:       scf.for
// CHECK:         %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK:         %[[A:.*]] = scf.if %{{.*}} -> (f16) {
// CHECK-NEXT:      %[[X:.*]] = memref.load
// CHECK-NEXT:      scf.yield %[[X]] : f16
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
// CHECK-NEXT:      scf.yield %[[ZERO]] : f16
// CHECK:         %[[WORD:.*]] = vector.from_elements %[[A]], %{{.*}} : vector<2xf16>
// CHECK-NEXT:    vector.store %[[WORD]], {{.*}} {alignment = 4 : i64}
// CHECK:         vector.store
// CHECK-NOT:     vector.store
// CHECK-NOT:     alcop.copy
func.func @rows(%A: memref<?x?xf16>, %m: index, %k: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x8xf16, #gpu.address_space<workgroup>>
    scf.for %at = %c0 to %n step %c8 {
      %tile = memref.subview %A[0, %at] [%m, %k] [1, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1], offset: ?>>
      "alcop.copy"(%tile, %a) {alcop.arbitrary = [0]} : (memref<?x?xf16, strided<[?, 1], offset: ?>>, memref<16x8xf16, #gpu.address_space<workgroup>>) -> ()
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

// Columns that nobody uses may be anything.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.if %{{.*}} -> (f16) {
// CHECK-NEXT:      memref.load
// CHECK:         } else {
// CHECK-NEXT:      ub.poison : f16
// CHECK-NOT:     arith.constant 0.0
func.func @columns(%A: memref<?x?xf16>, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x8xf16, #gpu.address_space<workgroup>>
    scf.for %at = %c0 to %n step %c8 {
      %tile = memref.subview %A[%at, 0] [16, %m] [1, 1] : memref<?x?xf16> to memref<16x?xf16, strided<[?, 1], offset: ?>>
      "alcop.copy"(%tile, %a) {alcop.arbitrary = [1]} : (memref<16x?xf16, strided<[?, 1], offset: ?>>, memref<16x8xf16, #gpu.address_space<workgroup>>) -> ()
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

// Of i8 a word has four elements.
// CHECK-LABEL: func.func @bytes
// CHECK-COUNT-4: memref.load {{.*}} : memref<16x8xi8, strided<[9, 1]>>
// CHECK-NEXT:    vector.from_elements {{.*}} : vector<4xi8>
// CHECK-NEXT:    vector.store
func.func @bytes(%A: memref<16x8xi8, strided<[9, 1]>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x8xi8, #gpu.address_space<workgroup>>
    scf.for %at = %c0 to %n step %c1 {
      memref.copy %A, %a : memref<16x8xi8, strided<[9, 1]>> to memref<16x8xi8, #gpu.address_space<workgroup>>
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

// Left unchanged: rows of 4 bytes, which cp.async takes; copies outside of loops; the
// copies of a loop that need more than 96 registers for elements and addresses.
// CHECK-LABEL: func.func @others
// CHECK:         memref.copy {{.*}}strided<[9, 1]>
// CHECK:         memref.copy {{.*}}strided<[10, 1]>
// CHECK:         memref.copy {{.*}}strided<[65, 1]>
// CHECK:         memref.copy {{.*}}strided<[9, 1]>
func.func @others(%A: memref<16x8xf16, strided<[9, 1]>>, %B: memref<16x8xf16, strided<[10, 1]>>, %C: memref<32x64xf16, strided<[65, 1]>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x8xf16, #gpu.address_space<workgroup>>
    %c = memref.alloc() : memref<32x64xf16, #gpu.address_space<workgroup>>
    memref.copy %A, %a : memref<16x8xf16, strided<[9, 1]>> to memref<16x8xf16, #gpu.address_space<workgroup>>
    scf.for %at = %c0 to %n step %c1 {
      memref.copy %B, %a : memref<16x8xf16, strided<[10, 1]>> to memref<16x8xf16, #gpu.address_space<workgroup>>
      gpu.barrier
    }
    scf.for %at = %c0 to %n step %c1 {
      memref.copy %C, %c : memref<32x64xf16, strided<[65, 1]>> to memref<32x64xf16, #gpu.address_space<workgroup>>
      memref.copy %A, %a : memref<16x8xf16, strided<[9, 1]>> to memref<16x8xf16, #gpu.address_space<workgroup>>
      gpu.barrier
    }
    gpu.terminator
  }
  return
}

// -----

// Gathered rows of an odd number of elements: a thread loads words of its own rows, two
// elements each, under the same condition; what a row needs is computed before the loop,
// or carried by it. A width ends rows.
// CHECK-LABEL: func.func @gathered
// CHECK-SAME:  %[[X:[a-zA-Z0-9]+]]: memref<4096xf16>
// CHECK:       gpu.launch
// CHECK-COUNT-2: arith.muli {{.*}} %c33{{.*}} : index
// CHECK:       %[[VALID:.*]] = arith.cmpi ult
// CHECK:       scf.for {{.*}} -> (vector<16xindex>, index, index)
// CHECK:         %[[AT:.*]] = arith.addi
// CHECK:         %[[THERE:.*]] = arith.andi %[[VALID]]
// CHECK:         %[[A:.*]] = scf.if %[[THERE]] -> (f16) {
// CHECK-NEXT:      memref.load %[[X]][%[[AT]]]
// CHECK:         vector.from_elements %[[A]], %{{.*}} : vector<2xf16>
// CHECK-COUNT-2: vector.store {{.*}} : memref<16x8xf16, #gpu.address_space<workgroup>>, vector<2xf16>
// CHECK-NOT:     alcop.gather
// CHECK:         gpu.barrier
func.func @gathered(%x: memref<4096xf16>, %width: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x8xf16, #gpu.address_space<workgroup>>
    %step = vector.step : vector<16xindex>
    %far = arith.constant dense<33> : vector<16xindex>
    %next = arith.constant dense<8> : vector<16xindex>
    %base = arith.muli %step, %far : vector<16xindex>
    %all = arith.constant dense<400> : vector<16xindex>
    %valid = arith.cmpi ult, %base, %all : vector<16xindex>
    %end = scf.for %k = %c0 to %c64 step %c8 iter_args(%rows = %base) -> (vector<16xindex>) {
      "alcop.gather"(%x, %a, %rows, %valid, %width) : (memref<4096xf16>, memref<16x8xf16, #gpu.address_space<workgroup>>, vector<16xindex>, vector<16xi1>, index) -> ()
      gpu.barrier
      %on = arith.addi %rows, %next : vector<16xindex>
      scf.yield %on : vector<16xindex>
    }
    gpu.terminator
  }
  return
}
