// RUN: alcop-opt %s --alcop-sink-transposes --canonicalize --mlir-print-local-scope --split-input-file | FileCheck %s

// Rows are 128 of 2 between two transposes; none is left, and the bias stays as it is.
// CHECK-LABEL: @through(
// CHECK-SAME:  %[[X:.*]]: tensor<2x128x64xf16>, %[[W:.*]]: tensor<64x32xf16>, %[[B:.*]]: tensor<32xf32>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[A:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]] : tensor<2x128x64xf16> into tensor<256x64xf16>
// CHECK:       %[[Y:.*]] = linalg.matmul ins(%[[A]], %[[W]]
// CHECK:       %[[S:.*]] = linalg.generic {{.*}} ins(%[[Y]], %[[B]]
// CHECK:       %[[R:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1], [2]] output_shape [2, 128, 32]
// CHECK:       return %[[R]]
func.func @through(%x: tensor<2x128x64xf16>, %w: tensor<64x32xf16>, %b: tensor<32xf32>) -> tensor<2x128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x2x64xf16>
  %t = linalg.transpose ins(%x : tensor<2x128x64xf16>) outs(%e : tensor<128x2x64xf16>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<128x2x64xf16> into tensor<256x64xf16>
  %f = tensor.empty() : tensor<256x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<256x32xf32>) -> tensor<256x32xf32>
  %y = linalg.matmul ins(%a, %w : tensor<256x64xf16>, tensor<64x32xf16>) outs(%i : tensor<256x32xf32>) -> tensor<256x32xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%y, %b : tensor<256x32xf32>, tensor<32xf32>) outs(%f : tensor<256x32xf32>) {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %c = arith.addf %u, %v : f32
    linalg.yield %c : f32
  } -> tensor<256x32xf32>
  %p = tensor.expand_shape %s [[0, 1], [2]] output_shape [128, 2, 32] : tensor<256x32xf32> into tensor<128x2x32xf32>
  %g = tensor.empty() : tensor<2x128x32xf32>
  %z = linalg.transpose ins(%p : tensor<128x2x32xf32>) outs(%g : tensor<2x128x32xf32>) permutation = [1, 0, 2]
  return %z : tensor<2x128x32xf32>
}

// -----

// Heads that are put beside each other keep the transpose that does so; the rest of it
// goes to the result, and is one with the one there.
// CHECK-LABEL: @heads(
// CHECK-SAME:  %[[X:.*]]: tensor<2x4x128x16xf16>
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<2x128x4x16xf16>) permutation = [0, 2, 1, 3]
// CHECK:       %[[A:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0, 1], [2, 3]]
// CHECK:       %[[Y:.*]] = linalg.matmul ins(%[[A]]
// CHECK:       %[[P:.*]] = tensor.expand_shape %[[Y]] {{\[\[}}0, 1], [2, 3]] output_shape [2, 128, 2, 16]
// CHECK:       %[[Z:.*]] = linalg.transpose ins(%[[P]] : {{.*}}) outs(%{{.*}} : tensor<2x2x128x16xf32>) permutation = [0, 2, 1, 3]
// CHECK:       return %[[Z]]
func.func @heads(%x: tensor<2x4x128x16xf16>, %w: tensor<64x32xf16>) -> tensor<2x2x128x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x2x4x16xf16>
  %t = linalg.transpose ins(%x : tensor<2x4x128x16xf16>) outs(%e : tensor<128x2x4x16xf16>) permutation = [2, 0, 1, 3]
  %a = tensor.collapse_shape %t [[0, 1], [2, 3]] : tensor<128x2x4x16xf16> into tensor<256x64xf16>
  %f = tensor.empty() : tensor<256x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%f : tensor<256x32xf32>) -> tensor<256x32xf32>
  %y = linalg.matmul ins(%a, %w : tensor<256x64xf16>, tensor<64x32xf16>) outs(%i : tensor<256x32xf32>) -> tensor<256x32xf32>
  %p = tensor.expand_shape %y [[0, 1], [2, 3]] output_shape [128, 2, 2, 16] : tensor<256x32xf32> into tensor<128x2x2x16xf32>
  %g = tensor.empty() : tensor<2x2x128x16xf32>
  %z = linalg.transpose ins(%p : tensor<128x2x2x16xf32>) outs(%g : tensor<2x2x128x16xf32>) permutation = [1, 2, 0, 3]
  return %z : tensor<2x2x128x16xf32>
}

// -----


// A slice of a transpose is one of the source, where who reads it takes transposes in.
// CHECK-LABEL: @sliced(
// CHECK-SAME:    %[[A:.*]]: tensor<2x6x4xf32>)
// CHECK:       %[[S:.*]] = tensor.extract_slice %[[A]][0, 2, 1] [2, 4, 3] [1, 1, 1] : tensor<2x6x4xf32> to tensor<2x4x3xf32>
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[S]] : {{.*}} permutation = [1, 0, 2]
// CHECK:       linalg.generic {{.*}} ins(%[[T]] : tensor<4x2x3xf32>)
func.func @sliced(%a: tensor<2x6x4xf32>) -> tensor<4x2x3xf32> {
  %e = tensor.empty() : tensor<6x2x4xf32>
  %t = linalg.transpose ins(%a : tensor<2x6x4xf32>) outs(%e : tensor<6x2x4xf32>) permutation = [1, 0, 2]
  %s = tensor.extract_slice %t[2, 0, 1] [4, 2, 3] [1, 1, 1] : tensor<6x2x4xf32> to tensor<4x2x3xf32>
  %o = tensor.empty() : tensor<4x2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x2x3xf32>) outs(%o : tensor<4x2x3xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.negf %x : f32
    linalg.yield %z : f32
  } -> tensor<4x2x3xf32>
  return %r : tensor<4x2x3xf32>
}

// -----


// A slice that the function returns is taken of the transpose.
// CHECK-LABEL: @returned(
// CHECK:       linalg.transpose
// CHECK:       tensor.extract_slice
func.func @returned(%a: tensor<6x4xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%a : tensor<6x4xf32>) outs(%e : tensor<4x6xf32>) permutation = [1, 0]
  %s = tensor.extract_slice %t[0, 2] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}

// -----

// Parts of a slice of what was transposed, as q, k and v of packed rows: the transpose is
// behind all of them, where another one makes it nothing. Dimensions of extent 1 follow.
// CHECK-LABEL: @packed(
// CHECK-SAME:    %[[X:.*]]: tensor<384x48xf16>)
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[E:.*]] = tensor.expand_shape %[[X]] {{.*}} : tensor<384x48xf16> into tensor<{{.*}}128x3x48xf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[S:.*]] = tensor.extract_slice %{{.*}} to tensor<{{.*}}128x1x48xf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @packed(%x: tensor<384x48xf16>) -> tensor<128x48xf16> {
  %p = tensor.expand_shape %x [[0, 1, 2, 3], [4]] output_shape [1, 128, 1, 3, 48] : tensor<384x48xf16> into tensor<1x128x1x3x48xf16>
  %e = tensor.empty() : tensor<3x128x1x1x48xf16>
  %t = linalg.transpose ins(%p : tensor<1x128x1x3x48xf16>) outs(%e : tensor<3x128x1x1x48xf16>) permutation = [3, 1, 2, 0, 4]
  %c = tensor.collapse_shape %t [[0], [1], [2, 3], [4]] : tensor<3x128x1x1x48xf16> into tensor<3x128x1x48xf16>
  %s = tensor.extract_slice %c[1, 0, 0, 0] [1, 128, 1, 48] [1, 1, 1, 1] : tensor<3x128x1x48xf16> to tensor<1x128x1x48xf16>
  %g = tensor.empty() : tensor<128x1x1x48xf16>
  %u = linalg.transpose ins(%s : tensor<1x128x1x48xf16>) outs(%g : tensor<128x1x1x48xf16>) permutation = [1, 0, 2, 3]
  %r = tensor.collapse_shape %u [[0, 1, 2], [3]] : tensor<128x1x1x48xf16> into tensor<128x48xf16>
  return %r : tensor<128x48xf16>
}

// Parts of a transposed tensor that contractions of batches read, behind a reshape, are
// taken first: a chain reads batches wherever they lie, and none copies all parts.
// CHECK-LABEL: @parts_of_batches(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<2x8x3x4x16xf16>
// CHECK:         tensor.extract_slice %[[X]][0, 0, 0, 0, 0] [2, 8, 1, 4, 16]
// CHECK:         tensor.extract_slice %[[X]][0, 0, 2, 0, 0] [2, 8, 1, 4, 16]
// CHECK-NOT:     tensor<3x2x4x8x16xf16>
// CHECK:         linalg.batch_matmul
func.func @parts_of_batches(%x: tensor<2x8x3x4x16xf16>, %y: tensor<8x8x8xf32>) -> (tensor<8x8x16xf32>, tensor<8x8x16xf32>) {
  %e = tensor.empty() : tensor<3x2x4x8x16xf16>
  %t = linalg.transpose ins(%x : tensor<2x8x3x4x16xf16>) outs(%e : tensor<3x2x4x8x16xf16>) permutation = [2, 0, 3, 1, 4]
  %a = tensor.extract_slice %t[0, 0, 0, 0, 0] [1, 2, 4, 8, 16] [1, 1, 1, 1, 1] : tensor<3x2x4x8x16xf16> to tensor<1x2x4x8x16xf16>
  %b = tensor.extract_slice %t[2, 0, 0, 0, 0] [1, 2, 4, 8, 16] [1, 1, 1, 1, 1] : tensor<3x2x4x8x16xf16> to tensor<1x2x4x8x16xf16>
  %c = tensor.collapse_shape %a [[0, 1, 2], [3], [4]] : tensor<1x2x4x8x16xf16> into tensor<8x8x16xf16>
  %d = tensor.collapse_shape %b [[0, 1, 2], [3], [4]] : tensor<1x2x4x8x16xf16> into tensor<8x8x16xf16>
  %z = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<8x8x16xf32>
  %i = linalg.fill ins(%z : f32) outs(%f : tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %p = linalg.batch_matmul ins(%y, %c : tensor<8x8x8xf32>, tensor<8x8x16xf16>) outs(%i : tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %q = linalg.batch_matmul ins(%y, %d : tensor<8x8x8xf32>, tensor<8x8x16xf16>) outs(%i : tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  return %p, %q : tensor<8x8x16xf32>, tensor<8x8x16xf32>
}
