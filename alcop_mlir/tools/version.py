"""What the tools print for `--version`."""

from __future__ import annotations

from importlib import metadata


def version_text(tool: str) -> str:
    """The tool, its version, and the MLIR bindings installed; loads no MLIR."""
    from alcop_mlir import __version__

    found = []
    for package in ("mlir-python-bindings", "torch-mlir"):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return f"{tool} {__version__} ({', '.join(found) or 'no MLIR bindings'})"
