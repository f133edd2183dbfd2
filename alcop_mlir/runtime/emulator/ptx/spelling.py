"""The order of an opcode's modifiers: any that ptxas takes becomes that of the PTX ISA.

    mul.f32.ftz.rn              becomes  mul.rn.ftz.f32
    shfl.idx.b32.sync           becomes  shfl.sync.idx.b32
    bar.red.aligned.popc.u32    becomes  bar.red.popc.aligned.u32

    add.sat.s32.sat          becomes  add.sat.s32

ptxas reads modifiers as a set: behind the words that make up the name (`cp.async`,
`mbarrier.arrive`), only those of one kind have an order: types, state spaces.
So whoever asks for the second modifier gets what the PTX ISA puts there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS

_TYPE = re.compile(r"[bus]\d+(x\d+)?|pred")  # also those that are no `Scalar`: .s4, .b1
_SHAPE = re.compile(r"m\d+n\d+(k\d+)?")
_DIMENSIONS = re.compile(r"[1-5]d")
_SPACE = re.compile(r"(shared|global|local|const|param)(::\w+)?")
_KINDS = {"type": _TYPE, "shape": _SHAPE, "dimensions": _DIMENSIONS, "space": _SPACE}
_OTHERS = ""

# What ptxas takes more than once in an opcode; all others only once.
_SAID_AGAIN = frozenset(
    ("sync", "sat", "satfinite", "cc", "approx", "NaN", "relu", "shiftamt", "uni")
)

# Kinds and words, group by group; `_OTHERS` stands for all that no group has, and comes
# last without. Modifiers of a group stay in the order in which they are written.
_Order = tuple[tuple[str, ...], ...]

_DEFAULT: _Order = ((_OTHERS,), ("type",))
_TYPES_FIRST: _Order = (("type",), (_OTHERS,))
_AS_WRITTEN: _Order = ((_OTHERS,),)
_FLOATS: _Order = (
    *(("rn", "rz", "rm", "rp", "approx", "full"), ("ftz",), (_OTHERS,), ("type",)),
)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs") + (
    *("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"),
)
_BITWISE = ("and", "or", "xor")
_BARRIER: _Order = (
    *(("cta", "cluster", "warp"), ("sync", "arrive", "wait", "red")),
    *((*_BITWISE, "popc"), ("acquire", "release", "relaxed"), ("aligned",)),
    *((_OTHERS,), ("type",)),
)
_SYNCED: _Order = (("sync",), ("add", "min", "max", *_BITWISE), (_OTHERS,), ("type",))
_MATRIX: _Order = (("sync",), ("aligned",), (_OTHERS,), ("type",))
_PRODUCT: _Order = (
    *(("mma_async", "fence", "commit_group", "wait_group"),),
    *(("sp", "sp::ordered_metadata"), ("sync",), ("aligned",), ("shape",)),
    *(("row", "col"), (_OTHERS,), ("type",), _BITWISE, ("popc",)),
)
_COPY: _Order = (
    *(("reduce",), ("async",), ("ca", "cg", "bulk", "mbarrier")),
    *(("arrive", "noinc", "prefetch", "tensor"), ("dimensions",), ("L2",), ("space",)),
    *((_OTHERS,), ("type",)),
)
_MAP_FIELDS = (
    *("global_address", "rank", "box_dim", "global_dim", "global_stride"),
    *("element_stride", "elemtype", "interleave_layout", "swizzle_mode"),
    *("swizzle_atomicity", "fill_mode"),
)
_ORDERS: Mapping[str, _Order] = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad", "div", "rcp"), _FLOATS),
    **dict.fromkeys(("sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"), _FLOATS),
    **dict.fromkeys(("set", "setp"), (_COMPARISONS, _BITWISE, (_OTHERS,), ("type",))),
    **dict.fromkeys(("vset", "vset2", "vset4"), (("type",), _COMPARISONS, (_OTHERS,))),
    **dict.fromkeys(("shfl", "vote", "redux", "elect"), _SYNCED),
    "match": (("any", "all"), ("sync",)),
    **dict.fromkeys(("bar", "barrier"), _BARRIER),
    "fence": (("proxy",), ("tensormap::generic",)),
    **dict.fromkeys(("ldmatrix", "stmatrix", "movmatrix"), _MATRIX),
    **dict.fromkeys(("mma", "wgmma"), _PRODUCT),
    "wmma": ((_OTHERS,), ("type",), ("satfinite",)),
    "cp": _COPY,
    "tensormap": (
        *(("replace", "cp_fenceproxy"), ("tile",), _MAP_FIELDS),
        *((_OTHERS,), ("b1024",), ("type",)),
    ),
    "prmt": _TYPES_FIRST,
    **dict.fromkeys(("suld", "sust", "call", "bra"), _AS_WRITTEN),
}


def ordered(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of an opcode in the order of the PTX ISA."""
    name, *rest = parts
    if len(rest) < 2:
        return parts
    rest = [
        part
        for at, part in enumerate(rest)
        if part not in _SAID_AGAIN or part not in rest[:at]
    ]
    default = _TYPES_FIRST if name.startswith("v") else _DEFAULT
    order = _ORDERS.get(name, default)
    places = {word: place for place, group in enumerate(order) for word in group}
    places.setdefault(_OTHERS, len(order))
    return name, *sorted(rest, key=lambda part: places[_group(part, places)])


def ordered_kind(part: str) -> str:
    """The kind of a modifier whose order among those of its kind matters, or ""."""
    if part in ("row", "col"):
        return "layout"
    if part in SCALARS or _TYPE.fullmatch(part):
        return "type"
    return "space" if _SPACE.fullmatch(part) else ""


def _group(part: str, places: Mapping[str, int]) -> str:
    """The word or kind by which a modifier is sorted."""
    if part in places:
        return part
    if part in SCALARS:
        return "type" if "type" in places else _OTHERS
    found = (kind for kind, form in _KINDS.items() if form.fullmatch(part))
    return next((kind for kind in found if kind in places), _OTHERS)
