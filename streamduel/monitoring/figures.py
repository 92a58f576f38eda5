"""Everything that monitoring shows, at one moment, and the health judged from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streamduel.monitoring.outlook import Outlook
from streamduel.monitoring.views import ExperimentView, PartitionView
from streamduel.records import Reason

MAX_SILENT_SECONDS: Final = 60.0
"""The runner's loop turns several times a second; a commit to a slow broker may hold it up for
some 15 seconds. After 60 s the Kafka group has reassigned the partitions (the connector's
`max_poll_interval_ms`), so a restart costs nothing more."""

REFUSED_SECONDS: Final = 60.0
"""How long two refused commits in a row count for readiness: refused again and again, a commit is
repeated every 15 to 30 s; without records there is nothing to commit, and nothing wrong."""

MAX_WAIT_SECONDS: Final = 3.0
"""An idle runner completes five polls a second, and a commit takes 0.1 s. It is judged when it is
asked for, so a commit that a broker does not answer shows within five seconds. These include a
request for the lag before it, which waits for the broker for a second."""


class Distribution(NamedTuple):
    """Counts of measurements by bucket; adding a measurement makes a new distribution.

    Attributes:
        bounds: the largest value of each bucket, ascending; one more bucket takes the rest.
        counts: measurements in each bucket.
        total: sum of all measurements.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def empty(cls, *bounds: float) -> Distribution:
        """A distribution without measurements.

        >>> Distribution.empty(1, 10).plus(10).plus(11).counts
        (0, 1, 1)
        """
        return cls(bounds, (0,) * (len(bounds) + 1))

    def plus(self, value: float) -> Distribution:
        """The distribution with one more measurement."""
        place = sum(bound < value for bound in self.bounds)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Distribution(self.bounds, counts, self.total + value)


@dataclass(frozen=True, eq=False)
class Figures:
    """Everything that monitoring shows, at one moment.

    Attributes:
        connector: the source's.
        commit_seconds: durations of commits.
        poll_records: records per poll.
        turned_at: when a poll or a commit last completed; at first, when monitoring began.
        connected: whether the click log is reachable.
        unreadable: why partitions of this process cannot be read nevertheless; empty if all can be.
        fenced: whether the last commit was refused, and its partitions have been neither restored
            nor lost since.
        refused: how many commits were refused since one succeeded.
        refused_at: when the last one was.
        partitions: the partitions of this process that are restored.
        restoring: those whose state is being read.
        lags: records not yet folded, by partition, where known.
        stable_offset_lags: records behind an open transaction, by partition, where known.
        dead_letters: by partition and reason, of every partition that this process has had.
        restores: how many times a partition's state was restored.
        commit_failures: how many commits failed.
        now: by the clock of the other times.
        outlooks: when each experiment will be sure.
    """

    connector: str
    commit_seconds: Distribution
    poll_records: Distribution
    turned_at: float = 0.0
    connected: bool = False
    unreadable: str = ""
    fenced: bool = False
    refused: int = 0
    refused_at: float = 0.0
    partitions: Mapping[int, PartitionView] = field(default_factory=dict)
    restoring: frozenset[int] = frozenset()
    lags: Mapping[int, int] = field(default_factory=dict)
    stable_offset_lags: Mapping[int, int] = field(default_factory=dict)
    dead_letters: Mapping[int, Mapping[Reason, int]] = field(default_factory=dict)
    restores: int = 0
    commit_failures: int = 0
    now: float = 0.0
    outlooks: Mapping[str, Outlook] = field(default_factory=dict)

    def outlook(self, name: str) -> Outlook:
        """When the experiment of that name will be sure."""
        return self.outlooks.get(name) or Outlook.unknown("computing")

    def experiments(self) -> Iterator[ExperimentView]:
        """The experiments of all partitions."""
        for _, partition in sorted(self.partitions.items()):
            yield from partition.experiments.values()

    def experiment(self, name: str) -> ExperimentView | None:
        """The experiment of that name; None if this process does not hold it."""
        return next((view for view in self.experiments() if view.name == name), None)

    def why_not_live(self) -> Sequence[str]:
        """Why the process must be restarted; empty while the runner's loop turns."""
        silent = self.now - self.turned_at
        sentence = (
            f"the runner's loop has not turned for {silent:.0f} s "
            f"(allowed: {MAX_SILENT_SECONDS:.0f} s)."
        )
        return (sentence,) if silent > MAX_SILENT_SECONDS else ()

    def why_not_ready(self, only: str | None = None) -> Sequence[str]:
        """Why no records are folded; empty if they are, or would be if there were any.

        An experiment with a fallback must receive records, too.

        Args:
            only: the experiment whose silence counts; None: that of any.
        """
        reasons, waited = [*self.why_not_live()], self.now - self.turned_at
        if not reasons and waited > MAX_WAIT_SECONDS:  # for a broker, a disk, or a long fold
            reasons.append(
                f"no poll and no commit has completed for {waited:.1f} s "
                f"(allowed: {MAX_WAIT_SECONDS:.0f} s)."
            )
        if not self.connected:
            reasons.append("the click log cannot be reached.")
        elif self.unreadable:
            reasons.append(f"{self.unreadable}.")
        if self.fenced:
            reasons.append("a commit was refused; the last committed state is being restored.")
        elif incomplete := self.incomplete():
            reasons.append(incomplete)
        elif self.refused > 1 and self.now - self.refused_at < REFUSED_SECONDS:
            reasons.append(
                f"the last {self.refused} commits were refused; the application log has the reason."
            )
        for view in self.experiments():
            if view.fallback is not None and only in {None, view.name}:
                arm, allowed = view.fallback
                idle = self.now - view.last_record_at
                if idle > allowed:
                    reasons.append(
                        f"no record of experiment '{view.name}' has arrived for {idle:.0f} s "
                        f"(allowed: {allowed:g} s); ranker services are told to serve '{arm}' "
                        f"alone."
                    )
        return reasons

    def incomplete(self) -> str:
        """Why experiments may be missing that this process is to hold; empty if none are."""
        if self.restoring:
            numbers = ", ".join(map(str, sorted(self.restoring)))
            several = len(self.restoring) > 1
            return (
                f"partition{'s' * several} {numbers} {'are' if several else 'is'} being restored."
            )
        return "" if self.partitions else "no partition is assigned to this process."
