// RUN: alcop-opt %s --alcop-launch-loops --canonicalize --cse --split-input-file | FileCheck %s

// One thread per element of the output, the last dimension fastest; a last block that
// is not whole is guarded.
// CHECK-LABEL: func.func @elementwise(
// CHECK-SAME:    %[[A:.*]]: memref<8x50xf32>, %[[B:.*]]: memref<50xf32>, %[[C:.*]]: memref<8x50xf32>)
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[C50:.*]] = arith.constant 50 : index
// CHECK-DAG:     %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[C400:.*]] = arith.constant 400 : index
// CHECK:         gpu.launch blocks(%[[BX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[C2]], %{{.*}} = %[[C1]], %{{.*}} = %[[C1]]) threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[C256]], %{{.*}} = %[[C1]], %{{.*}} = %[[C1]]) {
// CHECK-NEXT:      %[[FIRST:.*]] = arith.muli %[[BX]], %[[C256]]
// CHECK-NEXT:      %[[N:.*]] = arith.addi %[[FIRST]], %[[TX]]
// CHECK-NEXT:      %[[THERE:.*]] = arith.cmpi ult, %[[N]], %[[C400]]
// CHECK-NEXT:      scf.if %[[THERE]] {
// CHECK-NEXT:        %[[J:.*]] = arith.remui %[[N]], %[[C50]]
// CHECK-NEXT:        %[[I:.*]] = arith.divui %[[N]], %[[C50]]
// CHECK-NEXT:        %[[X:.*]] = memref.load %[[A]][%[[I]], %[[J]]]
// CHECK-NEXT:        %[[Y:.*]] = memref.load %[[B]][%[[J]]]
// CHECK-NEXT:        %[[Z:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT:        memref.store %[[Z]], %[[C]][%[[I]], %[[J]]]
// CHECK-NEXT:      }
// CHECK-NEXT:      gpu.terminator
// CHECK-NEXT:    } {alcop.fallback = "{{.*}}", alcop.kernel = "map"}
// CHECK-NEXT:    return
func.func @elementwise(%a: memref<8x50xf32>, %b: memref<50xf32>, %c: memref<8x50xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%a, %b : memref<8x50xf32>, memref<50xf32>) outs(%c : memref<8x50xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// The loops of a sum run inside, in registers; the fill above is what it starts from.
// A sum over the outermost loop is the same.
// CHECK-LABEL: func.func @sums(
// CHECK-SAME:    %[[A:.*]]: memref<64x96xf32>, %[[B:.*]]: memref<96xf32>)
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK:         gpu.launch {{.*}} threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c96
// CHECK-NEXT:      %[[SUM:.*]] = scf.for %[[K:.*]] = %[[C0]] to %[[C64]] step %[[C1]] iter_args(%[[S:.*]] = %[[ZERO]])
// CHECK-NEXT:        %[[X:.*]] = memref.load %[[A]][%[[K]], %[[TX]]]
// CHECK-NEXT:        %[[T:.*]] = arith.addf %[[S]], %[[X]]
// CHECK-NEXT:        scf.yield %[[T]]
// CHECK:           memref.store %[[SUM]], %[[B]][%[[TX]]]
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "reduce"}
// CHECK-NEXT:    return
func.func @sums(%a: memref<64x96xf32>, %b: memref<96xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%b : memref<96xf32>)
  linalg.reduce { arith.addf } ins(%a : memref<64x96xf32>) outs(%b : memref<96xf32>) dimensions = [0]
  return
}

// -----

// A sum along memory is shared by the lanes of a warp, and combined by shuffles.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[A:.*]]: memref<40x96xf32>, %[[B:.*]]: memref<40xf32>)
// CHECK-DAG:     %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[C5:.*]] = arith.constant 5 : index
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : index
// CHECK-DAG:     %[[C96:.*]] = arith.constant 96 : index
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %[[C5]],
// CHECK:           %[[LANE:.*]] = arith.remui %[[N:.*]], %[[C32]]
// CHECK-NEXT:      %[[ROW:.*]] = arith.divui %[[N]], %[[C32]]
// CHECK-NEXT:      %[[PART:.*]] = scf.for %[[K:.*]] = %[[LANE]] to %[[C96]] step %[[C32]] iter_args(%[[S:.*]] = %[[LOW]])
// CHECK-NEXT:        %[[X:.*]] = memref.load %[[A]][%[[ROW]], %[[K]]]
// CHECK-NEXT:        arith.maximumf %[[S]], %[[X]]
// CHECK:           %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[PART]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      arith.maximumf %[[PART]], %[[OTHER]]
// CHECK-COUNT-4:   gpu.shuffle xor
// CHECK:           %[[ALL:.*]] = arith.maximumf
// CHECK-NEXT:      %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK-NEXT:      scf.if %[[FIRST]] {
// CHECK-NEXT:        %[[START:.*]] = memref.load %[[B]][%[[ROW]]]
// CHECK-NEXT:        %[[R:.*]] = arith.maximumf %[[START]], %[[ALL]]
// CHECK-NEXT:        memref.store %[[R]], %[[B]][%[[ROW]]]
func.func @rows(%a: memref<40x96xf32>, %b: memref<40xf32>) {
  linalg.reduce { arith.maximumf } ins(%a : memref<40x96xf32>) outs(%b : memref<40xf32>) dimensions = [1]
  return
}

// -----

// One thread per element where a lane would have no term, where the op is none that
// combines in any order, and where lanes exchange no 32 bits.
// CHECK-LABEL: func.func @own_rows(
// CHECK-NOT:     gpu.shuffle
func.func @own_rows(%a: memref<40x31xf32>, %b: memref<40xf32>, %c: memref<40x96xf32>, %d: memref<40x96xf16>, %e: memref<40xf16>) {
  linalg.reduce { arith.addf } ins(%a : memref<40x31xf32>) outs(%b : memref<40xf32>) dimensions = [1]
  linalg.reduce { arith.addf } ins(%d : memref<40x96xf16>) outs(%e : memref<40xf16>) dimensions = [1]
  linalg.generic {
    indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%c : memref<40x96xf32>) outs(%b : memref<40xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.subf %y, %x : f32
    linalg.yield %0 : f32
  }
  linalg.generic {
    indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%c : memref<40x96xf32>) outs(%b : memref<40xf32>) {
  ^bb0(%x: f32, %y: f32):
    %0 = arith.mulf %y, %x : f32
    %1 = arith.addf %y, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// A sum goes on from what the output holds; two loops, and what is no plain loop.
// CHECK-LABEL: func.func @convolution(
// CHECK-SAME:    %[[A:.*]]: memref<1x18x4xf32>, %[[B:.*]]: memref<3x4x8xf32>, %[[C:.*]]: memref<1x16x8xf32>)
// CHECK:         gpu.launch
// CHECK:           %[[START:.*]] = memref.load %[[C]]
// CHECK:           scf.for %[[W:.*]] = {{.*}} iter_args(%[[OUTER:.*]] = %[[START]])
// CHECK-NEXT:        scf.for %[[K:.*]] = {{.*}} iter_args(%{{.*}} = %[[OUTER]])
// CHECK-NEXT:          %[[AT:.*]] = affine.apply
// CHECK-NEXT:          memref.load %[[A]][%{{.*}}, %[[AT]], %[[K]]]
// CHECK-NEXT:          memref.load %[[B]][%[[W]], %[[K]], %{{.*}}]
// CHECK:           memref.store
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "conv_1d_nwc_wcf"}
func.func @convolution(%a: memref<1x18x4xf32>, %b: memref<3x4x8xf32>, %c: memref<1x16x8xf32>) {
  linalg.conv_1d_nwc_wcf ins(%a, %b : memref<1x18x4xf32>, memref<3x4x8xf32>) outs(%c : memref<1x16x8xf32>)
  return
}

// -----

// Sizes known at run time: the grid covers their product, and the host asserts that no
// other memref is smaller.
// CHECK-LABEL: func.func @run_time(
// CHECK-SAME:    %[[A:.*]]: memref<?x?xf16>, %[[B:.*]]: memref<?x?xf16>)
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG:     %[[M:.*]] = memref.dim %[[A]], %[[C0]]
// CHECK-DAG:     %[[N:.*]] = memref.dim %[[A]], %[[C1]]
// CHECK:         %[[ROWS:.*]] = memref.dim %[[B]], %[[C0]]
// CHECK-NEXT:    %[[FIT:.*]] = arith.cmpi sle, %[[M]], %[[ROWS]]
// CHECK-NEXT:    cf.assert %[[FIT]], "sizes of memrefs do not fit together"
// CHECK:         memref.dim %[[B]], %[[C1]]
// CHECK:         cf.assert
// CHECK:         %[[TOTAL:.*]] = arith.muli %[[M]], %[[N]]
// CHECK-NEXT:    %[[BLOCKS:.*]] = arith.ceildivui %[[TOTAL]], %[[C256]]
// CHECK-NEXT:    gpu.launch blocks({{.*}}) in (%{{.*}} = %[[BLOCKS]],
// CHECK:           arith.cmpi ult, %{{.*}}, %[[TOTAL]]
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "exp"}
func.func @run_time(%a: memref<?x?xf16>, %b: memref<?x?xf16>) {
  linalg.exp ins(%a : memref<?x?xf16>) outs(%b : memref<?x?xf16>)
  return
}

// -----

// An index that is a sum of loops ends where each of them does; sizes that are constant
// were checked by the verifier.
// CHECK-LABEL: func.func @window(
// CHECK-SAME:    %[[A:.*]]: memref<?x16xf32>, %{{.*}}: memref<3x16xf32>, %[[C:.*]]: memref<?x16xf32>)
// CHECK:         %[[N:.*]] = memref.dim %[[C]], %c0
// CHECK-NEXT:    %[[END:.*]] = arith.addi %[[N]], %c2
// CHECK-NEXT:    %[[ROWS:.*]] = memref.dim %[[A]], %c0
// CHECK-NEXT:    %[[FIT:.*]] = arith.cmpi sle, %[[END]], %[[ROWS]]
// CHECK-NEXT:    cf.assert %[[FIT]]
// CHECK-NOT:     cf.assert
func.func @window(%a: memref<?x16xf32>, %b: memref<3x16xf32>, %c: memref<?x16xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, c, k) -> (i + k, c)>, affine_map<(i, c, k) -> (k, c)>, affine_map<(i, c, k) -> (i, c)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%a, %b : memref<?x16xf32>, memref<3x16xf32>) outs(%c : memref<?x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %z, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// Threads follow the output's dimensions, whatever the order of the loops; the number
// of a loop may be asked for; what the output held is read where it is used.
// CHECK-LABEL: func.func @order(
// CHECK-SAME:    %[[A:.*]]: memref<2x32xi32>, %[[B:.*]]: memref<32x2xi32>)
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK:         gpu.launch blocks(%{{.*}}) threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in
// CHECK-DAG:       %[[I:.*]] = arith.remui %[[TX]], %[[C2]]
// CHECK-DAG:       %[[J:.*]] = arith.divui %[[TX]], %[[C2]]
// CHECK:           %[[OLD:.*]] = memref.load %[[B]][%[[J]], %[[I]]]
// CHECK:           memref.load %[[A]][%[[I]], %[[J]]]
// CHECK:           arith.index_cast %[[I]]
// CHECK:           memref.store %{{.*}}, %[[B]][%[[J]], %[[I]]]
func.func @order(%a: memref<2x32xi32>, %b: memref<32x2xi32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%a : memref<2x32xi32>) outs(%b : memref<32x2xi32>) {
  ^bb0(%x: i32, %y: i32):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i32
    %2 = arith.addi %x, %1 : i32
    %3 = arith.addi %2, %y : i32
    linalg.yield %3 : i32
  }
  return
}

// -----

// One element is the work of one thread; two outputs; a constant index.
// CHECK-LABEL: func.func @one(
// CHECK:         gpu.launch {{.*}} in (%{{.*}} = %c32, %{{.*}} = %c1, %{{.*}} = %c1)
// CHECK:           scf.if
// CHECK:             %[[BOTH:.*]]:2 = scf.for
// CHECK:               memref.load %{{.*}}[%c0, %{{.*}}]
// CHECK:             memref.store %[[BOTH]]#0, %{{.*}}[]
// CHECK:             memref.store %[[BOTH]]#1, %{{.*}}[]
func.func @one(%a: memref<1x10xf32>, %sum: memref<f32>, %max: memref<f32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i) -> (0, i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
    iterator_types = ["reduction"]
  } ins(%a : memref<1x10xf32>) outs(%sum, %max : memref<f32>, memref<f32>) {
  ^bb0(%x: f32, %s: f32, %m: f32):
    %0 = arith.addf %s, %x : f32
    %1 = arith.maximumf %m, %x : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// -----

// Copies between memrefs, and loops that are parallel already.
// CHECK-LABEL: func.func @copies(
// CHECK:         gpu.launch
// CHECK:           %[[X:.*]] = memref.load %{{.*}} : memref<4x64xf16, strided<[128, 1]>>
// CHECK:           memref.store %[[X]], %{{.*}} : memref<4x64xf16>
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "copy"}
// CHECK-NOT:     memref.copy
// CHECK:         gpu.launch
// CHECK:           math.exp
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "loops"}
// CHECK-NOT:     scf.parallel
func.func @copies(%a: memref<4x64xf16, strided<[128, 1]>>, %b: memref<4x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  memref.copy %a, %b : memref<4x64xf16, strided<[128, 1]>> to memref<4x64xf16>
  scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c64) step (%c1, %c1) {
    %x = memref.load %b[%i, %j] : memref<4x64xf16>
    %y = math.exp %x : f16
    memref.store %y, %b[%i, %j] : memref<4x64xf16>
    scf.reduce
  }
  return
}

// -----

// Nothing is launched over nothing, but a sum of nothing is what it starts from.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT:    return
func.func @nothing(%a: memref<0x8xf32>, %b: memref<0x8xf32>) {
  linalg.exp ins(%a : memref<0x8xf32>) outs(%b : memref<0x8xf32>)
  return
}

// CHECK-LABEL: func.func @sum_of_nothing(
// CHECK:         %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK:         gpu.launch
// CHECK:           memref.store %[[TWO]]
func.func @sum_of_nothing(%a: memref<32x0xf32>, %b: memref<32xf32>) {
  %two = arith.constant 2.0 : f32
  linalg.fill ins(%two : f32) outs(%b : memref<32xf32>)
  linalg.reduce { arith.addf } ins(%a : memref<32x0xf32>) outs(%b : memref<32xf32>) dimensions = [1]
  return
}

// -----

// A fill that something reads before the sum is a kernel of its own.
// CHECK-LABEL: func.func @seen_fill(
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "fill"}
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "copy"}
// CHECK:         gpu.launch
// CHECK:           %[[START:.*]] = memref.load %arg1
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK:         } {alcop.fallback = "{{.*}}", alcop.kernel = "reduce"}
func.func @seen_fill(%a: memref<32x8xf32>, %b: memref<32xf32>, %c: memref<32xf32>) {
  %two = arith.constant 2.0 : f32
  linalg.fill ins(%two : f32) outs(%b : memref<32xf32>)
  memref.copy %b, %c : memref<32xf32> to memref<32xf32>
  linalg.reduce { arith.addf } ins(%a : memref<32x8xf32>) outs(%b : memref<32xf32>) dimensions = [1]
  return
}

// -----

// Why an op is no contraction goes with the launch.
// CHECK-LABEL: @reason
// CHECK:       } {alcop.fallback = "computes in f64", alcop.kernel = "matmul"}
func.func @reason(%a: memref<64x64xf64>, %b: memref<64x64xf64>) {
  linalg.matmul {alcop.reason = "computes in f64"} ins(%a, %a : memref<64x64xf64>, memref<64x64xf64>) outs(%b : memref<64x64xf64>)
  return
}

// -----

// Ops in branches of the host are launched there.
// CHECK-LABEL: func.func @branches(
// CHECK:         scf.if
// CHECK-NEXT:      gpu.launch
// CHECK:         } else {
// CHECK-NEXT:      gpu.launch
func.func @branches(%x: f32, %c: memref<32xf32>, %small: i1) {
  scf.if %small {
    linalg.fill ins(%x : f32) outs(%c : memref<32xf32>)
  } else {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<32xf32>)
  }
  return
}

// -----

// An index that falls: the least one is asserted too.
// CHECK-LABEL: @backwards
// CHECK-SAME:  %[[A:.*]]: memref<?xf32>, %[[B:.*]]: memref<?xf32>
// CHECK-DAG:   %[[C8:.*]] = arith.constant 8
// CHECK-DAG:   %[[C0:.*]] = arith.constant 0
// CHECK:       %[[COUNT:.*]] = memref.dim %[[B]], %[[C0]]
// CHECK:       %[[LEAST:.*]] = arith.subi %[[C8]], %[[COUNT]]
// CHECK:       %[[BEGINS:.*]] = arith.cmpi sge, %[[LEAST]], %[[C0]]
// CHECK-NEXT:  cf.assert %[[BEGINS]]
// CHECK:       %[[SIZE:.*]] = memref.dim %[[A]], %[[C0]]
// CHECK:       %[[ENDS:.*]] = arith.cmpi sge, %[[SIZE]], %[[C8]]
// CHECK-NEXT:  cf.assert %[[ENDS]]
// CHECK:       gpu.launch
func.func @backwards(%a: memref<?xf32>, %b: memref<?xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i) -> (7 - i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%a : memref<?xf32>) outs(%b : memref<?xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}
