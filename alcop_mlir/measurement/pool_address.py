"""Where the scheduler of a pool is, and by which certificates one talks to it."""

from __future__ import annotations

import logging
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alcop_mlir import files, limits
from alcop_mlir.errors import ConfigError, optional

_FILES = ("ca.pem", "cert.pem", "key.pem")
_FORM = re.compile(r"(?:(tcp|tls)://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})")
_HERE = ("localhost", "127.0.0.1", "[::1]")
# Workers may start children of their own, and are not ended for what those need.
_CONFIG = {
    "distributed.worker.daemon": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.worker-ttl": "60 s",
}


@dataclass(frozen=True)
class Address:
    """As Dask takes it; `security` has its certificates, None is without."""

    text: str
    security: Any = None


def parse(text: str, certificates: Path | None, allow_plain: bool) -> Address:
    """Of `tls://host:8786` or `host:8786`; ConfigError where it is no such address.

    certificates: folder with `ca.pem`, and with `cert.pem` and `key.pem` of this side
    allow_plain: whether a machine that is not this one may be talked to without
    """
    found = _FORM.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 65536:
        what = f"'{text[:80]}' is no address of a scheduler"
        raise ConfigError(f"{what}, expected as in tls://host:8786")
    is_here = found[2] in _HERE
    plain = found[1] == "tcp" or (not found[1] and certificates is None and is_here)
    whole = f"{'tcp' if plain else 'tls'}://{found[2]}:{found[3]}"
    if plain and not is_here and not allow_plain:
        raise ConfigError(
            f"'{text}' is another machine, to which nothing goes unencrypted: give "
            "tls://... and --pool-tls, or --pool-insecure"
        )
    if plain and certificates is not None:
        raise ConfigError(f"'{text}' is not encrypted, --pool-tls is for tls://")
    if not plain and certificates is None:
        raise ConfigError(
            f"'{whole}' needs certificates: --pool-tls DIR, with {', '.join(_FILES)}"
        )
    return Address(whole, None if certificates is None else _security(certificates))


def _security(folder: Path) -> Any:
    """The certificates of a folder; ConfigError where they are missing, or wrong."""
    authority, certificate, key = (str(folder / name) for name in _FILES)
    for path in (authority, certificate, key):
        files.read(path, limits.JSON)
    made = import_distributed().Security(
        tls_ca_file=authority,
        tls_client_cert=certificate,
        tls_client_key=key,
        tls_worker_cert=certificate,
        tls_worker_key=key,
        require_encryption=True,
    )
    try:
        made.get_connection_args("client")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(f"no certificates in '{folder}': {error}") from None
    return made


def import_distributed() -> Any:
    """Dask.distributed, which says nothing by itself."""
    found = optional("distributed", "pools need Dask.distributed", "pool")
    dask = optional("dask", "pools need Dask.distributed", "pool")
    dask.config.set(_CONFIG)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return found
