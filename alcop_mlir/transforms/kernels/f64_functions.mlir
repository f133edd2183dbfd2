// Exponentials, logarithms and powers of f64, as in device_functions.mlir.

// x = k ln 2 + r; exp(r) = 1 + r + r^2 p(r), times 2^k in two steps, as the result may be
// subnormal. Beyond the clamp it is infinite or 0.
llvm.func internal @__nv_exp(%given: f64) -> f64 attributes {always_inline} {
  %most = llvm.mlir.constant(710.0 : f64) : f64
  %least = llvm.mlir.constant(-746.0 : f64) : f64
  %k1 = llvm.mlir.constant(1.4426950408889634 : f64) : f64
  %k2 = llvm.mlir.constant(-0.6931471803691238 : f64) : f64
  %k3 = llvm.mlir.constant(-1.9082149292705877e-10 : f64) : f64
  %k4 = llvm.mlir.constant(0.5 : f64) : f64
  %k5 = llvm.mlir.constant(0.1666666666666667 : f64) : f64
  %k6 = llvm.mlir.constant(0.04166666666666667 : f64) : f64
  %k7 = llvm.mlir.constant(0.008333333333326084 : f64) : f64
  %k8 = llvm.mlir.constant(0.0013888888888883711 : f64) : f64
  %k9 = llvm.mlir.constant(0.0001984126987500228 : f64) : f64
  %k10 = llvm.mlir.constant(2.480158732567746e-05 : f64) : f64
  %k11 = llvm.mlir.constant(2.755725517000089e-06 : f64) : f64
  %k12 = llvm.mlir.constant(2.755727347871858e-07 : f64) : f64
  %k13 = llvm.mlir.constant(2.5105312729622103e-08 : f64) : f64
  %k14 = llvm.mlir.constant(2.09147553258932e-09 : f64) : f64
  %k15 = llvm.mlir.constant(1.0 : f64) : f64
  %k16 = llvm.mlir.constant(0.0 : f64) : f64
  %k17 = llvm.mlir.constant(1 : i64) : i64
  %k18 = llvm.mlir.constant(1023 : i64) : i64
  %k19 = llvm.mlir.constant(52 : i64) : i64
  %low0 = llvm.intr.minimum(%given, %most) : (f64, f64) -> f64
  %x = llvm.intr.maximum(%low0, %least) : (f64, f64) -> f64
  %scaled = llvm.fmul %x, %k1 : f64
  %k = llvm.intr.roundeven(%scaled) : (f64) -> f64
  %near = llvm.intr.fma(%k, %k2, %x) : (f64, f64, f64) -> f64
  %r = llvm.intr.fma(%k, %k3, %near) : (f64, f64, f64) -> f64
  %p9 = llvm.intr.fma(%k14, %r, %k13) : (f64, f64, f64) -> f64
  %p8 = llvm.intr.fma(%p9, %r, %k12) : (f64, f64, f64) -> f64
  %p7 = llvm.intr.fma(%p8, %r, %k11) : (f64, f64, f64) -> f64
  %p6 = llvm.intr.fma(%p7, %r, %k10) : (f64, f64, f64) -> f64
  %p5 = llvm.intr.fma(%p6, %r, %k9) : (f64, f64, f64) -> f64
  %p4 = llvm.intr.fma(%p5, %r, %k8) : (f64, f64, f64) -> f64
  %p3 = llvm.intr.fma(%p4, %r, %k7) : (f64, f64, f64) -> f64
  %p2 = llvm.intr.fma(%p3, %r, %k6) : (f64, f64, f64) -> f64
  %p1 = llvm.intr.fma(%p2, %r, %k5) : (f64, f64, f64) -> f64
  %p = llvm.intr.fma(%p1, %r, %k4) : (f64, f64, f64) -> f64
  %square = llvm.fmul %r, %r : f64
  %bent = llvm.intr.fma(%square, %p, %r) : (f64, f64, f64) -> f64
  %power = llvm.fadd %bent, %k15 : f64
  %is_number = llvm.fcmp "ord" %k, %k : f64
  %known = llvm.select %is_number, %k, %k16 : i1, f64
  %exponent = llvm.fptosi %known : f64 to i64
  %half = llvm.ashr %exponent, %k17 : i64
  %rest = llvm.sub %exponent, %half : i64
  %first_bits = llvm.add %half, %k18 : i64
  %first_word = llvm.shl %first_bits, %k19 : i64
  %first = llvm.bitcast %first_word : i64 to f64
  %second_bits = llvm.add %rest, %k18 : i64
  %second_word = llvm.shl %second_bits, %k19 : i64
  %second = llvm.bitcast %second_word : i64 to f64
  %part = llvm.fmul %power, %first : f64
  %y = llvm.fmul %part, %second : f64
  llvm.return %y : f64
}

// x = m 2^e with m from sqrt(1/2) to sqrt(2); with s = (m - 1) / (m + 1), log m is
// 2 s + s^3 p(s^2).
llvm.func internal @__nv_log(%given: f64) -> f64 attributes {always_inline} {
  %tiny = llvm.mlir.constant(2.2250738585072014e-308 : f64) : f64
  %scale = llvm.mlir.constant(1.8014398509481984e+16 : f64) : f64
  %shift = llvm.mlir.constant(-54.0 : f64) : f64
  %root = llvm.mlir.constant(4604544271217802189 : i64) : i64
  %infinity = llvm.mlir.constant(0x7FF0000000000000 : f64) : f64
  %least = llvm.mlir.constant(0xFFF0000000000000 : f64) : f64
  %k1 = llvm.mlir.constant(0.0 : f64) : f64
  %k2 = llvm.mlir.constant(52 : i64) : i64
  %k3 = llvm.mlir.constant(1.0 : f64) : f64
  %k4 = llvm.mlir.constant(0.6666666666666666 : f64) : f64
  %k5 = llvm.mlir.constant(0.40000000000000885 : f64) : f64
  %k6 = llvm.mlir.constant(0.28571428570799784 : f64) : f64
  %k7 = llvm.mlir.constant(0.22222222392581045 : f64) : f64
  %k8 = llvm.mlir.constant(0.18181795547521137 : f64) : f64
  %k9 = llvm.mlir.constant(0.15386244737621665 : f64) : f64
  %k10 = llvm.mlir.constant(0.13268638369266825 : f64) : f64
  %k11 = llvm.mlir.constant(0.13088034850927555 : f64) : f64
  %k12 = llvm.mlir.constant(0.5 : f64) : f64
  %k13 = llvm.mlir.constant(1.9082149292705877e-10 : f64) : f64
  %k14 = llvm.mlir.constant(0.6931471803691238 : f64) : f64
  %is_tiny = llvm.fcmp "olt" %given, %tiny : f64
  %scaled = llvm.fmul %given, %scale : f64
  %x = llvm.select %is_tiny, %scaled, %given : i1, f64
  %start = llvm.select %is_tiny, %shift, %k1 : i1, f64
  %word = llvm.bitcast %x : f64 to i64
  %above = llvm.sub %word, %root : i64
  %exponent = llvm.ashr %above, %k2 : i64
  %moved = llvm.shl %exponent, %k2 : i64
  %mantissa = llvm.sub %word, %moved : i64
  %m = llvm.bitcast %mantissa : i64 to f64
  %number = llvm.sitofp %exponent : i64 to f64
  %e = llvm.fadd %number, %start : f64
  %f = llvm.fsub %m, %k3 : f64
  %more = llvm.fadd %m, %k3 : f64
  %s = llvm.fdiv %f, %more : f64
  %square = llvm.fmul %s, %s : f64
  %p6 = llvm.intr.fma(%k11, %square, %k10) : (f64, f64, f64) -> f64
  %p5 = llvm.intr.fma(%p6, %square, %k9) : (f64, f64, f64) -> f64
  %p4 = llvm.intr.fma(%p5, %square, %k8) : (f64, f64, f64) -> f64
  %p3 = llvm.intr.fma(%p4, %square, %k7) : (f64, f64, f64) -> f64
  %p2 = llvm.intr.fma(%p3, %square, %k6) : (f64, f64, f64) -> f64
  %p1 = llvm.intr.fma(%p2, %square, %k5) : (f64, f64, f64) -> f64
  %p = llvm.intr.fma(%p1, %square, %k4) : (f64, f64, f64) -> f64
  %part = llvm.fmul %square, %p : f64
  %half = llvm.fmul %f, %k12 : f64
  %halved = llvm.fmul %half, %f : f64
  %bent0 = llvm.fadd %halved, %part : f64
  %rounded = llvm.fmul %s, %bent0 : f64
  %less = llvm.fsub %rounded, %halved : f64
  %tail = llvm.intr.fma(%e, %k13, %less) : (f64, f64, f64) -> f64
  %near = llvm.fadd %f, %tail : f64
  %finite = llvm.intr.fma(%e, %k14, %near) : (f64, f64, f64) -> f64
  %is_finite = llvm.fcmp "olt" %given, %infinity : f64
  %large = llvm.select %is_finite, %finite, %given : i1, f64
  %is_positive = llvm.fcmp "ugt" %given, %k1 : f64
  %is_zero = llvm.fcmp "oeq" %given, %k1 : f64
  %nothing = llvm.fsub %given, %given : f64
  %nan = llvm.fmul %nothing, %infinity : f64
  %beyond = llvm.select %is_zero, %least, %nan : i1, f64
  %y = llvm.select %is_positive, %large, %beyond : i1, f64
  llvm.return %y : f64
}

llvm.func internal @__nv_log2(%x: f64) -> f64 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1.4426950408889634 : f64) : f64
  %log = llvm.call @__nv_log(%x) : (f64) -> f64
  %y = llvm.fmul %log, %k1 : f64
  llvm.return %y : f64
}

llvm.func internal @__nv_log10(%x: f64) -> f64 attributes {always_inline} {
  %k1 = llvm.mlir.constant(0.4342944819032518 : f64) : f64
  %log = llvm.call @__nv_log(%x) : (f64) -> f64
  %y = llvm.fmul %log, %k1 : f64
  llvm.return %y : f64
}

llvm.func internal @__nv_exp2(%x: f64) -> f64 attributes {always_inline} {
  %k1 = llvm.mlir.constant(0.6931471805599453 : f64) : f64
  %k2 = llvm.mlir.constant(2.3190468138462996e-17 : f64) : f64
  %k4 = llvm.mlir.constant(1.0 : f64) : f64
  %k5 = llvm.mlir.constant(0.0 : f64) : f64
  %high = llvm.fmul %x, %k1 : f64
  %minus = llvm.fneg %high : f64
  %error = llvm.intr.fma(%x, %k1, %minus) : (f64, f64, f64) -> f64
  %small = llvm.intr.fma(%x, %k2, %error) : (f64, f64, f64) -> f64
  %power = llvm.call @__nv_exp(%high) : (f64) -> f64
  %t3 = llvm.intr.fabs(%small) : (f64) -> f64
  %is_finite = llvm.fcmp "olt" %t3, %k4 : f64
  %safe = llvm.select %is_finite, %small, %k5 : i1, f64
  %corrected = llvm.intr.fma(%power, %safe, %power) : (f64, f64, f64) -> f64
  %y = llvm.select %is_finite, %corrected, %power : i1, f64
  llvm.return %y : f64
}

llvm.func internal @__nv_rsqrt(%x: f64) -> f64 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1.0 : f64) : f64
  %root = llvm.intr.sqrt(%x) : (f64) -> f64
  %y = llvm.fdiv %k1, %root : f64
  llvm.return %y : f64
}

// exp(y log |x|), with the signs and ends that whole exponents have: y log x is rounded, so
// that the result is off by as many units as that is large.
llvm.func internal @__nv_pow(%x: f64, %y: f64) -> f64 attributes {always_inline} {
  %infinity = llvm.mlir.constant(0x7FF0000000000000 : f64) : f64
  %k1 = llvm.mlir.constant(1.0 : f64) : f64
  %k2 = llvm.mlir.constant(0.5 : f64) : f64
  %k3 = llvm.mlir.constant(0 : i64) : i64
  %k4 = llvm.mlir.constant(0.0 : f64) : f64
  %size = llvm.intr.fabs(%x) : (f64) -> f64
  %log = llvm.call @__nv_log(%size) : (f64) -> f64
  %product = llvm.fmul %y, %log : f64
  %computed = llvm.call @__nv_exp(%product) : (f64) -> f64
  %size_is_one = llvm.fcmp "oeq" %size, %k1 : f64
  %magnitude = llvm.select %size_is_one, %k1, %computed : i1, f64
  %whole = llvm.intr.trunc(%y) : (f64) -> f64
  %is_whole = llvm.fcmp "oeq" %whole, %y : f64
  %halved = llvm.fmul %y, %k2 : f64
  %whole_half = llvm.intr.trunc(%halved) : (f64) -> f64
  %is_even = llvm.fcmp "oeq" %whole_half, %halved : f64
  %minus = llvm.fneg %magnitude : f64
  %signed = llvm.select %is_even, %magnitude, %minus : i1, f64
  %nothing = llvm.fsub %y, %y : f64
  %nan = llvm.fmul %nothing, %infinity : f64
  %of_whole = llvm.select %is_whole, %signed, %nan : i1, f64
  %sign = llvm.bitcast %x : f64 to i64
  %is_negative = llvm.icmp "slt" %sign, %k3 : i64
  %is_zero = llvm.fcmp "oeq" %size, %k4 : f64
  %is_infinite = llvm.fcmp "oeq" %size, %infinity : f64
  %is_end = llvm.or %is_zero, %is_infinite : i1
  %fraction = llvm.select %is_end, %magnitude, %nan : i1, f64
  %of_negative = llvm.select %is_whole, %of_whole, %fraction : i1, f64
  %of_number = llvm.select %is_negative, %of_negative, %magnitude : i1, f64
  %is_number = llvm.fcmp "ord" %x, %x : f64
  %any = llvm.select %is_number, %of_number, %x : i1, f64
  %base_is_one = llvm.fcmp "oeq" %x, %k1 : f64
  %exponent_is_zero = llvm.fcmp "oeq" %y, %k4 : f64
  %is_one = llvm.or %base_is_one, %exponent_is_zero : i1
  %r = llvm.select %is_one, %k1, %any : i1, f64
  llvm.return %r : f64
}
