// RUN: alcop-opt %s --alcop-plan-pipelines='assume-noalias-args=true' --split-input-file --verify-diagnostics | FileCheck %s

// Nobody says how many stages: as many as a copy takes iterations to land. This one
// computes next to nothing, so that eight are not enough.
// CHECK-LABEL: @short_iterations
// CHECK:         slots = 8
#ws = #gpu.address_space<workgroup>
func.func @short_iterations(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<64xf32, #ws>
    memref.store %x, %C[%t] : memref<64xf32>
    gpu.barrier
  }
  return
}

// -----

// An iteration that takes longer than a copy needs two slots only.
// CHECK-LABEL: @long_iterations
// CHECK:         slots = 2
#ws = #gpu.address_space<workgroup>
func.func @long_iterations(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    memref.store %v, %a[%t] : memref<64xf32, #ws>
    gpu.barrier
    scf.for %i = %c0 to %c64 step %c1 {
      %x = memref.load %a[%i] : memref<64xf32, #ws>
      %e = math.exp %x : f32
      %l = math.log %e : f32
      %s = math.sin %l : f32
      %o = math.cos %s : f32
      %u = arith.addf %o, %x : f32
      memref.store %u, %C[%i] : memref<64xf32>
      %w = arith.mulf %u, %u : f32
      memref.store %w, %C[%t] : memref<64xf32>
    }
    gpu.barrier
  }
  return
}

// -----

// No more than fit: 48 KiB are what is declared for all blocks.
// CHECK-LABEL: @large_buffer
// CHECK:         slots = 3
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
  gpu.func @large_buffer(%A: memref<64x4096xf32>, %C: memref<4096xf32>, %n: index)
      workgroup(%a : memref<4096xf32, #ws>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %A[%k, %t] : memref<64x4096xf32>
      memref.store %v, %a[%t] : memref<4096xf32, #ws>
      gpu.barrier
      %x = memref.load %a[%t] : memref<4096xf32, #ws>
      memref.store %x, %C[%t] : memref<4096xf32>
      gpu.barrier
    }
    gpu.return
  }
}

// -----

// Not even two: as much is needed, and as much there is.
// CHECK-LABEL: @too_large
// CHECK-NOT:     alcop.
#ws = #gpu.address_space<workgroup>
func.func @too_large(%A: memref<64x32768xf32>, %C: memref<32768xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  %a = memref.alloc() : memref<32768xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<64x32768xf32>
    // expected-remark @below {{not pipelined (rule 5): 2 slots need 262144 bytes of shared memory, there are 166912; fewer stages or smaller tiles}}
    memref.store %v, %a[%t] : memref<32768xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] : memref<32768xf32, #ws>
    memref.store %x, %C[%t] : memref<32768xf32>
    gpu.barrier
  }
  return
}

// -----

// Two contractions in turn, of which the second multiplies what the first makes. Without
// a loop over fragments, two register stages are those of a whole iteration beside the
// ones in use: with heads of 32 a thread has registers for that.
// CHECK-LABEL: @small_heads
// CHECK:         alcop.pipeline = {{.*}}{lead = 1 : i64, name = "load"}, {name = "compute"}
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @small_heads(%K: memref<1024x32xf16>, %V: memref<1024x32xf16>, %C: memref<16x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %h = arith.constant 0.0 : f16
  %zs = arith.constant dense<0.0> : vector<16x64xf32>
  %zo = arith.constant dense<0.0> : vector<16x32xf32>
  %zl = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %Q = memref.alloc() : memref<64x32xf16, #ws>
    %k = memref.alloc() : memref<64x32xf16, #ws>
    %v = memref.alloc() : memref<64x32xf16, #ws>
    %fq = vector.transfer_read %Q[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<16x32xf16>
    %o, %l = scf.for %n = %c0 to %c1024 step %c64 iter_args(%acc = %zo, %sum = %zl) -> (vector<16x32xf32>, vector<16xf32>) {
      %gk = memref.subview %K[%n, 0] [64, 32] [1, 1] : memref<1024x32xf16> to memref<64x32xf16, strided<[32, 1], offset: ?>>
      memref.copy %gk, %k : memref<64x32xf16, strided<[32, 1], offset: ?>> to memref<64x32xf16, #ws>
      %gv = memref.subview %V[%n, 0] [64, 32] [1, 1] : memref<1024x32xf16> to memref<64x32xf16, strided<[32, 1], offset: ?>>
      memref.copy %gv, %v : memref<64x32xf16, strided<[32, 1], offset: ?>> to memref<64x32xf16, #ws>
      gpu.barrier
      %fk = vector.transfer_read %k[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<64x32xf16>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fq, %fk, %zs : vector<16x32xf16>, vector<64x32xf16> into vector<16x64xf32>
      %p = math.exp2 %s fastmath<afn> : vector<16x64xf32>
      %l2 = vector.multi_reduction <add>, %p, %sum [1] : vector<16x64xf32> to vector<16xf32>
      %ph = arith.truncf %p : vector<16x64xf32> to vector<16x64xf16>
      %fv = vector.transfer_read %v[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x32xf16, #ws>, vector<64x32xf16>
      %o2 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ph, %fv, %acc : vector<16x64xf16>, vector<64x32xf16> into vector<16x32xf32>
      gpu.barrier
      scf.yield %o2, %l2 : vector<16x32xf32>, vector<16xf32>
    }
    vector.transfer_write %o, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x32xf32>, memref<16x32xf32>
    gpu.terminator
  }
  return
}

// -----

// With heads of 128 it has not, and ptxas would spill.
// CHECK-LABEL: @large_heads
// CHECK:         alcop.pipeline = {{.*}}slots = 2
// CHECK-NOT:     "load"
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @large_heads(%K: memref<1024x128xf16>, %V: memref<1024x128xf16>, %C: memref<16x128xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %h = arith.constant 0.0 : f16
  %zs = arith.constant dense<0.0> : vector<16x64xf32>
  %zo = arith.constant dense<0.0> : vector<16x128xf32>
  %zl = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %Q = memref.alloc() : memref<64x128xf16, #ws>
    %k = memref.alloc() : memref<64x128xf16, #ws>
    %v = memref.alloc() : memref<64x128xf16, #ws>
    %fq = vector.transfer_read %Q[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x128xf16, #ws>, vector<16x128xf16>
    // expected-remark @below {{1 register stages instead of 2: vectors would take about 500 registers per thread, expected at most 200}}
    %o, %l = scf.for %n = %c0 to %c1024 step %c64 iter_args(%acc = %zo, %sum = %zl) -> (vector<16x128xf32>, vector<16xf32>) {
      %gk = memref.subview %K[%n, 0] [64, 128] [1, 1] : memref<1024x128xf16> to memref<64x128xf16, strided<[128, 1], offset: ?>>
      memref.copy %gk, %k : memref<64x128xf16, strided<[128, 1], offset: ?>> to memref<64x128xf16, #ws>
      %gv = memref.subview %V[%n, 0] [64, 128] [1, 1] : memref<1024x128xf16> to memref<64x128xf16, strided<[128, 1], offset: ?>>
      memref.copy %gv, %v : memref<64x128xf16, strided<[128, 1], offset: ?>> to memref<64x128xf16, #ws>
      gpu.barrier
      %fk = vector.transfer_read %k[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x128xf16, #ws>, vector<64x128xf16>
      %s = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fq, %fk, %zs : vector<16x128xf16>, vector<64x128xf16> into vector<16x64xf32>
      %p = math.exp2 %s fastmath<afn> : vector<16x64xf32>
      %l2 = vector.multi_reduction <add>, %p, %sum [1] : vector<16x64xf32> to vector<16xf32>
      %ph = arith.truncf %p : vector<16x64xf32> to vector<16x64xf16>
      %fv = vector.transfer_read %v[%c0, %c0], %h {in_bounds = [true, true]} : memref<64x128xf16, #ws>, vector<64x128xf16>
      %o2 = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %ph, %fv, %acc : vector<16x64xf16>, vector<64x128xf16> into vector<16x128xf32>
      gpu.barrier
      scf.yield %o2, %l2 : vector<16x128xf32>, vector<16xf32>
    }
    vector.transfer_write %o, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x128xf32>, memref<16x128xf32>
    gpu.terminator
  }
  return
}
