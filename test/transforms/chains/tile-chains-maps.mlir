// RUN: alcop-opt %s '--alcop-tile-chains=tiles=16,4,64' --canonicalize --cse | FileCheck %s

// No row is reduced: a loop carries accumulators only, nothing is corrected, and a
// weight is 0 in a column that there is not, so that what is read there does not count.
// CHECK-LABEL: @squares(
// CHECK:       gpu.launch
// CHECK:         %[[R:.*]] = scf.for %{{.*}} = %c0 to %c192 step %c64 iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<16x32xf32>)
// CHECK-COUNT-2:   vector.contract {{.*}} into vector<16x64xf32>
// CHECK-NOT:       arith.cmpi
// CHECK:           %[[POSITIVE:.*]] = arith.maximumf
// CHECK-NEXT:      %[[W:.*]] = arith.mulf %[[POSITIVE]], %[[POSITIVE]]
// CHECK-NEXT:      arith.truncf %[[W]] : vector<16x64xf32> to vector<16x64xf16>
// CHECK-COUNT-4:   vector.contract {{.*}} into vector<16x32xf32>
// CHECK-NEXT:      gpu.barrier
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt
// CHECK:           %[[ABSENT:.*]] = arith.select %[[EXISTS]], %{{.*}}, %[[ZERO:.*]] : vector<16x64xi1>, vector<16x64xf32>
// CHECK:           arith.truncf %[[ABSENT]]
// CHECK-NOT:     multi_reduction
// CHECK:         vector.transfer_write
// CHECK:       } {alcop.kernel = "chain"}
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @squares(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  %0 = scf.execute_region -> memref<128x32xf32> no_inline {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.fill ins(%cst : f32) outs(%alloc_0 : memref<128x200xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<128x32xf16>, memref<32x200xf16>) outs(%alloc_0 : memref<128x200xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores"}} {
    ^bb0(%in: f16, %in_4: f16, %out: f32):
      %1 = arith.extf %in : f16 to f32
      %2 = arith.extf %in_4 : f16 to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    }
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_0 : memref<128x200xf32>) outs(%alloc_1 : memref<128x200xf32>) attrs =  {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %out: f32):
      %cst_4 = arith.constant 0.000000e+00 : f32
      %1 = arith.maximumf %in, %cst_4 : f32
      %2 = arith.mulf %1, %1 : f32
      linalg.yield %2 : f32
    }
    %cst_2 = arith.constant 0.000000e+00 : f32
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
    linalg.fill ins(%cst_2 : f32) outs(%alloc_3 : memref<128x32xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc_1, %arg2 : memref<128x200xf32>, memref<200x32xf16>) outs(%alloc_3 : memref<128x32xf32>) attrs =  {alcop.chain = {role = "contracted"}} {
    ^bb0(%in: f32, %in_4: f16, %out: f32):
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      %3 = arith.extf %in_4 : f16 to f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_3 : memref<128x32xf32>) outs(%alloc : memref<128x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    scf.yield %alloc : memref<128x32xf32>
  }
  return %0 : memref<128x32xf32>
}
