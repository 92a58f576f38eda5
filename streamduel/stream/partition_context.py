"""What the experiments of one partition share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from streamduel.config.model import LimitSettings
from streamduel.stream.client_cap import ClientDuels
from streamduel.stream.dedupe import DedupeWindow
from streamduel.stream.open_memory import OpenMemory
from streamduel.stream.output_buffer import OutputBuffer
from streamduel.stream.team_patterns import TeamPatterns
from streamduel.stream.timers import Timers

WINDOWS_PER_HEARTBEAT: Final = 256
"""Join windows that are closed between two heartbeats: after an hour without records, one record
closes all that were open, and each may be followed by a decision."""


@dataclass(slots=True)
class PartitionContext:
    """What the experiments of one partition share.

    Attributes:
        partition: the partition.
        join_window_ms: the join window of experiments that do not configure one.
        window: the dedupe window.
        timers: one for each experiment.
        outputs: assignments and dead letters.
        limits: bounds of a record.
        heartbeat: called from time to time while one record causes much work, so that the process
            keeps the partition.
        tells_ranks: whether the click log tells which side each rank was of.
        memory: of open impressions and pending clicks.
        client_duels: duels of clients in the dedupe window.
        team_patterns: those that impressions have in common.
    """

    partition: int
    join_window_ms: int
    window: DedupeWindow
    timers: Timers
    outputs: OutputBuffer
    limits: LimitSettings
    heartbeat: Callable[[], None]
    tells_ranks: bool = True
    memory: OpenMemory = field(init=False)
    client_duels: ClientDuels = field(init=False)
    team_patterns: TeamPatterns = field(init=False, default_factory=TeamPatterns)

    def __post_init__(self) -> None:
        self.memory = OpenMemory(self.limits.max_open_bytes)
        self.client_duels = ClientDuels(self.window)

    @classmethod
    def detached(
        cls, partition: int, join_window_ms: int, limits: LimitSettings
    ) -> PartitionContext:
        """That of an experiment which answers what the fold would do, and is then thrown away."""
        window, outputs = DedupeWindow(1, 0), OutputBuffer("", partition)
        return cls(partition, join_window_ms, window, Timers(), outputs, limits, lambda: None)
