// RUN: alcop-opt %s --alcop-plan-pipelines='stages=1,2' --verify-diagnostics | FileCheck %s
// RUN: alcop-opt %s --alcop-plan-pipelines='stages=3,1' 2>&1 | FileCheck %s --check-prefix=COPIES

// Of loads that cannot run early one remark says why, the one that a promise mends
// first; without register stages nothing is expected of them.
// COPIES-NOT: remark
// CHECK-NOT:  alcop.pipeline
gpu.module @kernels {
gpu.func @may_alias(%A: memref<64x64xf32>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gpu.thread_id x
  scf.for %k = %c0 to %n step %c1 {
    %sum = memref.load %C[%t] : memref<64xf32>
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'memref.store' in the loop; promise that arguments do not alias with assume-noalias-args=true, if so}}
    %v = memref.load %A[%k, %t] : memref<64x64xf32>
    %next = arith.addf %sum, %v : f32
    memref.store %next, %C[%t] : memref<64xf32>
  }
  gpu.return
}
gpu.func @the_same_in_each(%A: memref<64xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%old = %zero) -> (f32) {
    // expected-remark @below {{not pipelined (rule 2): it loads the same in every iteration; load it once, before the loop}}
    %v = memref.load %A[%c0] : memref<64xf32>
    %next = arith.addf %old, %v : f32
    scf.yield %next : f32
  }
  gpu.return %sum : f32
}
gpu.func @effect_not_known(%A: memref<64xf32>, %C: memref<64xf32>, %n: index) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%old = %zero) -> (f32) {
    %at = func.call @position(%k) : (index) -> index
    // expected-remark @below {{not pipelined (rule 6): its source may be written by 'func.call' in the loop; move 'func.call' out of the loop}}
    %v = memref.load %A[%at] : memref<64xf32>
    %next = arith.addf %old, %v : f32
    scf.yield %next : f32
  }
  memref.store %sum, %C[%c0] : memref<64xf32>
  gpu.return
}
// One that runs once, or where something else is pipelined, gets no remark.
gpu.func @once(%A: memref<64xf32>) kernel {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %c1 step %c1 {
    %v = memref.load %A[%k] : memref<64xf32>
    memref.store %v, %A[%k] : memref<64xf32>
  }
  gpu.return
}
func.func private @position(index) -> index
}
