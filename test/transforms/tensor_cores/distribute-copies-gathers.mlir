// RUN: alcop-opt %s --alcop-distribute-copies --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// What a thread needs of the vectors is computed where they are: before the loop once.
// 128 chunks of 16 bytes for 64 threads: two rows of each thread, 16 rows apart.
// CHECK-LABEL: @asynchronous
// CHECK-SAME:  %[[X:[a-zA-Z0-9]+]]: memref<4096xf16>
// CHECK:       %[[T:.*]] = gpu.thread_id x upper_bound 64
// CHECK:       %[[R0:.*]] = arith.divui %[[T]], %c4
// CHECK:       %[[C:.*]] = arith.muli %{{.*}}, %c8
// CHECK:       %[[R1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%[[R0]]]
// CHECK-NOT:   vector
// CHECK:       %[[BASE0:.*]] = arith.muli %[[R0]], %[[C128:.*]] : index
// CHECK:       %[[BASE1:.*]] = arith.muli %[[R1]], %[[C128]] : index
// CHECK:       %[[VALID0:.*]] = arith.cmpi ult, %[[BASE0]], %{{.*}} : index
// CHECK:       %[[VALID1:.*]] = arith.cmpi ult, %[[BASE1]], %{{.*}} : index
// CHECK:       scf.for %[[K:.*]] = %c0
// CHECK-NEXT:    %[[ROW0:.*]] = arith.addi %[[BASE0]], %[[K]] : index
// CHECK-NEXT:    %[[ROW1:.*]] = arith.addi %[[BASE1]], %[[K]] : index
// CHECK-NEXT:    %[[AT0:.*]] = arith.addi %[[ROW0]], %[[C]] : index
// CHECK-NEXT:    %[[COUNT0:.*]] = arith.select %[[VALID0]], %c8, %c0
// CHECK-NEXT:    nvgpu.device_async_copy %[[X]][%[[AT0]]], %{{.*}}[%[[R0]], %[[C]]], 8, %[[COUNT0]] {bypassL1}
// CHECK-NEXT:    %[[AT1:.*]] = arith.addi %[[ROW1]], %[[C]] : index
// CHECK-NEXT:    %[[COUNT1:.*]] = arith.select %[[VALID1]], %c8, %c0
// CHECK-NEXT:    nvgpu.device_async_copy %[[X]][%[[AT1]]], %{{.*}}[%[[R1]], %[[C]]], 8, %[[COUNT1]] {bypassL1}
// CHECK-NEXT:  }
#ws = #gpu.address_space<workgroup>
func.func @asynchronous(%x: memref<4096xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x32xf16, #ws>
    %rows = vector.step : vector<32xindex>
    %far = arith.constant dense<128> : vector<32xindex>
    %base = arith.muli %rows, %far : vector<32xindex>
    %all = arith.constant dense<4000> : vector<32xindex>
    %valid = arith.cmpi ult, %base, %all : vector<32xindex>
    scf.for %k = %c0 to %c128 step %c32 {
      %ks = vector.broadcast %k : index to vector<32xindex>
      %offsets = arith.addi %base, %ks : vector<32xindex>
      "alcop.async_gather"(%x, %a, %offsets, %valid) : (memref<4096xf16>, memref<32x32xf16, #ws>, vector<32xindex>, vector<32xi1>) -> ()
    }
    gpu.terminator
  }
  return
}

// -----

// A width that is no number of chunks: as many elements as there are.
// CHECK-LABEL: @width
// CHECK-SAME:  %[[WIDTH:[a-zA-Z0-9]+]]: index
// CHECK:       %[[LEFT:.*]] = arith.subi %[[WIDTH]], %[[C:.*]] : index
// CHECK:       %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:       %[[ELEMENTS:.*]] = arith.minsi %[[SOME]], %c8
// CHECK:       %[[COUNT:.*]] = arith.select %true, %[[ELEMENTS]], %c0
// CHECK:       nvgpu.device_async_copy %{{.*}}, %{{.*}}, 8, %[[COUNT]] {bypassL1}
#ws = #gpu.address_space<workgroup>
func.func @width(%x: memref<4096xf16>, %width: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf16, #ws>
    %step = vector.step : vector<16xindex>
    %far = arith.constant dense<64> : vector<16xindex>
    %rows = arith.muli %step, %far : vector<16xindex>
    %valid = arith.constant dense<true> : vector<16xi1>
    "alcop.async_gather"(%x, %a, %rows, %valid, %width) : (memref<4096xf16>, memref<16x32xf16, #ws>, vector<16xindex>, vector<16xi1>, index) -> ()
    gpu.terminator
  }
  return
}

// -----

// One that is a number of chunks: each is there or not. A width may be any number, and
// is compared with 64 bits. Rows that a table names, which
// has none for the last rows of the tile; and they begin at 8 bytes only.
// CHECK-LABEL: @table
// CHECK-SAME:  %{{.*}}: memref<4096xf16>, %[[TABLE:.*]]: memref<13xi32>, %[[FOURS:[a-zA-Z0-9]+]]: index
// CHECK:       %[[IN:.*]] = arith.cmpi slt, %[[R:.*]], %c13 : index
// CHECK-NEXT:  %[[INDEX:.*]] = scf.if %[[IN]] -> (i32) {
// CHECK-NEXT:    %[[READ:.*]] = memref.load %[[TABLE]][%[[R]]]
// CHECK-NEXT:    scf.yield %[[READ]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield %c-1_i32
// CHECK:       %[[VALID:.*]] = arith.cmpi sge, %[[INDEX]], %{{.*}} : i32
// CHECK:       %[[HAS:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
// CHECK:       %[[BOTH:.*]] = arith.andi %[[VALID]], %[[HAS]] : i1
// CHECK:       %[[COUNT:.*]] = arith.select %[[BOTH]], %c4, %c0
// CHECK:       nvgpu.device_async_copy %{{.*}}, %{{.*}}, 4, %[[COUNT]] :
// CHECK-NOT:   vector
#ws = #gpu.address_space<workgroup>
func.func @table(%x: memref<4096xf16>, %table: memref<13xi32>, %fours: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant -1 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf16, #ws>
    %width = arith.muli %fours, %c4 : index
    %indices = vector.transfer_read %table[%c0], %none : memref<13xi32>, vector<16xi32>
    %zero = arith.constant dense<0> : vector<16xi32>
    %valid = arith.cmpi sge, %indices, %zero : vector<16xi32>
    %row = arith.index_cast %indices : vector<16xi32> to vector<16xindex>
    %columns = arith.constant dense<100> : vector<16xindex>
    %rows = arith.muli %row, %columns : vector<16xindex>
    "alcop.async_gather"(%x, %a, %rows, %valid, %width) : (memref<4096xf16>, memref<16x32xf16, #ws>, vector<16xindex>, vector<16xi1>, index) -> ()
    gpu.terminator
  }
  return
}

// -----

// Not pipelined: loads under a condition, then stores.
// CHECK-LABEL: @plain
// CHECK:       %[[V0:.*]] = scf.if %{{.*}} -> (vector<8xf16>)
// CHECK-NEXT:    vector.load %{{.*}} {alignment = 16 : i64} : memref<4096xf16>
// CHECK:       %[[V1:.*]] = scf.if
// CHECK:       vector.store %[[V0]]
// CHECK-NEXT:  vector.store %[[V1]]
// CHECK-NOT:   alcop.gather
#ws = #gpu.address_space<workgroup>
func.func @plain(%x: memref<4096xf16>, %first: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x32xf16, #ws>
    %step = vector.step : vector<32xindex>
    %far = arith.constant dense<64> : vector<32xindex>
    %rows = arith.muli %step, %far : vector<32xindex>
    %from = vector.broadcast %first : index to vector<32xindex>
    %valid = arith.cmpi uge, %rows, %from : vector<32xindex>
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<32x32xf16, #ws>, vector<32xindex>, vector<32xi1>) -> ()
    gpu.terminator
  }
  return
}

// -----

// Nothing is known of where rows begin: f16 after f16.
// CHECK-LABEL: @anywhere
// CHECK:       scf.if
// CHECK-NEXT:    memref.load
// CHECK:       memref.store
// CHECK-NOT:   nvgpu
#ws = #gpu.address_space<workgroup>
func.func @anywhere(%x: memref<4096xf16>, %first: index) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<8x32xf16, #ws>
    %rows = vector.broadcast %first : index to vector<8xindex>
    %valid = arith.constant dense<true> : vector<8xi1>
    "alcop.async_gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<8x32xf16, #ws>, vector<8xindex>, vector<8xi1>) -> ()
    gpu.terminator
  }
  return
}
