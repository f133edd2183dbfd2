"""Which files lit takes for tests; a module, as lit's workers import it by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lit.formats
from check_directives import is_lit_test


class MarkedTests(lit.formats.ShTest):
    """All .mlir files under test/; Python files there only if they say what to run."""

    def getTestsForPath(
        self,
        testSuite: Any,
        path_in_suite: tuple[str, ...],
        litConfig: Any,
        localConfig: Any,
    ) -> Any:
        """The tests of one file: one or none."""
        path = Path(testSuite.getSourcePath(path_in_suite))
        if path_in_suite[0] == "test" and is_lit_test(path):
            yield from super().getTestsForPath(
                testSuite, path_in_suite, litConfig, localConfig
            )
