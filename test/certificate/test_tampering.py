"""What the checker accepts of PTX that was changed behind its certificate's back."""

from __future__ import annotations

import hashlib
import os
import random
import sys
from pathlib import Path

from random_kernels import Kernel, drawn
from test_random_kernels import faults_of, verdict

from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_mutants import every_mutant

COUNT = int(os.environ.get("ALCOP_CERTIFICATE_MUTANTS", "24"))
KERNELS = 3


def proven(count: int) -> list[tuple[Kernel, dict[str, object]]]:
    """The first random kernels that are proven, with their certificates."""
    found = []
    for seed in range(50):
        if drawn(seed).is_nested or len(found) == count:
            continue
        report = verdict(drawn(seed))
        if report.certificate is not None:
            found.append((drawn(seed), report.certificate))
    return found


def test_changed_ptx_is_refused_or_does_no_harm() -> None:
    """Also where its hash is put in, and the certificate's own is made anew."""
    accepted = 0
    for number, (kernel, certificate) in enumerate(proven(KERNELS)):
        every = list(every_mutant(kernel.text(), "random"))
        for mutant in random.Random(number).sample(
            every, min(COUNT // KERNELS, len(every))
        ):
            digest = hashlib.sha256(mutant.text.encode()).hexdigest()
            try:
                check(
                    mutant.text, sealed({**certificate, "ptx_sha256": digest}), Found()
                )
            except CertificateError:
                continue
            accepted += 1
            found = next(faults_of(mutant.text, number), None)
            assert found is None, (number, mutant.kind, mutant.line, found)
    assert accepted < COUNT / 3
