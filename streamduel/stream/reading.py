"""From records to events, each with the experiment that it is of; in streamduel's format or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from streamduel.config import Config
from streamduel.connector import LogRecord
from streamduel.formats import Ignored
from streamduel.records import InputEvent
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.experiment import Experiment
from streamduel.stream.homes import Homes

MOST_REASONS: Final = 100
"""Of records that are ignored, counted one by one: a foreign log has a handful of event types, but
what they are called comes from outside."""


class RecordReader:
    """Reads the records of one partition.

    Args:
        config: its format of the log, and its limits.
        homes: where experiments live.
        experiments: those that are folded here.

    Attributes:
        decode: a record of streamduel's own.
        log_format: of a foreign log; None of streamduel's own.
        ignored: how many records of a foreign log are of no concern, by reason.
    """

    def __init__(self, config: Config, homes: Homes, experiments: Mapping[str, Experiment]) -> None:
        self.log_format = config.log_format
        translate = None if self.log_format is None else self.log_format.translator()
        self.decode = RecordDecoder(config.limits.max_record_bytes, translate)
        self.ignored: Counter[str] = Counter()
        self._homes = homes
        self._experiments = experiments

    def events(self, record: LogRecord) -> list[tuple[InputEvent, Experiment]]:
        """What a record says.

        Raises:
            Rejected: the record is to become a dead letter.
            Ignored: the record, of a foreign log, is of no concern.
        """
        events = self.decode.events(record.value)
        for event in events:
            if event.experiment not in self._experiments:
                raise self._homes.stranger(event)
        return [(event, self._experiments[event.experiment]) for event in events]

    def ignore(self, verdict: Ignored) -> None:
        """Count a record that is of no concern."""
        known = verdict.reason in self.ignored or len(self.ignored) < MOST_REASONS
        self.ignored[verdict.reason if known else "other"] += 1

    def experiment_of(self, record: LogRecord) -> Experiment | None:
        """The experiment of whose tallies a dead letter is, if it says."""
        named = self.decode.named_experiment(record.value)
        if self.log_format is not None:
            named = self.log_format.experiment or named
        return self._experiments.get(named or (record.key or b"").decode(errors="replace"))
