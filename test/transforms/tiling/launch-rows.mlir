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

// -----

// A block goes twice over a row that it cannot hold: for the sum, then for the output.
// CHECK-LABEL: func.func @in_parts(
// CHECK-SAME:    %[[X:.*]]: memref<4x20000xf32>, %[[SUM:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4x20000xf32>)
// CHECK:         gpu.launch {{.*}} threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c512,
// CHECK:           %[[TOTAL:.*]] = scf.for %[[I:.*]] = %c0 to %c20000 step %c4096 iter_args(%[[S:.*]] = %{{.*}}) -> (f32) {
// CHECK-COUNT-2:     vector.load %[[X]]
// CHECK-COUNT-8:     arith.select
// CHECK:             scf.yield
// CHECK:           gpu.shuffle xor %[[TOTAL]]
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %c0 to %c20000 step %c4096 {
// CHECK-COUNT-2:     vector.load %[[X]]
// CHECK:             scf.if
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[Y]]
// CHECK:           memref.store %{{.*}}, %[[SUM]]
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @in_parts(%x: memref<4x20000xf32>, %sum: memref<4xf32>, %y: memref<4x20000xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%sum : memref<4xf32>)
  linalg.reduce { arith.addf } ins(%x : memref<4x20000xf32>) outs(%sum : memref<4xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : memref<4x20000xf32>, memref<4xf32>) outs(%y : memref<4x20000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// So do four warps, element by element, where the length is known at run time only.
// CHECK-LABEL: func.func @of_any_length(
// CHECK:         %[[N:.*]] = memref.dim
// CHECK:         gpu.launch {{.*}} threads(%{{.*}}, %{{.*}}, %{{.*}}) in (%{{.*}} = %c128,
// CHECK:           scf.for %[[I:.*]] = %c0 to %[[N]] step %c1024 iter_args
// CHECK:             %[[THERE:.*]] = arith.cmpi slt, %{{.*}}, %[[N]]
// CHECK-COUNT-8:     memref.load
// CHECK:           scf.for %{{.*}} = %c0 to %[[N]] step %c1024 {
// CHECK-COUNT-8:     memref.load
// CHECK-NOT:     gpu.launch
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @of_any_length(%x: memref<4x?xf32>, %sum: memref<4xf32>, %y: memref<4x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%sum : memref<4xf32>)
  linalg.reduce { arith.addf } ins(%x : memref<4x?xf32>) outs(%sum : memref<4xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %sum : memref<4x?xf32>, memref<4xf32>) outs(%y : memref<4x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The largest element and where it is: pairs of value and column are combined, the first
// one of equal values; a row with a NaN is folded from its first element on.
// CHECK-LABEL: func.func @largest(
// CHECK-SAME:    %[[X:.*]]: memref<8x64xf32>, %[[BEST:.*]]: memref<8xf32>, %[[AT:.*]]: memref<8xi64>)
// CHECK:           vector.load %[[X]]
// CHECK:           arith.cmpf ogt
// CHECK:           arith.maximumf
// CHECK:           arith.cmpf uno
// CHECK-COUNT-3:   gpu.shuffle
// CHECK:           %[[EQ:.*]] = arith.cmpf oeq
// CHECK-NEXT:      %[[LESS:.*]] = arith.cmpi slt
// CHECK-NEXT:      arith.andi %[[EQ]], %[[LESS]]
// CHECK:           %[[RESULT:.*]]:2 = scf.if %{{.*}} -> (f32, i64) {
// CHECK:             scf.for {{.*}} -> (f32, i64) {
// CHECK:               memref.load %[[X]]
// CHECK:           } else {
// CHECK-NOT:         scf.for
// CHECK:           memref.store %[[RESULT]]#0, %[[BEST]]
// CHECK-NEXT:      memref.store %[[RESULT]]#1, %[[AT]]
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @largest(%x: memref<8x64xf32>, %best: memref<8xf32>, %at: memref<8xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  linalg.fill ins(%low : f32) outs(%best : memref<8xf32>)
  linalg.fill ins(%zero : i64) outs(%at : memref<8xi64>)
  linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : memref<8x64xf32>) outs(%best, %at : memref<8xf32>, memref<8xi64>) {
  ^bb0(%a: f32, %b: f32, %n: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %0 = arith.maximumf %a, %b : f32
    %is = arith.cmpf ogt, %a, %b : f32
    %k = arith.select %is, %j, %n : i64
    linalg.yield %0, %k : f32, i64
  }
  return
}

// -----

// Rows whose elements are not neighbours, as the channels of an image: lanes have
// neighbouring channels, and the warps of a block share the pixels.
// CHECK-LABEL: func.func @channels(
// CHECK-SAME:    %[[X:.*]]: memref<2x16x16x40xf32>,
// CHECK:         gpu.launch blocks({{.*}}) in (%{{.*}} = %c2{{.*}}, {{.*}}) threads({{.*}}) in (%{{.*}} = %c512,
// CHECK:           %[[THERE:.*]] = arith.cmpi slt, %[[C:.*]], %c40
// CHECK:           %[[SOME:.*]] = arith.minsi %[[C]], %c39
// CHECK:           memref.load %[[X]][%{{.*}}, %{{.*}}, %{{.*}}, %[[SOME]]]
// CHECK-NOT:       gpu.shuffle
// CHECK:           memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
// CHECK:           gpu.barrier
// CHECK-COUNT-16:  memref.load %{{.*}} : memref<16x32xf32, #gpu.address_space<workgroup>>
// CHECK:           scf.if %[[THERE]]
// CHECK-NOT:     gpu.launch
#c = affine_map<(n, h, w, c) -> (c)>
#all = affine_map<(n, h, w, c) -> (n, h, w, c)>
func.func @channels(%x: memref<2x16x16x40xf32>, %y: memref<2x16x16x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<40xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<40xf32>)
  linalg.reduce { arith.addf } ins(%x : memref<2x16x16x40xf32>) outs(%sum : memref<40xf32>) dimensions = [0, 1, 2]
  linalg.generic {indexing_maps = [#all, #c, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%x, %sum : memref<2x16x16x40xf32>, memref<40xf32>) outs(%y : memref<2x16x16x40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A thread has a window of its own; what reads its sum is part of the kernel.
// CHECK-LABEL: func.func @average(
// CHECK:         gpu.launch
// CHECK-COUNT-9:   memref.load
// CHECK:           arith.divf
// CHECK-NEXT:      memref.store
// CHECK-NOT:     gpu.launch
// CHECK-NOT:     linalg
#id = affine_map<(n, h, w, c) -> (n, h, w, c)>
func.func @average(%x: memref<1x9x9x64xf32>, %y: memref<1x4x4x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %nine = arith.constant 9.0 : f32
  %window = memref.alloc() : memref<3x3xf32>
  %sum = memref.alloc() : memref<1x4x4x64xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<1x4x4x64xf32>)
  linalg.pooling_nhwc_sum {strides = dense<2> : vector<2xi64>}
    ins(%x, %window : memref<1x9x9x64xf32>, memref<3x3xf32>) outs(%sum : memref<1x4x4x64xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%sum : memref<1x4x4x64xf32>) outs(%y : memref<1x4x4x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.divf %a, %nine : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A body between loads elements of what the group writes: the first op stays above it.

#all = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
#row = affine_map<(m) -> (m)>

// CHECK-LABEL: func.func @loaded_between
// CHECK: arith.mulf
// CHECK: memref.load
// CHECK-NOT: arith.mulf
// CHECK: return
func.func @loaded_between(%x: memref<64x128xf32>, %at: memref<64xi64>, %y: memref<64xf32>, %z: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %twice = memref.alloc() : memref<64x128xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x128xf32>) outs(%twice : memref<64x128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %two : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]} ins(%at : memref<64xi64>) outs(%y : memref<64xf32>) {
  ^bb0(%a: i64, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %a : i64 to index
    %s = memref.load %twice[%i, %j] : memref<64x128xf32>
    linalg.yield %s : f32
  }
  linalg.fill ins(%zero : f32) outs(%z : memref<64xf32>)
  linalg.generic {indexing_maps = [#all, #m], iterator_types = ["parallel", "reduction"]} ins(%twice : memref<64x128xf32>) outs(%z : memref<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// An element of each row that is looked up, as in a loss: what the row's largest one is
// subtracted from. It is loaded from memory.
// CHECK-LABEL: func.func @looked_up(
// CHECK-SAME:    %[[X:.*]]: memref<8x64xf32>, %[[T:.*]]: memref<8xi64>, %[[Y:.*]]: memref<8xf32>)
// CHECK:         gpu.launch
// CHECK:           %[[N:.*]] = memref.load %[[T]][%[[ROW:.*]]]
// CHECK:           vector.load %[[X]][%[[ROW]],
// CHECK:           gpu.shuffle
// CHECK:           %[[C:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK:           %[[V:.*]] = memref.load %[[X]][%[[ROW]], %[[C]]]
// CHECK:           %[[D:.*]] = arith.subf %[[V]]
// CHECK:           memref.store %[[D]], %[[Y]][%[[ROW]]]
// CHECK-NOT:     linalg
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
#one = affine_map<(m) -> (m)>
func.func @looked_up(%x: memref<8x64xf32>, %t: memref<8xi64>, %y: memref<8xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<8xf32>
  linalg.fill ins(%low : f32) outs(%max : memref<8xf32>)
  linalg.reduce { arith.maximumf } ins(%x : memref<8x64xf32>) outs(%max : memref<8xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%t, %max : memref<8xi64>, memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%i: i64, %m: f32, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = memref.load %x[%r, %c] : memref<8x64xf32>
    %d = arith.subf %v, %m : f32
    linalg.yield %d : f32
  }
  return
}

// -----

// What is looked up is made by ops on the same rows, and has to be in memory.
// CHECK-LABEL: func.func @looked_up_of_the_group(
// CHECK:         gpu.launch
// CHECK:         } {alcop.fallback = "", alcop.kernel = "rows"}
// CHECK:         linalg.generic
// CHECK:           memref.load
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
#one = affine_map<(m) -> (m)>
func.func @looked_up_of_the_group(%x: memref<8x64xf32>, %t: memref<8xi64>, %y: memref<8xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<8xf32>
  %e = memref.alloc() : memref<8x64xf32>
  linalg.exp ins(%x : memref<8x64xf32>) outs(%e : memref<8x64xf32>)
  linalg.fill ins(%low : f32) outs(%max : memref<8xf32>)
  linalg.reduce { arith.maximumf } ins(%e : memref<8x64xf32>) outs(%max : memref<8xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%t, %max : memref<8xi64>, memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%i: i64, %m: f32, %o: f32):
    %r = linalg.index 0 : index
    %c = arith.index_cast %i : i64 to index
    %v = memref.load %e[%r, %c] : memref<8x64xf32>
    %d = arith.subf %v, %m : f32
    linalg.yield %d : f32
  }
  return
}
