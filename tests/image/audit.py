"""Whether the image's packages have known vulnerabilities: `python -m tests.image.audit`.

pip-audit says that all is well where it could look nothing up; here that is told apart, and is one
line. Under CI it is no failure: what the machine cannot reach, no change of the code mends.
"""

import os
import subprocess
import sys
from typing import Final, NamedTuple

from tests.image.engine import ROOT

SERVICES: Final = ("pypi", "osv")
"""Where pip-audit can look, in the order in which it is tried."""

SECONDS: Final = 120.0
"""It takes ten; a service that does not answer must not hold anybody up."""


class Verdict(NamedTuple):
    """What came of one attempt."""

    looked_up: bool
    sound: bool
    text: str


def verdict(status: int, out: str, err: str) -> Verdict:
    """What pip-audit's end means.

    With `--strict` it fails both for a vulnerability and for a package that it cannot look up; only
    for the first it counts what it found.

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
    """Look every package of requirements.lock up at one of the services."""
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
    """Audit; the exit status."""
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
