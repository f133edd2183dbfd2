// RUN: alcop-opt %s --alcop-launch-rows --canonicalize --cse --split-input-file | FileCheck %s

// A softmax is one kernel, a warp a row: what was a memref between two ops is gone.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    %[[X:.*]]: memref<61x64xf32>, %[[Y:.*]]: memref<61x64xf32>)
// CHECK-NOT:     memref.alloc
// CHECK:         %[[C61:.*]] = arith.constant 1952 : index
// CHECK:         gpu.launch blocks(%[[BX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c8, {{.*}} threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c256,
// CHECK:           %[[THERE:.*]] = arith.cmpi ult, %[[N:.*]], %[[C61]]
// CHECK:           scf.if %[[THERE]] {
// CHECK:             %[[LANE:.*]] = arith.remui %[[N]], %c32
// CHECK:             %[[ROW:.*]] = arith.divui %[[N]], %c32
// CHECK:             %[[COLUMN:.*]] = arith.muli %[[LANE]], %c2
// CHECK:             %[[V:.*]] = vector.load %[[X]][%[[ROW]], %[[COLUMN]]] {alignment = 8 : i64}
// CHECK-NEXT:        %[[W:.*]] = llvm.freeze %[[V]]
// CHECK-NEXT:        %[[A:.*]] = vector.extract %[[W]][0]
// CHECK-NEXT:        %[[B:.*]] = vector.extract %[[W]][1]
// CHECK-NOT:         vector.load
// CHECK:             %[[M:.*]] = arith.maximumf %[[A]], %[[B]]
// CHECK-NEXT:        gpu.shuffle xor %[[M]], %c16_i32
// CHECK-COUNT-4:     gpu.shuffle
// CHECK-COUNT-2:     math.exp
// CHECK-COUNT-5:     gpu.shuffle
// CHECK-COUNT-2:     arith.divf
// CHECK:             vector.store %{{.*}}, %[[Y]][%[[ROW]], %[[COLUMN]]]
// CHECK-NOT:         store
// CHECK:         } {alcop.fallback = "", alcop.kernel = "rows"}
// CHECK-NEXT:    return
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @softmax(%x: memref<61x64xf32>, %y: memref<61x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<61xf32>
  %e = memref.alloc() : memref<61x64xf32>
  %sum = memref.alloc() : memref<61xf32>
  // Far above what starts from it.
  linalg.fill ins(%zero : f32) outs(%sum : memref<61xf32>)
  linalg.fill ins(%low : f32) outs(%max : memref<61xf32>)
  linalg.reduce { arith.maximumf } ins(%x : memref<61x64xf32>) outs(%max : memref<61xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %max : memref<61x64xf32>, memref<61xf32>) outs(%e : memref<61x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  }
  linalg.reduce { arith.addf } ins(%e : memref<61x64xf32>) outs(%sum : memref<61xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%e, %sum : memref<61x64xf32>, memref<61xf32>) outs(%y : memref<61x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A row that a warp cannot hold is shared by the warps of a block, here two, with lanes
// beyond the row; the number of rows is known at run time. The sums are stored as well,
// by one thread.
// CHECK-LABEL: func.func @long(
// CHECK-SAME:    %[[X:.*]]: memref<?x2000xf16>, %[[OUT:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?x2000xf16>)
// CHECK:         gpu.launch {{.*}} threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c64,
// CHECK:           %[[T:.*]] = arith.remui %{{.*}}, %c64
// CHECK:           %[[START:.*]] = arith.addi %{{.*}}, %c1536
// CHECK-NEXT:      %[[THERE:.*]] = arith.cmpi slt, %[[START]], %c2000
// CHECK-NEXT:      %[[LAST:.*]] = arith.minsi %[[START]], %c1992
// CHECK-COUNT-4:   vector.load %[[X]]{{.*}} {alignment = 16 : i64} : memref<?x2000xf16>, vector<8xf16>
// CHECK-COUNT-8:   arith.select %[[THERE]]
// CHECK-COUNT-5:   gpu.shuffle
// CHECK:           %[[PARTS:.*]] = memref.alloc() : memref<2xf32, #gpu.address_space<workgroup>>
// CHECK:           memref.store %{{.*}}, %[[PARTS]]
// CHECK:           gpu.barrier
// CHECK:           memref.load %[[PARTS]][%c0]
// CHECK:           memref.load %[[PARTS]][%c1]
// CHECK-COUNT-3:   vector.store {{.*}}, %[[Y]]
// CHECK:           scf.if %[[THERE]] {
// CHECK-NEXT:        %[[V:.*]] = vector.from_elements
// CHECK-NEXT:        vector.store %[[V]], %[[Y]][%{{.*}}, %[[LAST]]]
// CHECK-NEXT:      }
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[T]], %c0
// CHECK-NEXT:      scf.if %[[FIRST]] {
// CHECK-NEXT:        memref.store %{{.*}}, %[[OUT]]
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @long(%x: memref<?x2000xf16>, %out: memref<?xf32>, %y: memref<?x2000xf16>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = memref.dim %x, %c0 : memref<?x2000xf16>
  %mean = memref.alloc(%rows) : memref<?xf32>
  linalg.generic {indexing_maps = [affine_map<(m) -> ()>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]}
    ins(%zero : f32) outs(%mean : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<?x2000xf16>) outs(%mean : memref<?xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.addf %0, %o : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %mean : memref<?x2000xf16>, memref<?xf32>) outs(%y : memref<?x2000xf16>) {
  ^bb0(%a: f16, %b: f32, %o: f16):
    %0 = arith.truncf %b : f32 to f16
    %1 = arith.subf %a, %0 : f16
    linalg.yield %1 : f16
  }
  memref.copy %mean, %out : memref<?xf32> to memref<?xf32>
  return
}

// -----

// What reads rows across, or what others of the group have for their rows, stays apart,
// and what is written where it was read. A sum alone is no group.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT:     gpu.launch
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
#across = affine_map<(m, n) -> (n, m)>
func.func @apart(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %z: memref<64x64xf32>, %w: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<64xf32>
  %other = memref.alloc() : memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<64xf32>)
  linalg.reduce { arith.addf } ins(%x : memref<64x64xf32>) outs(%sum : memref<64xf32>) dimensions = [1]
  // Element (n, m) for what is written at (m, n); sums of other rows.
  linalg.generic {indexing_maps = [#across, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : memref<64x64xf32>, memref<64xf32>) outs(%y : memref<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, #all], iterator_types = ["parallel", "parallel"]}
    ins(%sum : memref<64xf32>) outs(%z : memref<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  linalg.fill ins(%zero : f32) outs(%other : memref<64xf32>)
  linalg.reduce { arith.addf } ins(%w : memref<64x64xf32>) outs(%other : memref<64xf32>) dimensions = [1]
  // In place.
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%w, %other : memref<64x64xf32>, memref<64xf32>) outs(%w : memref<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}
