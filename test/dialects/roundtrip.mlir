// RUN: alcop-opt %s | alcop-opt | FileCheck %s
// RUN: alcop-opt %s --cse --canonicalize | FileCheck %s

// Attributes print with sorted keys, and come back equal.
// CHECK-LABEL: @attributes
// CHECK-SAME:  a = #alcop.contraction<{init = "zero", lhs = "mk", rhs = "nk"}>
// CHECK-SAME:  b = #alcop.schedule<{block = [128, 128, 32], stages = [3, 2]}>
// CHECK-SAME:  c = #alcop.pipeline<{carried = true, register = 2 : i64}>
// CHECK-SAME:  d = #alcop.pipeline<{}>
func.func private @attributes() attributes {
  a = #alcop.contraction<{lhs = "mk", rhs = "nk", init = "zero"}>,
  b = #alcop.schedule<{stages = [3, 2], block = [128, 128, 32]}>,
  c = #alcop.pipeline<{register = 2, carried = true}>,
  d = #alcop.pipeline<{}>
}

// Ops have effects that MLIR does not know: none is merged, moved or erased, also not a
// group that nobody waits for.
// CHECK-LABEL: @operations
// CHECK-NEXT:  "alcop.producer_acquire"() : () -> ()
// CHECK-NEXT:  "alcop.async_copy"(%arg0, %arg1) : (memref<4x8xf16, strided<[64, 1]>>, memref<4x8xf16, 3>) -> ()
// CHECK-NEXT:  "alcop.async_copy"(%arg0, %arg1)
// CHECK-NEXT:  "alcop.copy"(%arg2, %arg1) {alcop.arbitrary = [0]} : (memref<3x?xf16>, memref<4x8xf16, 3>) -> ()
// CHECK-NEXT:  %[[GROUP:.*]] = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
// CHECK-NEXT:  "alcop.producer_commit"()
// CHECK-NEXT:  "alcop.consumer_wait"(%[[GROUP]]) : (!nvgpu.device.async.token) -> ()
// CHECK-NEXT:  "alcop.consumer_wait"(%[[GROUP]])
// CHECK-NEXT:  "alcop.consumer_release"() : () -> ()
func.func @operations(%global: memref<4x8xf16, strided<[64, 1]>>, %shared: memref<4x8xf16, 3>, %part: memref<3x?xf16>) {
  "alcop.producer_acquire"() : () -> ()
  "alcop.async_copy"(%global, %shared) : (memref<4x8xf16, strided<[64, 1]>>, memref<4x8xf16, 3>) -> ()
  "alcop.async_copy"(%global, %shared) : (memref<4x8xf16, strided<[64, 1]>>, memref<4x8xf16, 3>) -> ()
  "alcop.copy"(%part, %shared) {alcop.arbitrary = [0]} : (memref<3x?xf16>, memref<4x8xf16, 3>) -> ()
  %group = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  %unused = "alcop.producer_commit"() : () -> !nvgpu.device.async.token
  "alcop.consumer_wait"(%group) : (!nvgpu.device.async.token) -> ()
  "alcop.consumer_wait"(%group) : (!nvgpu.device.async.token) -> ()
  "alcop.consumer_release"() : () -> ()
  return
}

// CHECK-LABEL: @gathers
// CHECK-NEXT:  "alcop.im2col"(%arg0) {alcop.window = #alcop.window<{{.*}}groups = 1 : i64{{.*}}size = [3, 3]{{.*}}>} : (memref<2x14x14x64xf16>) -> memref<392x576xf16>
// CHECK-NEXT:  "alcop.im2col"(%arg0) {alcop.window = #alcop.window<{{.*}}>} : (memref<2x14x14x64xf16>) -> memref<392x4x16xf16>
// CHECK-NEXT:  "alcop.take"(%arg1, %arg2)
// CHECK-NEXT:  "alcop.take"(%arg8, %arg9) : (memref<2x100x64xf16>, memref<2x40xi32>) -> memref<2x40x64xf16>
// CHECK-NEXT:  "alcop.take"(%arg8, %arg2) : (memref<2x100x64xf16>, memref<?xi32>) -> memref<?x100x64xf16>
// CHECK-NEXT:  "alcop.rows"(%arg0) : (memref<2x14x14x64xf16>) -> memref<392x64xf16>
// CHECK-NEXT:  "alcop.gather"(%arg3, %arg4, %arg5, %arg6) :
// CHECK-NEXT:  "alcop.async_gather"(%arg3, %arg4, %arg5, %arg6, %arg7) :
func.func @gathers(%x: memref<2x14x14x64xf16>, %table: memref<100x64xf16>, %indices: memref<?xi32>, %source: memref<100xf16>, %tile: memref<64x32xf16, 3>, %rows: vector<64xindex>, %valid: vector<64xi1>, %width: index, %tables: memref<2x100x64xf16>, %pairs: memref<2x40xi32>) {
  %0 = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [3, 3], strides = [1, 1], dilations = [1, 1], low = [1, 1], high = [1, 1], groups = 1}>} : (memref<2x14x14x64xf16>) -> memref<392x576xf16>
  %1 = "alcop.im2col"(%x) {alcop.window = #alcop.window<{size = [1, 1], strides = [1, 1], dilations = [1, 1], low = [0, 0], high = [0, 0], groups = 4}>} : (memref<2x14x14x64xf16>) -> memref<392x4x16xf16>
  %2 = "alcop.take"(%table, %indices) : (memref<100x64xf16>, memref<?xi32>) -> memref<?x64xf16>
  %tokens = "alcop.take"(%tables, %pairs) : (memref<2x100x64xf16>, memref<2x40xi32>) -> memref<2x40x64xf16>
  %experts = "alcop.take"(%tables, %indices) : (memref<2x100x64xf16>, memref<?xi32>) -> memref<?x100x64xf16>
  %3 = "alcop.rows"(%x) : (memref<2x14x14x64xf16>) -> memref<392x64xf16>
  "alcop.gather"(%source, %tile, %rows, %valid) : (memref<100xf16>, memref<64x32xf16, 3>, vector<64xindex>, vector<64xi1>) -> ()
  "alcop.async_gather"(%source, %tile, %rows, %valid, %width) : (memref<100xf16>, memref<64x32xf16, 3>, vector<64xindex>, vector<64xi1>, index) -> ()
  return
}
