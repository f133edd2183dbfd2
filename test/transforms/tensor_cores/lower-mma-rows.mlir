// RUN: alcop-opt %s --alcop-lower-mma --split-input-file --mlir-print-local-scope | FileCheck %s

// Of a row each lane of a quad holds four of sixteen columns, in two pieces; the quad
// exchanges what it has of them. What the reduction begins with comes last, once.
// CHECK-LABEL: @rows
// CHECK:       %[[LEFT:.*]] = nvgpu.mma.sync
// CHECK:       %[[RIGHT:.*]] = nvgpu.mma.sync
// CHECK:       %[[E0:.*]] = vector.extract %[[LEFT]][0, 0]
// CHECK:       %[[E1:.*]] = vector.extract %[[LEFT]][0, 1]
// CHECK:       %[[E2:.*]] = vector.extract %[[RIGHT]][0, 0]
// CHECK:       %[[E3:.*]] = vector.extract %[[RIGHT]][0, 1]
// CHECK:       %[[M0:.*]] = arith.maxnumf %[[E0]], %[[E1]] : f32
// CHECK:       %[[M1:.*]] = arith.maxnumf %[[E2]], %[[E3]] : f32
// CHECK:       %[[M2:.*]] = arith.maxnumf %[[M0]], %[[M1]] : f32
// CHECK:       %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:       %[[NEXT:.*]], %{{.*}} = gpu.shuffle xor %[[M2]], %[[ONE]]
// CHECK:       %[[M3:.*]] = arith.maxnumf %[[M2]], %[[NEXT]] : f32
// CHECK:       %[[TWO:.*]] = arith.constant 2 : i32
// CHECK:       %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[M3]], %[[TWO]]
// CHECK:       %[[M4:.*]] = arith.maxnumf %[[M3]], %[[OTHER]] : f32
// CHECK:       arith.maxnumf %[[M4]], %{{.*}} : f32
// CHECK-COUNT-2: gpu.shuffle
// CHECK-NOT:   gpu.shuffle
// CHECK:       scf.if
// CHECK-COUNT-2: memref.store
// CHECK-NOT:   vector.multi_reduction
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @rows(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %x = vector.multi_reduction <maxnumf>, %s, %low [1] : vector<16x16xf32> to vector<16xf32>
    vector.transfer_write %x, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    gpu.terminator
  }
  return
}

// -----

// The eight lanes that hold a column exchange theirs, at three distances, for each of a
// lane's four columns.
// CHECK-LABEL: @columns
// CHECK-COUNT-12: gpu.shuffle
// CHECK-NOT:   gpu.shuffle
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @columns(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %x = vector.multi_reduction <add>, %s, %low [0] : vector<16x16xf32> to vector<16xf32>
    vector.transfer_write %x, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    gpu.terminator
  }
  return
}

// -----

// One value for both columns of a row that a lane holds, no instruction.
// CHECK-LABEL: @broadcast_rows
// CHECK:       %[[M:.*]] = vector.from_elements %[[UP:.*]], %[[DOWN:.*]] : vector<2xf32>
// CHECK:       %[[UPPER:.*]] = vector.extract %[[M]][0]
// CHECK:       %[[LOWER:.*]] = vector.extract %[[M]][1]
// CHECK:       vector.from_elements %[[UPPER]], %[[UPPER]], %[[LOWER]], %[[LOWER]] : vector<2x2xf32>
// CHECK-NOT:   vector.broadcast
// CHECK-NOT:   vector.shape_cast
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @broadcast_rows(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %r = vector.multi_reduction <maxnumf>, %s, %low [1] : vector<16x16xf32> to vector<16xf32>
    %t = vector.shape_cast %r : vector<16xf32> to vector<16x1xf32>
    %u = vector.broadcast %t : vector<16x1xf32> to vector<16x16xf32>
    %x = arith.subf %s, %u : vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// The rows of a lane are lane / 4 and that + 8, its columns 2 * (lane % 4) and the next.
// One vector.step for both is distributed in two ways.
// CHECK-LABEL: @numbers
// CHECK:       nvgpu.mma.sync
// CHECK:       %[[ROW:.*]] = arith.divui
// CHECK:       %[[DOWN:.*]] = affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[ROW]]]
// CHECK:       vector.from_elements %[[ROW]], %[[DOWN]] : vector<2xindex>
// CHECK:       %[[COLUMN:.*]] = arith.muli
// CHECK:       %[[NEXT:.*]] = affine.apply affine_map<()[s0] -> (s0 + 1)>()[%[[COLUMN]]]
// CHECK:       vector.from_elements %[[COLUMN]], %[[NEXT]] : vector<2xindex>
// CHECK:       affine.apply affine_map<()[s0] -> (s0 + 8)>()[%[[COLUMN]]]
// CHECK:       affine.apply affine_map<()[s0] -> (s0 + 9)>()[%[[COLUMN]]]
// CHECK-COUNT-2: arith.cmpi sle, %{{.*}} : vector<2x2xindex>
// CHECK-COUNT-2: arith.select %{{.*}} : vector<2x2xi1>, vector<2x2xf32>
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @numbers(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %n = vector.step : vector<16xindex>
    %t = vector.shape_cast %n : vector<16xindex> to vector<16x1xindex>
    %rows = vector.broadcast %t : vector<16x1xindex> to vector<16x16xindex>
    %columns = vector.broadcast %n : vector<16xindex> to vector<16x16xindex>
    %is = arith.cmpi sle, %columns, %rows : vector<16x16xindex>
    %x = arith.select %is, %s, %zero : vector<16x16xi1>, vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Two neighbouring pieces of accumulators are one of a, as they are held.
// CHECK-LABEL: @next_operand
// CHECK-COUNT-2: nvgpu.mma.sync
// CHECK:       %[[LEFT:.*]] = arith.truncf %{{.*}} : vector<2x2xf32> to vector<2x2xf16>
// CHECK:       %[[RIGHT:.*]] = arith.truncf %{{.*}} : vector<2x2xf32> to vector<2x2xf16>
// CHECK:       %[[A:.*]] = vector.shuffle %[[LEFT]], %[[RIGHT]] [0, 1, 2, 3] : vector<2x2xf16>, vector<2x2xf16>
// CHECK-NOT:   vector.shuffle
// CHECK-COUNT-2: nvgpu.mma.sync(%[[A]],
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @next_operand(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %x = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %t, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// As b, of which halves of k come first: rows 8 to 15 are columns of the second
// mma.sync.
// CHECK-LABEL: @next_right_operand
// CHECK:       vector.shuffle %{{.*}}, %{{.*}} [0, 2, 1, 3] : vector<2x2xf16>, vector<2x2xf16>
// CHECK-NOT:   vector.shuffle
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @next_right_operand(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %x = vector.contract {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %t, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// A choice yields accumulators and rows, by piece.
// CHECK-LABEL: @choice
// CHECK:       scf.if %{{.*}} -> (vector<2x2xf32>, vector<2x2xf32>, vector<2xf32>)
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @choice(%C: memref<16x16xf32>, %R: memref<16xf32>) {
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
    %is = arith.cmpi eq, %bx, %c1 : index
    %x, %r = scf.if %is -> (vector<16x16xf32>, vector<16xf32>) {
      %t = arith.negf %s : vector<16x16xf32>
      %u = vector.multi_reduction <add>, %s, %low [1] : vector<16x16xf32> to vector<16xf32>
      scf.yield %t, %u : vector<16x16xf32>, vector<16xf32>
    } else {
      scf.yield %s, %low : vector<16x16xf32>, vector<16xf32>
    }
    vector.transfer_write %r, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
    gpu.terminator
  }
  return
}

// -----

// Totals by lane: the loop has no shuffles; behind it the lanes of a quad add theirs, for
// both rows that a lane has. What was there before is the first lane's, -0 the others'.
// CHECK-LABEL: @by_lane
// CHECK:       arith.cmpi eq
// CHECK:       arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK:       scf.for
// CHECK-NOT:   gpu.shuffle
// CHECK:       scf.yield
// CHECK-COUNT-4: gpu.shuffle
// CHECK-NOT:   gpu.shuffle
// CHECK-NOT:   alcop.by_lane
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @by_lane(%R: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %half = arith.constant dense<0.5> : vector<16xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = memref.alloc() : memref<16x16xf16, #ws>
    %b = memref.alloc() : memref<16x16xf16, #ws>
    %start = vector.transfer_read %R[%c0], %f {in_bounds = [true]} : memref<16xf32>, vector<16xf32>
    %t = scf.for %i = %c0 to %c32 step %c1 iter_args(%c = %start) -> (vector<16xf32>) {
      %fa = vector.transfer_read %a[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
      %fb = vector.transfer_read %b[%c0, %c0], %h {in_bounds = [true, true]} : memref<16x16xf16, #ws>, vector<16x16xf16>
      %s = vector.contract {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %fa, %fb, %zero : vector<16x16xf16>, vector<16x16xf16> into vector<16x16xf32>
      %d = arith.mulf %c, %half {alcop.by_lane} : vector<16xf32>
      %n = vector.multi_reduction <add>, %s, %d {alcop.by_lane} [1] : vector<16x16xf32> to vector<16xf32>
      scf.yield %n : vector<16xf32>
    }
    vector.transfer_write %t, %R[%c0] {in_bounds = [true]} : vector<16xf32>, memref<16xf32>
    gpu.terminator
  }
  return
}
