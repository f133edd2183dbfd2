// Trigonometric and hyperbolic functions of f32, as in device_functions.mlir.

// x as a rest from -pi/4 to pi/4 and a count of quarter turns, of which the last two bits
// count. Up to 105615 pi/2 is subtracted in three parts (Cody and Waite). Beyond, those 96
// bits of 2/pi are multiplied by the mantissa that whole turns and the last bits of the
// result do not need (Payne and Hanek): fixed point, 62 bits behind the point.
llvm.func internal @__alcop_turnsf(%x: f32) -> !llvm.struct<(f32, i32)> attributes {always_inline} {
  %most = llvm.mlir.constant(105615.0 : f32) : f32
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %factor = llvm.mlir.constant(0.63661975 : f32) : f32
  %magic = llvm.mlir.constant(1.2582912e+07 : f32) : f32
  %high = llvm.mlir.constant(-1.5707964 : f32) : f32
  %middle = llvm.mlir.constant(4.371139e-08 : f32) : f32
  %low = llvm.mlir.constant(1.7151245e-15 : f32) : f32
  %w0 = llvm.mlir.constant(0 : i64) : i64
  %w1 = llvm.mlir.constant(2734261102 : i64) : i64
  %w2 = llvm.mlir.constant(1313084713 : i64) : i64
  %w3 = llvm.mlir.constant(4230436817 : i64) : i64
  %w4 = llvm.mlir.constant(4113882560 : i64) : i64
  %w5 = llvm.mlir.constant(3680671129 : i64) : i64
  %w6 = llvm.mlir.constant(1011060801 : i64) : i64
  %w7 = llvm.mlir.constant(4266746795 : i64) : i64
  %k1 = llvm.mlir.constant(0.0 : f32) : f32
  %k2 = llvm.mlir.constant(23 : i32) : i32
  %k3 = llvm.mlir.constant(255 : i32) : i32
  %k4 = llvm.mlir.constant(8388607 : i32) : i32
  %k5 = llvm.mlir.constant(8388608 : i32) : i32
  %k6 = llvm.mlir.constant(120 : i32) : i32
  %k7 = llvm.mlir.constant(5 : i32) : i32
  %k8 = llvm.mlir.constant(0 : i32) : i32
  %k9 = llvm.mlir.constant(1 : i32) : i32
  %k10 = llvm.mlir.constant(2 : i32) : i32
  %k11 = llvm.mlir.constant(3 : i32) : i32
  %k12 = llvm.mlir.constant(32 : i64) : i64
  %k13 = llvm.mlir.constant(31 : i32) : i32
  %k14 = llvm.mlir.constant(2305843009213693952 : i64) : i64
  %k15 = llvm.mlir.constant(62 : i64) : i64
  %k16 = llvm.mlir.constant(3.4061215800865545e-19 : f64) : f64
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_large = llvm.fcmp "ogt" %size, %most : f32
  %is_finite = llvm.fcmp "olt" %size, %infinity : f32
  %is_far = llvm.and %is_large, %is_finite : i1
  llvm.cond_br %is_far, ^far, ^near
^near:
  %moved = llvm.intr.fma(%x, %factor, %magic) : (f32, f32, f32) -> f32
  %turns = llvm.fsub %moved, %magic : f32
  %rest0 = llvm.intr.fma(%turns, %high, %x) : (f32, f32, f32) -> f32
  %rest1 = llvm.intr.fma(%turns, %middle, %rest0) : (f32, f32, f32) -> f32
  %rest2 = llvm.intr.fma(%turns, %low, %rest1) : (f32, f32, f32) -> f32
  %is_zero = llvm.fcmp "oeq" %turns, %k1 : f32
  %rest = llvm.select %is_zero, %x, %rest2 : i1, f32
  %count = llvm.bitcast %moved : f32 to i32
  llvm.br ^end(%rest, %count : f32, i32)
^far:
  %word = llvm.bitcast %x : f32 to i32
  %shifted = llvm.lshr %word, %k2 : i32
  %field = llvm.and %shifted, %k3 : i32
  %fraction = llvm.and %word, %k4 : i32
  %whole = llvm.or %fraction, %k5 : i32
  %mantissa = llvm.zext %whole : i32 to i64
  %first = llvm.sub %field, %k6 : i32
  %number = llvm.lshr %first, %k7 : i32
  %is0 = llvm.icmp "eq" %number, %k8 : i32
  %is1 = llvm.icmp "eq" %number, %k9 : i32
  %is2 = llvm.icmp "eq" %number, %k10 : i32
  %is3 = llvm.icmp "eq" %number, %k11 : i32
  %a3 = llvm.select %is3, %w3, %w4 : i1, i64
  %a2 = llvm.select %is2, %w2, %a3 : i1, i64
  %a1 = llvm.select %is1, %w1, %a2 : i1, i64
  %a = llvm.select %is0, %w0, %a1 : i1, i64
  %b3 = llvm.select %is3, %w4, %w5 : i1, i64
  %b2 = llvm.select %is2, %w3, %b3 : i1, i64
  %b1 = llvm.select %is1, %w2, %b2 : i1, i64
  %b = llvm.select %is0, %w1, %b1 : i1, i64
  %c3 = llvm.select %is3, %w5, %w6 : i1, i64
  %c2 = llvm.select %is2, %w4, %c3 : i1, i64
  %c1 = llvm.select %is1, %w3, %c2 : i1, i64
  %c = llvm.select %is0, %w2, %c1 : i1, i64
  %d3 = llvm.select %is3, %w6, %w7 : i1, i64
  %d2 = llvm.select %is2, %w5, %d3 : i1, i64
  %d1 = llvm.select %is1, %w4, %d2 : i1, i64
  %d = llvm.select %is0, %w3, %d1 : i1, i64
  %upper0 = llvm.shl %a, %k12 : i64
  %upper = llvm.or %upper0, %b : i64
  %lower0 = llvm.shl %c, %k12 : i64
  %lower = llvm.or %lower0, %d : i64
  %bits = llvm.and %first, %k13 : i32
  %wide_bits = llvm.zext %bits : i32 to i64
  %window = llvm.intr.fshl(%upper, %lower, %wide_bits) : (i64, i64, i64) -> i64
  %behind = llvm.shl %lower, %wide_bits : i64
  %behind32 = llvm.lshr %behind, %k12 : i64
  %product = llvm.mul %mantissa, %window : i64
  %small = llvm.mul %mantissa, %behind32 : i64
  %carried = llvm.lshr %small, %k12 : i64
  %fixed = llvm.add %product, %carried : i64
  %rounded = llvm.add %fixed, %k14 : i64
  %quarters = llvm.lshr %rounded, %k15 : i64
  %removed = llvm.shl %quarters, %k15 : i64
  %left = llvm.sub %fixed, %removed : i64
  %left64 = llvm.sitofp %left : i64 to f64
  %angle64 = llvm.fmul %left64, %k16 : f64
  %angle = llvm.fptrunc %angle64 : f64 to f32
  %unsigned = llvm.trunc %quarters : i64 to i32
  %negated = llvm.sub %k8, %unsigned : i32
  %minus = llvm.fneg %angle : f32
  %is_negative = llvm.icmp "slt" %word, %k8 : i32
  %far_rest = llvm.select %is_negative, %minus, %angle : i1, f32
  %far_count = llvm.select %is_negative, %negated, %unsigned : i1, i32
  llvm.br ^end(%far_rest, %far_count : f32, i32)
^end(%r: f32, %n: i32):
  %t17 = llvm.mlir.undef : !llvm.struct<(f32, i32)>
  %t18 = llvm.insertvalue %r, %t17[0] : !llvm.struct<(f32, i32)>
  %both = llvm.insertvalue %n, %t18[1] : !llvm.struct<(f32, i32)>
  llvm.return %both : !llvm.struct<(f32, i32)>
}

// Of a rest: x + x^3 p(x^2), and 1 + x^2 p(x^2).
llvm.func internal @__alcop_near_sinf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(-0.16666655 : f32) : f32
  %k2 = llvm.mlir.constant(0.008332191 : f32) : f32
  %k3 = llvm.mlir.constant(-0.00019518599 : f32) : f32
  %square = llvm.fmul %x, %x : f32
  %s1 = llvm.intr.fma(%k3, %square, %k2) : (f32, f32, f32) -> f32
  %s = llvm.intr.fma(%s1, %square, %k1) : (f32, f32, f32) -> f32
  %cube = llvm.fmul %square, %x : f32
  %y = llvm.intr.fma(%cube, %s, %x) : (f32, f32, f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__alcop_near_cosf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(-0.5 : f32) : f32
  %k2 = llvm.mlir.constant(0.041666646 : f32) : f32
  %k3 = llvm.mlir.constant(-0.0013887301 : f32) : f32
  %k4 = llvm.mlir.constant(2.4430668e-05 : f32) : f32
  %k5 = llvm.mlir.constant(1.0 : f32) : f32
  %square = llvm.fmul %x, %x : f32
  %c2 = llvm.intr.fma(%k4, %square, %k3) : (f32, f32, f32) -> f32
  %c1 = llvm.intr.fma(%c2, %square, %k2) : (f32, f32, f32) -> f32
  %c = llvm.intr.fma(%c1, %square, %k1) : (f32, f32, f32) -> f32
  %y = llvm.intr.fma(%square, %c, %k5) : (f32, f32, f32) -> f32
  llvm.return %y : f32
}

// The sine after so many quarter turns more.
llvm.func internal @__alcop_turned_sinf(%x: f32, %more: i32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1 : i32) : i32
  %k2 = llvm.mlir.constant(0 : i32) : i32
  %k3 = llvm.mlir.constant(2 : i32) : i32
  %turned = llvm.call @__alcop_turnsf(%x) : (f32) -> !llvm.struct<(f32, i32)>
  %r = llvm.extractvalue %turned[0] : !llvm.struct<(f32, i32)>
  %found = llvm.extractvalue %turned[1] : !llvm.struct<(f32, i32)>
  %n = llvm.add %found, %more : i32
  %sine = llvm.call @__alcop_near_sinf(%r) : (f32) -> f32
  %cosine = llvm.call @__alcop_near_cosf(%r) : (f32) -> f32
  %odd = llvm.and %n, %k1 : i32
  %is_odd = llvm.icmp "ne" %odd, %k2 : i32
  %magnitude = llvm.select %is_odd, %cosine, %sine : i1, f32
  %minus = llvm.fneg %magnitude : f32
  %second = llvm.and %n, %k3 : i32
  %is_second = llvm.icmp "ne" %second, %k2 : i32
  %y = llvm.select %is_second, %minus, %magnitude : i1, f32
  llvm.return %y : f32
}

llvm.func internal @__nv_sinf(%x: f32) -> f32 attributes {always_inline} {
  %none = llvm.mlir.constant(0 : i32) : i32
  %y = llvm.call @__alcop_turned_sinf(%x, %none) : (f32, i32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_cosf(%x: f32) -> f32 attributes {always_inline} {
  %one = llvm.mlir.constant(1 : i32) : i32
  %y = llvm.call @__alcop_turned_sinf(%x, %one) : (f32, i32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_tanf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1 : i32) : i32
  %k2 = llvm.mlir.constant(0 : i32) : i32
  %turned = llvm.call @__alcop_turnsf(%x) : (f32) -> !llvm.struct<(f32, i32)>
  %r = llvm.extractvalue %turned[0] : !llvm.struct<(f32, i32)>
  %n = llvm.extractvalue %turned[1] : !llvm.struct<(f32, i32)>
  %sine = llvm.call @__alcop_near_sinf(%r) : (f32) -> f32
  %cosine = llvm.call @__alcop_near_cosf(%r) : (f32) -> f32
  %minus = llvm.fneg %cosine : f32
  %odd = llvm.and %n, %k1 : i32
  %is_odd = llvm.icmp "ne" %odd, %k2 : i32
  %over = llvm.select %is_odd, %minus, %sine : i1, f32
  %under = llvm.select %is_odd, %sine, %cosine : i1, f32
  %y = llvm.fdiv %over, %under : f32
  llvm.return %y : f32
}

// From 0 to 1: x + x^3 p(x^2).
llvm.func internal @__alcop_near_atanf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(-0.333333 : f32) : f32
  %k2 = llvm.mlir.constant(0.19998531 : f32) : f32
  %k3 = llvm.mlir.constant(-0.14264052 : f32) : f32
  %k4 = llvm.mlir.constant(0.10951175 : f32) : f32
  %k5 = llvm.mlir.constant(-0.08400475 : f32) : f32
  %k6 = llvm.mlir.constant(0.057906546 : f32) : f32
  %k7 = llvm.mlir.constant(-0.031127002 : f32) : f32
  %k8 = llvm.mlir.constant(0.010887361 : f32) : f32
  %k9 = llvm.mlir.constant(-0.0017875476 : f32) : f32
  %square = llvm.fmul %x, %x : f32
  %p7 = llvm.intr.fma(%k9, %square, %k8) : (f32, f32, f32) -> f32
  %p6 = llvm.intr.fma(%p7, %square, %k7) : (f32, f32, f32) -> f32
  %p5 = llvm.intr.fma(%p6, %square, %k6) : (f32, f32, f32) -> f32
  %p4 = llvm.intr.fma(%p5, %square, %k5) : (f32, f32, f32) -> f32
  %p3 = llvm.intr.fma(%p4, %square, %k4) : (f32, f32, f32) -> f32
  %p2 = llvm.intr.fma(%p3, %square, %k3) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %square, %k2) : (f32, f32, f32) -> f32
  %p = llvm.intr.fma(%p1, %square, %k1) : (f32, f32, f32) -> f32
  %cube = llvm.fmul %square, %x : f32
  %y = llvm.intr.fma(%cube, %p, %x) : (f32, f32, f32) -> f32
  llvm.return %y : f32
}

// pi/2 - x, with pi/2 in two parts.
llvm.func internal @__alcop_complementf(%x: f32) -> f32 attributes {always_inline} {
  %high = llvm.mlir.constant(1.5707964 : f32) : f32
  %low = llvm.mlir.constant(-4.371139e-08 : f32) : f32
  %less = llvm.fsub %high, %x : f32
  %y = llvm.fadd %less, %low : f32
  llvm.return %y : f32
}

llvm.func internal @__nv_atanf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1.0 : f32) : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_far = llvm.fcmp "ogt" %size, %k1 : f32
  %inverse = llvm.fdiv %k1, %size : f32
  %t = llvm.select %is_far, %inverse, %size : i1, f32
  %near = llvm.call @__alcop_near_atanf(%t) : (f32) -> f32
  %far = llvm.call @__alcop_complementf(%near) : (f32) -> f32
  %magnitude = llvm.select %is_far, %far, %near : i1, f32
  %y = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  llvm.return %y : f32
}

// The angle of the smaller over the larger, mirrored where y is larger, and where x is negative.
llvm.func internal @__nv_atan2f(%y: f32, %x: f32) -> f32 attributes {always_inline} {
  %high = llvm.mlir.constant(3.1415927 : f32) : f32
  %low = llvm.mlir.constant(-8.742278e-08 : f32) : f32
  %k1 = llvm.mlir.constant(0.0 : f32) : f32
  %k2 = llvm.mlir.constant(1.0 : f32) : f32
  %k3 = llvm.mlir.constant(0 : i32) : i32
  %up = llvm.intr.fabs(%y) : (f32) -> f32
  %along = llvm.intr.fabs(%x) : (f32) -> f32
  %least = llvm.intr.minimum(%up, %along) : (f32, f32) -> f32
  %most = llvm.intr.maximum(%up, %along) : (f32, f32) -> f32
  %quotient = llvm.fdiv %least, %most : f32
  %is_nothing = llvm.fcmp "oeq" %most, %k1 : f32
  %are_equal = llvm.fcmp "oeq" %least, %most : f32
  %from_equal = llvm.select %are_equal, %k2, %quotient : i1, f32
  %t = llvm.select %is_nothing, %k1, %from_equal : i1, f32
  %near = llvm.call @__alcop_near_atanf(%t) : (f32) -> f32
  %mirrored = llvm.call @__alcop_complementf(%near) : (f32) -> f32
  %is_steep = llvm.fcmp "ogt" %up, %along : f32
  %angle = llvm.select %is_steep, %mirrored, %near : i1, f32
  %less = llvm.fsub %high, %angle : f32
  %back = llvm.fadd %less, %low : f32
  %word = llvm.bitcast %x : f32 to i32
  %is_negative = llvm.icmp "slt" %word, %k3 : i32
  %magnitude = llvm.select %is_negative, %back, %angle : i1, f32
  %z = llvm.intr.copysign(%magnitude, %y) : (f32, f32) -> f32
  llvm.return %z : f32
}

// t + t^3 p(t^2) up to 1/2, of t = |x|; beyond, of t = sqrt((1 - |x|) / 2), as asin |x| is
// pi/2 - 2 asin t.
llvm.func internal @__alcop_near_asinf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(0.5 : f32) : f32
  %k2 = llvm.mlir.constant(1.0 : f32) : f32
  %k3 = llvm.mlir.constant(0.16666752 : f32) : f32
  %k4 = llvm.mlir.constant(0.07495307 : f32) : f32
  %k5 = llvm.mlir.constant(0.04546964 : f32) : f32
  %k6 = llvm.mlir.constant(0.024181498 : f32) : f32
  %k7 = llvm.mlir.constant(0.04216512 : f32) : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %k1 : f32
  %less = llvm.fsub %k2, %size : f32
  %half = llvm.fmul %less, %k1 : f32
  %root = llvm.intr.sqrt(%half) : (f32) -> f32
  %own = llvm.fmul %size, %size : f32
  %t = llvm.select %is_near, %size, %root : i1, f32
  %square = llvm.select %is_near, %own, %half : i1, f32
  %p3 = llvm.intr.fma(%k7, %square, %k6) : (f32, f32, f32) -> f32
  %p2 = llvm.intr.fma(%p3, %square, %k5) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %square, %k4) : (f32, f32, f32) -> f32
  %p = llvm.intr.fma(%p1, %square, %k3) : (f32, f32, f32) -> f32
  %cube = llvm.fmul %square, %t : f32
  %y = llvm.intr.fma(%cube, %p, %t) : (f32, f32, f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_asinf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(0.5 : f32) : f32
  %near = llvm.call @__alcop_near_asinf(%x) : (f32) -> f32
  %twice = llvm.fadd %near, %near : f32
  %far = llvm.call @__alcop_complementf(%twice) : (f32) -> f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %k1 : f32
  %magnitude = llvm.select %is_near, %near, %far : i1, f32
  %y = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_acosf(%x: f32) -> f32 attributes {always_inline} {
  %high = llvm.mlir.constant(3.1415927 : f32) : f32
  %low = llvm.mlir.constant(-8.742278e-08 : f32) : f32
  %k1 = llvm.mlir.constant(0.0 : f32) : f32
  %k2 = llvm.mlir.constant(0.5 : f32) : f32
  %near = llvm.call @__alcop_near_asinf(%x) : (f32) -> f32
  %signed = llvm.intr.copysign(%near, %x) : (f32, f32) -> f32
  %middle = llvm.call @__alcop_complementf(%signed) : (f32) -> f32
  %twice = llvm.fadd %near, %near : f32
  %less = llvm.fsub %high, %twice : f32
  %back = llvm.fadd %less, %low : f32
  %is_positive = llvm.fcmp "ogt" %x, %k1 : f32
  %far = llvm.select %is_positive, %twice, %back : i1, f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %k2 : f32
  %y = llvm.select %is_near, %middle, %far : i1, f32
  llvm.return %y : f32
}

// x + x^3 p(x^2) up to 1, beyond by exponentials: a quarter of them, as exp(x) overflows
// before sinh(x) does.
llvm.func internal @__nv_sinhf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(0.16666667 : f32) : f32
  %k2 = llvm.mlir.constant(0.0083333105 : f32) : f32
  %k3 = llvm.mlir.constant(0.00019842896 : f32) : f32
  %k4 = llvm.mlir.constant(2.7822132e-06 : f32) : f32
  %two = llvm.mlir.constant(2.0 : f32) : f32
  %k5 = llvm.mlir.constant(-0.125 : f32) : f32
  %k6 = llvm.mlir.constant(1.0 : f32) : f32
  %square = llvm.fmul %x, %x : f32
  %p2 = llvm.intr.fma(%k4, %square, %k3) : (f32, f32, f32) -> f32
  %p1 = llvm.intr.fma(%p2, %square, %k2) : (f32, f32, f32) -> f32
  %p = llvm.intr.fma(%p1, %square, %k1) : (f32, f32, f32) -> f32
  %cube = llvm.fmul %square, %x : f32
  %near = llvm.intr.fma(%cube, %p, %x) : (f32, f32, f32) -> f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %quarter = llvm.call @__alcop_scaled_expf(%size, %two) : (f32, f32) -> f32
  %inverse = llvm.call @__alcop_rcpf(%quarter) : (f32) -> f32
  %small = llvm.fmul %inverse, %k5 : f32
  %magnitude = llvm.intr.fma(%quarter, %two, %small) : (f32, f32, f32) -> f32
  %far = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  %is_near = llvm.fcmp "olt" %size, %k6 : f32
  %y = llvm.select %is_near, %near, %far : i1, f32
  llvm.return %y : f32
}

llvm.func internal @__nv_coshf(%x: f32) -> f32 attributes {always_inline} {
  %two = llvm.mlir.constant(2.0 : f32) : f32
  %k1 = llvm.mlir.constant(0.125 : f32) : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %quarter = llvm.call @__alcop_scaled_expf(%size, %two) : (f32, f32) -> f32
  %inverse = llvm.call @__alcop_rcpf(%quarter) : (f32) -> f32
  %small = llvm.fmul %inverse, %k1 : f32
  %y = llvm.intr.fma(%quarter, %two, %small) : (f32, f32, f32) -> f32
  llvm.return %y : f32
}

// log(|x| + sqrt(x^2 + 1)); log(2 |x|) where x^2 is not needed.
llvm.func internal @__nv_asinhf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(8192.0 : f32) : f32
  %k2 = llvm.mlir.constant(1.0 : f32) : f32
  %k3 = llvm.mlir.constant(0.6931472 : f32) : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %is_far = llvm.fcmp "ogt" %size, %k1 : f32
  %square = llvm.fmul %size, %size : f32
  %more = llvm.fadd %square, %k2 : f32
  %root = llvm.intr.sqrt(%more) : (f32) -> f32
  %under = llvm.fadd %root, %k2 : f32
  %part_ = llvm.fdiv %square, %under : f32
  %near = llvm.fadd %size, %part_ : f32
  %less = llvm.fsub %size, %k2 : f32
  %u = llvm.select %is_far, %less, %near : i1, f32
  %log = llvm.call @__nv_log1pf(%u) : (f32) -> f32
  %twice = llvm.fadd %log, %k3 : f32
  %magnitude = llvm.select %is_far, %twice, %log : i1, f32
  %y = llvm.intr.copysign(%magnitude, %x) : (f32, f32) -> f32
  llvm.return %y : f32
}

llvm.func internal @__nv_acoshf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1.0 : f32) : f32
  %k2 = llvm.mlir.constant(8192.0 : f32) : f32
  %k3 = llvm.mlir.constant(0.6931472 : f32) : f32
  %k4 = llvm.mlir.constant(0.0 : f32) : f32
  %infinity = llvm.mlir.constant(0x7F800000 : f32) : f32
  %t = llvm.fsub %x, %k1 : f32
  %is_far = llvm.fcmp "ogt" %x, %k2 : f32
  %twice = llvm.fadd %t, %t : f32
  %square = llvm.intr.fma(%t, %t, %twice) : (f32, f32, f32) -> f32
  %root = llvm.intr.sqrt(%square) : (f32) -> f32
  %more = llvm.fadd %t, %root : f32
  %u = llvm.select %is_far, %t, %more : i1, f32
  %log = llvm.call @__nv_log1pf(%u) : (f32) -> f32
  %far = llvm.fadd %log, %k3 : f32
  %y = llvm.select %is_far, %far, %log : i1, f32
  %is_below = llvm.fcmp "olt" %t, %k4 : f32
  %nothing = llvm.fsub %x, %x : f32
  %nan = llvm.fmul %nothing, %infinity : f32
  %z = llvm.select %is_below, %nan, %y : i1, f32
  llvm.return %z : f32
}

llvm.func internal @__nv_atanhf(%x: f32) -> f32 attributes {always_inline} {
  %k1 = llvm.mlir.constant(1.0 : f32) : f32
  %k2 = llvm.mlir.constant(0.5 : f32) : f32
  %size = llvm.intr.fabs(%x) : (f32) -> f32
  %less = llvm.fsub %k1, %size : f32
  %twice = llvm.fadd %size, %size : f32
  %u = llvm.fdiv %twice, %less : f32
  %log = llvm.call @__nv_log1pf(%u) : (f32) -> f32
  %half = llvm.fmul %log, %k2 : f32
  %y = llvm.intr.copysign(%half, %x) : (f32, f32) -> f32
  llvm.return %y : f32
}
