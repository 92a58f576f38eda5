"""The connector contract: where records come from, and where outputs and snapshots go.

A connector is a plug-in: a package that registers one `Connector` object under the entry-point
group `streamduel.connectors`. It moves bytes and never looks inside a record or an entry.

The stream commits in one order (`streamduel.stream.commit`): `Outlet.write`, then `Outlet.finish`.
A connector promises that nothing of a commit is visible before `finish` and all of it after,
also when the process is killed in between.

Only a `StreamduelError` is shown to users as a sentence; any other exception ends the program with
a traceback. No method is called after `close`.

`streamduel.testing.connectors` has the checks that every connector must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from pydantic import BaseModel

from streamduel.connector_records import (
    ControlMarker,
    ControlRecord,
    LogRecord,
    Message,
    PartitionCommit,
    Poll,
    Snapshot,
)
from streamduel.diagnosis import Diagnosis
from streamduel.errors import ConfigurationError, nearest

__all__ = [
    "ENTRY_POINTS",
    "MAX_BATCH_BYTES",
    "POLL_SECONDS",
    "Archive",
    "Connector",
    "Contradiction",
    "ControlMarker",
    "ControlRecord",
    "ControlledSource",
    "Failpoint",
    "LogRecord",
    "Message",
    "Outlet",
    "PartitionCommit",
    "Poll",
    "Snapshot",
    "Source",
    "SourceOptions",
    "connector_names",
    "load_connector",
    "no_failpoint",
    "own_connector_names",
]

ENTRY_POINTS = "streamduel.connectors"

MAX_BATCH_BYTES: Final = 32 * 2**20
"""Default of `limits.max_batch_bytes`: a batch has at most 1 MB by Kafka's default, and click logs
shrink to a tenth or a twentieth. A process with such a batch has some 200 MB."""


POLL_SECONDS: Final = 0.2
"""Timeout of a command's poll: it notices its deadline, or Ctrl-C, without a noticeable delay."""


class Source(Protocol):
    """Reads the click log. A process owns some of its partitions, and they may change."""

    @property
    def topic(self) -> str:
        """The name of the click log: a topic, or a file's name."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the whole click log."""

    @property
    def connected(self) -> bool:
        """Whether the click log can be reached now; cheap, called after every poll."""

    def home(self, experiment: str) -> int:
        """The partition to which the records of an experiment belong.

        It is the same in every process, and the one to which producers send them.
        """

    def log_id(self, partition: int) -> str | None:
        """What distinguishes the click log of a partition from a later one of the same name.

        Offsets of one click log mean nothing in another. A source that notices another click log
        under the same name while it reads raises a ConnectorError from `poll`. None if nothing
        distinguishes them, or if the log has no id before its first record is read.
        """

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        """Wait at most `timeout` seconds for records and for changes of ownership.

        Args:
            timeout: in seconds.
            hold: deliver no records: those of the last poll are still being folded, and this
                one only keeps the ownership of the partitions.

        Raises:
            ConnectorError: a permanent error.
        """

    def seek(self, partition: int, offset: int | None) -> int:
        """Deliver a gained partition from this offset on.

        None, and an offset that the click log no longer holds, mean its beginning.

        Returns:
            The offset from which records are delivered.

        Raises:
            ConnectorError: the partition ends before this offset; its end itself is valid. One that
                `open_source` has opened may raise it from `poll` instead, if that takes long.
        """

    def caught_up(self, partition: int) -> bool:
        """Whether all records up to the partition's end at the time of `seek` were delivered.

        The end is where an open transaction of a producer begins, if there is one: its records may
        never be delivered, and no reader may wait for them.
        """

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The number of records not delivered yet, for each partition where it is known.

        Includes records that cannot be delivered yet, see `stable_offset_lags`.
        """

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The number of records behind the oldest open transaction of a producer.

        They are delivered when that transaction ends. For each partition where it is known; empty
        for a click log without transactions. Not asked while `lags` knows none.
        """

    def reannounce(self) -> None:
        """Report every partition that is still owned as lost and gained again at the next poll.

        The runner calls it after a failed commit, to rebuild its state from the last visible one.
        """

    def close(self) -> None:
        """Leave the group and close connections and files; this commits nothing."""


class ControlledSource(Source, Protocol):
    """A source of a connector whose settings have the key `control_topic`, with that key set.

    It delivers a `ControlMarker` wherever the click log has a marker of its own that counts. It has
    caught up when also the control records that existed at the time of `seek` were delivered.
    """

    def seek_control(
        self, partition: int, offset: int, counts: Callable[[int], bool]
    ) -> str | None:
        """Deliver the control records of a gained partition from this offset on.

        Called before `seek`. Returns the id of the control topic, as `log_id` for the click log.

        Args:
            partition: the partition.
            offset: of the control topic.
            counts: whether a marker at an offset of the click log counts; another one is delivered
                as it is, and its control record with a later marker.

        Raises:
            ConnectorError: the control topic ends before this offset.
        """


class Outlet(Protocol):
    """Writes outputs and snapshots, and loads snapshots to restore from.

    An outlet that raises `Fenced` discards the open commit itself: the runner then calls `load`,
    and writes the next commit to the same outlet.
    """

    def load(self, partition: int) -> Snapshot | None:
        """The newest snapshot of a partition; None if it has none.

        Called from several threads, also while a commit of other partitions is open.
        """

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Begin a commit: write its outputs and snapshot entries. None of it is visible yet.

        Raises:
            Fenced: nothing is visible; the partitions may have another owner.
            ConnectorError: a permanent error; nothing is visible.
        """

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Make everything written since the last commit visible, all of it together.

        Raises:
            Fenced: nothing became visible, or that is unknown; `load` shows which.
            ConnectorError: a permanent error.
        """

    def close(self) -> None:
        """Discard an unfinished commit, and close connections and files.

        A `load` may still be running in another thread.
        """


class Archive(Protocol):
    """What was committed, to read only: for `inspect` and `replay`, beside a running service."""

    @property
    def compacted(self) -> bool:
        """Whether `published` may lack assignments that a later one has replaced."""

    def partitions(self) -> Sequence[int]:
        """The partitions that may have a snapshot."""

    def load(self, partition: int) -> Snapshot | None:
        """The newest visible snapshot of a partition; None if it has none."""

    def published(self) -> Iterator[Message]:
        """Every visible assignment, oldest first within an experiment."""

    def close(self) -> None:
        """Close connections and files."""


class Failpoint(Protocol):
    """Called with the name of each step of a commit; tests pass one that kills the process.

    `streamduel.stream.commit` calls it around `write` and `finish`. A connector may also call it
    between its own steps; that is optional.
    """

    def __call__(self, step: str, /) -> None:
        """The commit has reached this step."""


def no_failpoint(step: str, /) -> None:
    """The failpoint outside tests: does nothing."""


class SourceOptions(NamedTuple):
    """What the service asks of a source, besides the connector's own settings.

    Attributes:
        until_end: the click log is read up to its end at the time of `seek` only, so that a last
            line without a newline is complete. A source whose records are always complete may
            ignore it: the service ends when all partitions have caught up.
        max_batch_bytes: a compressed batch that holds more bytes becomes one record whose value
            is a `Rejected`, `limits.max_batch_bytes`.
        alone: seconds to wait until no other process shares the partitions; None: they are shared.
            A process that is alone gives its partitions back when it closes the source.
    """

    until_end: bool = False
    max_batch_bytes: int = MAX_BATCH_BYTES
    alone: float | None = None


class Contradiction(NamedTuple):
    """A key whose value contradicts that of another section.

    Attributes:
        section: `source`, `sink` or `snapshots`.
        key: the key there.
        predicate: what it must be, to be continued after its name: "must be … (found …)."
    """

    section: str
    key: str
    predicate: str


@dataclass(kw_only=True)
class Connector:
    """A plug-in: settings models, and functions that open a source, outlet and archive from them.

    Each model has a field `connector` with the connector's name; all other fields are its own.
    Models are validated with the context `{"directory": Path}`, to which relative paths refer.
    Each function takes instances of these models.

    Attributes:
        source_settings: the model of the configuration's section `source`.
        sink_settings: the model of `sink`.
        snapshot_settings: the model of `snapshots`.
        shared_settings: keys that sink and snapshots inherit from `source` if it uses the same
            connector; they must have the same value everywhere.
        open_source: opens a source that shares the partitions with other processes.
        open_log: opens a source that reads all partitions without joining a group, for replay.
        open_outlet: takes sink and snapshot settings, and the source, which knows the owner.
        open_archive: takes sink and snapshot settings; creates and locks nothing.
        append: adds records to the click log, or to the control topic if there is one, for
            `streamduel control`, and yields the place of each. Takes source settings, and of each
            record the key (an experiment's name) and the value (JSON on one line). When its place
            is yielded, the record is durable, in the experiment's home partition. Raises a
            ConnectorError if the next record was not written, and an UncertainError if that is
            unknown; both within seconds.
        contradictions: the keys of source, sink and snapshots that contradict one another; see
            `Contradiction`. Takes the settings of the sections, of which the source is None if it
            has another connector. Optional.
        diagnose: checks source, sink and snapshot settings for `streamduel doctor`, within seconds;
            creates, locks and writes nothing, and raises nothing about what it finds. Optional.
        folder: where sink settings, or snapshot settings, let it write files; None if nowhere.
            `run --until-end` prints it. Optional.
        read_once: whether the click log of source settings can be read only once, such as standard
            input: `doctor` and `control apply` then do not read it. Optional.
    """

    source_settings: type[BaseModel]
    sink_settings: type[BaseModel]
    snapshot_settings: type[BaseModel]
    shared_settings: frozenset[str] = frozenset()
    open_source: Callable[[Any, SourceOptions], Source]
    open_log: Callable[[Any, SourceOptions], Source]
    open_outlet: Callable[[Any, Any, Source, Failpoint], Outlet]
    open_archive: Callable[[Any, Any], Archive]
    append: Callable[[Any, Iterable[tuple[bytes, bytes]]], Iterator[str]]
    contradictions: Callable[[Any, Any, Any], Iterable[Contradiction]] = lambda *_: ()
    diagnose: Callable[[Any, Any, Any], Diagnosis] = lambda *_: Diagnosis(())
    folder: Callable[[Any], Path | None] = lambda _: None
    read_once: Callable[[Any], bool] = lambda _: False


def connector_names() -> list[str]:
    """The names of all installed connectors, sorted."""
    return sorted({point.name for point in entry_points(group=ENTRY_POINTS)})


def own_connector_names() -> list[str]:
    """The names of the connectors that streamduel ships, sorted: those of its documentation."""
    points = entry_points(group=ENTRY_POINTS)
    return sorted(it.name for it in points if it.dist is not None and it.dist.name == "streamduel")


@cache
def load_connector(name: str) -> Connector:
    """Import an installed connector.

    Raises:
        ConfigurationError: no connector has this name, or two have; or it cannot be loaded.
    """
    points = [point for point in entry_points(group=ENTRY_POINTS) if point.name == name]
    if not points:
        found = f"{nearest(name, connector_names())} (installed: {', '.join(connector_names())})"
        raise ConfigurationError(f"unknown connector '{name}'{found}.")
    if len(points) > 1:
        places = " and ".join(sorted(point.value for point in points))
        raise ConfigurationError(f"connector '{name}' is installed twice, as {places}; keep one.")
    try:
        connector = points[0].load()
        if not isinstance(connector, Connector):
            raise TypeError(f"{points[0].value} is not a streamduel.connector.Connector")
    except ModuleNotFoundError as missing:
        what = f"streamduel[{name}]" if name in own_connector_names() else "it"
        cause = f"needs a package that is not installed ({missing.name}); install {what}."
        raise ConfigurationError(f"connector '{name}' {cause}") from missing
    except Exception as error:  # a plug-in's code may raise anything
        cause = f"{error} ({type(error).__name__})"
        raise ConfigurationError(f"connector '{name}' cannot be loaded: {cause}.") from error
    return connector
