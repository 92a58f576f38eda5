"""Writes the counts of the slices of a Spark batch, each batch exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import mmh3
import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from streamduel.errors import ConnectorError, listed
from streamduel.kafka_clients import close_producer
from streamduel.kafka_rights import Rights, missing
from streamduel.records import Duels
from streamduel_spark.parts import Counted, Forwarded, Group, Output, Tally
from streamduel_spark.plan import EMPTY, Lane

ANSWER_MS: Final = 60_000
"""An election of leaders takes seconds; a batch that fails is repeated after a restart."""

_encode = msgspec.json.Encoder().encode


class Message(NamedTuple):
    """A message for a topic; without a topic, for the one that streamduel reads."""

    topic: str
    key: bytes | None
    value: bytes


class Batch(NamedTuple):
    """The messages of a Spark batch, and its records by outcome."""

    messages: list[Message]
    tally: Counter[str]


def merge(outputs: Iterable[Output], max_duels: int) -> Batch:
    """One `duels` record of each pair and slice, and forwarded messages, in a fixed order.

    All buckets close a slice in the same Spark batch, because they share the watermark.

    Args:
        outputs: of all buckets.
        max_duels: the most duels of a record; more duels become several records.
    """
    counts: dict[tuple[int, str, Group], list[int]] = {}
    forwarded: list[Forwarded] = []
    tally: Counter[str] = Counter()
    for output in outputs:
        if isinstance(output, Tally):
            tally.update(output.counts)
        elif isinstance(output, Forwarded):
            forwarded.append(output)
        else:
            total = counts.setdefault((output.start, output.lane, output.group), [0, 0, 0])
            for place, count in enumerate((output.wins_a, output.wins_b, output.ties)):
                total[place] += count
    forwarded.sort(key=lambda it: it.place)
    messages = [Message(it.topic, it.key, it.value) for it in forwarded]
    for (start, lane, group), total in sorted(counts.items()):
        tally["duels"] += sum(total)
        counted = Counted(group, lane, start, *total)
        records = records_of(counted, max_duels)
        messages.extend(Message("", group[0].encode(), _encode(record)) for record in records)
    return Batch(messages, tally)


def records_of(counted: Counted, max_duels: int) -> list[Duels]:
    """The `duels` records of one pair in one slice.

    Their ids follow from experiment, pair, segments and slice alone: when a slice is counted again,
    in another run of the job, streamduel drops the second records as duplicates.

    >>> group = ("search", "bm25", "ltr", "{}")
    >>> [(it.id, it.wins_a) for it in records_of(Counted(group, "duel-0-1000", 7000, 3, 0, 0), 2)]
    [('duel-0-1000-7000-1abf46a745894676-0', 2), ('duel-0-1000-7000-1abf46a745894676-1', 1)]
    """
    experiment, a, b, segments = counted.group
    text = "\0".join((a, b, segments))
    pair = mmh3.hash_bytes(text)[:8].hex()
    rest = [counted.wins_a, counted.wins_b, counted.ties]
    segment = None if segments == EMPTY else msgspec.json.decode(segments)
    end = counted.start + Lane.parse(counted.lane).slice_ms
    records: list[Duels] = []
    while any(rest):
        room, taken = max_duels, []
        for place, count in enumerate(rest):
            taken.append(min(count, room))
            room -= taken[place]
            rest[place] -= taken[place]
        id_ = f"{counted.lane}-{counted.start}-{pair}-{len(records)}"
        wins_a, wins_b, ties = taken
        records.append(Duels(id_, experiment, a, b, wins_a, wins_b, ties, end, segment=segment))
    return records


class Written(NamedTuple):
    """The last batch that was written.

    Attributes:
        checkpoint: what identifies the checkpoint, whose batches are numbered from 0.
        number: the number of the batch.
    """

    checkpoint: str
    number: int


def _missing(topics: list[str], servers: str) -> str:
    """The sentence about topics that do not exist.

    >>> _missing(["raw-clicks", "duels"], "localhost:9092")
    "there are no topics 'raw-clicks', 'duels' on localhost:9092; create them first."
    """
    are, them = ("is no topic", "it") if len(topics) == 1 else ("are no topics", "them")
    return f"""there {are} {listed(topics, "'")} on {servers}; create {them} first."""


class Sink:
    """Writes each Spark batch in one Kafka transaction, which also commits the batch's number.

    Spark repeats the last batch after a crash. The number of the last one that was written is the
    offset of a consumer group, so that a repeated batch is recognised however long it took.

    Args:
        settings: the client settings of streamduel's Kafka connector. A few records per batch are
            written, always with kafka-python.
        topic: the topic that streamduel reads.
        group: the consumer group, also the transactional id: it ends the transaction of a job that
            still runs, or was killed, and refuses that job from then on.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, group: str) -> None:
        self._settings = {name: value for name, value in settings.items() if name != "client"}
        self._topic, self._group = topic, group
        self._place = TopicPartition(topic, 0)
        self._rights = Rights(settings, group, group)
        self._producer: Any = None
        self._last: Written | None = None

    def open(self, raw: str, dead_letters: str) -> None:
        """Connect, end an earlier transaction, and read which batch was written last.

        Args:
            raw: the topic of the raw records.
            dead_letters: the topic of the dead letters.

        Raises:
            ConnectorError: Kafka does not answer, a topic or a right is missing, or it refuses.
        """
        servers = ", ".join(self._settings["bootstrap_servers"])
        try:
            with KafkaAdminClient(**self._settings) as admin:
                self._require_topics(admin, raw, dead_letters)
            with KafkaConsumer(
                group_id=self._group, enable_auto_commit=False, **self._settings
            ) as consumer:
                self._producer = KafkaProducer(
                    transactional_id=self._group, transaction_timeout_ms=ANSWER_MS,
                    **self._settings,
                )  # fmt: skip
                self._producer.init_transactions()
                found = consumer.committed(self._place, metadata=True, timeout_ms=ANSWER_MS)
        except (KafkaError, OSError) as error:
            raise self._rights.refused(error, "Write") or ConnectorError(
                f"Kafka on {servers} does not answer, or refuses: {error}"
            ) from error
        if found is not None and found.metadata:
            self._last = Written(found.metadata, found.offset - 1)

    def _require_topics(self, admin: KafkaAdminClient, raw: str, dead_letters: str) -> None:
        needs = {
            raw: ("spark.topic", ["Read"]),
            # To commit an offset of a topic, Kafka demands Read on it.
            self._topic: ("source.topic", ["Read", "Write"]),
            dead_letters: ("sink.dead_letters", ["Write"]),
        }
        described = {it["name"]: it for it in admin.describe_topics(list(needs))}
        kinds = {it: errors.for_code(described[it]["error_code"]) for it in needs}
        lacking = [it for it in needs if kinds[it] is errors.UnknownTopicOrPartitionError]
        if lacking:
            raise ConnectorError(_missing(lacking, ", ".join(self._settings["bootstrap_servers"])))
        for topic, (setting, operations) in needs.items():
            if kinds[topic] is errors.TopicAuthorizationFailedError:
                granted: list[str] | None = []
            elif kinds[topic] is errors.NoError:
                granted = described[topic].get("authorized_operations")
            else:
                raise kinds[topic]()
            for operation in missing(operations, granted):
                raise self._rights.lacks(operation, "topic", topic, setting)

    def write(self, checkpoint: str, number: int, messages: Iterable[Message]) -> bool:
        """Write a batch; False if it was written before.

        Args:
            checkpoint: what identifies the checkpoint, whose batches are numbered from 0.
            number: the number of the batch.
            messages: its messages.

        Raises:
            ConnectorError: it may or may not be written; after a restart, it is known. Or the
                checkpoint is an older one: its batches have numbers that were used for others.
        """
        last = self._last
        if last and last.checkpoint == checkpoint:
            if number == last.number:
                return False
            if number < last.number:
                raise ConnectorError(
                    f"spark.checkpoint is an older one: it continues with batch {number}, and "
                    f"batch {last.number} was written last; restore the newest one, or configure a "
                    "new one (docs/scale.md, 'After a crash')."
                )
        try:
            self._producer.begin_transaction()
            sent = [
                self._producer.send(topic or self._topic, value, key=key)
                for topic, key, value in messages
            ]
            self._producer.send_offsets_to_transaction(
                {self._place: OffsetAndMetadata(number + 1, checkpoint, -1)}, self._group
            )
            for future in sent:
                future.get(ANSWER_MS / 1000)
            self._producer.commit_transaction()
        except (KafkaError, OSError, ValueError) as error:
            # ValueError: a topic has disappeared from the metadata.
            raise ConnectorError(f"Kafka did not take batch {number}: {error}") from error
        self._last = Written(checkpoint, number)
        return True

    def close(self) -> None:
        """Close the producer, also with records that Kafka did not take."""
        if self._producer is not None:
            close_producer(self._producer)
