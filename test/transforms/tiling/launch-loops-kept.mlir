// RUN: alcop-opt %s --alcop-launch-loops --canonicalize --cse --split-input-file | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>
#last = affine_map<(d0, d1) -> (d1)>

// Of a row that a number names, threads store the elements; a number that is no row's
// stores nothing.
// CHECK-LABEL: func.func @row(
// CHECK-SAME:    %[[X:.*]]: memref<16x64xf16>, %[[V:.*]]: memref<64xf16>, %[[P:.*]]: memref<i64>)
// CHECK-DAG:     %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : index
// CHECK:         gpu.launch {{.*}} threads(%[[TX:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[C64]],
// CHECK:           %[[N:.*]] = memref.load %[[P]][]
// CHECK-NEXT:      %[[I:.*]] = arith.index_cast %[[N]]
// CHECK-NEXT:      %[[THERE:.*]] = arith.cmpi ult, %[[I]], %[[C16]]
// CHECK-NEXT:      scf.if %[[THERE]] {
// CHECK-NOT:         memref.load %[[X]]
// CHECK:             scf.if
// CHECK-NEXT:          memref.store %{{.*}}, %[[X]][%[[I]], %[[TX]]]
func.func @row(%x: memref<16x64xf16>, %v: memref<64xf16>, %p: memref<i64>) {
  linalg.generic {indexing_maps = [#last, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%v, %p : memref<64xf16>, memref<i64>) outs(%x : memref<16x64xf16>) {
  ^bb0(%new: f16, %at: i64, %old: f16):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.cmpi eq, %1, %at : i64
    %3 = arith.select %2, %new, %old : f16
    linalg.yield %3 : f16
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>

// A mask of rows, of which the false ones change: all threads look, some store.
// CHECK-LABEL: func.func @masked(
// CHECK-SAME:    %[[X:.*]]: memref<16x64xf16>, %[[M:.*]]: memref<16xi1>)
// CHECK:         gpu.launch
// CHECK-NOT:       memref.load %[[X]]
// CHECK:           %[[KEEP:.*]] = memref.load %[[M]]
// CHECK-NOT:       memref.load %[[X]]
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %[[X]]
func.func @masked(%x: memref<16x64xf16>, %m: memref<16xi1>) {
  %zero = arith.constant 0.0 : f16
  linalg.generic {indexing_maps = [#first, #id], iterator_types = ["parallel", "parallel"]} ins(%m : memref<16xi1>) outs(%x : memref<16x64xf16>) {
  ^bb0(%keep: i1, %old: f16):
    %0 = arith.select %keep, %old, %zero : f16
    linalg.yield %0 : f16
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>

// A new value that needs the old one: all are loaded and stored. A place that differs
// from row to row: all threads look.
// CHECK-LABEL: func.func @old(
// CHECK-SAME:    %[[X:.*]]: memref<16x64xf16>, %[[P:.*]]: memref<16xi64>)
// CHECK:         gpu.launch
// CHECK:           memref.load %[[X]]
// CHECK:           memref.store
// CHECK:         gpu.launch
// CHECK:           memref.load %[[P]]
// CHECK:           arith.cmpi eq
// CHECK-NEXT:      scf.if
func.func @old(%x: memref<16x64xf16>, %p: memref<16xi64>) {
  linalg.generic {indexing_maps = [#first, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<16xi64>) outs(%x : memref<16x64xf16>) {
  ^bb0(%at: i64, %old: f16):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.cmpi eq, %1, %at : i64
    %3 = arith.negf %old : f16
    %4 = arith.select %2, %3, %old : f16
    linalg.yield %4 : f16
  }
  linalg.generic {indexing_maps = [#first, #id], iterator_types = ["parallel", "parallel"]} ins(%p : memref<16xi64>) outs(%x : memref<16x64xf16>) {
  ^bb0(%at: i64, %old: f16):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.cmpi eq, %1, %at : i64
    %zero = arith.constant 0.0 : f16
    %4 = arith.select %2, %zero, %old : f16
    linalg.yield %4 : f16
  }
  return
}
