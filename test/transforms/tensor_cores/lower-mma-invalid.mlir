// RUN: alcop-opt %s --alcop-lower-mma --split-input-file --verify-diagnostics

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @operand_types(%C: memref<16x16xf32>, %f: vector<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{alcop-lower-mma: contraction of f32 and f32 into f32, expected f16 into f32, bf16 into f32, f8E4M3FN into f32, f8E5M2 into f32, tf32 into f32, i8 into i32}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %f, %zero : vector<16x16xf32>, vector<16x16xf32> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @kind_of_sum(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    // expected-error @+1 {{contraction by #vector.kind<maxnumf>, expected #vector.kind<add>}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<maxnumf>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// The result has n before m.
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nm = affine_map<(m, n, k) -> (n, m)>
func.func @order_of_result(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    // expected-error @+1 {{contraction over mk, kn, nm: expected mk or km, kn or nk, mn}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #nm], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(b, m, n, k) -> (b, m, k)>
#kn = affine_map<(b, m, n, k) -> (b, k, n)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @batch(%f: vector<2x16x16xf16>, %z: vector<2x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{contraction over ?mk, ?kn, ?mn: expected mk or km, kn or nk, mn}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %f, %z : vector<2x16x16xf16>, vector<2x16x16xf16> into vector<2x16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @odd_number_of_pieces() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x24xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x24xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x24xf16, #ws>, vector<16x24xf16>
    // expected-error @+1 {{vector<16x24xf32> as accumulator [m][n]: n is 24, expected a multiple of 16 (mma.sync.m16n8k16)}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x24xf16> into vector<16x24xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @from_global_memory(%C: memref<16x16xf32>, %A: memref<16x16xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    // expected-error @+1 {{reads a [m][k] from memref<16x16xf16>, expected workgroup memory}}
    %f = vector.transfer_read %A[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @unknown_alignment(%C: memref<16x16xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %b = memref.alloc() : memref<16x32xf16, #ws>
    // expected-error @+1 {{reads a [m][k] from memref<16x32xf16, #gpu.address_space<workgroup>> at rows that are known to be aligned to 2 bytes, expected 16 (ldmatrix) and contiguous rows}}
    %f = vector.transfer_read %b[%c0, %at], %pad {in_bounds = [true, true]} : memref<16x32xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @perhaps_out_of_bounds(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    // expected-error @+1 {{transfer that may leave its memref, expected in_bounds}}
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, false]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @unknown_use(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    // expected-error @+1 {{'vector.shape_cast' from vector<16x16xf32> to vector<256xf32>, distributed as accumulator [m][n]: expected accumulators [m][n], rows [m] and columns [n]}}
    %flat = vector.shape_cast %s : vector<16x16xf32> to vector<256xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @unknown_origin(%C: memref<16x16xf32>, %v: vector<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    // expected-error @+1 {{'vector.shape_cast' from vector<256xf32> to vector<16x16xf32>, needed as accumulator [m][n]: expected accumulators [m][n], rows [m] and columns [n]}}
    %acc = vector.shape_cast %v : vector<256xf32> to vector<16x16xf32>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %acc : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @wide_elements(%C: memref<16x16xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    %w = arith.extf %s : vector<16x16xf32> to vector<16x16xf64>
    // expected-error @+1 {{transfer of f64, expected elements of 8, 16 or 32 bits}}
    vector.transfer_write %w, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf64>, memref<16x16xf64>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @part_of_a_warp(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 48 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %g = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    // expected-error @+1 {{contraction in a thread block of 48x1x1, expected a multiple of 32 threads along x}}
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %f, %g, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Words of two f32 need 8 bytes; rows of three of them are aligned to 4.
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @rows_for_words(%C: memref<16x16xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x32xf32, #ws>
    // expected-error @+1 {{reads a [m][k] from memref<16x32xf32, #gpu.address_space<workgroup>> at rows that are known to be aligned to 4 bytes, expected 8 (loads of words of mma) and contiguous rows}}
    %f = vector.transfer_read %a[%c0, %at], %pad {in_bounds = [true, true]} : memref<16x32xf32, #ws>, vector<16x16xf32>
    %h = arith.truncf %f : vector<16x16xf32> to vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %h, %h, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// What is multiplied as i8 across k is held interleaved, as prmt parts pairs of bytes.
#ws = #gpu.address_space<workgroup>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @bytes_of_words_across_k(%C: memref<16x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0> : vector<16x16xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    // expected-error @+1 {{reads a [k][m] of i8 from memref<32x16xf16, #gpu.address_space<workgroup>>: across k, expected memory of i8}}
    %f = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
    %h = arith.fptosi %f : vector<32x16xf16> to vector<32x16xi8>
    %s = vector.contract {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %h, %h, %zero : vector<32x16xi8>, vector<32x16xi8> into vector<16x16xi32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xi32>, memref<16x16xi32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @slice_of_half_a_piece(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %acc = arith.constant dense<0.0> : vector<32x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<32x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<32x16xf16, #ws>, vector<32x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %acc : vector<32x16xf16>, vector<16x16xf16> into vector<32x16xf32>
    // expected-error @+1 {{takes a slice at [8, 0] of accumulator [m][n], expected whole pieces of 16 x 8}}
    %t = vector.extract_strided_slice %s {offsets = [8, 0], sizes = [16, 16], strides = [1, 1]} : vector<32x16xf32> to vector<16x16xf32>
    vector.transfer_write %t, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @nibbles_across_k(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %threads = arith.constant 32 : index
  %pad_a = arith.constant 0.0 : f16
  %pad_b = arith.constant 0 : i8
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x8xi8, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %pad_a {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %bytes = vector.transfer_read %b[%c0, %c0], %pad_b {in_bounds = [true, true]} : memref<16x8xi8, #ws>, vector<16x8xi8>
    // expected-error @+1 {{makes b [k][n] of i8 as i4, expected i4 of i8, along k of an operand of 16 bits}}
    %q = vector.bitcast %bytes : vector<16x8xi8> to vector<16x16xi4>
    %fb = arith.sitofp %q : vector<16x16xi4> to vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#a, #b, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %s, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}
