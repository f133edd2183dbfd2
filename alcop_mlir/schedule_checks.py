"""Whether a schedule fits a contraction: else an error says what to leave out."""

from __future__ import annotations

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps, k_steps
from alcop_mlir.target import CP_ASYNC_BYTES, mma_shape


def check_k_step(schedule: Schedule, element_bytes: int, dtype: str) -> None:
    """ConfigError where a K step is no whole number of mma.sync's on the type."""
    _, _, step = mma_shape(element_bytes)
    if schedule.block[2] % step:
        raise ConfigError(
            f"schedule '{schedule}' has a K step of {schedule.block[2]}, expected a "
            f"multiple of {step} for {dtype}"
        )


def split_step(schedule: Schedule, element_bytes: int) -> int:
    """What K has to be a multiple of to be split: parts of whole 16 bytes."""
    parts = schedule.split_k
    return 1 if parts == 1 else parts * max(CP_ASYNC_BYTES) // element_bytes


def check_split(
    schedule: Schedule,
    k: int | None,
    element_bytes: int,
    batched: bool,
    taps: Taps | None = None,
) -> None:
    """ConfigError where K cannot be split as `schedule` says; see `split_refusal`."""
    why = split_refusal(schedule, k, element_bytes, batched, taps)
    if why:
        raise ConfigError(f"schedule '{schedule}' splits K, but {why}")


def split_refusal(
    schedule: Schedule,
    k: int | None,
    element_bytes: int,
    batched: bool,
    taps: Taps | None = None,
) -> str:
    """Why K cannot be split as `schedule` says; "" where it can.

    k: None where it is known at run time only
    batched: whether the contraction has a batch; parts of K are computed as one
    taps: that K consists of
    """
    if schedule.split_k == 1:
        return ""
    if batched:
        return "the contraction has a batch: leave split_k out"
    if k is None:
        return "K is known at run time only: leave split_k out"
    if taps is not None:
        if _has_parts_of_steps(schedule, k, taps):
            return ""
        steps = k_steps(k, schedule.block[2], taps)
        return f"{taps.count} taps have {steps} steps, expected parts of equally many"
    step = split_step(schedule, element_bytes)
    if k == 0 or k % step:
        return f"K is {k}, expected a multiple of {step}: parts of whole 16 bytes"
    return ""


def check_sweeps(schedule: Schedule, k: int | None, taps: Taps | None) -> None:
    """ConfigError where K cannot go over taps as often as `schedule` says.

    k: None where it is known at run time only
    taps: that K consists of
    """
    sweeps, step = schedule.sweeps, schedule.block[2]
    if sweeps == 1:
        return
    if taps is None or k is None or taps.count == 1:
        why = "the contraction has no windows of several taps: leave sweeps out"
    elif schedule.split_k > 1:
        why = "K is split: leave one of the two out"
    elif k // taps.count % (sweeps * step):
        why = f"a tap has {k // taps.count} channels, expected {sweeps * step}*n"
    else:
        return
    raise ConfigError(f"schedule '{schedule}' sweeps over taps, but {why}")


def check_rectangle(schedule: Schedule, places: tuple[int, int] | None) -> None:
    """ConfigError where blocks cannot compute rectangles, as `schedule` says.

    places: of the windows that A consists of, along the last two dimensions of images;
        None where there are not both, or known at run time only
    """
    if schedule.rectangle > 1 and places is None:
        raise ConfigError(
            f"schedule '{schedule}' has rectangles, but the rows of A are no windows "
            "of several taps, in images of two dimensions or more and known sizes: "
            "leave rectangle out"
        )


def check_cluster(schedule: Schedule, m: int | None) -> None:
    """ConfigError where the blocks along M do not make whole clusters.

    m: rows of C; None where known at run time only: of the last cluster a block may
        then lie beyond C
    """
    if schedule.cluster == 1 or m is None:
        return
    blocks = -(-m // schedule.block[0])
    if blocks % schedule.cluster:
        raise ConfigError(
            f"schedule '{schedule}' has clusters of {schedule.cluster} blocks along M, "
            f"where M={m} has {blocks}: a smaller block M, or leave cluster out"
        )


def _has_parts_of_steps(schedule: Schedule, k: int, taps: Taps) -> bool:
    """Whether K falls into parts of equal size, of whole steps."""
    parts, step = schedule.split_k, schedule.block[2]
    is_alike = k // taps.count % step == 0 or taps.count % parts == 0
    return is_alike and k_steps(k, step, taps) % parts == 0
