// RUN: alcop-opt %s '--alcop-tile-chains=tiles=16,4,64' --canonicalize --cse --split-input-file | FileCheck %s
// RUN: alcop-opt %s '--alcop-tile-chains=tiles=32,2,16' --split-input-file | FileCheck %s --check-prefix=GIVEN
// RUN: not alcop-opt %s '--alcop-tile-chains=tiles=24,2,16' --split-input-file 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: alcop-opt %s '--alcop-tile-chains=target=sm_90a' --split-input-file 2>&1 | FileCheck %s --check-prefix=WGMMA

// The scores, weights and accumulators of 16 rows are values of a warp. Tiles of columns
// that all rows of a block see have a loop of their own, without masks; those that only
// some see follow, and others are not visited. Nothing else is left of the region, or of
// the buffers in it. The scale is a part of the exponent's multiply-add; rows of large
// maxima have a power of two instead.
// The option says which tiles. What is no tile is an error.
// WGMMA: remark: multiplied by mma.sync instead of wgmma: rows of weights are computed
// GIVEN: vector.contract {{.*}} into vector<32x16xf32>
// WRONG: error: {{.*}}tiles have 24 rows of a warp and 16 columns, expected multiples of 16
// CHECK-LABEL: @causal(
// CHECK-SAME:  %[[Q:.*]]: memref<256x32xf16>, %[[K:.*]]: memref<32x128xf16>, %[[V:.*]]: memref<128x32xf16>
// CHECK-NOT:   linalg
// CHECK:       %[[O:.*]] = memref.alloc() {{.*}} : memref<256x32xf32>
// CHECK-NOT:   memref.alloc() {{.*}}x128xf32>
// CHECK:       gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %c4, {{.*}} threads({{.*}} = %c128,
// CHECK:         %[[ROW:.*]] = arith.muli %[[B]], %c64
// CHECK:         %[[SQ:.*]] = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK:         memref.copy %{{.*}}, %[[SQ]]
// CHECK-NEXT:    gpu.barrier
// CHECK:         %[[END:.*]] = arith.addi %[[ROW]], %c64
// CHECK:         %[[LAST:.*]] = arith.minsi %{{.*}}, %c128
// CHECK:         %[[SEEN:.*]] = arith.addi %[[ROW]], %c1
// CHECK:         %[[TILE:.*]] = arith.divui %{{.*}}, %c64
// CHECK:         %[[WHOLE:.*]] = arith.muli %[[TILE]], %c64
// CHECK:         %[[MIDDLE:.*]] = arith.minsi %[[WHOLE]], %c128
// CHECK:         %[[SK:.*]] = memref.alloc() : memref<32x64xf16, #gpu.address_space<workgroup>>
// CHECK:         %[[SV:.*]] = memref.alloc() : memref<64x32xf16, #gpu.address_space<workgroup>>
// CHECK:         %[[R:.*]]:4 = scf.for %[[N:.*]] = %c0 to %[[MIDDLE]] step %c64 iter_args(%[[ACC:.*]] = %{{.*}}, %[[MAX:.*]] = %{{.*}}, %[[FROM:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (vector<16x32xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:           memref.copy %{{.*}}, %[[SK]]
// CHECK:           memref.copy %{{.*}}, %[[SV]]
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-2:   vector.contract {{.*}} into vector<16x64xf32>
// CHECK-NOT:       arith.cmpi
// CHECK:           %[[NEW:.*]] = vector.multi_reduction <maximumf>, %{{.*}}, %[[MAX]] [1]
// CHECK:           %[[ABS:.*]] = math.absf %[[NEW]]
// CHECK:           %[[LARGE:.*]] = arith.cmpf ogt, %[[ABS]]
// CHECK:           %[[FACTOR:.*]] = arith.select %[[LARGE]]
// CHECK:           %[[OFFSET:.*]] = arith.mulf %[[NEW]], %[[FACTOR]]
// CHECK:           math.fma
// CHECK:           %[[W:.*]] = math.exp2 %{{.*}} fastmath<afn> : vector<16x64xf32>
// CHECK:           arith.subf %[[FROM]], %[[OFFSET]]
// CHECK:           %[[LESS:.*]] = math.exp2 %{{.*}} fastmath<afn> : vector<16xf32>
// CHECK:           arith.truncf %[[W]] : vector<16x64xf32> to vector<16x64xf16>
// CHECK:           %[[OLD:.*]] = arith.mulf %[[SUM]], %[[LESS]] fastmath<reassoc>
// CHECK:           vector.multi_reduction <add>, %[[W]], %[[OLD]] [1]
// CHECK:           arith.mulf %[[ACC]]
// CHECK-COUNT-4:   vector.contract {{.*}} into vector<16x32xf32>
// CHECK-NEXT:      gpu.barrier
// CHECK:         %[[T:.*]]:4 = scf.for %{{.*}} = %[[MIDDLE]] to %[[LAST]] step %c64 iter_args(%{{.*}} = %[[R]]#0, %{{.*}} = %[[R]]#1, %{{.*}} = %[[R]]#2, %{{.*}} = %[[R]]#3)
// CHECK:           %[[SEES:.*]] = arith.cmpi sle, %{{.*}}, %{{.*}} : vector<16x64xi32>
// CHECK:           arith.select %[[SEES]]
// CHECK:         arith.divf %[[T]]#3, %[[T]]#3
// CHECK:         %[[INVERSE:.*]] = arith.divf %{{.*}} : vector<16xf32>
// CHECK:         %[[ALONG:.*]] = vector.broadcast
// CHECK:         arith.mulf %[[T]]#0, %[[ALONG]] : vector<16x
// CHECK:         vector.transfer_write %{{.*}}, %[[O]][%{{.*}}, %c0] {in_bounds = [true, true]}
// CHECK:       } {alcop.kernel = "chain"}
// CHECK-NEXT:  return %[[O]]
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
func.func @causal(%arg0: memref<256x32xf16>, %arg1: memref<32x128xf16>, %arg2: memref<128x32xf16>) -> memref<256x32xf32> {
  %cst = arith.constant 1.44269502 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<256x32xf32>
  %0 = scf.execute_region -> memref<256x32xf32> no_inline {
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<256x128xf32>
    linalg.fill ins(%cst_1 : f32) outs(%alloc_2 : memref<256x128xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<256x32xf16>, memref<32x128xf16>) outs(%alloc_2 : memref<256x128xf32>) attrs =  {alcop.chain = {batch = 0 : i64, last = 0 : i64, role = "scores", scale = 1.4426950408889634 : f64, start = 0xFFF0000000000000 : f64}} {
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
// -----

// The last tile of columns has a loop of its own: columns that there are not have an element of -inf; rows of V that there are not
// are zero, of Q and K they may hold anything. Rows beyond the last are not written.
// Warps without rows compute nothing that is kept.
// CHECK-LABEL: @ragged(
// CHECK:       gpu.launch {{.*}} threads({{.*}} = %c128,
// CHECK:         "alcop.copy"(%{{.*}}, %{{.*}}) {alcop.arbitrary = [0]} : (memref<?x32xf16, {{.*}}>, memref<64x32xf16,
// CHECK:           "alcop.copy"(%{{.*}}, %{{.*}}) {alcop.arbitrary = [1]} : (memref<32x?xf16, {{.*}}>, memref<32x64xf16,
// CHECK:           "alcop.copy"(%{{.*}}, %{{.*}}) : (memref<?x32xf16, {{.*}}>, memref<64x32xf16,
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}} : vector<16x64xi32>
// CHECK:           arith.select %[[EXISTS]]
// CHECK:           vector.multi_reduction <maximumf>
// CHECK:         vector.transfer_write {{.*}} {in_bounds = [false, true]}
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
func.func @ragged(%arg0: memref<40x32xf16>, %arg1: memref<32x100xf16>, %arg2: memref<100x32xf16>) -> memref<40x32xf32> {
  %cst = arith.constant 1.44269502 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<40x32xf32>
  %0 = scf.execute_region -> memref<40x32xf32> no_inline {
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<40x100xf32>
    linalg.fill ins(%cst_1 : f32) outs(%alloc_2 : memref<40x100xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<40x32xf16>, memref<32x100xf16>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", scale = 1.4426950408889634 : f64, start = 0xFFF0000000000000 : f64}} {
    ^bb0(%in: f16, %in_4: f16, %out: f32):
      %1 = arith.extf %in : f16 to f32
      %2 = arith.extf %in_4 : f16 to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "elements"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = linalg.index 1 : index
      %2 = arith.index_cast %1 : index to i32
      %3 = linalg.index 0 : index
      %4 = arith.index_cast %3 : index to i32
      %5 = arith.cmpi sle, %2, %4 : i32
      %6 = arith.select %5, %in, %cst_0 : f32
      linalg.yield %6 : f32
    }
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<40xf32>
    linalg.fill ins(%cst_0 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "maximum"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2, %alloc_3 : memref<40x100xf32>, memref<40xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.subf %in, %in_4 : f32
      %2 = arith.mulf %1, %cst : f32
      %3 = math.exp2 %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "total"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc : memref<40x32xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc_2, %arg2 : memref<40x100xf32>, memref<100x32xf16>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "contracted"}} {
    ^bb0(%in: f32, %in_4: f16, %out: f32):
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      %3 = arith.extf %in_4 : f16 to f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc, %alloc_3 : memref<40x32xf32>, memref<40xf32>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.divf %in, %in_4 : f32
      linalg.yield %1 : f32
    }
    scf.yield %alloc : memref<40x32xf32>
  }
  return %0 : memref<40x32xf32>
}
// -----

// A buffer that the region makes and yields is made in front of the kernel.
// CHECK-LABEL: @result_inside(
// CHECK:       %[[O:.*]] = memref.alloc() {{.*}} : memref<40x32xf32>
// CHECK:       gpu.launch
// CHECK:         vector.transfer_write %{{.*}}, %[[O]]
// CHECK:       return %[[O]]
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
func.func @result_inside(%arg0: memref<40x32xf16>, %arg1: memref<32x100xf16>, %arg2: memref<100x32xf16>) -> memref<40x32xf32> {
  %cst = arith.constant 1.44269502 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %0 = scf.execute_region -> memref<40x32xf32> no_inline {
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<40x32xf32>
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<40x100xf32>
    linalg.fill ins(%cst_1 : f32) outs(%alloc_2 : memref<40x100xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<40x32xf16>, memref<32x100xf16>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", scale = 1.4426950408889634 : f64, start = 0xFFF0000000000000 : f64}} {
    ^bb0(%in: f16, %in_4: f16, %out: f32):
      %1 = arith.extf %in : f16 to f32
      %2 = arith.extf %in_4 : f16 to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "elements"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = linalg.index 1 : index
      %2 = arith.index_cast %1 : index to i32
      %3 = linalg.index 0 : index
      %4 = arith.index_cast %3 : index to i32
      %5 = arith.cmpi sle, %2, %4 : i32
      %6 = arith.select %5, %in, %cst_0 : f32
      linalg.yield %6 : f32
    }
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<40xf32>
    linalg.fill ins(%cst_0 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "maximum"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2, %alloc_3 : memref<40x100xf32>, memref<40xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.subf %in, %in_4 : f32
      %2 = arith.mulf %1, %cst : f32
      %3 = math.exp2 %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "total"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc : memref<40x32xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc_2, %arg2 : memref<40x100xf32>, memref<100x32xf16>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "contracted"}} {
    ^bb0(%in: f32, %in_4: f16, %out: f32):
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      %3 = arith.extf %in_4 : f16 to f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc, %alloc_3 : memref<40x32xf32>, memref<40xf32>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.divf %in, %in_4 : f32
      linalg.yield %1 : f32
    }
    scf.yield %alloc : memref<40x32xf32>
  }
  return %0 : memref<40x32xf32>
}

// -----

// So is a view of such a buffer.
// CHECK-LABEL: @view_inside(
// CHECK:       %[[O:.*]] = memref.alloc() {{.*}} : memref<40x32xf32>
// CHECK:       %[[V:.*]] = memref.expand_shape %[[O]]
// CHECK:       gpu.launch
// CHECK:         vector.transfer_write %{{.*}}, %[[O]]
// CHECK:       return %[[V]]
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
func.func @view_inside(%arg0: memref<40x32xf16>, %arg1: memref<32x100xf16>, %arg2: memref<100x32xf16>) -> memref<5x8x32xf32> {
  %cst = arith.constant 1.44269502 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %0 = scf.execute_region -> memref<5x8x32xf32> no_inline {
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<40x32xf32>
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<40x100xf32>
    linalg.fill ins(%cst_1 : f32) outs(%alloc_2 : memref<40x100xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<40x32xf16>, memref<32x100xf16>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", scale = 1.4426950408889634 : f64, start = 0xFFF0000000000000 : f64}} {
    ^bb0(%in: f16, %in_4: f16, %out: f32):
      %1 = arith.extf %in : f16 to f32
      %2 = arith.extf %in_4 : f16 to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "elements"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = linalg.index 1 : index
      %2 = arith.index_cast %1 : index to i32
      %3 = linalg.index 0 : index
      %4 = arith.index_cast %3 : index to i32
      %5 = arith.cmpi sle, %2, %4 : i32
      %6 = arith.select %5, %in, %cst_0 : f32
      linalg.yield %6 : f32
    }
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<40xf32>
    linalg.fill ins(%cst_0 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "maximum"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2, %alloc_3 : memref<40x100xf32>, memref<40xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.subf %in, %in_4 : f32
      %2 = arith.mulf %1, %cst : f32
      %3 = math.exp2 %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "total"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc : memref<40x32xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc_2, %arg2 : memref<40x100xf32>, memref<100x32xf16>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "contracted"}} {
    ^bb0(%in: f32, %in_4: f16, %out: f32):
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      %3 = arith.extf %in_4 : f16 to f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc, %alloc_3 : memref<40x32xf32>, memref<40xf32>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.divf %in, %in_4 : f32
      linalg.yield %1 : f32
    }
    %view = memref.expand_shape %alloc [[0, 1], [2]] output_shape [5, 8, 32] : memref<40x32xf32> into memref<5x8x32xf32>
    scf.yield %view : memref<5x8x32xf32>
  }
  return %0 : memref<5x8x32xf32>
}

// -----

// What a chain reads may be a view made in it: rows put together, of rows put apart.
// CHECK-LABEL: @collapsed_inside(
// CHECK-SAME:    %[[Q:.*]]: memref<5x8x32xf16>
// CHECK:       %[[ROWS:.*]] = memref.collapse_shape %[[Q]]
// CHECK:       gpu.launch
// CHECK:         memref.cast %[[ROWS]]
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
func.func @collapsed_inside(%arg0: memref<5x8x32xf16>, %arg1: memref<32x100xf16>, %arg2: memref<100x32xf16>) -> memref<5x8x32xf32> {
  %cst = arith.constant 1.44269502 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %0 = scf.execute_region -> memref<5x8x32xf32> no_inline {
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<40x32xf32>
    %rows = memref.collapse_shape %arg0 [[0, 1], [2]] : memref<5x8x32xf16> into memref<40x32xf16>
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<40x100xf32>
    linalg.fill ins(%cst_1 : f32) outs(%alloc_2 : memref<40x100xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%rows, %arg1 : memref<40x32xf16>, memref<32x100xf16>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", scale = 1.4426950408889634 : f64, start = 0xFFF0000000000000 : f64}} {
    ^bb0(%in: f16, %in_4: f16, %out: f32):
      %1 = arith.extf %in : f16 to f32
      %2 = arith.extf %in_4 : f16 to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "elements"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = linalg.index 1 : index
      %2 = arith.index_cast %1 : index to i32
      %3 = linalg.index 0 : index
      %4 = arith.index_cast %3 : index to i32
      %5 = arith.cmpi sle, %2, %4 : i32
      %6 = arith.select %5, %in, %cst_0 : f32
      linalg.yield %6 : f32
    }
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<40xf32>
    linalg.fill ins(%cst_0 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "maximum"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_2, %alloc_3 : memref<40x100xf32>, memref<40xf32>) outs(%alloc_2 : memref<40x100xf32>) attrs =  {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.subf %in, %in_4 : f32
      %2 = arith.mulf %1, %cst : f32
      %3 = math.exp2 %2 : f32
      linalg.yield %3 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc_3 : memref<40xf32>)
    linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "reduction"]} ins(%alloc_2 : memref<40x100xf32>) outs(%alloc_3 : memref<40xf32>) attrs =  {alcop.chain = {role = "total"}} {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.addf %in, %out : f32
      linalg.yield %1 : f32
    }
    linalg.fill ins(%cst_1 : f32) outs(%alloc : memref<40x32xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc_2, %arg2 : memref<40x100xf32>, memref<100x32xf16>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "contracted"}} {
    ^bb0(%in: f32, %in_4: f16, %out: f32):
      %1 = arith.truncf %in : f32 to f16
      %2 = arith.extf %1 : f16 to f32
      %3 = arith.extf %in_4 : f16 to f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc, %alloc_3 : memref<40x32xf32>, memref<40xf32>) outs(%alloc : memref<40x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %1 = arith.divf %in, %in_4 : f32
      linalg.yield %1 : f32
    }
    %view = memref.expand_shape %alloc [[0, 1], [2]] output_shape [5, 8, 32] : memref<40x32xf32> into memref<5x8x32xf32>
    scf.yield %view : memref<5x8x32xf32>
  }
  return %0 : memref<5x8x32xf32>
}

// -----

// Other regions are left unchanged.
// CHECK-LABEL: @other(
// CHECK:       scf.execute_region
// CHECK-NOT:   gpu.launch
func.func @other(%a: memref<8xf32>) {
  %f = arith.constant 0.0 : f32
  scf.execute_region no_inline {
    linalg.fill ins(%f : f32) outs(%a : memref<8xf32>)
    scf.yield
  }
  return
}
