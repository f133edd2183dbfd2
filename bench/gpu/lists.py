"""What is compiled, checked, measured and collected, and why.

Each `Item` is one use of one kernel. Several items may use the same kernel, which is
compiled once. The lists also hold kernels that the compiler does not support yet. They
are left out of the bundle with the compiler's own reason, so that the lists need no
change when the compiler supports more.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from alcop_mlir import resources, schedule_checks
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from bench.gpu.spec import BYTES, LAYOUTS, Shape, Spec

_PAPER = Path(__file__).parents[1] / "shapes" / "alcop_operators.json"
MODEL = "model"  # the role of the schedule that the compiler chooses by itself
# The paper's ablation: neither level, two buffers, several, both levels.
ABLATION = ("1,1", "2,1", "S,1", "S,2")
# Variants of a tile: blocks in groups of rows, K in parts.
RASTER, SPLIT_K = "raster", "split_k"
# By TMA, wgmma and warps in roles, for the target with what only sm_90 has.
WGMMA, OF_HOPPER = "wgmma", {"sm_90": "sm_90a"}
_GROUP = 8
_PARTS = (2, 4, 8)
_LEAST_PART = 512  # of K; adding up parts takes another kernel
MOST_STAGES = 4  # beyond it shared memory costs blocks, and the latency is hidden
MOST_REUSE = (
    96  # multiplications per element copied; more is rarely worth the registers
)
# Block and warp tiles that experts choose from; not chosen by the model, which is
# judged by them.
TILES = (
    "block=256,128,32 warp=64,64",
    "block=128,256,32 warp=64,64",
    "block=128,128,64 warp=64,64",
    "block=128,128,32 warp=64,64",
    "block=128,128,32 warp=64,32",
    "block=128,64,64 warp=64,32",
    "block=64,128,64 warp=32,64",
    "block=128,64,32 warp=32,64",
    "block=64,64,64 warp=32,32",
    "block=64,64,32 warp=32,32",
    "block=32,64,64 warp=16,32",
    "block=16,64,64 warp=16,16",
    "block=16,128,64 warp=16,32",
)
# Block and warp tiles of wgmma, with the most stages that fit.
WGMMA_TILES = (
    "block=128,256,64 warp=16,256 stages=4,2",
    "block=256,128,64 warp=32,128 stages=4,2",
    "block=128,192,64 warp=16,192 stages=5,2",
    "block=192,128,64 warp=16,128 stages=5,2",
    "block=128,128,64 warp=16,128 stages=6,2",
    "block=64,256,64 warp=16,256 stages=5,2",
    "block=128,64,64 warp=16,64 stages=8,2",
    "block=64,64,64 warp=16,64 stages=8,2",
)
# Those of which two warpgroups take one each, in turn.
TURN_TILES = (
    "block=128,128,64 warp=32,128 stages=6,2 mode=pingpong",
    "block=64,256,64 warp=16,256 stages=5,2 mode=pingpong",
)
# Tiles that clusters of two blocks are tried with: those that read the most of B.
_CLUSTERED = (*WGMMA_TILES[:2], TURN_TILES[0])
_LEAST_OF_WGMMA, _ROW_ELEMENTS = 64, 8  # rows and columns; 16 bytes of f16


@dataclass(frozen=True)
class Item:
    """One use of a kernel.

    use: "check", "program" (checked too), "bench" or "collect"
    group: the reason for the shapes; see `WHY`
    role: which competitor it is in a benchmark
    shapes: at which sizes it runs; more than one for a kernel that takes any
    emulate: whether the emulator runs it too, which takes a CPU a few seconds
    rank: 0 is run first; when time is short, the last are left out
    """

    spec: Spec
    use: str
    group: str
    shapes: tuple[Shape, ...]
    role: str = ""
    emulate: bool = False
    rank: int = 0


WHY = {
    "stages": "every prologue and tail: stages of both levels, few and many K tiles",
    "tiles": "every fragment, copy and swizzle layout that a tile leads to",
    "types": "operand layouts, and dtypes of operands and result",
    "ragged": "sizes that no tile divides, rows that are not 16-byte multiples",
    "batched": "a batch, operands in both orders",
    "any shape": "kernels that take their sizes at run time",
    "older target": "PTX for sm_80 that the driver assembles for a newer GPU",
    "roles": "TMA, mbarriers, wgmma: every tile, layout and depth; edges, many tiles",
    "large": "offsets beyond 32 bits",
    "programs": "multi-kernel functions: fused, split, SIMT fallbacks, s8 and tf32",
    "paper": "ALCOP's matmuls (arXiv 2210.16691, its artifact's shapes)",
    "paper batched": "ALCOP's batched matmuls",
    "squares": "where cuBLAS is best known",
    "llama": "projections of Llama-like models, from one token to a long prompt",
    "skinny": "few rows or columns: memory-bound, and few blocks",
    "collected": "schedules and shapes for the learned model",
}
GROUPS = ("paper", "paper batched", "squares", "llama", "skinny", "ragged")
_SQUARES = (512, 1024, 2048, 4096, 8192)
# (N, K) of the projections of models with 4096 and 8192 features: attention output,
# attention input with grouped heads, up, down; and the same of the larger.
_LLAMA = ((4096, 4096), (6144, 4096), (14336, 4096), (4096, 14336), (28672, 8192))
_TOKENS = (1, 8, 128, 2048, 8192)
_SKINNY = ((16, 4096, 4096), (4096, 16, 4096), (64, 8192, 1024), (8192, 64, 8192))
_RAGGED = ((1000, 1000, 1000), (4095, 4097, 4099), (1023, 769, 771), (333, 2050, 4094))
# M is 64 images times the pixels of ResNet's four sizes.
_ONE_BY_ONE = (
    (200704, 64, 64),
    (200704, 256, 64),
    (50176, 128, 512),
    (50176, 512, 128),
    (12544, 1024, 256),
    (3136, 512, 2048),
)


def all_items(target: str) -> list[Item]:
    """All lists, each with the most important items first."""
    items = [*check_items(target), *program_items(target), *bench_items(target)]
    return [*items, *collect_items(target)]


def check_items(target: str) -> Iterator[Item]:
    """Small shapes that reach every part of the compiler, and a few large ones."""
    yield from _check_stages(target)
    yield from _check_tiles(target)
    yield from _check_types(target)
    yield from _check_shapes(target)
    if target in OF_HOPPER:
        yield from _check_roles(OF_HOPPER[target])


def program_items(target: str) -> Iterator[Item]:
    """Multi-kernel functions: fused kernels, SIMT fallbacks, other types."""
    small = "block=64,64,32 warp=32,32 stages=3,2"
    for name, schedule, allow_tf32 in (
        ("mlp_f16", small, False),
        ("weights_i8", small, False),
        ("rows_f32", small, False),
        ("matmul_s8", small, False),
        ("matmul_tf32", small, True),
        ("matmul_tf32", "", False),
        ("matmul_long_k", f"{small} split_k=4", False),
        ("matmul_long_k", f"{small} raster=4", False),
    ):
        spec = Spec(
            schedule=schedule, target=target, program=name, allow_tf32=allow_tf32
        )
        yield Item(spec, "program", "programs", ())


def bench_items(target: str) -> Iterator[Item]:
    """The model's schedule, the ablation over a few tiles, a list of tiles."""
    for group, op, shape in bench_shapes():
        ablation = group in ("paper", "paper batched", "squares")
        rank = GROUPS.index(group)

        spec = Spec(op, shape, target=target)
        yield Item(spec, "bench", group, (shape,), MODEL, rank=rank)
        for schedule in _wgmma_schedules(shape, target, ablation):
            one = replace(spec, schedule=schedule, target=OF_HOPPER[target])
            yield Item(one, "bench", group, (shape,), WGMMA, rank=rank)
        for number, tile in enumerate(tiles_for(shape, target)):
            roles = ABLATION if ablation or number == 0 else ABLATION[-1:]
            stages = stages_for(tile, shape[3], target)
            for role in roles:
                one = replace(spec, schedule=f"{tile} stages={stages[role]}")
                yield Item(one, "bench", group, (shape,), role, rank=rank)
            for role, more in _variants(spec, tile, stages[ABLATION[-1]]):
                yield Item(more, "bench", group, (shape,), role, rank=rank)


def _wgmma_schedules(shape: Shape, target: str, every: bool) -> Iterator[str]:
    """That which the compiler chooses, and tiles where the shape is large."""
    _, m, n, k = shape
    if target not in OF_HOPPER or min(m, n) < _LEAST_OF_WGMMA:
        return
    if n % _ROW_ELEMENTS or k % _ROW_ELEMENTS:
        return
    yield ""
    for tile in (*WGMMA_TILES, *TURN_TILES) if every else ():
        schedule = Schedule.parse(f"{tile} engine=wgmma")
        rows, columns, _ = schedule.block
        if m < rows or n < columns:
            continue
        blocks = -(-m // rows) * -(-n // columns)
        if schedule.turns > 1 and blocks <= find_target(target).sms:
            continue  # each block has one tile
        many = f" raster={_GROUP}" if m >= _GROUP * rows else ""
        yield f"{tile}{many} engine=wgmma"
        if tile in _CLUSTERED and -(-m // rows) % 2 == 0:
            yield f"{tile}{many} cluster=2 engine=wgmma"


def collect_items(target: str) -> Iterator[Item]:
    """Every tile at every depth, at all shapes, from kernels that take any shape."""
    shapes = tuple(dict.fromkeys(s for _, op, s in bench_shapes() if op == "matmul"))
    for tile, shared, register in itertools.product(TILES, (1, 2, 3, 4, 6), (1, 2)):
        if shared == 1 and register > 1:
            continue  # the barriers of an unpipelined loop forbid them
        schedule = f"{tile} stages={shared},{register}"
        if _fits(schedule, target):
            spec = Spec(schedule=schedule, target=target)
            yield Item(spec, "collect", "collected", shapes)


def _variants(spec: Spec, tile: str, stages: str) -> Iterator[tuple[str, Spec]]:
    """Groups of rows where not all blocks run at once, parts of K where they do."""
    assert spec.shape is not None
    batch, m, n, _ = spec.shape
    target = find_target(spec.target)
    schedule = Schedule.parse(f"{tile} stages={stages}")
    rows, columns = -(-m // schedule.block[0]), -(-n // schedule.block[1])
    blocks = batch * rows * columns
    if not _fits(str(schedule), spec.target):
        return
    at_once = resources.cost(schedule, target).blocks_per_sm * target.sms
    if blocks > at_once and min(rows, columns) > 1:
        yield RASTER, replace(spec, schedule=f"{schedule} raster={min(_GROUP, rows)}")
    for parts in _PARTS:
        split = replace(schedule, split_k=parts)
        if blocks * parts <= at_once and _splits(split, spec):
            yield SPLIT_K, replace(spec, schedule=str(split))


def _splits(schedule: Schedule, spec: Spec) -> bool:
    """Whether K can be split into such parts, and they are long enough."""
    assert spec.shape is not None
    k = spec.shape[3]
    try:
        schedule_checks.check_split(
            schedule, k, BYTES[spec.operand], spec.op != "matmul"
        )
    except ConfigError:
        return False
    return k >= schedule.split_k * _LEAST_PART


def bench_shapes() -> list[tuple[str, str, Shape]]:
    """Group, operator and shape of every row of the benchmark, each shape once."""
    paper = json.loads(_PAPER.read_text())
    matmuls = [*paper["matmul"]["rows"], *_ONE_BY_ONE]
    found = [("paper", "matmul", (1, *row)) for row in matmuls]
    found += [
        ("paper batched", "batch_matmul", tuple(row))
        for row in paper["batch_matmul"]["rows"]
    ]
    found += [("squares", "matmul", (1, size, size, size)) for size in _SQUARES]
    found += [
        ("llama", "matmul", (1, tokens, n, k))
        for tokens, (n, k) in itertools.product(_TOKENS, _LLAMA)
    ]
    found += [("skinny", "matmul", (1, *row)) for row in _SKINNY]
    found += [("ragged", "matmul", (1, *row)) for row in _RAGGED]
    once = {(op, shape): group for group, op, shape in reversed(found)}
    return [
        (once[op, s], op, s) for op, s in dict.fromkeys((o, s) for _, o, s in found)
    ]


def tiles_for(shape: Shape, target: str, count: int = 3) -> list[str]:
    """The most promising tiles of the list, by waves and by reuse.

    A tile that divides the shape comes before any that does not.
    """
    ranked: list[str] = sorted(TILES, key=lambda t: _score(t, shape, target))
    return ranked[-count:][::-1]


def stages_for(tile: str, k: int, target: str) -> dict[str, str]:
    """Stages of each role of the ablation; S is the most that fit, up to 4."""
    steps = max(1, k // Schedule.parse(tile).block[2])
    most = min(MOST_STAGES, max(2, steps))
    while most > 2 and not _fits(f"{tile} stages={most},2", target):
        most -= 1
    return {"1,1": "1,1", "2,1": "2,1", "S,1": f"{most},1", "S,2": f"{most},2"}


def _score(tile: str, shape: Shape, target: str) -> tuple[bool, bool, float]:
    """Larger is better: divides, fits, then tiles in use times arithmetic per byte."""
    block_m, block_n, _ = Schedule.parse(tile).block
    batch, m, n, k = shape
    schedule = Schedule.parse(tile)
    divides = all(s % b == 0 for s, b in zip((m, n, k), schedule.block, strict=True))
    blocks = batch * -(-m // block_m) * -(-n // block_n)
    sms = find_target(target).sms
    busy = blocks / (-(-blocks // sms) * sms)
    useful = m * n * batch / (blocks * block_m * block_n)
    reuse = min(1.0, block_m * block_n / (block_m + block_n) / MOST_REUSE)
    return divides, _fits(f"{tile} stages=2,2", target), busy * useful * reuse


def _fits(schedule: str, target: str) -> bool:
    try:
        resources.cost(Schedule.parse(schedule), find_target(target))
    except ConfigError:
        return False
    return True


def _check_stages(target: str) -> Iterator[Item]:
    tile = "block=64,64,32 warp=32,32"
    depths = [f"{s},{r}" for s in (1, 2, 3, 4, 6, 8) for r in (1, 2)]
    for stages in (*depths, "3,3", "4,4"):
        if stages == "1,2":
            continue  # register stages need shared ones
        yield _check(target, "stages", (1, 128, 128, 256), f"{tile} stages={stages}")
    for tiles in (1, 2, 3, 5, 7):  # fewer than stages, and no multiple of the period
        shape = (1, 128, 128, 32 * tiles)
        yield _check(target, "stages", shape, f"{tile} stages=4,2")


def _check_tiles(target: str) -> Iterator[Item]:
    small = ("block=16,16,16 warp=16,16", "block=32,32,16 warp=16,16")
    more = ("block=64,32,128 warp=32,16", "block=32,128,64 warp=32,32")
    for tile in (*TILES, *small, *more):
        if _fits(f"{tile} stages=3,2", target):
            yield _check(target, "tiles", (1, 256, 256, 256), f"{tile} stages=3,2")


def _check_types(target: str) -> Iterator[Item]:
    shape = (1, 128, 192, 256)
    schedule = "block=64,64,32 warp=32,32 stages=3,2"
    kinds = (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("bf16", "bf16"))
    for (operand, out), layout in itertools.product(kinds, LAYOUTS.values()):
        spec = Spec("matmul", shape, operand, out, layout, schedule, target)
        yield Item(spec, "check", "types", (shape,), emulate=True)


def _check_shapes(target: str) -> Iterator[Item]:
    schedule = "block=64,64,32 warp=32,32 stages=3,2"
    for m, n, k in ((64, 64, 40), (65, 127, 96), (1, 256, 256), (200, 77, 131)):
        yield _check(target, "ragged", (1, m, n, k), schedule)
    for layout in LAYOUTS.values():
        shape = (5, 128, 64, 96)
        spec = Spec("batch_matmul", shape, "f16", "f32", layout, schedule, target)
        yield Item(spec, "check", "batched", (shape,), emulate=True)
    sizes = ((1, 64, 64, 32), (1, 64, 64, 64), (1, 192, 64, 512), (1, 72, 200, 136))
    for stages in ("1,1", "3,1", "3,2"):
        text = f"block=64,64,32 warp=32,32 stages={stages}"
        spec = Spec(schedule=text, target=target)
        yield Item(spec, "check", "any shape", sizes, emulate=True)
    for size in (512, 4096):
        yield _check(target, "squares", (1, size, size, size), "", False, rank=1)
    if target != "sm_80":
        item = _check("sm_80", "older target", (1, 256, 256, 256), schedule, False)
        yield item
    large = "block=128,128,32 warp=64,64 stages=3,2"
    yield _check(target, "large", (1, 65536, 16640, 64), large, False, rank=2)


def _check_roles(target: str) -> Iterator[Item]:
    """Every tile, layout and depth of wgmma; edges; blocks that have several tiles."""
    shape = (1, 384, 256, 448)
    for tile, layout in itertools.product(WGMMA_TILES, LAYOUTS.values()):
        if "warp=32" in tile and layout.startswith("k"):
            continue  # two instructions share A only where its rows are along K
        schedule = f"{tile} engine=wgmma"
        spec = Spec("matmul", shape, "f16", "f32", layout, schedule, target)
        yield Item(spec, "check", "roles", (shape,), emulate=True)
    for stages in ("2,1", "3,1", "3,2", "4,3", "8,2"):
        schedule = f"block=128,64,64 warp=16,64 stages={stages} engine=wgmma"
        for k in (128, 192, 1024):
            yield _check(target, "roles", (1, 128, 128, k), schedule)
    small = "block=128,128,64 warp=16,128 stages=4,2 engine=wgmma"
    for operand, out in (("f16", "f16"), ("bf16", "f32"), ("bf16", "bf16")):
        spec = Spec("matmul", shape, operand, out, LAYOUTS["nn"], small, target)
        yield Item(spec, "check", "roles", (shape,), emulate=True)
    for m, n, k in ((200, 136, 200), (1, 264, 256), (130, 72, 1000)):
        yield _check(target, "roles", (1, m, n, k), small)
    yield _check(target, "roles", (3, 128, 128, 256), small, batched=True)
    yield _check(target, "roles", (1, 256, 256, 2048), f"{small} split_k=4")
    yield _check(target, "roles", (1, 134 * 128, 128, 200), small, emulate=False)
    for layout, size in (("nn", 512), ("nt", 500)):
        clusters = f"{small} cluster=2"
        spec = Spec(
            "matmul",
            (1, size, 256, 448),
            "f16",
            "f32",
            LAYOUTS[layout],
            clusters,
            target,
        )
        yield Item(spec, "check", "roles", ((1, size, 256, 448),), emulate=True)
    for tile, more in itertools.product(TURN_TILES, ("", " cluster=2")):
        schedule = f"{tile}{more} engine=wgmma"
        many = (1, 270 * 128, 256, 200)
        yield _check(target, "roles", many, schedule, emulate=False)
    for size in (512, 4096):
        yield _check(target, "roles", (1, size, size, size), "", False, rank=1)


def _check(
    target: str,
    group: str,
    shape: Shape,
    schedule: str,
    emulate: bool = True,
    rank: int = 0,
    batched: bool = False,
) -> Item:
    op = "batch_matmul" if batched else "matmul"
    spec = Spec(op, shape, schedule=schedule, target=target)
    return Item(spec, "check", group, (shape,), "", emulate, rank)
