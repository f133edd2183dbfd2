// RUN: alcop-opt %s --alcop-box-scalars --split-input-file | FileCheck %s

// What is computed of numbers is computed in the body, which is given arrays of one
// element.
// CHECK-LABEL: @body(
// CHECK-SAME:    %[[S:.*]]: tensor<f32>, %[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<4x8xf32>)
// CHECK-NOT:   tensor.extract
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%[[X]], %[[N]], %[[S]] : tensor<4x8xf32>, tensor<i32>, tensor<f32>)
// CHECK:       ^bb0(%[[A:.*]]: f32, %[[C:.*]]: i32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK:         %[[T:.*]] = arith.mulf %[[B]], %
// CHECK:         %[[W:.*]] = arith.sitofp %[[C]]
// CHECK:         %[[P:.*]] = arith.mulf %[[A]], %[[T]]
// CHECK:         arith.addf %[[P]], %[[W]]
#id = affine_map<(i, j) -> (i, j)>
func.func @body(%s: f32, %n: i32, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %two = arith.constant 2.0 : f32
  %t = arith.mulf %s, %two : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %w = arith.sitofp %n : i32 to f32
    %p = arith.mulf %a, %t : f32
    %q = arith.addf %p, %w : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// A scalar operand; one that is a constant stays one.
// CHECK-LABEL: @operand(
// CHECK-SAME:    %[[S:.*]]: tensor<f16>
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%[[S]] : tensor<f16>) outs(%{{.*}} : tensor<4xf16>)
// CHECK:       linalg.fill ins(%{{.*}} : f16)
func.func @operand(%s: f16) -> (tensor<4xf16>, tensor<4xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4xf16>
  %a = linalg.fill ins(%s : f16) outs(%e : tensor<4xf16>) -> tensor<4xf16>
  %b = linalg.fill ins(%zero : f16) outs(%e : tensor<4xf16>) -> tensor<4xf16>
  return %a, %b : tensor<4xf16>, tensor<4xf16>
}

// -----

// On memrefs. The order of other ops and of reads of memory does not change.
// CHECK-LABEL: @memrefs(
// CHECK-SAME:    %[[S:.*]]: memref<f32>, %[[X:.*]]: memref<8xf32>
// CHECK-NOT:   memref.load
// CHECK:       linalg.generic
// CHECK-SAME:    ins(%[[X]], %[[S]] : memref<8xf32>, memref<f32>) outs(%[[X]] : memref<8xf32>)
#one = affine_map<(i) -> (i)>
func.func @memrefs(%s: f32, %x: memref<8xf32>) {
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%x : memref<8xf32>) outs(%x : memref<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %s : f32
    linalg.yield %p : f32
  }
  return
}

// -----

// What the program reads itself is read in the body, too; what is loaded of a memref,
// which might be written in between, is not.
// CHECK-LABEL: @read(
// CHECK-SAME:    %[[S:.*]]: tensor<f32>
// CHECK:       linalg.generic {{.*}} ins(%[[S]] : tensor<f32>)
// CHECK-LABEL: @loaded(
// CHECK:       %[[S:.*]] = memref.load
// CHECK:       linalg.fill ins(%[[S]] : f32)
func.func @read(%s: tensor<f32>) -> tensor<4xf32> {
  %v = tensor.extract %s[] : tensor<f32>
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.fill ins(%v : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
func.func @loaded(%s: memref<f32>, %x: memref<4xf32>) {
  %v = memref.load %s[] : memref<f32>
  linalg.fill ins(%v : f32) outs(%x : memref<4xf32>)
  return
}

// -----

// Left as they are: sizes, what a call passes on, and what is computed on the host.
// CHECK-LABEL: @called(%{{.*}}: f32)
// CHECK-LABEL: @caller(
// CHECK-SAME:    %[[S:.*]]: tensor<f32>, %[[N:.*]]: index)
// CHECK:       %[[V:.*]] = tensor.extract %[[S]][]
// CHECK:       call @called(%[[V]])
func.func private @called(%s: f32) { return }
func.func @caller(%s: f32, %n: index) -> tensor<?xf32> {
  func.call @called(%s) : (f32) -> ()
  %e = tensor.empty(%n) : tensor<?xf32>
  return %e : tensor<?xf32>
}
