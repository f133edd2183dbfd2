"""The workers of a pool: those that compile, and one that measures for each device.

A worker offers one *resource*, a name that says what it can do, and with which version:

    alcop compile 0.1.0 1c56...             compiles, with that compiler
    alcop measure 0.1.0 NVIDIA H100 PCIe    measures on such a GPU

A task asks for a resource, and so never comes to a worker of another version or GPU. A
worker has one thread: a GPU measures one candidate at a time, in a child process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import alcop_mlir
from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement import devices
from alcop_mlir.measurement.pool_address import Address, import_distributed
from alcop_mlir.tuning import gpus

_MEASURE = f"alcop measure {alcop_mlir.__version__} "
_ANY_MEASURE = "alcop measure "
SIMULATED = devices.SIMULATED_GPU
_QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical"}


def measures(gpu: str) -> str:
    """The resource of workers that measure on such a GPU."""
    return f"{_MEASURE}{gpu}"


def compiles() -> str:
    """The resource of workers that compile as this process does."""
    return f"alcop compile {alcop_mlir.__version__} {devices.compiler_hash()}"


def gpu_measured(resource: str) -> str:
    """The GPU of a resource of this version; "" of others."""
    return resource.removeprefix(_MEASURE) if resource.startswith(_MEASURE) else ""


def is_other_version(resource: str) -> bool:
    """Whether it measures, for another version."""
    return resource.startswith(_ANY_MEASURE) and not gpu_measured(resource)


def specs(device: str, simulated: int, compilers: int) -> list[dict[str, Any]]:
    """What each worker of this machine is started with, as Dask's `Nanny` takes it.

    simulated: number of simulated devices, where `device` is that; compilers: of
    workers that compile, which a simulated device needs none of
    """
    made: list[dict[str, Any]] = []
    if device == "simulated":
        made += [_spec(measures(devices.SIMULATED_GPU))] * simulated
    else:
        found = gpus.visible()
        if not found:
            raise ConfigError("no GPU is found to measure on by nvidia-smi")
        made += [
            _spec(measures(gpu.name), CUDA_VISIBLE_DEVICES=number)
            for number, gpu in found
        ]
        made += [_spec(compiles(), CUDA_VISIBLE_DEVICES="")] * compilers
    return made


def _spec(resource: str, **environment: str) -> dict[str, Any]:
    cache = os.environ.get("ALCOP_CACHE_DIR")
    kept = {"ALCOP_CACHE_DIR": cache} if cache else {}
    return {
        "nthreads": 1,
        "resources": {resource: 1},
        "memory_limit": 0,  # none
        "env": {**_QUIET, **kept, **environment},
        "silence_logs": "CRITICAL",
    }


def serve(address: Address, chosen: Sequence[dict[str, Any]]) -> None:
    """Run such workers for a scheduler until they, or this process, are ended."""
    distributed = import_distributed()

    async def run() -> None:
        security = address.security
        nannies = [
            distributed.Nanny(address.text, security=security, **one) for one in chosen
        ]
        await asyncio.gather(*nannies)
        await asyncio.gather(*(one.finished() for one in nannies))

    asyncio.run(run())
