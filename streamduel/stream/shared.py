"""What the experiments of one partition share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamduel.config.model import LimitSettings
from streamduel.stream.dedupe import DedupeWindow
from streamduel.stream.outputs import Outputs
from streamduel.stream.timers import Timers

PULSE: Final = 256
"""Join windows that are closed between two pulses: after an hour without records, one record closes
all that were open, and each may be followed by a decision."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the experiments of one partition share.

    Attributes:
        partition: the partition.
        join_window_ms: the join window of experiments that do not configure one.
        window: the dedupe window.
        timers: one for each experiment.
        outputs: assignments and dead letters.
        limits: bounds of a record.
        pulse: called every so often while one record causes much work.
    """

    partition: int
    join_window_ms: int
    window: DedupeWindow
    timers: Timers
    outputs: Outputs
    limits: LimitSettings
    pulse: Callable[[], None]
