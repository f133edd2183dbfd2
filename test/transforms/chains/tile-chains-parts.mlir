// RUN: alcop-opt %s '--alcop-tile-chains=tiles=16,4,64 parts=2' --canonicalize --cse | FileCheck %s
// RUN: not alcop-opt %s '--alcop-tile-chains=tiles=16,4,64 parts=3' 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: alcop-opt %s --alcop-tile-chains 2>&1 | FileCheck %s --check-prefix=CHOSEN

// Each block goes over a part of the columns, and leaves accumulators, maximum and total
// of its rows. One op merges the parts: what each has is corrected to the largest maximum.
// WRONG: error: {{.*}}has 3 parts, expected 1 to 2: a block goes over 2 tiles of 64 columns
// Two tiles of columns are too few to be split unless asked for.
// CHOSEN-NOT: remark
// CHOSEN-NOT: memref<2x256
// CHECK-LABEL: @parts(
// CHECK:       %[[O:.*]] = memref.alloc() {{.*}} : memref<256x32xf32>
// CHECK:       %[[ACC:.*]] = memref.alloc() : memref<2x256x32xf32>
// CHECK:       %[[MAX:.*]] = memref.alloc() : memref<2x256xf32>
// CHECK:       %[[SUM:.*]] = memref.alloc() : memref<2x256xf32>
// CHECK:       gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c8,
// CHECK:         arith.remui %[[B]], %c4
// CHECK:         %[[PART:.*]] = arith.divui %[[B]], %c4
// CHECK:         %[[FIRST:.*]] = arith.muli %[[PART]], %c64
// CHECK:         %[[NEXT:.*]] = arith.addi %[[FIRST]], %c64
// CHECK:         %[[END:.*]] = arith.minsi %[[NEXT]], %c128
// CHECK:         %[[R:.*]]:4 = scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c64
// CHECK:         subview %[[ACC]][%[[PART]], 0, 0] [1, 256, 32]
// CHECK:         vector.transfer_write %[[R]]#0, {{.*}} {in_bounds = [true, true]}
// CHECK:         subview %[[MAX]][%[[PART]], 0] [1, 256]
// CHECK:         vector.transfer_write %[[R]]#1, {{.*}} {in_bounds = [true]}
// CHECK:         subview %[[SUM]][%[[PART]], 0] [1, 256]
// CHECK:         vector.transfer_write %[[R]]#3, {{.*}} {in_bounds = [true]}
// CHECK:       } {alcop.kernel = "chain"}
// CHECK:       linalg.generic {{.*}} outs(%[[O]]
// CHECK-NEXT:  ^bb0(%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[M0:.*]]: f32, %[[M1:.*]]: f32, %[[S0:.*]]: f32, %[[S1:.*]]: f32, %{{.*}}: f32):
// CHECK:         arith.maximumf %[[M0]], %[[M1]]
// CHECK:         %[[C0:.*]] = math.exp2
// CHECK:         %[[C1:.*]] = math.exp2
// CHECK-DAG:     arith.mulf %[[S0]], %[[C0]]
// CHECK-DAG:     arith.mulf %[[S1]], %[[C1]]
// CHECK-DAG:     arith.mulf %[[A0]], %[[C0]]
// CHECK-DAG:     arith.mulf %[[A1]], %[[C1]]
// CHECK:         arith.divf
// CHECK:       return %[[O]]
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
func.func @parts(%arg0: memref<256x32xf16>, %arg1: memref<32x128xf16>, %arg2: memref<128x32xf16>) -> memref<256x32xf32> {
  %cst = arith.constant 1.44269502 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<256x32xf32>
  %0 = scf.execute_region -> memref<256x32xf32> no_inline {
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<256x128xf32>
    linalg.fill ins(%cst_1 : f32) outs(%alloc_2 : memref<256x128xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<256x32xf16>, memref<32x128xf16>) outs(%alloc_2 : memref<256x128xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", scale = 1.4426950408889634 : f64, start = 0xFFF0000000000000 : f64}} {
    ^bb0(%in: f16, %in_4: f16, %out: f32):
      %1 = arith.extf %in : f16 to f32
      %2 = arith.extf %in_4 : f16 to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2 : memref<256x128xf32>) outs(%alloc_2 : memref<256x128xf32>) attrs =  {alcop.chain = {role = "elements"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = linalg.index 1 : index
      %2 = arith.index_cast %1 : index to i32
      %3 = linalg.index 0 : index
      %4 = arith.index_cast %3 : index to i32
      %5 = arith.cmpi sle, %2, %4 : i32
      %6 = arith.select %5, %in, %cst_0 : f32
      linalg.yield %6 : f32
    }
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<256xf32>
    linalg.fill ins(%cst_0 : f32) outs(%alloc_3 : memref<256xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<256x128xf32>) outs(%alloc_3 : memref<256xf32>) attrs =  {alcop.chain = {role = "maximum"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2, %alloc_3 : memref<256x128xf32>, memref<256xf32>) outs(%alloc_2 : memref<256x128xf32>) attrs =  {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.subf %in, %in_4 : f32
      %2 = arith.mulf %1, %cst : f32
      %3 = math.exp2 %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc_3 : memref<256xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<256x128xf32>) outs(%alloc_3 : memref<256xf32>) attrs =  {alcop.chain = {role = "total"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc : memref<256x32xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc_2, %arg2 : memref<256x128xf32>, memref<128x32xf16>) outs(%alloc : memref<256x32xf32>) attrs =  {alcop.chain = {role = "contracted"}} {
    ^bb0(%in: f32, %in_4: f16, %out: f32):
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      %3 = arith.extf %in_4 : f16 to f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc, %alloc_3 : memref<256x32xf32>, memref<256xf32>) outs(%alloc : memref<256x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.divf %in, %in_4 : f32
      linalg.yield %1 : f32
    }
    scf.yield %alloc : memref<256x32xf32>
  }
  return %0 : memref<256x32xf32>
}
