"""Writes impressions and clicks to the click log."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self, TypedDict, Unpack

from streamduel.client.assignment import Draw
from streamduel.client.interleaver import Merged
from streamduel.client.writers import FileWriter, Message, Outbox, Record, Writer, encode
from streamduel.errors import BufferFullError, ClientError
from streamduel.records import Click, Duel, Impression, Interleaving, RankClick

log = logging.getLogger(__name__)

BUFFER_BYTES: Final = 32 << 20
"""The default of Kafka's Java producer: some 50,000 impressions of ten documents."""

CLOSE_SECONDS: Final = 10.0
"""A third of the usual time between SIGTERM and SIGKILL."""


class Options(TypedDict, total=False):
    """The keyword arguments of `EventLog`."""

    full: Literal["drop", "raise"]
    buffer_bytes: int
    clock: Callable[[], float]


class Origin(TypedDict, total=False):
    """Where a record comes from, as keyword arguments of each method that logs one.

    `client` is the user or session, up to 256 characters; an experiment may limit the duels of one
    client. `query` is what the user searched for, up to 1024 characters. `segment` is the part of
    the traffic: its name, or up to 8 names by segmentation, such as `{"device": "phone"}`. None is
    as without the argument.
    """

    client: str | None
    query: str | None
    segment: str | Mapping[str, str] | None


class EventLog:
    """Writes records to the click log, without blocking the caller.

    Each record is checked, buffered, and written by a daemon thread: in order, with the
    experiment's name as its key, with retries after any error. A retried record may be written
    twice; streamduel counts it once, by its `id`.

    **When the buffer is full**, because the click log has been unavailable for long, a record is
    dropped and counted in `dropped` (`full="drop"`: searches continue without a log), or the method
    raises (`full="raise"`). Records left after the timeout of `close` are dropped, too.

    **The methods that log a record** return its id. `record_id` must be unique within the
    experiment, and is random by default; `ts` is in milliseconds since 1970, by default now;
    `client`, `query` and `segment` are those of `Origin`. A list longer than the service's
    `limits.max_ranks`, by default 1,000, becomes a dead letter there. They raise ClientError if
    streamduel would refuse the record, or if the log is closed or was created before the process
    was forked, and BufferFullError if the buffer is full and `full` is "raise".

    Create one in each process, after it has forked: threads do not survive a fork.

    Args:
        writer: the destination; `to_kafka` and `to_file` create one.
        full: what to do with a record when the buffer is full.
        buffer_bytes: the capacity of the buffer.
        clock: seconds since 1970, for the records' `ts`.

    Raises:
        ClientError: an argument has an invalid value.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "clicks.jsonl")
    >>> with EventLog.to_file(path, clock=lambda: 1_790_000_000) as events:
    ...     shown = Merged(["d2", "d1"], ["b", "a"])
    ...     draw = Draw("bm25", "ltr", 17)
    ...     events.impression("search", draw, shown, record_id="i-1", client="u-1")
    ...     events.click("search", "i-1", rank=0, record_id="c-1")
    'i-1'
    'c-1'
    >>> print(path.read_text().replace(",", ", "))
    {"type":"impression", "id":"i-1", "experiment":"search", "a":"bm25", "b":"ltr",
     "teams":["b", "a"], "docs":["d2", "d1"], "epoch":17, "ts":1790000000000, "client":"u-1"}
    {"type":"click", "id":"c-1", "experiment":"search", "impression":"i-1", "rank":0,
     "ts":1790000000000}
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
        if not hasattr(writer, "write"):
            raise ClientError(
                "writer must have a method write, as those of to_kafka and to_file "
                f"(found {type(writer).__name__})."
            )
        if full not in {"drop", "raise"}:
            raise ClientError(f"full must be 'drop' or 'raise' (found {full!r}).")
        if not isinstance(buffer_bytes, int) or buffer_bytes < 1:
            raise ClientError(
                f"buffer_bytes must be an integer of at least 1 (found {buffer_bytes!r})."
            )
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

        Records are acknowledged by all replicas in sync, and go to the partition where streamduel
        expects the experiment. Brokers may be unavailable, at the start and later.

        Args:
            bootstrap_servers: `host:port` of one or more brokers, as a list or separated by commas.
            topic: the click log.
            kafka: further settings of kafka-python's `KafkaProducer`, such as `security_protocol`.
            **options: see `EventLog`.

        Raises:
            ClientError: a setting is invalid, or kafka-python is not installed.
        """
        try:
            from streamduel.client.kafka import KafkaWriter  # noqa: PLC0415 - an optional extra
        except ImportError:
            raise ClientError(
                "a click log on Kafka needs kafka-python; install streamduel-client[kafka] "
                "or streamduel[kafka]."
            ) from None
        return cls(KafkaWriter(bootstrap_servers, topic, kafka), **options)

    @classmethod
    def to_file(cls, path: str | Path, **options: Unpack[Options]) -> Self:
        """Append to a JSON Lines file, which the files connector reads; it may not exist yet.

        Raises:
            ClientError: the file cannot be opened.
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
        **origin: Unpack[Origin],
    ) -> str | None:
        """Log a list that was shown; log its clicks with `click`, by the id that is returned.

        A ranker that was served alone is logged as a `duel` of the ranker with itself. Do not log
        clicks on its list: they have no impression, and would be counted as `late`. A list without
        documents is not logged: it cannot be clicked, and would count as a tie. In both cases None
        is returned.

        With `docs`, the documents are logged, as text, so that clicks may name them. Without them
        streamduel needs less memory.
        """
        if not merged.docs:
            return None
        if draw.alone:
            self.duel(experiment, draw.a, draw.b, None, record_id=record_id, ts=ts, **origin)
            return None
        fields = _fields(draw, merged, docs=docs)
        return self._log(
            Impression(**self._common(record_id, ts, origin), experiment=experiment, **fields)
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
        **origin: Unpack[Origin],
    ) -> str:
        """Log a click on an impression, or another action such as a purchase.

        The place is a `rank`, from 0, in the whole list, or a `doc`, if the impression was logged
        with its `docs`. The experiment's credit function may weight the `action`.
        """
        return self._log(
            Click(
                **self._common(record_id, ts, origin),
                experiment=experiment,
                impression=impression,
                rank=rank,
                doc=None if doc is None else str(doc),
                action=action,
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
        **origin: Unpack[Origin],
    ) -> str:
        """Log an impression that the service has credited, or a ranker that was served alone.

        A ranker alone is on both sides, a and b, and `winner` is None.
        """
        common = self._common(record_id, ts, origin)
        return self._log(Duel(**common, experiment=experiment, a=a, b=b, winner=winner))

    def interleaving(
        self,
        experiment: str,
        draw: Draw,
        merged: Merged[Any],
        clicks: Sequence[int | RankClick],
        *,
        docs: bool = False,
        record_id: str | None = None,
        ts: int | None = None,
        **origin: Unpack[Origin],
    ) -> str | None:
        """Log a list and all its clicks in one record.

        The clicks are the clicked ranks, from 0, or `RankClick`s with time and action. A ranker
        that was served alone is logged as a `duel` of the ranker with itself. A list without
        documents is not logged, and None is returned. With `docs`, the documents are logged, as
        text, so that the status page can show examples of records with a `query`.
        """
        if not merged.docs:
            return None
        if draw.alone:
            return self.duel(experiment, draw.a, draw.b, None, record_id=record_id, ts=ts, **origin)
        fields = {**_fields(draw, merged, docs=docs), "clicks": list(clicks)}
        return self._log(
            Interleaving(**self._common(record_id, ts, origin), experiment=experiment, **fields)
        )

    def _common(self, record_id: str | None, ts: int | None, origin: Origin) -> dict[str, Any]:
        """The fields of every record: its id, its time and its origin."""
        segment = origin.get("segment")
        if isinstance(segment, Mapping):
            origin["segment"] = dict(segment)  # JSON is written of no other mapping
        return dict(  # refuses a field that is given twice
            id=str(uuid.uuid4()) if record_id is None else record_id,
            ts=int(1000 * self._clock()) if ts is None else ts,
            **origin,
        )

    def _log(self, record: Record) -> str:
        value = encode(record)  # first: it checks the name of the experiment, too
        if self._outbox.put(Message(record.experiment.encode(), value)):
            self._dropping = False
        elif self._full == "raise":
            raise BufferFullError(
                f"the event log is full: {self.waiting} records are not written yet."
            )
        elif not self._dropping:
            self._dropping = True
            log.error(
                "the event log is full and drops records: %d are not written yet", self.waiting
            )
        return record.id

    @property
    def waiting(self) -> int:
        """Records that are not written yet."""
        return self._outbox.waiting

    @property
    def written(self) -> int:
        """Records that are written."""
        return self._outbox.written

    @property
    def dropped(self) -> int:
        """Records that will never be written; alert on it."""
        return self._outbox.dropped

    def flush(self, timeout: float = CLOSE_SECONDS) -> bool:
        """Wait until all records logged so far are written, apart from dropped ones.

        Returns:
            Whether they are, within `timeout` seconds.

        Raises:
            ClientError: the log was created before the process was forked.
        """
        return self._outbox.flush(timeout)

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Write the buffer within `timeout` seconds, drop the rest, and refuse further records.

        A signal handler may call it, or `sys.exit()`: the end of a `with` block, or of the program,
        then writes the buffer.
        """
        self._outbox.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fields(draw: Draw, merged: Merged[Any], *, docs: bool) -> dict[str, Any]:
    """The fields of a list that was shown, with its documents as text, or without them."""
    return {
        "a": draw.a,
        "b": draw.b,
        "teams": merged.teams,
        "docs": [str(document) for document in merged.docs] if docs else None,
        "chances": merged.chances,
        "epoch": draw.epoch,
    }
