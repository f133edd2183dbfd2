"""Probes of clusters: ranks, accesses from block to block, copies and stores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from alcop_mlir.target import WARP_SIZE
from bench.gpu.probe import Probe, generator_of

_BLOCKS = 8  # two clusters
# name: words that each lane writes
_WORDS = {
    "cluster_ranks": 6,
    "cluster_exchange": 4,
    "cluster_arrivals": 3,
    "cluster_stores": 3,
    "cluster_copies": 2,
    "cluster_multicast": 4,
}


def cluster_probes() -> Iterator[Probe]:
    """All of them, for GPUs that have clusters."""
    threads = _BLOCKS * WARP_SIZE
    for name, words in _WORDS.items():
        source = generator_of(name).integers(0, 2**32, threads, np.uint32)
        yield Probe(
            name,
            "cluster",
            (source,),
            words * threads,
            ((name, "bits"),),
            blocks=_BLOCKS,
            capability=90,
        )
