"""The documentation site, built as `make docs` builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 300
"""The build takes ten on an idle machine."""


def build(to: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Build the site of a source tree into a folder, strictly."""
    # Not --quiet: mkdocs counts only the warnings that it prints.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "--config-file", str(root / "configs/mkdocs.yml"), "--site-dir", str(to)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, cwd=to,
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
