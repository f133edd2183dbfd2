// RUN: alcop-opt %s --alcop-lower-mma --split-input-file --verify-diagnostics --allow-unregistered-dialect

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @one_number(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    // expected-error @+1 {{alcop-lower-mma: 'vector.multi_reduction' of accumulator [m][n] to one f32}}
    %x = vector.multi_reduction <add>, %s, %f [0, 1] : vector<16x16xf32> to f32
    memref.store %x, %R[%c0] : memref<16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @flattened(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    // expected-error @+1 {{'vector.shape_cast' from vector<16x16xf32> to vector<256xf32>, distributed as accumulator [m][n]: expected accumulators [m][n], rows [m] and columns [n]}}
    %x = vector.shape_cast %s : vector<16x16xf32> to vector<256xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @reduced_operand(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %none = arith.constant dense<0.0> : vector<16xf16>
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    // expected-error @+1 {{'vector.multi_reduction' cannot use the fragments of a [m][k]}}
    %x = vector.multi_reduction <add>, %fa, %none [1] : vector<16x16xf16> to vector<16xf16>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @wide(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %none = arith.constant dense<0.0> : vector<16xf64>
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    %t = arith.extf %s : vector<16x16xf32> to vector<16x16xf64>
    // expected-error @+1 {{reduces elements of f64, expected at most 32 bits}}
    %x = vector.multi_reduction <add>, %t, %none [1] : vector<16x16xf64> to vector<16xf64>
    gpu.terminator
  }
  return
}

// -----

// A row of accumulators where a column is needed.
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @both_ways(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    %r = vector.multi_reduction <add>, %s, %low [1] : vector<16x16xf32> to vector<16xf32>
    // expected-error @+1 {{needs a vector distributed as columns [n], which is distributed as rows [m]: conversions of layouts are unsupported}}
    %u = vector.broadcast %r : vector<16xf32> to vector<16x16xf32>
    %x = arith.subf %s, %u : vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Across k, accumulators are not held as operands are.
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @transposed_operand(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    %t = arith.truncf %s : vector<16x16xf32> to vector<16x16xf16>
    // expected-error @+1 {{needs a vector distributed as b [k][n], which is distributed as accumulator [m][n]: conversions of layouts are unsupported}}
    %x = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %t, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @both_numbers(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    // expected-error @+1 {{'test.numbers' cannot make the fragments of rows [m][1]}}
    %n = "test.numbers"() : () -> vector<16x1xf32>
    %u = vector.broadcast %n : vector<16x1xf32> to vector<16x16xf32>
    %x = arith.subf %s, %u : vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @transposed_read(%C: memref<16x16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %low = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
    %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    // expected-error @+1 {{reads vector<16x16xf32> as accumulator [n][m], expected [m][n], [m] or [n]}}
    %r = vector.transfer_read %C[%c0, %c0], %f {in_bounds = [true, true]} : memref<16x16xf32>, vector<16x16xf32>
    %t = vector.transpose %r, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
    %x = arith.addf %s, %t : vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

