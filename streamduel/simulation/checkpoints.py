"""When a simulation looks at its policies: at times that are evenly spaced on a log scale."""

from __future__ import annotations

from typing import Final

PER_DECADE: Final = 10


def checkpoints(horizon: int, per_decade: int = PER_DECADE) -> list[int]:
    """Integers from 1 to the horizon: all powers of ten, and equal ratios between them.

    Args:
        horizon: the last one, at least 1.
        per_decade: how many between a power of ten and the next, the latter included, at least 1;
            fewer where integers are not that dense.

    >>> checkpoints(200)
    [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 79, 100, 126, 158, 200]
    """
    times, step = {horizon}, 0
    while (time := round(10 ** (step / per_decade))) < horizon:
        times.add(time)
        step += 1
    return sorted(times)
