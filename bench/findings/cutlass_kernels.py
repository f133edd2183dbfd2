"""How nvcc builds kernels of CUTLASS's headers, as JSON. Runs where there are some.

    python bench/findings/cutlass_kernels.py CAPABILITY         # 80 or 90

By `nvidia-cutlass`, or by TileLang, which brings them too. No GPU is needed.
`programs.py` runs it, by the Python of such an environment.
"""

import json
import re
import sys
from importlib import util
from pathlib import Path

FOLDER = Path(__file__).parent
# Where packages have them.
PLACES = (("cutlass_library", "source"), ("tilelang", "3rdparty/cutlass"))
# Tile, mainloop, epilogue, and blocks of a cluster, of the kernels for sm_90a.
SPECIALISED = {
    "specialised": (64, 64, "KernelTmaWarpSpecialized", "NoSmemWarpSpecialized", 1),
    "cooperative": (
        128,
        64,
        "KernelTmaWarpSpecializedCooperative",
        "TmaWarpSpecializedCooperative",
        1,
    ),
    "pingpong": (64, 64, "KernelTmaWarpSpecializedPingpong", "TmaWarpSpecialized", 1),
    "cluster": (
        128,
        64,
        "KernelTmaWarpSpecializedCooperative",
        "TmaWarpSpecializedCooperative",
        2,
    ),
}


def headers():
    """The folder that has `include` and `tools`. Raises SystemExit without."""
    for package, below in PLACES:
        found = util.find_spec(package)
        for place in found.submodule_search_locations if found else ():
            folder = Path(place, below)
            if Path(folder, "include", "cutlass", "version.h").exists():
                return folder
    sys.exit("error: no headers of CUTLASS, pip install nvidia-cutlass")


def multistage(name, stages):
    """The record of a kernel of `multistage_gemm.cu`: 16 KiB are for the epilogue."""
    shared = stages * 2 * 64 * 32 * 2 + 2**14
    return {
        "name": name,
        "entry": name,
        "threads": 128,
        "shared": shared,
        "source": Path(FOLDER, "multistage_gemm.cu").read_text("utf-8"),
    }


def specialised(name, m, n, mainloop, epilogue, cluster):
    """The record of a kernel of `warp_specialised_gemm.cu`, which says its launch."""
    flags = [f"-DTILE_M={m}", f"-DTILE_N={n}", f"-DCLUSTER={cluster}"]
    flags += [f"-DMAINLOOP={mainloop}", f"-DEPILOGUE={epilogue}"]
    return {
        "name": name,
        "entry": "gemm",
        "flags": [*flags, "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL"],
        "says_launch": True,
        "source": Path(FOLDER, "warp_specialised_gemm.cu").read_text("utf-8"),
    }


def main(capability):
    """Of each kernel its name, how it is built, and its launch if that is known."""
    folder = headers()
    text = Path(folder, "include", "cutlass", "version.h").read_text("utf-8")
    numbers = re.findall(r"define CUTLASS_(?:MAJOR|MINOR|PATCH) (\d+)", text)
    kernels = [multistage("multistage_nt", 3), multistage("multistage_nn", 4)]
    if capability == "90":
        kernels = [specialised(name, *given) for name, given in SPECIALISED.items()]
    compiler = f"CUTLASS {'.'.join(numbers)}, sm_{capability}"
    include = [str(folder / "include"), str(folder / "tools" / "util" / "include")]
    print(json.dumps({"compiler": compiler, "include": include, "kernels": kernels}))


if __name__ == "__main__":
    main(sys.argv[1])
