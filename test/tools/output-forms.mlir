// RUN: alcop-opt %s --mlir-elide-elementsattrs-if-larger=4 --mlir-print-ir-after=cse \
// RUN:   --cse 2>&1 | FileCheck %s --check-prefix=ELIDED
// RUN: alcop-opt %s --emit-bytecode | alcop-opt | FileCheck %s
// RUN: alcop-opt %s --emit-bytecode --cse -o %t.mlirbc
// RUN: head -c 2 %t.mlirbc | FileCheck %s --check-prefix=MAGIC
// RUN: alcop-opt %t.mlirbc | FileCheck %s
// RUN: alcop-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS

// In dumps and in the result.
// ELIDED:         IR Dump After CSE
// ELIDED:         dense_resource<__elided__> : tensor<8xi32>
// ELIDED:         dense<[1, 2]> : tensor<2xi32>
// ELIDED:         dense_resource<__elided__>
// ELIDED-NOT:     dense<[1, 2, 3
// CHECK:          dense<[1, 2, 3, 4, 5, 6, 7, 8]>
// MAGIC:          ML
// DIALECTS:       Available Dialects: {{.*,}}alcop,alcop_transform,{{.*}},gpu,{{.*}}nvvm,
func.func @f() -> (tensor<8xi32>, tensor<2xi32>) {
  %a = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
  %b = arith.constant dense<[1, 2]> : tensor<2xi32>
  return %a, %b : tensor<8xi32>, tensor<2xi32>
}
