// RUN: alcop-opt %s --alcop-distribute-copies --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

// A loop that carries a vector of rows carries each thread's own instead, and a choice
// between vectors yields them; two rows of a thread here. What else is carried stays.
// CHECK-LABEL: @carried
// CHECK:       %[[T:.*]] = gpu.thread_id x upper_bound 64
// CHECK:       %[[R0:.*]] = arith.divui %[[T]], %c4
// CHECK:       %[[R1:.*]] = affine.apply affine_map<()[s0] -> (s0 + 16)>()[%[[R0]]]
// CHECK-NOT:   vector
// CHECK:       scf.for {{.*}} iter_args(%[[SUM:.*]] = %c0, %[[A:[a-z0-9]+]] = %[[X:.*]], %[[B:[a-z0-9]+]] = %[[Y:.*]]) -> (index, index, index) {
// CHECK-NOT:     vector
// CHECK:         nvgpu.device_async_copy
// CHECK:         nvgpu.device_async_copy
// CHECK:         %[[NEXT:.*]]:2 = scf.if %{{.*}} -> (index, index) {
// CHECK:           scf.yield
// CHECK:         } else {
// CHECK:           scf.yield %[[A]], %[[B]]
// CHECK:         scf.yield %{{.*}}, %[[NEXT]]#{{.}}, %[[NEXT]]#{{.}} : index, index, index
#ws = #gpu.address_space<workgroup>
func.func @carried(%x: memref<4096xf16>, %C: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x32xf16, #ws>
    %step = vector.step : vector<32xindex>
    %far = arith.constant dense<64> : vector<32xindex>
    %first = arith.muli %step, %far : vector<32xindex>
    %valid = arith.constant dense<true> : vector<32xi1>
    %r:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%rows = %first, %sum = %c0) -> (vector<32xindex>, index) {
      "alcop.async_gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<32x32xf16, #ws>, vector<32xindex>, vector<32xi1>) -> ()
      %early = arith.cmpi ult, %k, %c3 : index
      %next = scf.if %early -> (vector<32xindex>) {
        %moved = arith.addi %rows, %far : vector<32xindex>
        scf.yield %moved : vector<32xindex>
      } else {
        scf.yield %rows : vector<32xindex>
      }
      %more = arith.addi %sum, %k : index
      scf.yield %next, %more : vector<32xindex>, index
    }
    memref.store %r#1, %C[%c0] : memref<1xindex>
    gpu.terminator
  }
  return
}

// -----

// A vector that something else uses stays, beside its elements.
// CHECK-LABEL: @used
// CHECK:       scf.for {{.*}} -> (vector<32xindex>, index, index) {
// CHECK:         nvgpu.device_async_copy
// CHECK:       vector.store
#ws = #gpu.address_space<workgroup>
func.func @used(%x: memref<4096xf16>, %C: memref<32xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x32xf16, #ws>
    %step = vector.step : vector<32xindex>
    %far = arith.constant dense<64> : vector<32xindex>
    %first = arith.muli %step, %far : vector<32xindex>
    %valid = arith.constant dense<true> : vector<32xi1>
    %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%rows = %first) -> (vector<32xindex>) {
      "alcop.async_gather"(%x, %a, %rows, %valid) : (memref<4096xf16>, memref<32x32xf16, #ws>, vector<32xindex>, vector<32xi1>) -> ()
      %next = arith.addi %rows, %far : vector<32xindex>
      scf.yield %next : vector<32xindex>
    }
    vector.store %r, %C[%c0] : memref<32xindex>, vector<32xindex>
    gpu.terminator
  }
  return
}
