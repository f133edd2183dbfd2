// RUN: alcop-opt %s --alcop-fuse-producers='assume-noalias-args=true' --split-input-file --verify-diagnostics | FileCheck %s

// Nothing is taken: each op writes its array.
// CHECK-NOT: linalg.generic {{.*}}reduction

#id = affine_map<(a, b) -> (a, b)>
func.func @needed_elsewhere(%A: memref<64x64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: its output is also used by 'memref.copy'}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  memref.copy %h, %B : memref<64x64xf16> to memref<64x64xf16>
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
func.func @read_twice(%A: memref<64x64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: the contraction reads its output twice}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %h : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
func.func @two_arrays(%A: memref<64x64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: reads 2 memrefs by the loops of its output, expected one}}
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%A, %B : memref<64x64xf32>, memref<64x64xf16>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %f: f16, %o: f16):
    %w = arith.extf %f : f16 to f32
    %s = arith.addf %e, %w : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (b)>
func.func @broadcast(%v: memref<64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: reads 0 memrefs by the loops of its output, expected one}}
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%v : memref<64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// One value per row of B, along the sum.
#id = affine_map<(a, b) -> (a, b)>
#first = affine_map<(a, b) -> (a)>
func.func @along_the_sum(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %v: memref<64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: the fused contraction is unsupported: not a contraction: expected operand transforms that each read one input}}
  linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel"]} ins(%B, %v : memref<64x64xf16>, memref<64xf16>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f16, %f: f16, %o: f16):
    %r = arith.mulf %e, %f : f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%A, %h : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
func.func @reads_its_output(%A: memref<64x64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: reads its output, expected an output that is only written}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %n = arith.truncf %e : f32 to f16
    %r = arith.addf %n, %o : f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// The product itself would write what is read later, tile by tile.
#id = affine_map<(a, b) -> (a, b)>
func.func @in_place(%A: memref<64x64xf32>, %B: memref<64x64xf16>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: the contraction may overwrite what it reads}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%A : memref<64x64xf32>)
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
func.func @written_between(%A: memref<64x64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: 'memref.copy' between the two writes what it reads}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  }
  memref.copy %C, %A : memref<64x64xf32> to memref<64x64xf32>
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
func.func @unknown_between(%A: memref<64x64xf32>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: 'func.call' between the two may write what it reads}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %r = arith.truncf %e : f32 to f16
    linalg.yield %r : f16
  }
  func.call @unknown() : () -> ()
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}
func.func private @unknown()

// -----

// C has 512 columns, and each is made of all that is computed.
#id = affine_map<(a, b) -> (a, b)>
func.func @costly(%A: memref<64x64xf32>, %B: memref<64x512xf16>, %C: memref<64x512xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: 'math.exp' would be computed again for each tile that is read}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %x = math.exp %e : f32
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x512xf16>) outs(%C : memref<64x512xf32>)
  return
}

// -----

#id = affine_map<(a, b) -> (a, b)>
func.func @captured(%A: memref<64x64xf32>, %f: f32, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: uses a value computed outside of it that is not constant}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf32>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %x = arith.mulf %e, %f : f32
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// 64 f64 would be converted by a warp that cannot load them.
#id = affine_map<(a, b) -> (a, b)>
func.func @stored_type(%A: memref<64x64xf64>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) {
  %h = memref.alloc() : memref<64x64xf16>
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: the fused contraction is unsupported: has an operand transform of f64, expected f16, bf16, f8E4M3FN, f8E5M2, f32, i8, i32}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x64xf64>) outs(%h : memref<64x64xf16>) {
  ^bb0(%e: f64, %o: f16):
    %r = arith.truncf %e : f64 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %B : memref<64x64xf16>, memref<64x64xf16>) outs(%C : memref<64x64xf32>)
  return
}

// -----

// Of a sum of any length, tiles are filled up with zeros. One factor may make something
// else of these, as long as the other is zero there.
// CHECK-LABEL: @filled_up(
// CHECK:       linalg.generic {{.*}} ins(%arg0, %{{.*}} : memref<64x?xf32>, memref<?x64xf16>)
#id = affine_map<(a, b) -> (a, b)>
func.func @filled_up(%A: memref<64x?xf32>, %B: memref<?x64xf32>, %C: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %B, %c0 : memref<?x64xf32>
  %h = memref.alloc(%n) : memref<64x?xf16>
  %g = memref.alloc(%n) : memref<?x64xf16>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%A : memref<64x?xf32>) outs(%h : memref<64x?xf16>) {
  ^bb0(%e: f32, %o: f16):
    %one = arith.constant 1.0 : f32
    %x = arith.addf %e, %one : f32
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  }
  // expected-remark @+1 {{'linalg.generic' is not fused into the contraction that reads it: the fused contraction is unsupported: tiles are filled up with zeros, for which its operand transforms are not zero, and K is not known to be a multiple of the K step}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%B : memref<?x64xf32>) outs(%g : memref<?x64xf16>) {
  ^bb0(%e: f32, %o: f16):
    %one = arith.constant 1.0 : f32
    %x = arith.addf %e, %one : f32
    %r = arith.truncf %x : f32 to f16
    linalg.yield %r : f16
  }
  linalg.matmul ins(%h, %g : memref<64x?xf16>, memref<?x64xf16>) outs(%C : memref<64x64xf32>)
  return
}
