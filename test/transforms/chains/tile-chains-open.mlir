// RUN: alcop-opt %s --alcop-decompose-softmax --canonicalize --alcop-group-chains --canonicalize --cse --one-shot-bufferize='bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map' '--alcop-tile-chains=tiles=16,4,64' --canonicalize --cse 2>&1 | FileCheck %s
// RUN: not alcop-opt %s --alcop-decompose-softmax --canonicalize --alcop-group-chains --canonicalize --cse --one-shot-bufferize='bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map' '--alcop-tile-chains=tiles=16,4,64 parts=2' 2>&1 | FileCheck %s --check-prefix=PARTS

// Rows and columns whose number is known at run time only: of columns, those in whole tiles
// have a loop of their own, as they do where their number is known. Where there are none, 0
// is divided by 1.
// PARTS: error: {{.*}}has 2 parts, expected 1 to 1: a size is known at run time only
// CHECK:       remark: columns are in one part, as a size is known at run time only: few blocks may leave SMs of sm_80 without any
// CHECK-LABEL: @open(
// CHECK-SAME:  %[[Q:.*]]: memref<?x32xf16>, %[[K:.*]]: memref<32x?xf16>
// CHECK-DAG:   %[[NONE:.*]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// CHECK:       %[[M:.*]] = memref.dim %[[Q]], %c0
// CHECK:       %[[N:.*]] = memref.dim %[[K]], %c1
// CHECK:       %[[BLOCKS:.*]] = arith.ceildivui %[[M]], %c64
// CHECK:       gpu.launch blocks(%[[B:.*]], %{{.*}}, %{{.*}}) in (%{{.*}} = %[[BLOCKS]],
// CHECK:         %[[ROW:.*]] = arith.muli %[[B]], %c64
// CHECK:         %[[LEFT:.*]] = arith.subi %[[M]], %[[ROW]]
// CHECK:         arith.minsi %[[LEFT]], %c64
// CHECK:         %[[TILES:.*]] = arith.divui %[[N]], %c64
// CHECK:         %[[WHOLE:.*]] = arith.muli %[[TILES]], %c64
// CHECK:         scf.for %{{.*}} = %c0 to %[[WHOLE]] step %c64
// CHECK:           memref.copy
// CHECK:         %[[R:.*]]:4 = scf.for %[[COLUMN:.*]] = %[[WHOLE]] to %[[N]] step %c64
// CHECK:           %[[REST:.*]] = arith.subi %[[N]], %[[COLUMN]]
// CHECK:           arith.minsi %[[REST]], %c64
// CHECK:           arith.cmpi slt
// CHECK:         %[[EMPTY:.*]] = arith.cmpi eq, %[[N]], %c0
// CHECK:         arith.select %[[EMPTY]], %[[NONE]], %[[R]]#3
// CHECK:         vector.transfer_write {{.*}} {in_bounds = [false, true]}
#id = affine_map<(m, n) -> (m, n)>
func.func @open(%q: tensor<?x32xf16>, %k: tensor<32x?xf16>, %v: tensor<?x32xf16>) -> tensor<?x32xf32> {
  %cM = arith.constant 0 : index
  %M = tensor.dim %q, %cM : tensor<?x32xf16>
  %cN = arith.constant 0 : index
  %N = tensor.dim %v, %cN : tensor<?x32xf16>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty(%M, %N) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul ins(%q, %k : tensor<?x32xf16>, tensor<32x?xf16>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %ep = tensor.empty(%M, %N) : tensor<?x?xf16>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<?x?xf32>) outs(%ep : tensor<?x?xf16>) {
  ^bb0(%a: f32, %c: f16):
    %0 = arith.truncf %a : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<?x?xf16>
  %eo = tensor.empty(%M) : tensor<?x32xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x32xf32>) -> tensor<?x32xf32>
  %o = linalg.matmul ins(%p, %v : tensor<?x?xf16>, tensor<?x32xf16>) outs(%zo : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}
