// RUN: alcop-opt %s --alcop-defer-totals --split-input-file | FileCheck %s

// What a loop carries is multiplied by a power of what is never above 0, and a sum of
// rows is added to it: as in an online softmax, whose maximum grows.
// CHECK-LABEL: @online
// CHECK:       math.exp2
// CHECK:       arith.mulf {{.*}} {alcop.by_lane}
// CHECK:       vector.multi_reduction <add>{{.*}} {alcop.by_lane}
#kn = affine_map<(m, n, k) -> (k, n)>
#mk = affine_map<(m, n, k) -> (m, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @online(%a: vector<16x16xf16>, %b: vector<16x16xf16>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %none = arith.constant dense<0.0> : vector<16x16xf32>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %scale = arith.constant dense<0.25> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %m, %t = scf.for %i = %c0 to %c32 step %c1
        iter_args(%old = %zero, %sum = %zero) -> (vector<16xf32>, vector<16xf32>) {
      %w = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %none : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      %new = vector.multi_reduction <maximumf>, %w, %old [1] : vector<16x16xf32> to vector<16xf32>
      %p = arith.mulf %old, %scale : vector<16xf32>
      %q = arith.mulf %new, %scale : vector<16xf32>
      %less = arith.subf %p, %q : vector<16xf32>
      %s = math.exp2 %less : vector<16xf32>
      %d = arith.mulf %sum, %s : vector<16xf32>
      %n = vector.multi_reduction <add>, %w, %d [1] : vector<16x16xf32> to vector<16xf32>
      scf.yield %new, %n : vector<16xf32>, vector<16xf32>
    }
    vector.transfer_write %t, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    gpu.terminator
  }
  return
}

// -----

// What the loop's first value is added to a reduction of its own, and a multiplier that
// needs no proof, as the multiplication allows what follows.
// CHECK-LABEL: @allowed
// CHECK:       arith.mulf {{.*}} fastmath<reassoc> {alcop.by_lane}
// CHECK:       vector.multi_reduction <add>{{.*}} {alcop.by_lane}
// CHECK:       arith.addf {{.*}} {alcop.by_lane}
#kn = affine_map<(m, n, k) -> (k, n)>
#mk = affine_map<(m, n, k) -> (m, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @allowed(%a: vector<16x16xf16>, %b: vector<16x16xf16>, %s: vector<16xf32>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %none = arith.constant dense<0.0> : vector<16x16xf32>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %t = scf.for %i = %c0 to %c32 step %c1 iter_args(%sum = %zero) -> (vector<16xf32>) {
      %w = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %none : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      %d = arith.mulf %sum, %s fastmath<reassoc> : vector<16xf32>
      %e = vector.multi_reduction <add>, %w, %zero [1] : vector<16x16xf32> to vector<16xf32>
      %n = arith.addf %e, %d : vector<16xf32>
      scf.yield %n : vector<16xf32>
    }
    vector.transfer_write %t, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    gpu.terminator
  }
  return
}

// -----

// Left: a multiplier that may exceed 1, a maximum, a sum that the loop reads, and one whose
// parts others read.
// CHECK-LABEL: @left
// CHECK-NOT:   alcop.by_lane
#kn = affine_map<(m, n, k) -> (k, n)>
#mk = affine_map<(m, n, k) -> (m, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @left(%a: vector<16x16xf16>, %b: vector<16x16xf16>, %R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %none = arith.constant dense<0.0> : vector<16x16xf32>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %m, %t, %u, %v = scf.for %i = %c0 to %c32 step %c1
        iter_args(%old = %zero, %sum = %zero, %read = %zero, %part = %zero)
        -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
      %w = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %none : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      %new = vector.multi_reduction <maximumf>, %w, %old [1] : vector<16x16xf32> to vector<16xf32>
      // The wrong way round: at least 0.
      %more = arith.subf %new, %old : vector<16xf32>
      %s = math.exp2 %more : vector<16xf32>
      %d = arith.mulf %sum, %s : vector<16xf32>
      %n = vector.multi_reduction <add>, %w, %d [1] : vector<16x16xf32> to vector<16xf32>
      %o = vector.multi_reduction <add>, %w, %read [1] : vector<16x16xf32> to vector<16xf32>
      %r = arith.negf %read : vector<16xf32>
      %p = vector.multi_reduction <add>, %w, %part [1] : vector<16x16xf32> to vector<16xf32>
      %q = arith.addf %r, %p : vector<16xf32>
      vector.transfer_write %q, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
      scf.yield %new, %n, %o, %p : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
    }
    vector.transfer_write %t, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    vector.transfer_write %u, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    vector.transfer_write %v, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    gpu.terminator
  }
  return
}
