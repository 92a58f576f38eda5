"""Loading snapshots to restore from: partition n of their topic holds that of partition n."""

from __future__ import annotations

import math
import threading
import time
from contextlib import closing
from dataclasses import replace

import structlog
from kafka import TopicPartition, errors

from streamduel.connector import Snapshot
from streamduel.errors import ConnectorError, SnapshotError, counted
from streamduel.kafka_rights import Rights
from streamduel_kafka.archive import ASK_SECONDS, READER, Closed, read_snapshot
from streamduel_kafka.client import Committed, Consumer
from streamduel_kafka.connecting import connect, is_fatal, reason
from streamduel_kafka.group import group_admin
from streamduel_kafka.settings import SnapshotSettings
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.transaction import Transactions, absent

log = structlog.stdlib.get_logger(__name__)

BROKER_SECONDS = 20.0
"""The broker aborts a transaction after its timeout, and checks every 10 s by default; the rest is
for a slow broker."""

# Pauses between two attempts: at first as long as transaction markers usually take, then longer.
MIN_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 1.0

SILENT_SECONDS = 2.0
"""Transaction markers take milliseconds: what takes longer should be seen by who waits for a
start, and needs no longer wait where no transaction is the cause."""

HANGING = (
    "a killed broker may have left a transaction hanging: find it with 'kafka-transactions.sh "
    "find-hanging' and end it with its 'abort', in all partitions that it lists; its work is then "
    "repeated."
)


class _Pending(Exception):  # noqa: N818 - no error: the snapshot may become readable
    """Why the snapshot of the last commit cannot be read yet."""


class _Reset(_Pending):
    """An offset that no commit of this release has written: set by hand, or just now by 0.1.0."""


class SnapshotLoader:
    """Loads the snapshot of the last commit, together with the group's committed offset.

    `load` may be called by several threads at a time; each call has a consumer of its own.

    Args:
        settings: the snapshots' topic.
        transactions: the producer of this process.
        source: the click log, if it is in Kafka too and its group has committed offsets.
    """

    def __init__(
        self, settings: SnapshotSettings, transactions: Transactions, source: KafkaSource | None
    ) -> None:
        self._settings = settings
        self._transactions = transactions
        self._source = source
        self._closing = threading.Event()

    def load(self, partition: int) -> Snapshot | None:
        """The snapshot of a partition's last commit; waits while the broker is down.

        A transaction is decided in one place and then marked in every partition it wrote to, one
        by one. So a snapshot may be committed and not visible here yet. The committed offset is in
        the same transaction, and the broker is asked for one that no open transaction will change
        (the clients require that of a "read_committed" consumer, and repeat the question until they
        get it). As long as the snapshot has another offset, its marker is still to come.

        A commit may leave the offset where it is: a new experiment starts, a repair is written.
        So the metadata of the committed offset says where in the snapshots' topic it was written.

        The marker may never come: a broker that is killed just after a commit, and has no replica
        to take over, can lose the markers (seen with Kafka 4.3). Then the error says what to do.

        Raises:
            SnapshotError: snapshot and committed offset do not belong together.
            ConnectorError: Kafka does not allow it, or the outlet was closed.
        """
        pause = MIN_PAUSE_SECONDS
        deadline = warn_at = held_since = None
        while not self._closing.is_set():
            try:
                return self._attempt(partition)
            except Closed:
                break
            except (errors.KafkaError, OSError) as error:
                if is_fatal(error):
                    raise self._unreadable(partition, error) from error
                held_since = self._log_failed(partition, error, held_since)
                deadline = warn_at = None  # the broker needs the whole time again when it is back
            except _Pending as why:
                now = time.monotonic()
                patience = SILENT_SECONDS if isinstance(why, _Reset) else self._patience()
                deadline = deadline or now + patience
                warn_at = warn_at or now + SILENT_SECONDS
                if now > deadline:
                    raise SnapshotError(str(why)) from None
                if now > warn_at:
                    self._warn(partition, deadline - now, str(why))
                    warn_at = math.inf
                log.debug("snapshot awaits a transaction", partition=partition, why=str(why))
            self._closing.wait(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        raise ConnectorError(f"the snapshot of partition {partition} was not loaded: shutting down")

    def _log_failed(
        self, partition: int, error: BaseException, held_since: float | None
    ) -> float | None:
        """Log a failed attempt.

        Args:
            partition: of the snapshot.
            error: why it failed.
            held_since: since when the transaction of a former process has not ended; None if that
                was not the last failure.

        Returns:
            The new `held_since`.
        """
        found: dict[str, str] = {"error": self._why(error)}
        if not isinstance(error, errors.ConcurrentTransactionsError):
            held_since = None
        elif held_since is None:
            held_since = time.monotonic()
        elif time.monotonic() - held_since > self._patience():
            found["advice"] = HANGING
        log.warning("snapshot not read yet", partition=partition, **found)
        return held_since

    def _warn(self, partition: int, seconds: float, why: str) -> None:
        log.warning(
            "snapshot delayed", partition=partition, seconds=round(seconds), why=why,
            advice="the start waits this many more seconds, until the broker ends a transaction "
            "that a producer has left open",
        )  # fmt: skip

    def _unreadable(self, partition: int, error: BaseException) -> ConnectorError:
        group = self._source.group_id if self._source else None
        rights = Rights(self._settings.client_settings, group)
        if isinstance(error, errors.TransactionalIdAuthorizationFailedError):
            refused = self._transactions.refused(error)
        else:
            refused = rights.refused(error, "Read", self._settings.topic, "snapshots.topic")
        return refused or ConnectorError(
            f"the snapshot of partition {partition} cannot be read: {reason(error)}."
        )

    def _why(self, error: BaseException) -> str:
        gone = absent(self._settings.client_settings, [self._settings.topic])
        return f"snapshots.topic '{gone}' does not exist" if gone else reason(error)

    def _patience(self) -> float:
        return self._transactions.timeout_ms / 1000 + BROKER_SECONDS

    def _attempt(self, partition: int) -> Snapshot | None:
        # Ends what a former process of this name left open, which would otherwise have to time out.
        self._transactions.settle()
        reader = replace(READER, group=self._source.group_id) if self._source else READER
        consumer = connect(reader, self._settings.client_settings, ASK_SECONDS)
        try:
            # In this order, because another process may own the partition by now, and commit
            # between the two: then the snapshot is older than the committed offset, never newer.
            at = TopicPartition(self._settings.topic, partition)
            snapshot, written = read_snapshot(consumer, at, self._closing)
            committed = self._committed(consumer, partition)
        finally:
            consumer.close()
        self._check_group(partition, snapshot)
        self._check(partition, snapshot, written, committed)
        return snapshot

    def _check_group(self, partition: int, snapshot: Snapshot | None) -> None:
        """Refuse the snapshot of another group that has members: its service writes it, too.

        Without members, this group continues it: the group has another name now.
        """
        own = None if self._source is None else self._source.group_id
        writer = None if snapshot is None else snapshot.group
        if own is None or writer in (None, own):
            return
        try:
            with closing(group_admin(self._settings)) as admin:
                members: int | None = len(admin.members(writer))
        except (errors.KafkaError, ConnectorError, OSError) as error:
            log.debug("group unknown", group=writer, error=reason(error))
            members = None
        if members:
            raise SnapshotError(
                f"group '{writer}' writes the snapshot of partition {partition} in snapshots.topic "
                f"'{self._settings.topic}', and has {counted(members, 'member')} now; group "
                f"'{own}' would overwrite it. Give each group its own snapshots.topic; if "
                f"'{own}' is to continue instead, stop all processes of '{writer}' first, and "
                f"start when their sessions have ended."
            )
        log.warning(
            "snapshot of another group", partition=partition, group=own, writer=writer,
            advice="normal after source.group was renamed; two services need two snapshots.topic",
        )  # fmt: skip

    def _committed(self, consumer: Consumer, partition: int) -> Committed | None:
        if self._source is None:
            return None
        at = TopicPartition(self._source.topic, partition)
        try:
            return consumer.committed(at, ASK_SECONDS)
        except errors.TopicAuthorizationFailedError as error:
            raise Rights(self._settings.client_settings).lacks(
                "Read", "topic", at.topic, "source.topic"
            ) from error
        except errors.KafkaTimeoutError:
            if not consumer.answers(ASK_SECONDS):
                raise
            raise _Pending(
                f"the offset of partition {partition} in group '{self._source.group_id}' is held "
                f"by a transaction for longer than any may last; {HANGING}"
            ) from None

    def _check(
        self, partition: int, snapshot: Snapshot | None, written: int, committed: Committed | None
    ) -> None:
        if committed is None:
            return  # a new group, or one whose offsets expired while it was away
        assert self._source is not None
        group = self._source.group_id
        if snapshot is None:
            raise _Pending(
                f"group '{group}' has committed offset {committed.offset} of partition "
                f"{partition}, but snapshots.topic '{self._settings.topic}' has no snapshot of it; "
                "was the topic emptied, or is the group another program's? Use a new group to "
                "start again."
            )
        expected, continues = committed.metadata, snapshot.next_offset
        if expected.isdecimal() and written < int(expected):
            raise _Pending(
                f"the snapshot of partition {partition} goes to offset {continues} and was written "
                f"at offset {written} of '{self._settings.topic}', but group '{group}' has "
                f"committed {committed.offset}, with the one at {expected}; {HANGING} If there is "
                f"none, the topic has lost its newest records, or was replaced: set the group's "
                f"offset to {continues} by hand, where the snapshot continues."
            )
        if continues != committed.offset:
            if expected.isdecimal() and written > int(expected):
                # All commits are visible, and the snapshot is newer than the group's offset.
                log.warning(
                    "group offset outdated", partition=partition, group=group,
                    offset=committed.offset, snapshot=continues,
                    advice="the snapshot tells where to continue; normal after a return to a "
                    "former source.topic, else brokers have lost the group's newest offsets or "
                    "another group writes to snapshots.topic",
                )  # fmt: skip
                return
            raise _Reset(
                f"the snapshot of partition {partition} goes to offset {continues}, but "
                f"group '{group}' has committed {committed.offset}; the offsets were reset by "
                f"hand: set this one to {continues}, where the snapshot continues."
            )

    def close(self) -> None:
        """Stop loads in other threads."""
        self._closing.set()
