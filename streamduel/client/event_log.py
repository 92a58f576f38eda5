"""Logging what was shown and what was clicked, for streamduel to learn from."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypedDict, Unpack

from streamduel.client.assignment import Draw
from streamduel.client.checking import Record, encode
from streamduel.client.file_writer import FileWriter
from streamduel.client.interleaver import Merged
from streamduel.client.outbox import Message, Outbox, Writer
from streamduel.errors import BufferFullError, ClientError
from streamduel.records import Click, Duel, Impression, Interleaving, RankClick

log = logging.getLogger(__name__)

BUFFER_BYTES: Final = 32 << 20
"""What Kafka's own producers keep, too: some 50,000 impressions of ten documents."""

CLOSE_SECONDS: Final = 10.0
"""A third of what orchestrators usually leave a process between SIGTERM and SIGKILL."""


class Options(TypedDict, total=False):
    """What all ways to make an `EventLog` have in common; see there."""

    full: Literal["drop", "raise"]
    buffer_bytes: int
    clock: Callable[[], float]


class EventLog:
    """Writes the records of a click log, without ever waiting for them to be written.

    A record is checked, put into a buffer and written by a daemon thread: in order, under the
    experiment's name as its key, and again after any failure. It may so be written twice; its `id`
    tells streamduel, which counts it once.

    **When the buffer is full**, because the log cannot be written to for long, a record is counted
    in `dropped` and gone (`full="drop"`, since users should not suffer for want of a log), or the
    method raises (`full="raise"`). What is left when `close` runs out of time is dropped, too.

    Make one for each process, after it has forked: threads do not survive a fork.

    Args:
        writer: where records go; best made with `to_kafka` or `to_file`.
        full: what to do with a record for which the buffer has no room.
        buffer_bytes: how much the records that are not written yet may take.
        clock: seconds since 1970; for the records' `ts`.

    Raises:
        ClientError: `full` is neither.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "clicks.jsonl")
    >>> with EventLog.to_file(path, clock=lambda: 1_790_000_000) as events:
    ...     shown = Merged(["d2", "d1"], ["b", "a"])
    ...     events.impression("search", Draw("bm25", "ltr", 17), shown, record_id="i-1")
    ...     events.click("search", "i-1", rank=0, record_id="c-1")
    'i-1'
    'c-1'
    >>> print(path.read_text().replace(",", ", "))
    {"type":"impression", "id":"i-1", "experiment":"search", "a":"bm25", "b":"ltr",
     "teams":["b", "a"], "docs":["d2", "d1"], "chances":null, "epoch":17, "ts":1790000000000}
    {"type":"click", "id":"c-1", "experiment":"search", "impression":"i-1", "rank":0, "doc":null,
     "action":"click", "ts":1790000000000}
    <BLANKLINE>
    >>> folder.cleanup()
    """

    def __init__(
        self,
        writer: Writer,
        *,
        full: Literal["drop", "raise"] = "drop",
        buffer_bytes: int = BUFFER_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if full not in {"drop", "raise"}:
            raise ClientError(f"full must be 'drop' or 'raise' (found {full!r}).")
        self._full = full
        self._clock = clock
        self._dropping = False
        self._outbox = Outbox(writer, buffer_bytes)

    @classmethod
    def to_kafka(
        cls,
        bootstrap_servers: str | Sequence[str],
        topic: str = "clicks",
        *,
        kafka: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Write to a Kafka topic; needs the extra `kafka`.

        With acknowledgement by all replicas in sync, and in the partition where streamduel expects
        the experiment. Brokers may be away, now or later.

        Args:
            bootstrap_servers: `host:port` of one or more brokers, as a list or with commas between.
            topic: the click log.
            kafka: further settings of kafka-python's `KafkaProducer`, such as `security_protocol`.
            **options: as for `EventLog`.

        Raises:
            ClientError: a setting cannot be used, or kafka-python is not installed.
        """
        try:
            from streamduel.client.kafka_writer import (  # noqa: PLC0415 - an optional extra
                KafkaWriter,
            )
        except ImportError:
            raise ClientError(
                "a click log on Kafka needs kafka-python; install streamduel-client[kafka] "
                "or streamduel[kafka]."
            ) from None
        return cls(KafkaWriter(bootstrap_servers, topic, kafka), **options)

    @classmethod
    def to_file(cls, path: str | Path, **options: Unpack[Options]) -> Self:
        """Append to a JSON Lines file, which the files connector reads.

        Args:
            path: the file; made if it is not there.
            **options: as for `EventLog`.

        Raises:
            ClientError: it cannot be opened.
        """
        return cls(FileWriter(path), **options)

    def impression(
        self,
        experiment: str,
        draw: Draw,
        merged: Merged[Any],
        *,
        docs: bool = True,
        record_id: str | None = None,
        ts: int | None = None,
    ) -> str | None:
        """A list was shown; its clicks come later, by `click`.

        A ranker that was served alone is logged as the `duel` that says so. Clicks on its list are
        not to be logged: they have no impression to go to, and would be counted as `late`. A list
        without documents is not logged: nobody can click on it, and that would count as a tie.

        Args:
            experiment: its name.
            draw: the pair.
            merged: what was shown.
            docs: whether to log the documents, as text, so that clicks may name them. Streamduel
                needs less memory without.
            record_id: unique within the experiment; clicks name it. A random one if not given.
            ts: in milliseconds since 1970; now, if not given.

        Returns:
            The id for clicks to name. None where clicks teach nothing: on the list of a ranker
            alone, or on none.

        Raises:
            ClientError: streamduel would refuse the record, or the log is closed.
            BufferFullError: there is no room for it, and `full` is "raise".
        """
        if not merged.docs:
            return None
        if draw.alone:
            self.duel(experiment, draw.a, draw.b, None, record_id=record_id, ts=ts)
            return None
        return self._log(
            Impression(
                record_id or _new_id(),
                experiment,
                draw.a,
                draw.b,
                merged.teams,
                [str(document) for document in merged.docs] if docs else None,
                merged.chances,
                draw.epoch,
                self._now() if ts is None else ts,
            )
        )

    def click(
        self,
        experiment: str,
        impression: str,
        *,
        rank: int | None = None,
        doc: object = None,
        action: str = "click",
        record_id: str | None = None,
        ts: int | None = None,
    ) -> str:
        """Something in a shown list was clicked, or bought, or whatever else `action` says.

        Args:
            experiment: its name.
            impression: the id of the impression.
            rank: from 0, in the whole list.
            doc: the document, if the impression has its `docs`; rank or document must be given.
            action: what was done; the experiment's credit may tell one from the other.
            record_id: unique within the experiment; a random one if not given.
            ts: as for `impression`.

        Returns:
            The record's id.

        Raises:
            ClientError: as for `impression`.
            BufferFullError: as for `impression`.
        """
        return self._log(
            Click(
                record_id or _new_id(),
                experiment,
                impression,
                rank,
                None if doc is None else str(doc),
                action,
                self._now() if ts is None else ts,
            )
        )

    def duel(
        self,
        experiment: str,
        a: str,
        b: str,
        winner: Literal["a", "b", "tie"] | None,
        *,
        record_id: str | None = None,
        ts: int | None = None,
    ) -> str:
        """An impression that the service has credited itself, or a ranker that was served alone.

        Args:
            experiment: its name.
            a: a ranker.
            b: another one, or the same.
            winner: None where it is the same.
            record_id: as for `click`.
            ts: as for `impression`.

        Returns:
            The record's id.

        Raises:
            ClientError: as for `impression`.
            BufferFullError: as for `impression`.
        """
        ts = self._now() if ts is None else ts
        return self._log(Duel(record_id or _new_id(), experiment, a, b, winner, ts))

    def interleaving(
        self,
        experiment: str,
        draw: Draw,
        merged: Merged[Any],
        clicks: Sequence[int | RankClick],
        *,
        record_id: str | None = None,
        ts: int | None = None,
    ) -> str | None:
        """A list was shown, and all its clicks are known: both in one record.

        A ranker that was served alone is logged as the `duel` that says so. A list without
        documents is not logged.

        Args:
            experiment: its name.
            draw: the pair.
            merged: what was shown.
            clicks: the clicked ranks, from 0, or `RankClick`s with time and action.
            record_id: as for `click`.
            ts: as for `impression`.

        Returns:
            The record's id; None where nothing was logged.

        Raises:
            ClientError: as for `impression`.
            BufferFullError: as for `impression`.
        """
        if not merged.docs:
            return None
        if draw.alone:
            return self.duel(experiment, draw.a, draw.b, None, record_id=record_id, ts=ts)
        return self._log(
            Interleaving(
                record_id or _new_id(),
                experiment,
                draw.a,
                draw.b,
                merged.teams,
                list(clicks),
                merged.chances,
                draw.epoch,
                self._now() if ts is None else ts,
            )
        )

    def _now(self) -> int:
        return int(1000 * self._clock())

    def _log(self, record: Record) -> str:
        """Check a record and hand it over."""
        if self._outbox.put(Message(record.experiment.encode(), encode(record))):
            self._dropping = False
        elif self._full == "raise":
            raise BufferFullError(
                f"the event log is full: {self.waiting} records wait to be written."
            )
        elif not self._dropping:
            self._dropping = True
            log.error("the event log is full and drops records: %d wait", self.waiting)
        return record.id

    @property
    def waiting(self) -> int:
        """How many records are not written yet."""
        return self._outbox.waiting

    @property
    def written(self) -> int:
        """How many records are written."""
        return self._outbox.written

    @property
    def dropped(self) -> int:
        """How many records never will be; worth an alert."""
        return self._outbox.dropped

    def flush(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Wait until all records logged so far are written.

        Args:
            timeout: for so many seconds at most.

        Returns:
            Whether they are, but for those that were dropped.
        """
        return self._outbox.flush(timeout)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Write what waits, and end; records that come later are refused.

        Args:
            timeout: for so many seconds at most; what is not written then is dropped.
        """
        self._outbox.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _new_id() -> str:
    return str(uuid.uuid4())
