"""Routing: from the records of a partition to events, each with its experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from streamduel.config import Config
from streamduel.connector import LogRecord, Source
from streamduel.errors import listed, similar
from streamduel.formats import Ignored
from streamduel.records import InputEvent, Rejected
from streamduel.stream.control_order import ControlOrder
from streamduel.stream.decode import RecordDecoder, Unread, named_experiment

if TYPE_CHECKING:
    from streamduel.stream.experiment import Experiment
    from streamduel.stream.record_limits import RecordLimits

MAX_REASONS: Final = 100
"""Reasons under which ignored records are counted. A foreign click log has a handful of event
types, but their names come from outside."""


class ClickLog(NamedTuple):
    """The click log that a task folds one partition of.

    Attributes:
        topic: its name.
        partitions: the number of its partitions.
        home: the partition of an experiment, by the experiment's name.
        log_id: what identifies a partition's click log besides its name; None if nothing does.
    """

    topic: str
    partitions: int
    home: Callable[[str], int]
    log_id: Callable[[int], str | None] = lambda partition: None  # noqa: ARG005

    @classmethod
    def of(cls, source: Source) -> ClickLog:
        """The click log that a source reads."""
        return cls(source.topic, source.partitions, source.home, source.log_id)


def timestamp_of(record: LogRecord, events: Sequence[tuple[InputEvent, Experiment]]) -> int:
    """The timestamp of a record in Kafka, or the largest `ts` of its events; negative if none."""
    if record.timestamp is not None:
        return record.timestamp
    return max((event.ts for event, _ in events if event.ts is not None), default=-1)


class Router:
    """Decodes the records of one partition and finds the experiment of each event.

    Args:
        config: the experiments, the format of the click log, and the limits.
        log: the click log.
        partition: the partition.

    Attributes:
        experiments: those whose records are valid, by name.
        decode: decodes a record of streamduel's own format.
        log_format: the settings of a foreign format; None for streamduel's own.
        ignored: ignored records of a foreign click log, by reason.
        controls: which control records count.
    """

    def __init__(self, config: Config, log: ClickLog, partition: int) -> None:
        self._names = sorted(config.experiments)
        self._homes = {name: log.home(name) for name in self._names}
        self._partition = partition
        self.experiments: dict[str, Experiment] = {}
        self.log_format = config.log_format
        self.decode = RecordDecoder.of(config)
        self.ignored: Counter[str] = Counter()
        self.controls = ControlOrder(config.control_origin, config.control_topic)

    def limit(self, limits: RecordLimits) -> None:
        """Decode records from now on with these limits."""
        translate = None if self.log_format is None else self.log_format.translate
        self.decode = RecordDecoder(limits.max_record_bytes, translate, limits.max_ranks)

    def is_here(self, name: str) -> bool:
        """Whether an experiment lives in this partition."""
        return self._homes[name] == self._partition

    def events(self, record: LogRecord) -> list[tuple[InputEvent, Experiment]]:
        """The events of a record, in whatever format.

        Raises:
            Rejected: the record becomes a dead letter.
            Ignored: the record, of a foreign click log, is not about rankers.
        """
        events = []
        for event in self.decode.events(record.value):
            events.append((event, self.find(event)))
            self.controls.check(event, record.offset)
        return events

    def find(self, event: InputEvent) -> Experiment:
        """The experiment of an event.

        Raises:
            Rejected: it does not run in this partition.
        """
        if event.experiment not in self.experiments:
            raise self.unknown(event)
        return self.experiments[event.experiment]

    def unknown(self, event: InputEvent) -> Rejected:
        """The verdict on an event whose experiment does not run in this partition."""
        name, home = event.experiment, self._homes.get(event.experiment)
        if home is None:
            known = listed(self._names, "'")
            hint = similar(name, self._names)
            return Rejected(
                "unknown_experiment",
                f"unknown experiment '{name[:80]}'"
                f"{f'{hint} Configured' if hint else '; configured'} are {known}.",
            )
        return Rejected(
            "wrong_partition",
            f"experiment '{name}' belongs to partition {home} (found in {self._partition}); "
            f"the record's key must be the experiment's name, and its producer's partitioner "
            f"Kafka's default, murmur2.",
        )

    def ignore(self, verdict: Ignored) -> None:
        """Count an ignored record."""
        known = verdict.reason in self.ignored or len(self.ignored) < MAX_REASONS
        self.ignored[verdict.reason if known else "other"] += 1

    def experiment_of(self, record: LogRecord, verdict: Rejected) -> Experiment | None:
        """The experiment that a refused record names, or its key; None if there is no such one."""
        named = "" if isinstance(verdict, Unread) else named_experiment(record.value)
        if self.log_format is not None:
            named = self.log_format.experiment or named
        return self.experiments.get(named or (record.key or b"").decode(errors="replace"))
