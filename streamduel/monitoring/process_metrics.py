"""The metrics of the process, which prometheus_client makes and `docs/metrics.md` describes."""

from __future__ import annotations

from typing import Final, NamedTuple


class OfProcess(NamedTuple):
    """A metric of the process, which prometheus_client makes.

    Attributes:
        name: as it is scraped.
        kind: its type.
        meaning: what it says.
        sample: a line, as it may look.
    """

    name: str
    kind: str
    meaning: str
    sample: str


PROCESS_METRICS: Final = (
    OfProcess("process_virtual_memory_bytes", "gauge", "Address space in use.", "1.182183424e+09"),
    OfProcess(
        "process_resident_memory_bytes",
        "gauge",
        "Memory in use; what a container's limit is compared with.",
        "9.8435072e+07",
    ),
    OfProcess(
        "process_start_time_seconds",
        "gauge",
        "When the process was started, in seconds since 1970. `changes(…[1h])` counts restarts.",
        "1.79000000025e+09",
    ),
    OfProcess(
        "process_cpu_seconds_total",
        "counter",
        "Processor time; one partition is folded by one core, so that a `rate` near 1 is the end.",
        "41.27",
    ),
    OfProcess("process_open_fds", "gauge", "Open files and connections.", "23.0"),
    OfProcess("process_max_fds", "gauge", "How many of them are allowed.", "1024.0"),
)
"""In the order of the exposition. They are read from /proc: only Linux has them."""
