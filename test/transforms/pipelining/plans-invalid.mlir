// RUN: alcop-opt %s --pass-pipeline='builtin.module(alcop-multi-buffer,alcop-expand-pipelines)' --verify-each=false --split-input-file --verify-diagnostics

// What a user or another pass got wrong in a plan is an error at the op. The verifier,
// which finds some of it before, is off.

// The copy is planned, its loop is not.
#ws = #gpu.address_space<workgroup>
func.func @mark_without_a_loop(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    // expected-error @+1 {{'memref.store' is planned, but the loop around it is not}}
    memref.store %v, %a[%t] {alcop.pipeline = #alcop.pipeline<{shared = 3}>} : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @one_stage(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  // expected-error @+1 {{alcop.pipeline: shared is 1, expected an integer from 2 to 8}}
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    memref.store %v, %a[%t] {alcop.pipeline = #alcop.pipeline<{shared = 1}>} : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{shared = 1}>}
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @register_level_of_a_store(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    // expected-error @+1 {{'memref.store' is planned at the register level, expected a read of shared memory}}
    memref.store %v, %a[%t] {alcop.pipeline = #alcop.pipeline<{register = 2}>} : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{register = 2}>}
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @read_before_the_copy(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %e = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %e, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    // expected-error @+1 {{is planned, but not pipelined (rule 4): its buffer is read by 'memref.load' before the copy; copy before use in each iteration}}
    memref.store %v, %a[%t] {alcop.pipeline = #alcop.pipeline<{shared = 3}>} : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{shared = 3}>}
  return
}

// -----

// The plan names no barrier, but %p is passed from thread to thread.
#ws = #gpu.address_space<workgroup>
func.func @barrier_that_is_needed(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %p = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    memref.store %v, %a[%t] {alcop.op = 0} : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %p[%t] : memref<64xf32, #ws>
    // expected-error @+1 {{is not in the plan of its loop, but orders 'memref.store' and 'memref.load', which no other barrier does}}
    gpu.barrier
    %y = memref.load %p[%c0] : memref<64xf32, #ws>
    memref.store %y, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{
      streams = [{name = "copy", lead = 2}, {name = "compute"}], rings = [{slots = 3}],
      ops = [{op = 0, name = "memref.store", stream = "copy", kind = "fill", ring = 0}]}>}
  return
}

// -----

// The plan names no wait, but a copy that it does not name either is waited for.
#ws = #gpu.address_space<workgroup>
func.func @wait_that_is_needed(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  %b = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 {alcop.op = 0} : memref<16x64xf32> to memref<64xf32, #ws>
    %w = nvgpu.device_async_copy %A[%t, %t], %b[%t], 1 : memref<16x64xf32> to memref<64xf32, #ws>
    // expected-error @+1 {{is not in the plan of its loop, but is needed for asynchronous copies that are not either}}
    %g = nvgpu.device_async_create_group %v, %w
    nvgpu.device_async_wait %g {numGroups = 0 : i32}
    gpu.barrier {alcop.op = 1}
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    %y = memref.load %b[%t] : memref<64xf32, #ws>
    %z = arith.addf %x, %y : f32
    memref.store %z, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  } {alcop.pipeline = #alcop.pipeline<{
      streams = [{name = "copy", lead = 2}, {name = "compute"}], rings = [{slots = 3}],
      ops = [{op = 0, name = "nvgpu.device_async_copy", stream = "copy", kind = "fill", ring = 0},
             {op = 1, name = "gpu.barrier", stream = "compute", kind = "effect"}]}>}
  return
}

// -----

#ws = #gpu.address_space<workgroup>
func.func @no_op_is_planned(%A: memref<16x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{is planned, but no op in it is: expected copies or reads}}
  scf.for %k = %c0 to %n step %c1 {
  } {alcop.pipeline = #alcop.pipeline<{shared = 3}>}
  return
}

// -----

// A pass between erased the copy, and with it its number.
#ws = #gpu.address_space<workgroup>
func.func @stale_plan(%A: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  // expected-error @+1 {{alcop.pipeline names op 0, a 'memref.store', which the loop does not have: expected alcop-plan-pipelines after passes that change it}}
  scf.for %k = %c0 to %n step %c1 {
    %x = memref.load %a[%t] : memref<64xf32, #ws>
  } {alcop.pipeline = #alcop.pipeline<{streams = [{name = "copy", lead = 2}, {name = "compute"}], rings = [{slots = 3}], ops = [{op = 0, name = "memref.store", stream = "copy", kind = "fill", ring = 0}]}>}
  return
}

// -----

// A pass between put another op there.
#ws = #gpu.address_space<workgroup>
func.func @another_op(%A: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{is op 0 of its loop's plan, which expects 'memref.store'}}
    %x = memref.load %a[%t] {alcop.op = 0} : memref<64xf32, #ws>
  } {alcop.pipeline = #alcop.pipeline<{streams = [{name = "copy", lead = 2}, {name = "compute"}], rings = [{slots = 3}], ops = [{op = 0, name = "memref.store", stream = "copy", kind = "fill", ring = 0}]}>}
  return
}

// -----

// A pass between copied an op with its number.
#ws = #gpu.address_space<workgroup>
func.func @twice(%A: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %x = memref.load %a[%t] {alcop.op = 0} : memref<64xf32, #ws>
    // expected-error @+1 {{has alcop.op = 0, as another op of the loop}}
    %y = memref.load %a[%t] {alcop.op = 0} : memref<64xf32, #ws>
  } {alcop.pipeline = #alcop.pipeline<{streams = [{name = "load", lead = 1}, {name = "compute"}], ops = [{op = 0, name = "memref.load", stream = "load", kind = "read"}]}>}
  return
}

// -----

// A pass between dropped the loop's attribute.
#ws = #gpu.address_space<workgroup>
func.func @no_plan(%n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{has alcop.op = 0, but no plan of a loop around it names that op}}
    %x = memref.load %a[%t] {alcop.op = 0} : memref<64xf32, #ws>
  }
  return
}

// -----

func.func @no_such_field(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{alcop.pipeline: has 'streams[0].stage', expected name, lead, steps, warps, in_flight}}
  scf.for %k = %c0 to %n step %c1 {
  } {alcop.pipeline = #alcop.pipeline<{streams = [{name = "copy", stage = 2}]}>}
  return
}

// -----

func.func @no_such_stream(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{alcop.pipeline: ops[0].stream is 'load', expected one of copy, compute}}
  scf.for %k = %c0 to %n step %c1 {
  } {alcop.pipeline = #alcop.pipeline<{streams = [{name = "copy", lead = 1}, {name = "compute"}], ops = [{op = 0, name = "memref.load", stream = "load", kind = "read"}]}>}
  return
}

// -----

func.func @fetch_of_a_store(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    // expected-error @+1 {{'memref.store' is planned, expected a load of global memory in the loop's own block}}
    memref.store %v, %C[%k, %t] {alcop.op = 0 : i64} : memref<16x64xf32>
  } {alcop.pipeline = #alcop.pipeline<{
      streams = [{name = "fetch", lead = 1 : i64}, {name = "compute"}],
      ops = [{op = 0 : i64, name = "memref.store", stream = "fetch", kind = "fetch"}]}>}
  return
}

// -----

// The loop writes what is to be fetched an iteration later.
func.func @fetch_of_what_is_written(%A: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{is planned, but its source may be written by 'memref.store' in the loop}}
    %v = memref.load %A[%k, %t] {alcop.op = 0 : i64} : memref<16x64xf32>
    %w = arith.addf %v, %v : f32
    %after = arith.addi %k, %c1 : index
    memref.store %w, %A[%after, %t] : memref<16x64xf32>
  } {alcop.pipeline = #alcop.pipeline<{
      streams = [{name = "fetch", lead = 1 : i64}, {name = "compute"}],
      ops = [{op = 0 : i64, name = "memref.load", stream = "fetch", kind = "fetch"}]}>}
  return
}

// -----

// A row is to be fetched before the table that tells which.
func.func @fetch_before_its_address(%A: memref<16x64xf32>, %I: memref<16xindex>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %row = memref.load %I[%k] {alcop.op = 0 : i64} : memref<16xindex>
    // expected-error @+1 {{runs in the stream 'early', but needs 'memref.load' of the stream 'fetch', which has a lead of 1 iterations, not 2}}
    %v = memref.load %A[%row, %t] {alcop.op = 1 : i64} : memref<16x64xf32>
    memref.store %v, %C[%k, %t] : memref<16x64xf32>
  } {alcop.pipeline = #alcop.pipeline<{
      streams = [{name = "early", lead = 2 : i64}, {name = "fetch", lead = 1 : i64}, {name = "compute"}],
      ops = [{op = 1 : i64, name = "memref.load", stream = "early", kind = "fetch"},
             {op = 0 : i64, name = "memref.load", stream = "fetch", kind = "fetch"}]}>}
  return
}

// -----

// The load is of the stage of the store, and comes before it.
#ws = #gpu.address_space<workgroup>
gpu.module @reads_before_it_is_stored_module {
  gpu.func @reads_before_it_is_stored(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
      workgroup(%B : memref<16xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %two = arith.constant 2.0 : f32
    %t = gpu.thread_id x
    scf.for %i = %c0 to %c16 step %c1 {
      %a = memref.load %A[%t, %i] : memref<16x16xf32>
      %b = arith.mulf %a, %two : f32
      memref.store %b, %B[%t] : memref<16xf32, #ws>
      gpu.barrier
      // expected-error @+1 {{'memref.load', with stage 1, and 'memref.store', with stage 1, touch the same memref<16xf32, #gpu.address_space<workgroup>>, and would run in the other order: expected a later place in the order}}
      %x = memref.load %B[%c0] : memref<16xf32, #ws>
      memref.store %x, %C[%t, %i] : memref<16x16xf32>
      gpu.barrier
    } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 1, 1, 1, 1, 1], order = [0, 1, 4, 5, 2, 3, 6]}>}
    gpu.return
  }
}

// -----

// The load is one stage before the store.
#ws = #gpu.address_space<workgroup>
gpu.module @reads_an_iteration_early_module {
  gpu.func @reads_an_iteration_early(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
      workgroup(%B : memref<16xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %two = arith.constant 2.0 : f32
    %t = gpu.thread_id x
    scf.for %i = %c0 to %c16 step %c1 {
      %a = memref.load %A[%t, %i] : memref<16x16xf32>
      %b = arith.mulf %a, %two : f32
      memref.store %b, %B[%t] : memref<16xf32, #ws>
      gpu.barrier
      // expected-error @+1 {{'memref.load', with stage 0, and 'memref.store', with stage 1, touch the same memref<16xf32, #gpu.address_space<workgroup>>, and would run in the other order: expected stage 1 or later}}
      %x = memref.load %B[%c0] : memref<16xf32, #ws>
      memref.store %x, %C[%t, %i] : memref<16x16xf32>
      gpu.barrier
    } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 1, 1, 0, 1, 1], order = [0, 1, 2, 3, 4, 5, 6]}>}
    gpu.return
  }
}

// -----

// Each iteration stores another element, and reads what older ones have stored.
#ws = #gpu.address_space<workgroup>
gpu.module @keeps_older_elements_module {
  gpu.func @keeps_older_elements(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
      workgroup(%B : memref<16xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %two = arith.constant 2.0 : f32
    %t = gpu.thread_id x
    scf.for %i = %c0 to %c16 step %c1 {
      %b = memref.load %A[%t, %i] : memref<16x16xf32>
      // expected-error @+1 {{'memref.store', with stage 0, and 'memref.load' of the iteration before, with stage 1, touch the same memref<16xf32, #gpu.address_space<workgroup>>, and would run in the other order: expected a later place in the order; it gets no slots, as it is not filled in the same elements by each iteration}}
      memref.store %b, %B[%i] : memref<16xf32, #ws>
      gpu.barrier
      %x = memref.load %B[%c0] : memref<16xf32, #ws>
      memref.store %x, %C[%t, %i] : memref<16x16xf32>
      gpu.barrier
    } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 1, 1, 1], order = [0, 1, 2, 3, 4, 5]}>}
    gpu.return
  }
}

// -----

// Asked before the inner loop is expanded, which erases it.
func.func @op_that_holds_a_plan(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    // expected-error @+1 {{holds a loop with a plan of its own}}
    scf.for %j = %c0 to %n step %c1 {
      %v = memref.load %A[%j, %t] {alcop.op = 0 : i64} : memref<16x64xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %C[%j, %t] : memref<16x64xf32>
    } {alcop.op = 0 : i64, alcop.pipeline = #alcop.pipeline<{
        streams = [{name = "fetch", lead = 1 : i64}, {name = "compute"}],
        ops = [{op = 0 : i64, name = "memref.load", stream = "fetch", kind = "fetch"}],
        noalias = true}>}
  } {alcop.pipeline = #alcop.pipeline<{
      streams = [{name = "compute"}],
      ops = [{op = 0 : i64, name = "scf.for", stream = "compute", kind = "effect"}]}>}
  return
}

// -----

// One warp may run the loop alone: a barrier of the block would wait for ever.
#ws = #gpu.address_space<workgroup>
gpu.module @barrier_of_a_warp_module {
  gpu.func @barrier_of_a_warp(%A: memref<16x16xf32>, %C: memref<16x16xf32>)
      workgroup(%B : memref<16xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %two = arith.constant 2.0 : f32
    %t = gpu.thread_id x
    scf.for %i = %c0 to %c16 step %c1 {
      %a = memref.load %A[%t, %i] : memref<16x16xf32>
      %b = arith.mulf %a, %two : f32
      memref.store %b, %B[%t] : memref<16xf32, #ws>
      // expected-error @+1 {{is of a warp, in a loop whose plan has another order: expected barriers of the whole block, as an iteration then begins with}}
      gpu.barrier scope <subgroup>
      %x = memref.load %B[%c0] : memref<16xf32, #ws>
      memref.store %x, %C[%t, %i] : memref<16x16xf32>
      gpu.barrier scope <subgroup>
    } {alcop.pipeline = #alcop.pipeline<{stage = [0, 0, 0, 0, 1, 1, 1], order = [0, 1, 2, 3, 4, 5, 6]}>}
    gpu.return
  }
}
