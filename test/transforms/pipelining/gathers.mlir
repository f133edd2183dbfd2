// RUN: alcop-opt %s --pass-pipeline='builtin.module(func.func(alcop-plan-pipelines{stages=3,1},alcop-multi-buffer,alcop-expand-pipelines,alcop-place-waits,alcop-check-pipelines))' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s

// A gather is a copy of a tile: its rows come from values that the loop carries, so that
// copies carry their own. A width is a part of the address, as rows are.
// CHECK-LABEL: @carried
// CHECK:         %[[BASE:.*]] = arith.muli %{{.*}}, %{{.*}} : vector<64xindex>
// CHECK:         %[[BUFFER:.*]] = memref.alloc() : memref<3x64x32xf32
// CHECK-COUNT-2: "alcop.async_gather"
// CHECK:         scf.for %{{.*}} iter_args(
// CHECK:           nvgpu.device_async_wait
// CHECK:           %[[AT:.*]] = vector.broadcast %{{.*}} : index to vector<64xindex>
// CHECK:           %[[ROWS:.*]] = arith.addi %[[BASE]], %[[AT]]
// CHECK:           %[[TAP:.*]] = vector.broadcast %{{.*}} : i32
// CHECK:           %[[HIT:.*]] = arith.andi
// CHECK:           %[[VALID:.*]] = arith.cmpi ne, %[[HIT]]
// CHECK:           "alcop.async_gather"(%arg0, %{{.*}}, %[[ROWS]], %[[VALID]], %{{.*}}) {{.*}}, index) -> ()
// CHECK:           memref.load
// CHECK-NOT:       "alcop.gather"
// CHECK-LABEL: @rows_of_half_words
#ws = #gpu.address_space<workgroup>
func.func @carried(%x: memref<4096xf32>, %masks: memref<64xi32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1 : i32
  %none = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %step = vector.step : vector<64xindex>
  %far = arith.constant dense<64> : vector<64xindex>
  %base = arith.muli %step, %far : vector<64xindex>
  %mask = vector.transfer_read %masks[%c0], %none {in_bounds = [true]} : memref<64xi32>, vector<64xi32>
  %zeros = arith.constant dense<0> : vector<64xi32>
  %a = memref.alloc() : memref<64x32xf32, #ws>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %offset = %c0, %tap = %one) -> (f32, index, i32) {
    %offsets = vector.broadcast %offset : index to vector<64xindex>
    %rows = arith.addi %base, %offsets : vector<64xindex>
    %taps = vector.broadcast %tap : i32 to vector<64xi32>
    %hit = arith.andi %mask, %taps : vector<64xi32>
    %valid = arith.cmpi ne, %hit, %zeros : vector<64xi32>
    %last = arith.cmpi eq, %k, %c3 : index
    %width = arith.select %last, %c8, %c32 : index
    "alcop.gather"(%x, %a, %rows, %valid, %width) : (memref<4096xf32>, memref<64x32xf32, #ws>, vector<64xindex>, vector<64xi1>, index) -> ()
    gpu.barrier
    %v = memref.load %a[%t, %c3] : memref<64x32xf32, #ws>
    %next = arith.addf %acc, %v : f32
    gpu.barrier
    %offset1 = arith.addi %offset, %c32 : index
    %tap1 = arith.shli %tap, %one : i32
    scf.yield %next, %offset1, %tap1 : f32, index, i32
  }
  memref.store %r#0, %C[%t] : memref<64xf32>
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rows_of_half_words(%x: memref<4096xf16>, %first: index, %n: index, %C: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %valid = arith.constant dense<true> : vector<64xi1>
  %a = memref.alloc() : memref<64x32xf16, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %rows = vector.broadcast %k : index to vector<64xindex>
    // expected-remark @+1 {{not pipelined (rule 1): the gathered rows of argument 1, memref<4096xf16>, are known to be aligned to 2 bytes, 4 are needed: each thread copies element by element, and waits in each iteration; gather rows at multiples of 16 bytes, computed by arith of vector.step, numbers and tables}}
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<64x32xf16, #ws>, vector<64xindex>, vector<64xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%t, %c1] : memref<64x32xf16, #ws>
    memref.store %v, %C[%t] : memref<64xf16>
    gpu.barrier
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @rows_of_other_rows(%x: memref<4096xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %step = vector.step : vector<4xindex>
  %rows = vector.shuffle %step, %step [3, 2, 1, 0] : vector<4xindex>, vector<4xindex>
  %valid = arith.constant dense<true> : vector<4xi1>
  %a = memref.alloc() : memref<4x32xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    // expected-remark @+1 {{not pipelined (rule 1): a thread cannot compute its rows of 'vector.shuffle': expected vector.step, vector.broadcast of a number, a constant of equal elements, arith, or a vector read from a row; gather rows}}
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf32>, memref<4x32xf32, #ws>, vector<4xindex>, vector<4xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%c0, %t] : memref<4x32xf32, #ws>
    gpu.barrier
  }
  return
}

// -----

// A table that is read in the loop is fetched: the loop carries the rows, as a vector of
// which alcop-distribute-copies makes numbers.
// CHECK-LABEL: @rows_read_in_the_loop
// CHECK:         scf.for {{.*}} -> ({{.*}}vector<4xi32>
// CHECK:           vector.transfer_read %arg1
// CHECK:           "alcop.async_gather"
#ws = #gpu.address_space<workgroup>
func.func @rows_read_in_the_loop(%x: memref<4096xf32>, %table: memref<512xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %t = gpu.thread_id x
  %far = arith.constant dense<64> : vector<4xindex>
  %valid = arith.constant dense<true> : vector<4xi1>
  %a = memref.alloc() : memref<4x32xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %i = vector.transfer_read %table[%k], %none {in_bounds = [true]} : memref<512xi32>, vector<4xi32>
    %row = arith.index_cast %i : vector<4xi32> to vector<4xindex>
    %rows = arith.muli %row, %far : vector<4xindex>
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf32>, memref<4x32xf32, #ws>, vector<4xindex>, vector<4xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%c0, %t] : memref<4x32xf32, #ws>
    gpu.barrier
  }
  return
}

// -----

// Rows that the loop carries as a vector.
// CHECK-LABEL: @carried_rows
// CHECK:         scf.for {{.*}} -> ({{.*}}vector<4xindex>
// CHECK:           "alcop.async_gather"
#ws = #gpu.address_space<workgroup>
func.func @carried_rows(%x: memref<4096xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %step = vector.step : vector<4xindex>
  %far = arith.constant dense<64> : vector<4xindex>
  %valid = arith.constant dense<true> : vector<4xi1>
  %a = memref.alloc() : memref<4x32xf32, #ws>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%row = %step) -> (vector<4xindex>) {
    %rows = arith.muli %row, %far : vector<4xindex>
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf32>, memref<4x32xf32, #ws>, vector<4xindex>, vector<4xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%c0, %t] : memref<4x32xf32, #ws>
    gpu.barrier
    %next = arith.addi %row, %far : vector<4xindex>
    scf.yield %next : vector<4xindex>
  }
  return
}

// -----

// A table that the loop may write is read where it was.
#ws = #gpu.address_space<workgroup>
func.func @table_written(%x: memref<4096xf32> {llvm.noalias}, %table: memref<512xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %t = gpu.thread_id x
  %far = arith.constant dense<64> : vector<4xindex>
  %valid = arith.constant dense<true> : vector<4xi1>
  %a = memref.alloc() : memref<4x32xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %i = vector.transfer_read %table[%k], %none {in_bounds = [true]} : memref<512xi32>, vector<4xi32>
    %row = arith.index_cast %i : vector<4xi32> to vector<4xindex>
    %rows = arith.muli %row, %far : vector<4xindex>
    // expected-remark @+1 {{not pipelined (rule 6): its address depends on 'vector.transfer_read' of the same iteration; load it from memory that the loop does not write}}
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf32>, memref<4x32xf32, #ws>, vector<4xindex>, vector<4xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%c0, %t] : memref<4x32xf32, #ws>
    gpu.barrier
    memref.store %none, %table[%t] : memref<512xi32>
  }
  return
}

// -----

// A number that is loaded in the loop is fetched, and all rows computed from it.
// CHECK-LABEL: @number_read_in_the_loop
// CHECK:         memref.load %arg1
// CHECK:         "alcop.async_gather"
// CHECK:         scf.for
// CHECK:           memref.load %arg1
// CHECK:           vector.broadcast
// CHECK:           "alcop.async_gather"
#ws = #gpu.address_space<workgroup>
func.func @number_read_in_the_loop(%x: memref<4096xf32>, %table: memref<512xi32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t = gpu.thread_id x
  %step = vector.step : vector<4xindex>
  %far = arith.constant dense<64> : vector<4xindex>
  %base = arith.muli %step, %far : vector<4xindex>
  %valid = arith.constant dense<true> : vector<4xi1>
  %a = memref.alloc() : memref<4x32xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %i = memref.load %table[%k] : memref<512xi32>
    %block = arith.index_cast %i : i32 to index
    %first = arith.muli %block, %c32 : index
    %firsts = vector.broadcast %first : index to vector<4xindex>
    %rows = arith.addi %base, %firsts : vector<4xindex>
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf32>, memref<4x32xf32, #ws>, vector<4xindex>, vector<4xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%c0, %t] : memref<4x32xf32, #ws>
    gpu.barrier
  }
  return
}

// -----

// What writes the source is seen, as it is of any copy.
#ws = #gpu.address_space<workgroup>
func.func @source_written(%x: memref<4096xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %step = vector.step : vector<4xindex>
  %far = arith.constant dense<64> : vector<4xindex>
  %rows = arith.muli %step, %far : vector<4xindex>
  %valid = arith.constant dense<true> : vector<4xi1>
  %a = memref.alloc() : memref<4x32xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    // expected-remark @+1 {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; copy from memory that the loop does not write}}
    "alcop.gather"(%x, %a, %rows, %valid) : (memref<4096xf32>, memref<4x32xf32, #ws>, vector<4xindex>, vector<4xi1>) -> ()
    gpu.barrier
    %v = memref.load %a[%c0, %t] : memref<4x32xf32, #ws>
    memref.store %v, %x[%t] : memref<4096xf32>
    gpu.barrier
  }
  return
}
