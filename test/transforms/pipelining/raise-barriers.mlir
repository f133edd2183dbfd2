// RUN: alcop-opt %s --alcop-raise-barriers | FileCheck %s

// The one of all threads; not one with a number, or of some threads.
// CHECK-LABEL: @barriers
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    nvvm.barrier id = %{{.*}}
// CHECK-NEXT:    nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK-NEXT:    return
func.func @barriers(%i: i32) {
  nvvm.barrier
  nvvm.barrier id = %i
  nvvm.barrier id = %i number_of_threads = %i
  return
}
