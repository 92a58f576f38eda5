"""Looks up known vulnerabilities of the image's packages: `python -m tests.image.audit`.

pip-audit does not distinguish "no vulnerabilities" from "nothing was looked up"; this module does.
In CI an unreachable service is a warning: no change of the code can fix it.
"""

import os
import subprocess
import sys
from typing import Final, NamedTuple

from tests.image.engine import ROOT

SERVICES: Final = ("pypi", "osv")
"""pip-audit's sources, in the order in which they are tried."""

SECONDS: Final = 120.0
"""An audit takes 10 s; a service that does not answer must not block the run."""


class Verdict(NamedTuple):
    """The result of one audit."""

    looked_up: bool
    sound: bool
    text: str


def verdict(status: int, out: str, err: str) -> Verdict:
    """Interpret pip-audit's exit status and output.

    With `--strict` it fails for a vulnerability and for a package that it cannot look up; only a
    vulnerability is counted on standard error.

    >>> verdict(0, "", "No known vulnerabilities found").sound
    True
    >>> verdict(1, "jinja2 3.1.5 CVE-2025-27516", "Found 1 known vulnerability in 1 package")
    Verdict(looked_up=True, sound=False, text='jinja2 3.1.5 CVE-2025-27516')
    >>> verdict(1, "", "ERROR:pip_audit._cli:jinja2: Dependency not found on PyPI").looked_up
    False
    """
    if status == 0:
        return Verdict(True, True, err.strip())
    if "known vulnerabilit" in err:
        return Verdict(True, False, out.strip())
    return Verdict(False, False, err.strip().rpartition("\n")[2])


def audit(service: str) -> Verdict:
    """Look up every package of requirements.lock at one service."""
    command = [
        sys.executable, "-m", "pip_audit", "--progress-spinner=off", "--strict", "--disable-pip",
        "--require-hashes", f"--vulnerability-service={service}", "--requirement=requirements.lock",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return Verdict(False, False, f"{service} did not answer in {SECONDS:.0f} s")
    return verdict(done.returncode, done.stdout, done.stderr)


def main() -> int:
    """Audit; return the exit status."""
    reasons = []
    for service in SERVICES:
        found = audit(service)
        if found.looked_up:
            print(found.text)
            return 0 if found.sound else 1
        reasons.append(f"{service}: {found.text[:200]}")
    print(f"requirements.lock was not audited: {'; '.join(reasons)}", file=sys.stderr)
    return 0 if os.environ.get("CI", "").lower() in {"1", "true"} else 1


if __name__ == "__main__":
    sys.exit(main())
