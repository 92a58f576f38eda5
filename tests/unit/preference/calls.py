"""How often functions are called: a measure of work that does not depend on the machine."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType


def calls(work: Callable[[], object]) -> Counter[CodeType]:
    """Count the calls of each Python function; each result of a generator counts as one."""
    counts: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    former = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(former)
    return counts
