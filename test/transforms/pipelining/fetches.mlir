// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,2 assume-noalias-args=true})' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{stages=3,2 assume-noalias-args=true},alcop-multi-buffer,alcop-expand-pipelines,canonicalize,cse)' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=EXPANDED
// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-plan-pipelines{assume-noalias-args=true})' \
// RUN:   --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=DEFAULT

// What the arithmetic loads is loaded one iteration earlier: without a condition in the
// steady state, under one in the tail. By default it is left to the assembler.
// DEFAULT-LABEL: gpu.func @row_sum
// DEFAULT-NOT:     alcop.
// DEFAULT:         gpu.return
// CHECK-LABEL: gpu.func @row_sum
// CHECK:         memref.load %{{.*}} {alcop.op = 0 : i64}
// CHECK:         {kind = "fetch", name = "memref.load", op = 0 : i64, stream = "fetch1"}
// CHECK-SAME:    streams = [{lead = 1 : i64, name = "fetch1"}, {name = "compute"}]
// EXPANDED-LABEL: gpu.func @row_sum
// EXPANDED:         scf.if
// EXPANDED-NEXT:      memref.load %{{.*}}[%c0, %[[T:.*]]]
// EXPANDED:         scf.for %[[K:.*]] = {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[V:.*]] = %{{.*}})
// EXPANDED-NEXT:      %[[NEXT:.*]] = arith.addi %[[K]], %c1
// EXPANDED-NEXT:      %[[LOADED:.*]] = memref.load %{{.*}}[%[[NEXT]], %[[T]]]
// EXPANDED-NEXT:      %[[ADDED:.*]] = arith.addf %[[SUM]], %[[V]]
// EXPANDED-NEXT:      scf.yield %[[ADDED]], %[[LOADED]]
// EXPANDED-NEXT:    } {alcop.unroll = 2 : i64}
// EXPANDED:         scf.for
// EXPANDED:           scf.if
// EXPANDED-NEXT:        memref.load
gpu.module @kernels {
gpu.func @row_sum(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// What an address is loaded by is loaded one iteration earlier still.
// CHECK-LABEL: gpu.func @gathered
// CHECK:         streams = [{lead = 2 : i64, name = "fetch2"}, {lead = 1 : i64, name = "fetch1"}, {name = "compute"}]
// EXPANDED-LABEL: gpu.func @gathered
// EXPANDED:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[ROW:.*]] = %{{.*}})
// EXPANDED:           memref.load %{{.*}} : memref<64xindex>
// EXPANDED:           memref.load %{{.*}}[%[[ROW]], %{{.*}}]
gpu.module @kernels {
gpu.func @gathered(%A: memref<64x64xf32>, %I: memref<64xindex>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %row = memref.load %I[%k] : memref<64xindex>
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// What is the same in every iteration is loaded early too, where an address needs it:
// once, before the loop.
// CHECK-LABEL: gpu.func @rows_after_one
// CHECK:         memref.load %{{.*}}[%c0] {alcop.op = 0 : i64}
// CHECK:         {kind = "fetch", name = "memref.load", op = 0 : i64, stream = "fetch2"}
// EXPANDED-LABEL: gpu.func @rows_after_one
// EXPANDED:         %[[FIRST:.*]] = scf.if
// EXPANDED-NEXT:      memref.load %{{.*}}[%c0] : memref<64xindex>
// EXPANDED:         scf.for %[[K:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32)
// EXPANDED-NEXT:      %[[NEXT:.*]] = arith.addi %[[K]], %c1
// EXPANDED-NEXT:      %[[ROW:.*]] = arith.addi %[[FIRST]], %[[NEXT]]
// EXPANDED-NEXT:      memref.load %{{.*}}[%[[ROW]], %{{.*}}]
gpu.module @kernels {
gpu.func @rows_after_one(%A: memref<64x64xf32>, %I: memref<64xindex>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %first = memref.load %I[%c0] : memref<64xindex>
    %row = arith.addi %first, %k : index
    %v = memref.load %A[%row, %t] : memref<64x64xf32>
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// A copy that computes: its load is fetched, its store and barriers stay.
// DEFAULT-LABEL: gpu.func @doubled
// DEFAULT:         kind = "fetch"
// CHECK-LABEL: gpu.func @doubled
// CHECK:         kind = "fetch"
// EXPANDED-LABEL: gpu.func @doubled
// EXPANDED:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %{{.*}})
// EXPANDED:           %[[W:.*]] = arith.addf %[[V]], %[[V]]
// EXPANDED-NEXT:      memref.store %[[W]]
// EXPANDED:           scf.if
// EXPANDED:           gpu.barrier
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @doubled(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) workgroup(%a: memref<64xf32, #ws>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %w = arith.addf %v, %v : f32
    // expected-remark @below {{pipelined through registers only: 'memref.store' stores a value that is computed from what was loaded; copy the loaded value, and compute where it is read}}
    memref.store %w, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// The loop writes what it loads, but not before: a fetch. A later iteration loads it, or a
// barrier in the loop may order that: none.
// CHECK-LABEL: gpu.func @in_place
// CHECK:         kind = "fetch"
// CHECK-LABEL: gpu.func @recurrence
// CHECK-NOT:     alcop.
// CHECK-LABEL: gpu.func @written_before
// CHECK-NOT:     alcop.
// CHECK-LABEL: gpu.func @ordered_before
// CHECK:         kind = "fetch"
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @in_place(%A: memref<64x64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %A[%k, %t] : memref<64x64xf32>
  }
  gpu.return
}
gpu.func @recurrence(%A: memref<64x64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  scf.for %k = %c0 to %n step %c1 {
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; load it from memory that the loop does not write}}
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %w = arith.addf %v, %v : f32
    %after = arith.addi %k, %c1 : index
    memref.store %w, %A[%after, %t] : memref<64x64xf32>
  }
  gpu.return
}
gpu.func @written_before(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  memref.store %zero, %A[%t, %c0] : memref<64x64xf32>
  scf.for %k = %c0 to %n step %c1 {
    gpu.barrier
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' before the loop; put a gpu.barrier between that and the loop}}
    %v = memref.load %A[%k, %c0] : memref<64x64xf32>
    memref.store %v, %C[%k, %t] : memref<64x64xf32>
  }
  gpu.return
}
gpu.func @ordered_before(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  memref.store %zero, %A[%t, %c0] : memref<64x64xf32>
  gpu.barrier
  scf.for %k = %c0 to %n step %c1 {
    gpu.barrier
    %v = memref.load %A[%k, %c0] : memref<64x64xf32>
    memref.store %v, %C[%k, %t] : memref<64x64xf32>
  }
  gpu.return
}
}

// -----

// Registers do not hold what an iteration loads a second time.
// CHECK-LABEL: gpu.func @wide
// CHECK-NOT:     alcop.
gpu.module @kernels {
gpu.func @wide(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{loads are not fetched early: an iteration loads 256 bytes per thread, registers hold 128 bytes of fetched values at most}}
  scf.for %k = %c0 to %n step %c1 {
    %v = vector.load %A[%k, %c0] : memref<64x64xf32>, vector<64xf32>
    vector.store %v, %C[%k, %c0] : memref<64x64xf32>, vector<64xf32>
  }
  gpu.return
}
}

// -----

// What a branch loads and adds up is no load: it stays, its condition is loaded early.
// CHECK-LABEL: gpu.func @row_sum_of_some
// CHECK:         memref.load %{{.*}} {alcop.op = 0 : i64} : memref<64xi1>
// CHECK-NEXT:    scf.if
// CHECK:         } else {
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.yield
// CHECK:         ops = [{kind = "fetch", name = "memref.load", op = 0 : i64, stream = "fetch1"}]
gpu.module @kernels {
gpu.func @row_sum_of_some(%A: memref<64x64xf32>, %mask: memref<64xi1>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %go = memref.load %mask[%k] : memref<64xi1>
    %next = scf.if %go -> (f32) {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      %more = arith.addf %acc, %v : f32
      scf.yield %more : f32
    } else {
      scf.yield %acc : f32
    }
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}

// -----

// A table says which rows are loaded. Where there is no later iteration, both are zero:
// a condition made of poison would be one that LLVM may take for anything.
// CHECK-LABEL: gpu.func @rows_by_table
// CHECK:         kind = "fetch", name = "memref.load"{{.*}}kind = "fetch", name = "scf.if"
// EXPANDED-LABEL: gpu.func @rows_by_table
// EXPANDED-NOT:    ub.poison
// EXPANDED:        arith.andi
// EXPANDED-NOT:    ub.poison
// EXPANDED:        gpu.return
gpu.module @kernels {
gpu.func @rows_by_table(%A: memref<64xf32>, %mask: memref<64xi32>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
    %m = memref.load %mask[%k] : memref<64xi32>
    %go = arith.cmpi ne, %m, %none : i32
    %x = scf.if %go -> (f32) {
      %v = memref.load %A[%k] : memref<64xf32>
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    %next = arith.addf %acc, %x : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%c0] : memref<64xf32>
  gpu.return
}
}

// -----

// What is fetched is used before the barrier: the next loads are issued there, and need
// no other registers, so that nothing is unrolled. The last iteration may be smaller: the
// steady state leaves its load to the tail, and loads whole ones only.
// CHECK-LABEL: gpu.func @ragged
// CHECK:         kind = "fetch"
// DEFAULT-LABEL: gpu.func @ragged
// DEFAULT:         kind = "fetch"
// EXPANDED-LABEL: gpu.func @ragged
// EXPANDED:         %[[TRIPS:.*]] = arith.ceildivsi %{{.*}}, %c8
// EXPANDED-NEXT:    arith.subi %[[TRIPS]], %c2
// EXPANDED:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[V:.*]] = %{{.*}})
// EXPANDED-NEXT:      %[[W:.*]] = arith.addf %[[V]], %[[V]]
// EXPANDED-NEXT:      memref.store %[[W]]
// EXPANDED-NOT:       arith.minsi
// EXPANDED:           arith.cmpi slt, %{{.*}}, %c8
// EXPANDED-NEXT:      %[[NEXT:.*]] = scf.if
// EXPANDED-NEXT:        memref.load
// EXPANDED:           gpu.barrier
// EXPANDED:           scf.yield %{{.*}}, %[[NEXT]]
// EXPANDED-NEXT:    }{{$}}
// EXPANDED:         scf.for
// EXPANDED:           arith.minsi
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @ragged(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) workgroup(%a: memref<64xf32, #ws>) kernel {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %sum = scf.for %k = %c0 to %n step %c8 iter_args(%acc = %zero) -> (f32) {
    %left = arith.subi %n, %k : index
    %extent = arith.minsi %left, %c8 : index
    %exists = arith.cmpi slt, %t, %extent : index
    %v = scf.if %exists -> (f32) {
      %x = memref.load %A[%k, %t] : memref<64x64xf32>
      scf.yield %x : f32
    } else {
      scf.yield %zero : f32
    }
    %w = arith.addf %v, %v : f32
    // expected-remark @below {{pipelined through registers only: 'memref.store' stores a value that is computed from what was loaded; copy the loaded value, and compute where it is read}}
    memref.store %w, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%other] : memref<64xf32, #ws>
    %next = arith.addf %acc, %x : f32
    gpu.barrier
    scf.yield %next : f32
  }
  memref.store %sum, %C[%t] : memref<64xf32>
  gpu.return
}
}
