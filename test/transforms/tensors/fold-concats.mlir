// RUN: alcop-opt %s --alcop-fold-concats --mlir-print-local-scope | FileCheck %s

// Two halves, rotated and put together: one op, which computes both for each element, and
// chooses. The cast behind is in its body, and goes over the halves.
// CHECK-LABEL: @rotate(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<4x8xf32>, %[[C:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<16xf16>)
// CHECK:         %[[E:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1]] output_shape [2, 8] : tensor<16xf16> into tensor<2x8xf16>
// CHECK:         %[[R:.*]] = linalg.generic {indexing_maps = [
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME:      outs(%{{.*}} : tensor<4x2x8xf16>)
// CHECK-DAG:       %[[P:.*]] = linalg.index 1 : index
// CHECK-DAG:       %[[A:.*]] = arith.subf
// CHECK-DAG:       %[[B:.*]] = arith.addf
// CHECK:           %[[Q:.*]] = arith.cmpi eq, %[[P]],
// CHECK:           %[[V:.*]] = arith.select %[[Q]], %[[A]], %[[B]] : f32
// CHECK:           %[[T:.*]] = arith.truncf %[[V]] : f32 to f16
// CHECK:           arith.mulf %[[T]], %{{.*}} : f16
// CHECK:         %[[J:.*]] = tensor.collapse_shape %[[R]] {{\[\[}}0], [1, 2]] : tensor<4x2x8xf16> into tensor<4x16xf16>
// CHECK:         return %[[J]]
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @rotate(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %cos: tensor<4x8xf32>, %s: tensor<16xf16>) -> tensor<4x16xf16> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %cos : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.subf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%y, %cos : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %h = tensor.empty() : tensor<4x16xf16>
  %r = linalg.generic {indexing_maps = [#all, #n, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %s : tensor<4x16xf32>, tensor<16xf16>) outs(%h : tensor<4x16xf16>) {
  ^bb0(%p: f32, %q: f16, %o: f16):
    %t = arith.truncf %p : f32 to f16
    %u = arith.mulf %t, %q : f16
    linalg.yield %u : f16
  } -> tensor<4x16xf16>
  return %r : tensor<4x16xf16>
}

// What memory holds is put together by copies.
// CHECK-LABEL: @arguments(
// CHECK:         tensor.concat
func.func @arguments(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %c = tensor.concat dim(1) %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %c : tensor<4x16xf32>
}

// Halves of which one is computed and one is a part of what there is, as rotary
// embeddings are written with an op for each step: one op, which reads the other
// operand, and the tables, by halves too.
// CHECK-LABEL: @turned(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>, %[[C:.*]]: tensor<4x16xf32>, %[[S:.*]]: tensor<4x16xf32>)
// CHECK-DAG:     %[[L:.*]] = tensor.extract_slice %[[X]][0, 0]
// CHECK-DAG:     %[[R:.*]] = tensor.extract_slice %[[X]][0, 8]
// CHECK-DAG:     %[[XH:.*]] = tensor.expand_shape %[[X]] {{.*}} output_shape [4, 2, 8]
// CHECK-DAG:     %[[CH:.*]] = tensor.expand_shape %[[C]] {{.*}} output_shape [4, 2, 8]
// CHECK-DAG:     %[[SH:.*]] = tensor.expand_shape %[[S]] {{.*}} output_shape [4, 2, 8]
// CHECK:         %[[Z:.*]] = linalg.generic
// CHECK-SAME:      ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x{{.*}}) outs(%{{.*}} : tensor<4x2x8xf32>)
// CHECK-DAG:       %[[P:.*]] = linalg.index 1
// CHECK-DAG:       %[[N:.*]] = arith.negf
// CHECK-DAG:       arith.select %{{.*}}, %[[N]], %{{.*}} : f32
// CHECK:           %[[SUM:.*]] = arith.addf
// CHECK-NEXT:      linalg.yield %[[SUM]]
// CHECK-NOT:     linalg.generic
// CHECK:         %[[J:.*]] = tensor.collapse_shape %[[Z]] {{\[\[}}0], [1, 2]]
// CHECK:         return %[[J]]
func.func @turned(%x: tensor<4x16xf32>, %cos: tensor<4x16xf32>, %sin: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %l = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %r = tensor.extract_slice %x[0, 8] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %n = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %c = tensor.concat dim(1) %n, %l : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %w = tensor.empty() : tensor<4x16xf32>
  %a = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %cos : tensor<4x16xf32>, tensor<4x16xf32>) outs(%w : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  %b = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %sin : tensor<4x16xf32>, tensor<4x16xf32>) outs(%w : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  %z = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<4x16xf32>, tensor<4x16xf32>) outs(%w : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}

// One value as all parts is a broadcast, which its readers compute: here a table of
// angles for both halves. The value is computed once, cosines of both are, too.
// CHECK-LABEL: @repeated(
// CHECK:         %[[M:.*]] = linalg.generic
// CHECK:           arith.mulf
// CHECK:         %[[B:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]{{.*}} ins(%[[M]] : tensor<4x8xf32>) outs(%{{.*}} : tensor<4x2x8xf32>)
// CHECK-NEXT:      ^bb0(%[[V:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      linalg.yield %[[V]]
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<4x2x8xf32>)
// CHECK:           math.cos
// CHECK:         tensor.collapse_shape %[[C]]
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<4x2x8xf32>)
// CHECK:           math.sin
func.func @repeated(%x: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %m = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %c = tensor.concat dim(1) %m, %m : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  %w = tensor.empty() : tensor<4x16xf32>
  %a = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<4x16xf32>) outs(%w : tensor<4x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.cos %p : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  %b = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<4x16xf32>) outs(%w : tensor<4x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.sin %p : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  return %a, %b : tensor<4x16xf32>, tensor<4x16xf32>
}

// Pairs of neighbours are stacked: the parts come last, and who reads pairs as columns
// goes over both.
// CHECK-LABEL: @stacked(
// CHECK-SAME:    %[[X:.*]]: tensor<4x16xf32>, %[[S:.*]]: tensor<4x16xf32>)
// CHECK:         %[[Z:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK-SAME:      outs(%{{.*}} : tensor<4x8x2xf32>)
// CHECK-DAG:       linalg.index 2
// CHECK-DAG:       %[[N:.*]] = arith.negf
// CHECK-DAG:       %[[P:.*]] = arith.select %{{.*}}, %[[N]], %{{.*}} : f32
// CHECK:           %[[M:.*]] = arith.mulf %[[P]]
// CHECK-NEXT:      linalg.yield %[[M]]
// CHECK-NOT:     linalg.generic
// CHECK:         tensor.collapse_shape %[[Z]] {{\[\[}}0], [1, 2]]
func.func @stacked(%x: tensor<4x16xf32>, %sin: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %l = tensor.extract_slice %x[0, 0] [4, 8] [1, 2] : tensor<4x16xf32> to tensor<4x8xf32>
  %r = tensor.extract_slice %x[0, 1] [4, 8] [1, 2] : tensor<4x16xf32> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %n = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %n1 = tensor.expand_shape %n [[0], [1, 2]] output_shape [4, 8, 1] : tensor<4x8xf32> into tensor<4x8x1xf32>
  %l1 = tensor.expand_shape %l [[0], [1, 2]] output_shape [4, 8, 1] : tensor<4x8xf32> into tensor<4x8x1xf32>
  %c = tensor.concat dim(2) %n1, %l1 : (tensor<4x8x1xf32>, tensor<4x8x1xf32>) -> tensor<4x8x2xf32>
  %j = tensor.collapse_shape %c [[0], [1, 2]] : tensor<4x8x2xf32> into tensor<4x16xf32>
  %w = tensor.empty() : tensor<4x16xf32>
  %b = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%j, %sin : tensor<4x16xf32>, tensor<4x16xf32>) outs(%w : tensor<4x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x16xf32>
  return %b : tensor<4x16xf32>
}
