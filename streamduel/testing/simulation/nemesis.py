"""The nemesis: faults at random times, some kinds of them in each schedule."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streamduel.stream import snapshot_reading
from streamduel.testing.simulation.operator import OPERATOR, Operator, Repair
from streamduel.testing.simulation.replacement import Replacement

if TYPE_CHECKING:
    from streamduel.testing.simulation.process import Process
    from streamduel.testing.simulation.schedule import Schedule

MAX_INSTANCES: Final = 4


class Nemesis:
    """Does harm to the processes and the cluster of a schedule.

    Each schedule has some kinds of faults and not others, at a rate of its own: faults of one kind
    can then happen often enough to meet, and rare combinations are tried undiluted.

    Args:
        schedule: the schedule.
        rng: draws kinds, times and victims.
    """

    def __init__(self, schedule: Schedule, rng: random.Random) -> None:
        self._schedule = schedule
        self._rng = rng
        kinds: list[Callable[[], str]] = [
            self._crash, self._pause, self._cut, self._lose, self._replace, self._scale,
            self._abort, self._retain, self._compact, self._hold_back,
            self._damage, self._repair, self._replace_log, self._reset_offset,
            self._slow_down, self._reconfigure,
        ]  # fmt: skip
        self._kinds = rng.sample(kinds, rng.randint(1, len(kinds)))
        self._rate = rng.choice((0.002, 0.01, 0.03))
        self._long = schedule.session_ms
        self._repaired = 0

    def act(self) -> None:
        """Perhaps do something."""
        if self._rng.random() < self._rate:
            done = self._rng.choice(self._kinds)()
            self._schedule.trace.append((self._schedule.cluster.now, "nemesis", done))

    def _victim(self) -> Process | None:
        running = self._schedule.running()
        return self._rng.choice(running) if running else None

    def _duration(self) -> int:
        return self._rng.choice((self._long // 10, self._long, 3 * self._long))

    def _crash(self) -> str:
        victim = self._victim()
        if victim is None:
            return "nothing to kill"
        victim.crash()
        return f"kills {victim.name}"

    def _pause(self) -> str:
        victim = self._victim()
        if victim is None:
            return "nothing to pause"
        victim.paused_until = self._schedule.cluster.now + self._duration()
        return f"pauses {victim.name} until {victim.paused_until}"

    def _cut(self) -> str:
        victim = self._victim()
        if victim is None:
            return "nothing to cut off"
        victim.cut_until = self._schedule.cluster.now + self._duration()
        return f"cuts off {victim.name} until {victim.cut_until}"

    def _lose(self) -> str:
        victim = self._victim()
        if victim is None:
            return "nothing to lose"
        victim.loses = self._rng.choice(("request", "answer", "late"))
        return f"{victim.name} will lose one {victim.loses}"

    def _replace(self) -> str:
        """Start a second process of the same name, as an orchestrator does for a silent machine."""
        victim = self._victim()
        if victim is None or isinstance(victim, Operator):
            return "nothing to replace"
        victim.paused_until = self._schedule.cluster.now + self._duration()
        self._schedule.start(victim.name)
        return f"pauses {victim.name} until {victim.paused_until} and starts another"

    def _scale(self) -> str:
        schedule = self._schedule
        schedule.instances = self._rng.randint(1, MAX_INSTANCES)
        return f"wants {schedule.instances} instances"

    def _abort(self) -> str:
        name = self._rng.choice(self._schedule.names() or [OPERATOR])
        self._schedule.cluster.abort_any(name)
        return f"aborts the transaction of {name}"

    def _retain(self) -> str:
        """Delete what no restart needs any more."""
        cluster = self._schedule.cluster
        partition = self._rng.randrange(len(cluster.clicks))
        found = cluster.snapshot(partition)
        if found is None or self._schedule.damaged or self._schedule.repair is not None:
            return "nothing to delete"
        offset = snapshot_reading.read(found.entries, partition).partition.window.offset
        cluster.delete(partition, offset)
        return f"deletes partition {partition} up to {offset}"

    def _repair(self) -> str:
        """An operator stops the service, and repairs a partition."""
        schedule = self._schedule
        if schedule.repair is not None:
            return "an operator repairs already"
        partition = self._rng.randrange(len(schedule.cluster.clicks))
        self._repaired += 1
        schedule.repair = Repair(partition, self._rng, self._repaired)
        return f"an operator begins to repair partition {partition}"

    def _replace_log(self) -> str:
        """An operator stops the service, replaces the click log, and continues with the state."""
        schedule = self._schedule
        reconfigured = schedule.history.is_reconfigured
        if schedule.repair is not None or schedule.workload.controlled or reconfigured:
            return "no operator replaces the click log"
        self._repaired += 1
        replacement = Replacement(schedule.workload, self._rng, self._repaired)
        schedule.repair = replacement
        return f"an operator begins to replace the click log: {len(replacement.clicks)} partitions"

    def _reset_offset(self) -> str:
        """Change a committed offset until it is restored: until then, no process restores."""
        cluster = self._schedule.cluster
        partition = self._rng.randrange(len(cluster.clicks))
        if cluster.has_resets:
            cluster.repair()
            return "sets the offsets back"
        if not cluster.settled or partition not in cluster.offsets:
            return "no offset to set"
        cluster.reset_offset(partition, self._rng.choice((-5, -1, 1, 5)))
        return f"sets the committed offset of partition {partition}"

    def _slow_down(self) -> str:
        """The leader of a partition of the snapshots writes its markers late."""
        schedule = self._schedule
        partition = self._rng.randrange(len(schedule.cluster.clicks))
        schedule.slow = schedule.cluster.snapshots, partition
        schedule.slow_until = schedule.cluster.now + self._duration()
        return f"holds back the markers of {schedule.slow} until {schedule.slow_until}"

    def _reconfigure(self) -> str:
        """Processes that start from now on lack an experiment, or have all again; kill some."""
        schedule, whole = self._schedule, self._schedule.workload.config
        if schedule.workload.controlled or self._repaired:
            return "nothing to reconfigure"
        schedule.history.is_reconfigured = True
        for process in schedule.running():
            if self._rng.random() < 0.5:
                process.crash()
        if schedule.config is not whole:
            schedule.config = whole
            return "rolls out the whole configuration"
        dropped = self._rng.choice(sorted(whole.experiments))
        others = {name: it for name, it in whole.experiments.items() if name != dropped}
        schedule.config = whole.model_copy(update={"experiments": others})
        return f"rolls out a configuration without {dropped}"

    def _compact(self) -> str:
        cluster = self._schedule.cluster
        partition = self._rng.randrange(len(cluster.clicks))
        cluster.compact(partition)
        return f"compacts the snapshots of partition {partition}"

    def _damage(self) -> str:
        self._schedule.damaged = True
        cluster = self._schedule.cluster
        return cluster.damage(self._rng.randrange(len(cluster.clicks)), self._rng)

    def _hold_back(self) -> str:
        """Transaction markers, and what a producer's open transaction hides, come later."""
        self._schedule.held_until = self._schedule.cluster.now + self._duration()
        return f"holds back markers and new records until {self._schedule.held_until}"
