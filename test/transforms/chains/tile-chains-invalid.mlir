// RUN: alcop-opt %s --alcop-tile-chains --split-input-file --verify-diagnostics

// A part of a chain has no meaning as tile code.
#map = affine_map<(m, n, k) -> (m, k)>
#map1 = affine_map<(m, n, k) -> (n, k)>
#map2 = affine_map<(m, n, k) -> (m, n)>
func.func @part(%q: memref<64x32xf16>, %k: memref<64x32xf16>, %s: memref<64x64xf32>) {
  // expected-error @below {{is no whole chain, it lacks contracted, maximum, result, weights}}
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%q, %k : memref<64x32xf16>, memref<64x32xf16>) outs(%s : memref<64x64xf32>)
        attrs = {alcop.chain = {role = "scores", batch = 0 : i64, start = 0.0 : f64, scale = 1.0 : f64}} {
    ^bb0(%a: f16, %b: f16, %c: f32):
      %0 = arith.extf %a : f16 to f32
      %1 = arith.extf %b : f16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    }
    scf.yield
  }
  return
}

// -----

// A maximum of rows needs both of these.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @no_maximum(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  // expected-error @below {{is no whole chain, it lacks maximum}}
  %0 = scf.execute_region -> memref<128x32xf32> no_inline {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.fill ins(%cst : f32) outs(%alloc_0 : memref<128x200xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<128x32xf16>, memref<32x200xf16>) outs(%alloc_0 : memref<128x200xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", scale = 1.0 : f64}} {
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

// -----

// What is summed up is the weights of a maximum.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @total(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  // expected-error @below {{is a chain that has total, but its scores have neither start nor scale}}
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
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_0 : memref<128x200xf32>) outs(%alloc_1 : memref<128x200xf32>) attrs =  {alcop.chain = {role = "total"}} {
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
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_1 : memref<128x200xf32>) outs(%alloc_1 : memref<128x200xf32>) attrs = {alcop.chain = {role = "weights"}} {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%alloc_3 : memref<128x32xf32>) outs(%alloc : memref<128x32xf32>) attrs =  {alcop.chain = {role = "result"}} {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    scf.yield %alloc : memref<128x32xf32>
  }
  return %0 : memref<128x32xf32>
}

// -----

// Nothing says which loops are of a batch.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @no_batch(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  // expected-error @below {{is a chain whose scores do not have batch}}
  %0 = scf.execute_region -> memref<128x32xf32> no_inline {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.fill ins(%cst : f32) outs(%alloc_0 : memref<128x200xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<128x32xf16>, memref<32x200xf16>) outs(%alloc_0 : memref<128x200xf32>) attrs =  {alcop.chain = {role = "scores"}} {
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

// -----

// A mark of three numbers.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @two_tiles(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  // expected-error @below {{tiles are [16, 4], expected rows of a warp, warps and columns}}
  %0 = scf.execute_region -> memref<128x32xf32> no_inline {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.fill ins(%cst : f32) outs(%alloc_0 : memref<128x200xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<128x32xf16>, memref<32x200xf16>) outs(%alloc_0 : memref<128x200xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", tiles = [16, 4]}} {
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

// -----

// No numbers at all.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @named_tiles(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  // expected-error @below {{tiles are ['large'], expected rows of a warp, warps and columns}}
  %0 = scf.execute_region -> memref<128x32xf32> no_inline {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.fill ins(%cst : f32) outs(%alloc_0 : memref<128x200xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<128x32xf16>, memref<32x200xf16>) outs(%alloc_0 : memref<128x200xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", tiles = "large"}} {
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

// -----

// Too large for the target.
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
func.func @large_tiles(%arg0: memref<128x32xf16>, %arg1: memref<32x200xf16>, %arg2: memref<200x32xf16>) -> memref<128x32xf32> {
  %alloc = memref.alloc() {alignment = 64 : i64} : memref<128x32xf32>
  // expected-error @below {{tiles of 512 rows and 2048 columns, of 32 and 32 elements, need 294912 bytes of shared memory, sm_80 has 166912}}
  %0 = scf.execute_region -> memref<128x32xf32> no_inline {
    %cst = arith.constant 0.000000e+00 : f32
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<128x200xf32>
    linalg.fill ins(%cst : f32) outs(%alloc_0 : memref<128x200xf32>)
    linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : memref<128x32xf16>, memref<32x200xf16>) outs(%alloc_0 : memref<128x200xf32>) attrs =  {alcop.chain = {batch = 0 : i64, role = "scores", tiles = [64, 8, 2048]}} {
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
