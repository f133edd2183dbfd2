// RUN: alcop-opt %s --alcop-join-slices --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: @neighbours
// CHECK:         %[[Y:.*]] = tensor.extract_slice %arg0[0, 8] [64, 80] [1, 1]
// CHECK:         return %[[Y]]
func.func @neighbours(%x: tensor<64x96xf16>) -> tensor<64x80xf16> {
  %l = tensor.extract_slice %x[0, 8] [64, 32] [1, 1] : tensor<64x96xf16> to tensor<64x32xf16>
  %r = tensor.extract_slice %x[0, 40] [64, 48] [1, 1] : tensor<64x96xf16> to tensor<64x48xf16>
  %y = tensor.concat dim(1) %l, %r : (tensor<64x32xf16>, tensor<64x48xf16>) -> tensor<64x80xf16>
  return %y : tensor<64x80xf16>
}

// -----

// All of it.
// CHECK-LABEL: @whole
// CHECK-NEXT:    return %arg0
func.func @whole(%x: tensor<6x4xf16>) -> tensor<6x4xf16> {
  %l = tensor.extract_slice %x[0, 0] [2, 4] [1, 1] : tensor<6x4xf16> to tensor<2x4xf16>
  %r = tensor.extract_slice %x[2, 0] [4, 4] [1, 1] : tensor<6x4xf16> to tensor<4x4xf16>
  %y = tensor.concat dim(0) %l, %r : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<6x4xf16>
  return %y : tensor<6x4xf16>
}

// -----

// Columns 4 to 15 of the second and third of four heads of 16, heads before rows; one
// part is a slice of a transpose, the other a transpose of a slice.
// CHECK-LABEL: @heads
// CHECK:         %[[E:.*]] = tensor.expand_shape %arg0 {{\[}}[0], [1, 2]] output_shape [10, 4, 16]
// CHECK:         %[[C:.*]] = tensor.extract_slice %[[E]][0, 1, 4] [10, 2, 12] [1, 1, 1]
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[C]] : {{.*}}permutation = [1, 0, 2]
// CHECK:         %[[R:.*]] = tensor.expand_shape %[[T]] {{\[}}[0, 1], [2], [3]] output_shape [1, 2, 10, 12]
// CHECK:         return %[[R]]
func.func @heads(%x: tensor<10x64xf16>) -> tensor<1x2x10x12xf16> {
  %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [10, 4, 16] : tensor<10x64xf16> into tensor<10x4x16xf16>
  %0 = tensor.empty() : tensor<4x10x16xf16>
  %t = linalg.transpose ins(%e : tensor<10x4x16xf16>) outs(%0 : tensor<4x10x16xf16>) permutation = [1, 0, 2]
  %l = tensor.extract_slice %t[1, 0, 4] [2, 10, 8] [1, 1, 1] : tensor<4x10x16xf16> to tensor<2x10x8xf16>
  %s = tensor.extract_slice %e[0, 1, 12] [10, 2, 4] [1, 1, 1] : tensor<10x4x16xf16> to tensor<10x2x4xf16>
  %1 = tensor.empty() : tensor<2x10x4xf16>
  %r = linalg.transpose ins(%s : tensor<10x2x4xf16>) outs(%1 : tensor<2x10x4xf16>) permutation = [1, 0, 2]
  %le = tensor.expand_shape %l [[0, 1], [2], [3]] output_shape [1, 2, 10, 8] : tensor<2x10x8xf16> into tensor<1x2x10x8xf16>
  %re = tensor.expand_shape %r [[0, 1], [2], [3]] output_shape [1, 2, 10, 4] : tensor<2x10x4xf16> into tensor<1x2x10x4xf16>
  %y = tensor.concat dim(3) %le, %re : (tensor<1x2x10x8xf16>, tensor<1x2x10x4xf16>) -> tensor<1x2x10x12xf16>
  return %y : tensor<1x2x10x12xf16>
}

// -----

// The same of columns that are taken apart differently: their tensor is what both are of.
// CHECK-LABEL: @apart
// CHECK:         %[[S:.*]] = tensor.extract_slice %arg0[0, 32] [10, 32] [1, 1]
// CHECK:         %[[E:.*]] = tensor.expand_shape %[[S]] {{\[}}[0], [1, 2]] output_shape [10, 2, 16]
// CHECK:         %[[C:.*]] = tensor.extract_slice %[[E]][0, 0, 0] [10, 2, 12] [1, 1, 1]
// CHECK:         return %[[C]]
func.func @apart(%x: tensor<10x64xf16>) -> tensor<10x2x12xf16> {
  %e = tensor.expand_shape %x [[0], [1, 2]] output_shape [10, 4, 16] : tensor<10x64xf16> into tensor<10x4x16xf16>
  %l = tensor.extract_slice %e[0, 2, 0] [10, 2, 8] [1, 1, 1] : tensor<10x4x16xf16> to tensor<10x2x8xf16>
  %f = tensor.expand_shape %x [[0], [1, 2, 3]] output_shape [10, 4, 4, 4] : tensor<10x64xf16> into tensor<10x4x4x4xf16>
  %g = tensor.extract_slice %f[0, 2, 2, 0] [10, 2, 1, 4] [1, 1, 1, 1] : tensor<10x4x4x4xf16> to tensor<10x2x1x4xf16>
  %r = tensor.collapse_shape %g [[0], [1], [2, 3]] : tensor<10x2x1x4xf16> into tensor<10x2x4xf16>
  %y = tensor.concat dim(2) %l, %r : (tensor<10x2x8xf16>, tensor<10x2x4xf16>) -> tensor<10x2x12xf16>
  return %y : tensor<10x2x12xf16>
}

// -----

// In the other order, of two tensors, with columns between them, from other rows.
// CHECK-LABEL: @others
// CHECK-COUNT-4: tensor.concat
func.func @others(%x: tensor<64x96xf16>, %z: tensor<64x96xf16>)
    -> (tensor<32x64xf16>, tensor<32x64xf16>, tensor<32x64xf16>, tensor<32x64xf16>) {
  %a = tensor.extract_slice %x[0, 0] [32, 32] [1, 1] : tensor<64x96xf16> to tensor<32x32xf16>
  %b = tensor.extract_slice %x[0, 32] [32, 32] [1, 1] : tensor<64x96xf16> to tensor<32x32xf16>
  %c = tensor.extract_slice %z[0, 32] [32, 32] [1, 1] : tensor<64x96xf16> to tensor<32x32xf16>
  %d = tensor.extract_slice %x[0, 64] [32, 32] [1, 1] : tensor<64x96xf16> to tensor<32x32xf16>
  %e = tensor.extract_slice %x[32, 32] [32, 32] [1, 1] : tensor<64x96xf16> to tensor<32x32xf16>
  %0 = tensor.concat dim(1) %b, %a : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x64xf16>
  %1 = tensor.concat dim(1) %a, %c : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x64xf16>
  %2 = tensor.concat dim(1) %a, %d : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x64xf16>
  %3 = tensor.concat dim(1) %a, %e : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x64xf16>
  return %0, %1, %2, %3 : tensor<32x64xf16>, tensor<32x64xf16>, tensor<32x64xf16>, tensor<32x64xf16>
}

// -----

// Sizes that are known at run time only.
// CHECK-LABEL: @open
// CHECK:         tensor.concat
func.func @open(%x: tensor<?x96xf16>, %n: index) -> tensor<?x64xf16> {
  %a = tensor.extract_slice %x[0, 0] [%n, 32] [1, 1] : tensor<?x96xf16> to tensor<?x32xf16>
  %b = tensor.extract_slice %x[0, 32] [%n, 32] [1, 1] : tensor<?x96xf16> to tensor<?x32xf16>
  %0 = tensor.concat dim(1) %a, %b : (tensor<?x32xf16>, tensor<?x32xf16>) -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
