"""Reading the click log from a topic."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from kafka import TopicPartition, errors

from streamduel.connector import LogRecord, Poll
from streamduel.errors import ConnectorError, Fenced
from streamduel.kafka_rights import Rights
from streamduel_kafka.client import Consumer, Found
from streamduel_kafka.connecting import (
    BOOTSTRAP_SECONDS,
    damaged,
    is_fatal,
    name_taken,
    reason,
)
from streamduel_kafka.control_log import ControlLog
from streamduel_kafka.instance import Instance
from streamduel_kafka.offsets import (
    ASK_SECONDS,
    PAUSE_SECONDS,
    TRY_SECONDS,
    Bounds,
    Leaderless,
    Offsets,
    check_same,
    name,
    overwritten,
    truncated,
)
from streamduel_kafka.partitions import (
    NOTHING,
    Assigned,
    Ownership,
    home_partition,
)

log = structlog.stdlib.get_logger(__name__)


class KafkaSource:
    """A topic as a click log.

    Args:
        consumer: set up by `open_source` or `open_log`.
        ownership: decides which partitions this process owns.
        topic: the topic's name.
        found: its partitions and its id.
        rights: what this client may do.
        control: the control topic; None without one.
        group_id: the group; None without one.
        instance: this process's name in the group, held until `close`; None without a group.
        leave: leaves the group after `close`; None: the name keeps its partitions for a session.
        leave_unassigned: leaves the group if no member has partitions.

    Attributes:
        topic: the topic's name.
        partitions: its number of partitions at the start.
        group_id: the group; None without one.
    """

    def __init__(
        self,
        consumer: Consumer,
        ownership: Ownership,
        topic: str,
        found: Found,
        rights: Rights,
        *,
        control: ControlLog | None = None,
        group_id: str | None = None,
        instance: Instance | None = None,
        leave: Callable[[], None] | None = None,
        leave_unassigned: Callable[[], None] | None = None,
    ) -> None:
        self._consumer = consumer
        self._control = control
        self._ownership = ownership
        self.topic = topic
        self.partitions = found.partitions
        self._id = found.id
        self._offsets = Offsets(consumer, topic, rights)
        self._leaderless = Leaderless(topic)
        self._instance = instance
        self._leave = leave
        self._leave_unassigned = leave_unassigned  # until the first assignment
        self.group_id = group_id
        self._assigned = NOTHING
        self._delivering: set[int] = set()  # owned partitions after their `seek`
        self._reannounce = False
        self._targets: dict[int, Bounds | None] = {}  # of `caught_up`; None: not known yet
        self._hinted: set[int] = set()
        self._missed: dict[int, int] = {}  # first offsets that are left, not reported yet
        self._asked: Any = None

    @property
    def connected(self) -> bool:
        """Whether at least one broker answers; may be asked from any thread."""
        return self._consumer.connected

    @property
    def group(self) -> Any:
        """The membership that commits must carry; None while nothing may be committed."""
        return self._assigned.group

    @property
    def instance(self) -> str | None:
        """This process's name in the group."""
        return self._instance.name if self._instance else None

    def owns(self, partition: int) -> bool:
        """Whether this process owns a partition, and has called `seek` for it."""
        return partition in self._delivering

    def home(self, experiment: str) -> int:
        """The partition to which Kafka's producers send this key."""
        return home_partition(experiment, self.partitions)

    def log_id(self, partition: int) -> str | None:  # noqa: ARG002 - a topic has one
        """The topic's id, as Kafka's tools show it; None with brokers before Kafka 2.8."""
        return self._id

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        """Wait for records and for changes of ownership; empty while the broker is down.

        Raises:
            ConnectorError: a permanent error.
        """
        if not hold:
            polled = self._poll(timeout)
            missed, self._missed = self._missed, {}
            return replace(polled, missed=missed) if missed else polled
        self._consumer.hold([*map(self._at, self._delivering)])
        try:
            return self._poll(timeout)
        finally:
            # After a rebalance there are none: the others wait for `seek`.
            here = self._consumer.assignment()
            self._consumer.resume(here.intersection(map(self._at, self._delivering)))

    def _poll(self, timeout: float) -> Poll:
        if self._instance is not None:
            self._instance.keep()
        again, self._reannounce = self._reannounce, False
        fetched = self._fetch(0 if again else timeout)
        if known := self._consumer.known(self.topic):
            check_same(self.topic, self._id, known.id)
            self._check_partitions(known.partitions)
        assigned = self._ownership.latest()
        lost: list[int] = []
        gained: list[int] = []
        if again or assigned is not None:
            lost = sorted(self._assigned.partitions)
            self._assigned = assigned or self._assigned
            self._check_first(self._assigned)
            gained = sorted(self._assigned.partitions)
            self._gain(gained)
        # Only now: records fetched before a partition changed its owner are not delivered.
        records: dict[int, Sequence[LogRecord]] = {
            each.partition: batch
            for each, batch in fetched.items()
            if each.partition in self._delivering
        }
        if self._control is not None:
            self._control.look()
            records = self._control.merge(records, self._rewind)
        unreadable = self._leaderless.see(known, self._assigned.partitions)
        return Poll(lost, gained, records, unreadable=unreadable)

    def _check_first(self, assigned: Assigned) -> None:
        """Join again if the first assignment is an outdated one, without partitions."""
        if assigned.group is None:
            return
        check, self._leave_unassigned = self._leave_unassigned, None
        if check is not None and not assigned.partitions:
            check()

    def _rewind(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition), offset)

    def seek_control(
        self, partition: int, offset: int, counts: Callable[[int], bool]
    ) -> str | None:
        """Deliver the control records of a gained partition from this offset on; the topic's id."""
        assert self._control is not None
        self._control.seek(partition, offset, counts)
        return self._control.log_id

    def ask_log(self) -> None:
        """Ask a broker about the topic; `confirm_log` waits for the answer."""
        self._asked = self._consumer.ask_topic(self.topic) if self._id else None

    def confirm_log(self, deadline: float) -> None:
        """Check that everything delivered before `ask_log` is from the topic that was opened.

        And that it was written for the number of partitions that the topic had then: with another
        one, the home of an experiment is another. Until the deadline, by the monotonic clock.

        Raises:
            Fenced: that is not known.
            ConnectorError: the topic was deleted and created again, or has more partitions.
        """
        while self._asked is not None:
            wait = min(TRY_SECONDS, max(0.0, deadline - time.monotonic()))
            try:
                found = self._consumer.await_answer(self.topic, self._asked, wait)
            except (errors.KafkaError, OSError) as error:
                if time.monotonic() > deadline:
                    why = f"Kafka does not describe '{self.topic}': {reason(error)}"
                    raise Fenced(why) from error
                time.sleep(PAUSE_SECONDS)
                self.ask_log()  # another broker
                continue
            if found is None:
                raise Fenced(f"topic '{self.topic}' does not exist at present")
            check_same(self.topic, self._id, found.id)
            self._check_partitions(found.partitions)
            return

    def _recheck_log(self) -> None:
        """Check the topic by new metadata, if there is an answer in time."""
        self.ask_log()
        with contextlib.suppress(Fenced):
            self.confirm_log(time.monotonic() + ASK_SECONDS)

    def _fetch(self, timeout: float) -> Mapping[TopicPartition, Sequence[LogRecord]]:
        started = time.monotonic()
        try:
            return self._consumer.poll(timeout)
        except errors.OffsetOutOfRangeError as error:
            self._recheck_log()
            self._out_of_range(error.args[0])
            return {}
        except errors.CorruptRecordError as error:
            raise damaged(self.topic, error) from error
        except errors.KafkaError as error:
            if isinstance(error, errors.LogTruncationError):
                self._recheck_log()
                self._truncated(error.divergent_offsets)
            if isinstance(error, errors.FencedInstanceIdError):
                raise name_taken() from error
            if is_fatal(error) or not error.retriable:
                raise self._offsets.unreadable(error) from error
            log.warning("read failed", topic=self.topic, error=reason(error))
            rest = timeout - (time.monotonic() - started)
            time.sleep(max(0.0, min(rest, PAUSE_SECONDS)))
            return {}

    def _check_partitions(self, found: int) -> None:
        if found > self.partitions:
            raise ConnectorError(
                f"topic '{self.topic}' has more partitions now than the {self.partitions} it had "
                "at start; the number of partitions decides the home of an experiment, so move the "
                "experiments with 'streamduel repair repartition CONFIG --from FORMER', or start "
                "again with a new group and snapshots."
            )

    def _gain(self, gained: Sequence[int]) -> None:
        self._check_partitions(max(gained, default=-1) + 1)
        self._delivering.clear()
        self._missed.clear()
        if self._control is not None:
            self._control.keep(gained)
        self._consumer.hold([*map(self._at, gained)])

    def reannounce(self) -> None:
        """Report all owned partitions as lost and gained at the next poll."""
        self._reannounce = True

    def seek(self, partition: int, offset: int | None) -> int:
        """Deliver a gained partition from this offset on, or from its beginning.

        While the broker is down, an offset is not checked: if the topic does not hold it, a poll
        finds out, and does what would have been done here.

        Raises:
            ConnectorError: the partition ends before this offset; or its beginning is unknown
                because the broker is down.
        """
        at = self._at(partition)
        bounds = self._offsets.bounds(at, ASK_SECONDS if offset is not None else BOOTSTRAP_SECONDS)
        if bounds is None:
            if offset is None:
                raise ConnectorError(f"the broker does not return the first offset of {name(at)}.")
            start = offset
        else:
            start = bounds.begin if offset is None else max(bounds.begin, offset)
            if start > bounds.end:
                raise truncated(at, start, bounds.end)
        # With a control topic, the click log ends behind markers that are yet to be written.
        self._targets[partition] = bounds if self._control is None else None
        self._consumer.seek(at, start)
        self._consumer.resume([at])
        self._delivering.add(partition)
        return start

    def _out_of_range(self, positions: dict[TopicPartition, int]) -> None:
        for at, position in positions.items():
            bounds = self._offsets.bounds(at, ASK_SECONDS)
            if bounds is None or at.partition not in self._delivering:
                continue  # if it is still out of range, the next poll reports it again
            if position > bounds.end:
                raise truncated(at, position, bounds.end)
            if position < bounds.begin:
                self._missed[at.partition] = bounds.begin
                self._consumer.seek(at, bounds.begin)

    def _truncated(self, partitions: Iterable[TopicPartition]) -> None:
        """Name a partition whose new leader lacks records that were delivered."""
        for at in partitions:
            position = self._position(at.partition)
            bounds = self._offsets.bounds(at, ASK_SECONDS)
            if bounds is not None and position > bounds.high:
                raise truncated(at, position, bounds.high)
            if bounds is not None:
                raise overwritten(at, position)

    def caught_up(self, partition: int) -> bool:
        """Whether the partition's last stable offset at the time of `seek` has been reached.

        With a control topic, the offset at the time when each control record that existed at the
        time of `seek` has its marker. Records behind it belong to a transaction that may never end;
        a line in the application log says so.
        """
        target = self._targets[partition]
        if target is None:
            if self._control is not None and not self._control.forwarded(partition):
                return False
            target = self._offsets.bounds(self._at(partition), ASK_SECONDS)
            self._targets[partition] = target
        if target is None or self._position(partition) < target.end:
            return False
        if self._position(partition) < target.high and partition not in self._hinted:
            self._hinted.add(partition)
            log.warning(
                "records behind an open transaction", topic=self.topic, partition=partition,
                first=target.end, records=target.high - target.end,
                advice="they are not read, because a producer has not ended its transaction; run "
                "again when it has",
            )  # fmt: skip
        return True

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The distance of the high watermarks from the positions, transactions' markers included.

        Records behind an open transaction count, too.
        """
        ends = self._offsets.high_watermarks(partitions)
        return {number: max(0, high - self._position(number)) for number, high in ends.items()}

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The distance of the last stable offsets from the high watermarks."""
        return self._offsets.stable_offset_lags(partitions)

    def _position(self, partition: int) -> int:
        return self._consumer.position(self._at(partition))

    def close(self) -> None:
        """Close the consumer. A static member keeps its partitions until its session times out."""
        # Each of them, although another one fails; the last one first.
        with contextlib.ExitStack() as stack:
            if self._instance is not None:
                stack.callback(self._instance.close)
            if self._control is not None:
                stack.callback(self._control.close)
            if self._leave is not None:
                stack.callback(self._leave)
            stack.callback(self._consumer.close)

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)
