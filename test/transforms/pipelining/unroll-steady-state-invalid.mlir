// RUN: alcop-opt %s --alcop-unroll-steady-state --verify-diagnostics

func.func @remainder(%D: memref<96xf16>, %x: f16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{alcop-unroll-steady-state: alcop.unroll is 3, expected a divisor of the trip count 4}}
  scf.for %k = %c0 to %c4 step %c1 {
    memref.store %x, %D[%k] : memref<96xf16>
  } {alcop.unroll = 3 : i64}
  return
}
