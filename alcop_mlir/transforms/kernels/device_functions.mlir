// Functions that upstream's conversions call and that CUDA has in libdevice, in f32.
// Each is good to a few units in the last place: test/compilation/test_device_functions.py
// has the bounds. Polynomials are fitted to the functions themselves, in the least
// squares of the relative error at Chebyshev nodes.

// What the hardware has: [PTX] ex2.approx and lg2.approx are good to 2^-22, the others to
// one or two units in the last place.

llvm.func internal @__nv_exp2f(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.inline_asm "ex2.approx.f32 $0, $1;", "=f,f" %x : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_rsqrtf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.inline_asm "rsqrt.approx.f32 $0, $1;", "=f,f" %x : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__alcop_rcpf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.inline_asm "rcp.approx.f32 $0, $1;", "=f,f" %x : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_sqrtf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.sqrt(%x) : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_fabsf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.fabs(%x) : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_floorf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.floor(%x) : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_ceilf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.ceil(%x) : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_truncf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.trunc(%x) : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_rintf(%x: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.roundeven(%x) : (f32) -> f32
  llvm.return %y : f32
}

// Away from zero at halves: adds the number just below 0.5, so that 0.49999997 stays 0.
llvm.func internal @__nv_roundf(%x: f32) -> f32 attributes {always_inline} {
  %half = llvm.mlir.constant(0x3EFFFFFF : f32) : f32
  %signed = llvm.intr.copysign(%half, %x) : (f32, f32) -> f32
  %sum = llvm.fadd %x, %signed : f32
  %y = llvm.intr.trunc(%sum) : (f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_copysignf(%x: f32, %s: f32) -> f32 attributes {always_inline} {
  %y = llvm.intr.copysign(%x, %s) : (f32, f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_fmaf(%x: f32, %y: f32, %z: f32) -> f32 attributes {always_inline} {
  %r = llvm.intr.fma(%x, %y, %z) : (f32, f32, f32) -> f32
  llvm.return %r : f32
}

llvm.func internal @__nv_fmaxf(%x: f32, %y: f32) -> f32 attributes {always_inline} {
  %r = llvm.intr.maxnum(%x, %y) : (f32, f32) -> f32
  llvm.return %r : f32
}

llvm.func internal @__nv_fminf(%x: f32, %y: f32) -> f32 attributes {always_inline} {
  %r = llvm.intr.minnum(%x, %y) : (f32, f32) -> f32
  llvm.return %r : f32
}

// In f64, what PTX has instructions for.

llvm.func internal @__nv_sqrt(%x: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.sqrt(%x) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_fabs(%x: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.fabs(%x) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_floor(%x: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.floor(%x) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_ceil(%x: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.ceil(%x) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_trunc(%x: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.trunc(%x) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_rint(%x: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.roundeven(%x) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_round(%x: f64) -> f64 attributes {always_inline} {
  %half = llvm.mlir.constant(0x3FDFFFFFFFFFFFFF : f64) : f64
  %signed = llvm.intr.copysign(%half, %x) : (f64, f64) -> f64
  %sum = llvm.fadd %x, %signed : f64
  %y = llvm.intr.trunc(%sum) : (f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_copysign(%x: f64, %s: f64) -> f64 attributes {always_inline} {
  %y = llvm.intr.copysign(%x, %s) : (f64, f64) -> f64
  llvm.return %y : f64
}

llvm.func internal @__nv_fma(%x: f64, %y: f64, %z: f64) -> f64 attributes {always_inline} {
  %r = llvm.intr.fma(%x, %y, %z) : (f64, f64, f64) -> f64
  llvm.return %r : f64
}

llvm.func internal @__nv_fmax(%x: f64, %y: f64) -> f64 attributes {always_inline} {
  %r = llvm.intr.maxnum(%x, %y) : (f64, f64) -> f64
  llvm.return %r : f64
}

llvm.func internal @__nv_fmin(%x: f64, %y: f64) -> f64 attributes {always_inline} {
  %r = llvm.intr.minnum(%x, %y) : (f64, f64) -> f64
  llvm.return %r : f64
}

// 2^(x log2 e - shift), the product kept in two parts. Beyond the clamp it is infinite or
// 0. The shift is exact.
llvm.func internal @__alcop_scaled_expf(%given: f32, %shift: f32) -> f32 attributes {always_inline} {
  %most = llvm.mlir.constant(91.0 : f32) : f32
  %least = llvm.mlir.constant(-104.0 : f32) : f32
  %log2e = llvm.mlir.constant(1.44269502 : f32) : f32
  %rest = llvm.mlir.constant(1.92596303e-8 : f32) : f32
  %ln2 = llvm.mlir.constant(0.693147182 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %low = llvm.intr.minimum(%given, %most) : (f32, f32) -> f32
  %x = llvm.intr.maximum(%low, %least) : (f32, f32) -> f32
  %high = llvm.fmul %x, %log2e : f32
  %minus = llvm.fneg %high : f32
  %error = llvm.intr.fma(%x, %log2e, %minus) : (f32, f32, f32) -> f32
  %small = llvm.intr.fma(%x, %rest, %error) : (f32, f32, f32) -> f32
  %shifted = llvm.fsub %high, %shift : f32
  %power = llvm.call @__nv_exp2f(%shifted) : (f32) -> f32
  %factor = llvm.intr.fma(%small, %ln2, %one) : (f32, f32, f32) -> f32
  %y = llvm.fmul %power, %factor : f32
  llvm.return %y : f32
}

llvm.func internal @__nv_expf(%x: f32) -> f32 attributes {always_inline} {
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %y = llvm.call @__alcop_scaled_expf(%x, %zero) : (f32, f32) -> f32
  llvm.return %y : f32
}

// x + x^2 p(x) near 0, where the other would cancel.
llvm.func internal @__nv_expm1f(%x: f32) -> f32 attributes {always_inline} {
  %c0 = llvm.mlir.constant(0.5 : f32) : f32
  %c1 = llvm.mlir.constant(0.166666687 : f32) : f32
  %c2 = llvm.mlir.constant(0.0416653156 : f32) : f32
  %c3 = llvm.mlir.constant(0.00833307486 : f32) : f32
  %c4 = llvm.mlir.constant(0.00139974686 : f32) : f32
  %c5 = llvm.mlir.constant(1.99925207e-4 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %p4 = llvm.intr.fma(%c5, %x, %c4) : (f32, f32, f32) -> f32
  %p3 = llvm.intr.fma(%p4, %x, %c3) : (f32, f32, f32) -> f32
  %p2 = llvm.intr.fma(%p3, %x, %c2) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %x, %c1) : (f32, f32, f32) -> f32
  %p0 = llvm.intr.fma(%p1, %x, %c0) : (f32, f32, f32) -> f32
  %square = llvm.fmul %x, %x : f32
  %near = llvm.intr.fma(%square, %p0, %x) : (f32, f32, f32) -> f32
  %power = llvm.call @__nv_expf(%x) : (f32) -> f32
  %far = llvm.fsub %power, %one : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %c0 : f32
  %y = llvm.select %is_near, %near, %far : i1, f32
  llvm.return %y : f32
}

// log(1 + f) + e ln 2, for 1 + f from sqrt(1/2) to sqrt(2): f - f^2/2 + f^3 p(f).
llvm.func internal @__alcop_logf(%f: f32, %e: f32) -> f32 attributes {always_inline} {
  %half = llvm.mlir.constant(-0.5 : f32) : f32
  %ln2_high = llvm.mlir.constant(0.693145752 : f32) : f32
  %ln2_low = llvm.mlir.constant(1.42860677e-6 : f32) : f32
  %c0 = llvm.mlir.constant(0.333333105 : f32) : f32
  %c1 = llvm.mlir.constant(-0.249999866 : f32) : f32
  %c2 = llvm.mlir.constant(0.200022265 : f32) : f32
  %c3 = llvm.mlir.constant(-0.16669251 : f32) : f32
  %c4 = llvm.mlir.constant(0.142186582 : f32) : f32
  %c5 = llvm.mlir.constant(-0.123843506 : f32) : f32
  %c6 = llvm.mlir.constant(0.1187298 : f32) : f32
  %c7 = llvm.mlir.constant(-0.11789798 : f32) : f32
  %c8 = llvm.mlir.constant(0.0691534877 : f32) : f32
  %p7 = llvm.intr.fma(%c8, %f, %c7) : (f32, f32, f32) -> f32
  %p6 = llvm.intr.fma(%p7, %f, %c6) : (f32, f32, f32) -> f32
  %p5 = llvm.intr.fma(%p6, %f, %c5) : (f32, f32, f32) -> f32
  %p4 = llvm.intr.fma(%p5, %f, %c4) : (f32, f32, f32) -> f32
  %p3 = llvm.intr.fma(%p4, %f, %c3) : (f32, f32, f32) -> f32
  %p2 = llvm.intr.fma(%p3, %f, %c2) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %f, %c1) : (f32, f32, f32) -> f32
  %p0 = llvm.intr.fma(%p1, %f, %c0) : (f32, f32, f32) -> f32
  %square = llvm.fmul %f, %f : f32
  %cube = llvm.fmul %square, %f : f32
  %small = llvm.fmul %e, %ln2_low : f32
  %tail = llvm.intr.fma(%cube, %p0, %small) : (f32, f32, f32) -> f32
  %bent = llvm.intr.fma(%half, %square, %tail) : (f32, f32, f32) -> f32
  %near = llvm.fadd %f, %bent : f32
  %finite = llvm.intr.fma(%e, %ln2_high, %near) : (f32, f32, f32) -> f32
  llvm.return %finite : f32
}

// x = m 2^e with m from sqrt(1/2) to sqrt(2).
llvm.func internal @__nv_logf(%given: f32) -> f32 attributes {always_inline} {
  %tiny = llvm.mlir.constant(1.17549435e-38 : f32) : f32
  %scale = llvm.mlir.constant(8388608.0 : f32) : f32
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %shift = llvm.mlir.constant(-23.0 : f32) : f32
  %root = llvm.mlir.constant(0x3F3504F3 : i32) : i32
  %bits = llvm.mlir.constant(23 : i32) : i32
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %least = llvm.mlir.constant(0xFF800000 : f32) : f32
  %is_tiny = llvm.fcmp "olt" %given, %tiny : f32
  %scaled = llvm.fmul %given, %scale : f32
  %x = llvm.select %is_tiny, %scaled, %given : i1, f32
  %start = llvm.select %is_tiny, %shift, %zero : i1, f32
  %word = llvm.bitcast %x : f32 to i32
  %above = llvm.sub %word, %root : i32
  %exponent = llvm.ashr %above, %bits : i32
  %moved = llvm.shl %exponent, %bits : i32
  %mantissa = llvm.sub %word, %moved : i32
  %m = llvm.bitcast %mantissa : i32 to f32
  %number = llvm.sitofp %exponent : i32 to f32
  %e = llvm.fadd %number, %start : f32
  %f = llvm.fsub %m, %one : f32
  %finite = llvm.call @__alcop_logf(%f, %e) : (f32, f32) -> f32
  %is_finite = llvm.fcmp "olt" %given, %infinity : f32
  %large = llvm.select %is_finite, %finite, %given : i1, f32
  %is_positive = llvm.fcmp "ugt" %given, %zero : f32
  %is_zero = llvm.fcmp "oeq" %given, %zero : f32
  // Not a constant: LLVM prints those that are no number in a way that older ones refuse.
  %nothing = llvm.fsub %given, %given : f32
  %nan = llvm.fmul %nothing, %infinity : f32
  %beyond = llvm.select %is_zero, %least, %nan : i1, f32
  %y = llvm.select %is_positive, %large, %beyond : i1, f32
  llvm.return %y : f32
}

// As log, but 1 + x is never rounded: x is scaled as 1 is.
llvm.func internal @__nv_log1pf(%x: f32) -> f32 attributes {always_inline} {
  %root = llvm.mlir.constant(1060439283 : i32) : i32
  %bits = llvm.mlir.constant(23 : i32) : i32
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %least = llvm.mlir.constant(0xFF800000 : f32) : f32
  %k1 = llvm.mlir.constant(1.0 : f32) : f32
  %four = llvm.mlir.constant(1082130432 : i32) : i32
  %quarter = llvm.mlir.constant(0.25 : f32) : f32
  %minus_one = llvm.mlir.constant(-1.0 : f32) : f32
  %sum = llvm.fadd %x, %k1 : f32
  %word = llvm.bitcast %sum : f32 to i32
  %above = llvm.sub %word, %root : i32
  %exponent = llvm.ashr %above, %bits : i32
  %moved = llvm.shl %exponent, %bits : i32
  %scale_word = llvm.sub %four, %moved : i32
  %scale = llvm.bitcast %scale_word : i32 to f32
  %less = llvm.intr.fma(%scale, %quarter, %minus_one) : (f32, f32, f32) -> f32
  %own_word = llvm.bitcast %x : f32 to i32
  %scaled_word = llvm.sub %own_word, %moved : i32
  %scaled = llvm.bitcast %scaled_word : i32 to f32
  %f = llvm.fadd %scaled, %less : f32
  %e = llvm.sitofp %exponent : i32 to f32
  %finite = llvm.call @__alcop_logf(%f, %e) : (f32, f32) -> f32
  %is_finite = llvm.fcmp "olt" %x, %infinity : f32
  %large = llvm.select %is_finite, %finite, %x : i1, f32
  %is_small = llvm.fcmp "oeq" %sum, %k1 : f32
  %any = llvm.select %is_small, %x, %large : i1, f32
  %is_end = llvm.fcmp "oeq" %x, %minus_one : f32
  %nothing = llvm.fsub %x, %x : f32
  %nan = llvm.fmul %nothing, %infinity : f32
  %beyond = llvm.select %is_end, %least, %nan : i1, f32
  %is_inside = llvm.fcmp "ugt" %x, %minus_one : f32
  %y = llvm.select %is_inside, %any, %beyond : i1, f32
  llvm.return %y : f32
}

llvm.func internal @__nv_log2f(%x: f32) -> f32 attributes {always_inline} {
  %factor = llvm.mlir.constant(1.44269502 : f32) : f32
  %rest = llvm.mlir.constant(1.92596303e-8 : f32) : f32
  %log = llvm.call @__nv_logf(%x) : (f32) -> f32
  %small = llvm.fmul %log, %rest : f32
  %y = llvm.intr.fma(%log, %factor, %small) : (f32, f32, f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_log10f(%x: f32) -> f32 attributes {always_inline} {
  %factor = llvm.mlir.constant(0.434294492 : f32) : f32
  %log = llvm.call @__nv_logf(%x) : (f32) -> f32
  %y = llvm.fmul %log, %factor : f32
  llvm.return %y : f32
}

// x + x^3 p(x^2) near 0; elsewhere 1 - 2 / (exp(2 |x|) + 1), with the sign of x.
llvm.func internal @__nv_tanhf(%x: f32) -> f32 attributes {always_inline} {
  %c0 = llvm.mlir.constant(-0.333332986 : f32) : f32
  %c1 = llvm.mlir.constant(0.133319587 : f32) : f32
  %c2 = llvm.mlir.constant(-0.0537866801 : f32) : f32
  %c3 = llvm.mlir.constant(0.0208053757 : f32) : f32
  %c4 = llvm.mlir.constant(-0.00590585778 : f32) : f32
  %limit = llvm.mlir.constant(0.6 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %minus_two = llvm.mlir.constant(-2.0 : f32) : f32
  %square = llvm.fmul %x, %x : f32
  %p3 = llvm.intr.fma(%c4, %square, %c3) : (f32, f32, f32) -> f32
  %p2 = llvm.intr.fma(%p3, %square, %c2) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %square, %c1) : (f32, f32, f32) -> f32
  %p0 = llvm.intr.fma(%p1, %square, %c0) : (f32, f32, f32) -> f32
  %cube = llvm.fmul %square, %x : f32
  %near = llvm.intr.fma(%cube, %p0, %x) : (f32, f32, f32) -> f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %twice = llvm.fadd %size, %size : f32
  %power = llvm.call @__nv_expf(%twice) : (f32) -> f32
  %more = llvm.fadd %power, %one : f32
  %part = llvm.call @__alcop_rcpf(%more) : (f32) -> f32
  %magnitude = llvm.intr.fma(%minus_two, %part, %one) : (f32, f32, f32) -> f32
  %far = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %limit : f32
  %y = llvm.select %is_near, %near, %far : i1, f32
  llvm.return %y : f32
}

// x p(x^2) up to 1; beyond, 1 - exp(q(|x|)): q is fitted to log(erfc(x)) from 1 to 4,
// where 1 is reached.
llvm.func internal @__nv_erff(%x: f32) -> f32 attributes {always_inline} {
  %c0 = llvm.mlir.constant(1.12837917 : f32) : f32
  %c1 = llvm.mlir.constant(-0.37612626 : f32) : f32
  %c2 = llvm.mlir.constant(0.112836003 : f32) : f32
  %c3 = llvm.mlir.constant(-0.0268544443 : f32) : f32
  %c4 = llvm.mlir.constant(0.00518953521 : f32) : f32
  %c5 = llvm.mlir.constant(-8.02083989e-4 : f32) : f32
  %c6 = llvm.mlir.constant(7.88911493e-5 : f32) : f32
  %d0 = llvm.mlir.constant(-3.41508858e-4 : f32) : f32
  %d1 = llvm.mlir.constant(-1.12708926 : f32) : f32
  %d2 = llvm.mlir.constant(-0.638144732 : f32) : f32
  %d3 = llvm.mlir.constant(-0.103106841 : f32) : f32
  %d4 = llvm.mlir.constant(0.0218381081 : f32) : f32
  %d5 = llvm.mlir.constant(-0.00294766971 : f32) : f32
  %d6 = llvm.mlir.constant(1.86380406e-4 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %four = llvm.mlir.constant(4.0 : f32) : f32
  %square = llvm.fmul %x, %x : f32
  %p5 = llvm.intr.fma(%c6, %square, %c5) : (f32, f32, f32) -> f32
  %p4 = llvm.intr.fma(%p5, %square, %c4) : (f32, f32, f32) -> f32
  %p3 = llvm.intr.fma(%p4, %square, %c3) : (f32, f32, f32) -> f32
  %p2 = llvm.intr.fma(%p3, %square, %c2) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %square, %c1) : (f32, f32, f32) -> f32
  %p0 = llvm.intr.fma(%p1, %square, %c0) : (f32, f32, f32) -> f32
  %near = llvm.fmul %x, %p0 : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %t = llvm.intr.minimum(%size, %four) : (f32, f32) -> f32
  %q5 = llvm.intr.fma(%d6, %t, %d5) : (f32, f32, f32) -> f32
  %q4 = llvm.intr.fma(%q5, %t, %d4) : (f32, f32, f32) -> f32
  %q3 = llvm.intr.fma(%q4, %t, %d3) : (f32, f32, f32) -> f32
  %q2 = llvm.intr.fma(%q3, %t, %d2) : (f32, f32, f32) -> f32
  %q1 = llvm.intr.fma(%q2, %t, %d1) : (f32, f32, f32) -> f32
  %q0 = llvm.intr.fma(%q1, %t, %d0) : (f32, f32, f32) -> f32
  %left = llvm.call @__nv_expf(%q0) : (f32) -> f32
  %magnitude = llvm.fsub %one, %left : f32
  %far = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %one : f32
  %y = llvm.select %is_near, %near, %far : i1, f32
  llvm.return %y : f32
}

// The power of a number that is not negative. log2 x = e + log2 m as for log, in f64: with
// s = (m - 1) / (m + 1), log2 m is 2 / ln 2 times s + s^3/3 + s^5/5 ..., up to s^13, as
// |s| < 0.172. Times y, in two parts.
llvm.func internal @__alcop_powerf(%size: f32, %y: f64) -> f32 attributes {always_inline} {
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %ln2 = llvm.mlir.constant(0.693147182 : f32) : f32
  %tiny = llvm.mlir.constant(1.17549435e-38 : f32) : f32
  %scale = llvm.mlir.constant(8388608.0 : f32) : f32
  %shift = llvm.mlir.constant(-23.0 : f64) : f64
  %root = llvm.mlir.constant(0x3F3504F3 : i32) : i32
  %bits = llvm.mlir.constant(23 : i32) : i32
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %wide_infinity = llvm.mlir.constant(0x7FF0000000000000 : f64) : f64
  %wide_least = llvm.mlir.constant(0xFFF0000000000000 : f64) : f64
  %most = llvm.mlir.constant(1000.0 : f64) : f64
  %least = llvm.mlir.constant(-1000.0 : f64) : f64
  %wide_zero = llvm.mlir.constant(0.0 : f64) : f64
  %wide_one = llvm.mlir.constant(1.0 : f64) : f64
  %factor = llvm.mlir.constant(2.8853900817779268 : f64) : f64
  %c1 = llvm.mlir.constant(0.33333333333333331 : f64) : f64
  %c2 = llvm.mlir.constant(0.2 : f64) : f64
  %c3 = llvm.mlir.constant(0.14285714285714285 : f64) : f64
  %c4 = llvm.mlir.constant(0.1111111111111111 : f64) : f64
  %c5 = llvm.mlir.constant(0.090909090909090912 : f64) : f64
  %c6 = llvm.mlir.constant(0.076923076923076927 : f64) : f64
  %is_tiny = llvm.fcmp "olt" %size, %tiny : f32
  %scaled = llvm.fmul %size, %scale : f32
  %normal = llvm.select %is_tiny, %scaled, %size : i1, f32
  %start = llvm.select %is_tiny, %shift, %wide_zero : i1, f64
  %word = llvm.bitcast %normal : f32 to i32
  %above = llvm.sub %word, %root : i32
  %exponent = llvm.ashr %above, %bits : i32
  %moved = llvm.shl %exponent, %bits : i32
  %mantissa = llvm.sub %word, %moved : i32
  %short = llvm.bitcast %mantissa : i32 to f32
  %m = llvm.fpext %short : f32 to f64
  %number = llvm.sitofp %exponent : i32 to f64
  %e = llvm.fadd %number, %start : f64
  %less = llvm.fsub %m, %wide_one : f64
  %more = llvm.fadd %m, %wide_one : f64
  %s = llvm.fdiv %less, %more : f64
  %square = llvm.fmul %s, %s : f64
  %p5 = llvm.intr.fma(%c6, %square, %c5) : (f64, f64, f64) -> f64
  %p4 = llvm.intr.fma(%p5, %square, %c4) : (f64, f64, f64) -> f64
  %p3 = llvm.intr.fma(%p4, %square, %c3) : (f64, f64, f64) -> f64
  %p2 = llvm.intr.fma(%p3, %square, %c2) : (f64, f64, f64) -> f64
  %p1 = llvm.intr.fma(%p2, %square, %c1) : (f64, f64, f64) -> f64
  %p0 = llvm.intr.fma(%p1, %square, %wide_one) : (f64, f64, f64) -> f64
  %sum = llvm.fmul %s, %p0 : f64
  %finite = llvm.intr.fma(%sum, %factor, %e) : (f64, f64, f64) -> f64
  %is_zero = llvm.fcmp "oeq" %size, %zero : f32
  %is_infinite = llvm.fcmp "oeq" %size, %infinity : f32
  %from_zero = llvm.select %is_zero, %wide_least, %finite : i1, f64
  %log = llvm.select %is_infinite, %wide_infinity, %from_zero : i1, f64
  %product = llvm.fmul %y, %log : f64
  %low = llvm.intr.minimum(%product, %most) : (f64, f64) -> f64
  %t = llvm.intr.maximum(%low, %least) : (f64, f64) -> f64
  %high = llvm.fptrunc %t : f64 to f32
  %back = llvm.fpext %high : f32 to f64
  %rest = llvm.fsub %t, %back : f64
  %small = llvm.fptrunc %rest : f64 to f32
  %power = llvm.call @__nv_exp2f(%high) : (f32) -> f32
  %correction = llvm.intr.fma(%small, %ln2, %one) : (f32, f32, f32) -> f32
  %computed = llvm.fmul %power, %correction : f32
  %size_is_one = llvm.fcmp "oeq" %size, %one : f32
  %magnitude = llvm.select %size_is_one, %one, %computed : i1, f32
  llvm.return %magnitude : f32
}

llvm.func internal @__nv_powf(%x: f32, %y: f32) -> f32 attributes {always_inline} {
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %half = llvm.mlir.constant(0.5 : f32) : f32
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %no_bits = llvm.mlir.constant(0 : i32) : i32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %wide_y = llvm.fpext %y : f32 to f64
  %magnitude = llvm.call @__alcop_powerf(%size, %wide_y) : (f32, f64) -> f32
  %is_zero = llvm.fcmp "oeq" %size, %zero : f32
  %is_infinite = llvm.fcmp "oeq" %size, %infinity : f32
  // Negative x: the sign of odd whole y; no number where y is not whole.
  %whole = llvm.intr.trunc(%y) : (f32) -> f32
  %is_whole = llvm.fcmp "oeq" %whole, %y : f32
  %halved = llvm.fmul %y, %half : f32
  %whole_half = llvm.intr.trunc(%halved) : (f32) -> f32
  %is_even = llvm.fcmp "oeq" %whole_half, %halved : f32
  %minus = llvm.fneg %magnitude : f32
  %signed = llvm.select %is_even, %magnitude, %minus : i1, f32
  %nothing = llvm.fsub %y, %y : f32
  %nan = llvm.fmul %nothing, %infinity : f32
  %of_whole = llvm.select %is_whole, %signed, %nan : i1, f32
  %sign = llvm.bitcast %x : f32 to i32
  %is_negative = llvm.icmp "slt" %sign, %no_bits : i32
  // Zero and infinity have powers of any exponent, and only whole ones keep the sign.
  %is_end = llvm.or %is_zero, %is_infinite : i1
  %fraction = llvm.select %is_end, %magnitude, %nan : i1, f32
  %of_negative = llvm.select %is_whole, %of_whole, %fraction : i1, f32
  %of_number = llvm.select %is_negative, %of_negative, %magnitude : i1, f32
  %is_number = llvm.fcmp "ord" %x, %x : f32
  %any = llvm.select %is_number, %of_number, %x : i1, f32
  %base_is_one = llvm.fcmp "oeq" %x, %one : f32
  %exponent_is_zero = llvm.fcmp "oeq" %y, %zero : f32
  %is_one = llvm.or %base_is_one, %exponent_is_zero : i1
  %r = llvm.select %is_one, %one, %any : i1, f32
  llvm.return %r : f32
}

llvm.func internal @__nv_cbrtf(%x: f32) -> f32 attributes {always_inline} {
  %third = llvm.mlir.constant(0.3333333333333333 : f64) : f64
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %magnitude = llvm.call @__alcop_powerf(%size, %third) : (f32, f64) -> f32
  %y = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  %is_number = llvm.fcmp "ord" %x, %x : f32
  %z = llvm.select %is_number, %y, %x : i1, f32
  llvm.return %z : f32
}

// The rest of a division, exactly: of mantissas as integers, 40 bits of the quotient at a time.
llvm.func internal @__nv_fmodf(%x: f32, %y: f32) -> f32 attributes {always_inline} {
  %true = llvm.mlir.constant(true) : i1
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %step = llvm.mlir.constant(40 : i32) : i32
  %k1 = llvm.mlir.constant(23 : i32) : i32
  %k2 = llvm.mlir.constant(8388607 : i32) : i32
  %k3 = llvm.mlir.constant(8388608 : i32) : i32
  %k4 = llvm.mlir.constant(0 : i32) : i32
  %k5 = llvm.mlir.constant(1 : i32) : i32
  %k6 = llvm.mlir.constant(0.0 : f32) : f32
  %k7 = llvm.mlir.constant(873 : i32) : i32
  %k8 = llvm.mlir.constant(52 : i64) : i64
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %by = llvm.intr.fabs(%y) : (f32) -> f32
  %x_word = llvm.bitcast %size : f32 to i32
  %y_word = llvm.bitcast %by : f32 to i32
  %x_field = llvm.lshr %x_word, %k1 : i32
  %y_field = llvm.lshr %y_word, %k1 : i32
  %x_fraction = llvm.and %x_word, %k2 : i32
  %y_fraction = llvm.and %y_word, %k2 : i32
  %x_whole = llvm.or %x_fraction, %k3 : i32
  %y_whole = llvm.or %y_fraction, %k3 : i32
  %x_is_tiny = llvm.icmp "eq" %x_field, %k4 : i32
  %y_is_tiny = llvm.icmp "eq" %y_field, %k4 : i32
  %x_mantissa = llvm.select %x_is_tiny, %x_fraction, %x_whole : i1, i32
  %y_mantissa = llvm.select %y_is_tiny, %y_fraction, %y_whole : i1, i32
  %x_exponent = llvm.select %x_is_tiny, %k5, %x_field : i1, i32
  %y_exponent = llvm.select %y_is_tiny, %k5, %y_field : i1, i32
  %first = llvm.zext %x_mantissa : i32 to i64
  %divisor = llvm.zext %y_mantissa : i32 to i64
  %distance = llvm.sub %x_exponent, %y_exponent : i32
  %nothing = llvm.fsub %x, %x : f32
  %from_x = llvm.fmul %nothing, %y : f32
  %nan = llvm.fmul %from_x, %infinity : f32
  %is_zero = llvm.fcmp "oeq" %by, %k6 : f32
  %is_infinite = llvm.fcmp "oeq" %size, %infinity : f32
  %are_numbers = llvm.fcmp "ord" %x, %y : f32
  %is_end = llvm.or %is_zero, %is_infinite : i1
  %is_less = llvm.fcmp "olt" %size, %by : f32
  %is_quick = llvm.or %is_end, %is_less : i1
  %is_over = llvm.select %are_numbers, %is_quick, %true : i1, i1
  %quick = llvm.select %is_less, %x, %nan : i1, f32
  llvm.cond_br %is_over, ^end(%quick : f32), ^loop(%first, %distance : i64, i32)
^loop(%rest: i64, %left: i32):
  %is_last = llvm.icmp "slt" %left, %step : i32
  %now = llvm.select %is_last, %left, %step : i1, i32
  %wide = llvm.zext %now : i32 to i64
  %moved = llvm.shl %rest, %wide : i64
  %new = llvm.urem %moved, %divisor : i64
  %new_left = llvm.sub %left, %now : i32
  %is_done = llvm.icmp "eq" %new_left, %k4 : i32
  llvm.cond_br %is_done, ^done, ^loop(%new, %new_left : i64, i32)
^done:
  %number = llvm.uitofp %new : i64 to f64
  %shifted = llvm.add %y_exponent, %k7 : i32
  %wide_exponent = llvm.zext %shifted : i32 to i64
  %power_word = llvm.shl %wide_exponent, %k8 : i64
  %power = llvm.bitcast %power_word : i64 to f64
  %scaled = llvm.fmul %number, %power : f64
  %short = llvm.fptrunc %scaled : f64 to f32
  %signed = llvm.intr.copysign(%short, %x) : (f32, f32) -> f32
  llvm.br ^end(%signed : f32)
^end(%r: f32):
  llvm.return %r : f32
}

// math.absi of i32; of other widths upstream makes the intrinsic itself.
llvm.func internal @__nv_abs(%x: i32) -> i32 attributes {always_inline} {
  %r = "llvm.intr.abs"(%x) <{is_int_min_poison = false}> : (i32) -> i32
  llvm.return %r : i32
}
