"""The contract between the stream and the outside world: a source, a sink, a snapshot store.

A connector is a plug-in that registers an object with the attributes of `Connector` under the
entry-point group `streamduel.connectors`. It moves bytes; it never looks inside a record.

The stream promises to call these in one order (`streamduel.stream.commit`):
`Sink.begin`, `Sink.write`, `SnapshotStore.save`, `Sink.finish`. A connector promises that
everything between `begin` and `finish` becomes visible together or not at all, also when the
process is killed in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel

from streamduel.errors import ConfigurationError, nearest

ENTRY_POINTS = "streamduel.connectors"


class LogRecord(Protocol):
    """One record of the log, as the source's client delivers it (kafka-python's own will do)."""

    @property
    def offset(self) -> int:
        """Its position in the partition, from 0, growing."""

    @property
    def timestamp(self) -> int | None:
        """The broker's, in milliseconds since the epoch; negative when it has none.

        None where the log has no timestamps, and the record's own `ts` is to be taken.
        """

    @property
    def key(self) -> bytes | None:
        """The experiment's name, or None."""

    @property
    def value(self) -> bytes | None:
        """The record's text, or None (a tombstone)."""


class Message(NamedTuple):
    """One output: a key and the bytes under it."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """What one partition wants to make visible.

    Attributes:
        partition: which one.
        next_offset: the first offset that is not part of this commit.
        assignments: to the assignments topic, in order.
        dead_letters: to the dead-letter topic, in order.
        entries: the snapshot entries that changed, by name.
    """

    partition: int
    next_offset: int
    assignments: Sequence[Message] = ()
    dead_letters: Sequence[Message] = ()
    entries: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll of a source brought.

    Attributes:
        lost: partitions that this process no longer owns; handle them before `gained`.
        gained: partitions that it owns now, and that deliver nothing before `Source.seek`.
        records: per partition, in the order of their offsets.
    """

    lost: Sequence[int] = ()
    gained: Sequence[int] = ()
    records: Mapping[int, Sequence[LogRecord]] = field(default_factory=dict)


@runtime_checkable
class Source(Protocol):
    """Reads the log. One process may own some of its partitions, and they may change."""

    @property
    def topic(self) -> str:
        """What the log is called: a topic, or a file's name."""

    @property
    def partitions(self) -> int:
        """How many partitions the whole log has."""

    @property
    def connected(self) -> bool:
        """Whether the log can be reached at present; cheap, asked after every poll."""

    def home(self, experiment: str) -> int:
        """The partition in which the records of an experiment must stand."""

    def poll(self, timeout: float) -> Poll:
        """Wait at most `timeout` seconds for records and for changes of ownership."""

    def seek(self, partition: int, offset: int | None) -> int:
        """Deliver a gained partition from this offset on.

        `None`, and an offset that the log no longer holds, mean its beginning. Returns the
        offset from which it is really delivered.
        """

    def caught_up(self, partition: int) -> bool:
        """Whether everything that the partition held when it was sought has been delivered."""

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """How many records of each partition are not delivered yet, where that can be known."""

    def reannounce(self) -> None:
        """Report every partition that is still owned as lost and gained again at the next poll.

        The runner asks for it after a commit that failed: its state is then rebuilt from the
        last visible one.
        """

    def close(self) -> None:
        """Leave; nothing is committed by it."""


@runtime_checkable
class Sink(Protocol):
    """Writes assignments and dead letters, and holds the brackets of the commit."""

    def begin(self) -> None:
        """Open a commit."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Write the outputs; they are not visible yet, or are cut back after a crash."""

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Close the commit: everything since `begin` is visible.

        Raises:
            Fenced: somebody else owns the partitions now; nothing is visible.
        """

    def published(self) -> Iterator[Message]:
        """Every assignment that readers can see, oldest first, for an audit."""

    @property
    def compacted(self) -> bool:
        """Whether `published` may lack assignments that a later one has replaced."""

    def close(self) -> None:
        """Let go of files and connections."""


@runtime_checkable
class SnapshotStore(Protocol):
    """Keeps the newest snapshot of every partition: named entries of bytes."""

    def partitions(self) -> Sequence[int]:
        """The partitions that may have a snapshot."""

    def load(self, partition: int) -> dict[str, bytes]:
        """The entries of a partition as of its last visible commit; empty if there is none."""

    def save(self, commits: Sequence[PartitionCommit]) -> None:
        """Replace the entries that changed; they count once the commit is finished."""

    def close(self) -> None:
        """Let go of files and connections."""


class Outlet(NamedTuple):
    """A sink and the snapshot store that shares its commit."""

    sink: Sink
    snapshots: SnapshotStore


class Failpoint(Protocol):
    """Called by name between the steps of a commit; tests hand in one that kills the process."""

    def __call__(self, step: str, /) -> None:
        """The commit is about to leave this step behind."""


def no_failpoint(step: str, /) -> None:
    """The failpoint of every run that is not a test."""


@runtime_checkable
class Connector(Protocol):
    """A plug-in: three settings models and the functions that open what they describe.

    The models have a field `connector` with the connector's name; all other fields are its own.
    They are validated with the context `{"directory": Path}`: relative paths are relative to it.
    """

    source_settings: type[BaseModel]
    sink_settings: type[BaseModel]
    snapshot_settings: type[BaseModel]
    shared_settings: frozenset[str]
    """Keys that sink and snapshots take from a source of the same connector, and must not vary."""

    open_source: Callable[[BaseModel, bool], Source]
    """A source that takes part in sharing the log's partitions out among processes.

    The flag says that the log is read up to its present end only, so that a last line without
    its newline is whole."""
    open_log: Callable[[BaseModel], Source]
    """A source that reads all partitions by itself and disturbs nobody, for replay."""
    open_outlet: Callable[[BaseModel, BaseModel, Source, Failpoint], Outlet]
    """The sink and the snapshot store, to write to; the source says who owns what."""
    open_archive: Callable[[BaseModel, BaseModel], Outlet]
    """The same, to read from only, for inspect and replay."""
    append: Callable[[BaseModel, bytes, bytes], str]
    """Add one record to the source's log, for `streamduel control`, and say where it stands.

    It takes the source's settings, the key (an experiment's name) and the value (JSON on one
    line). The record stands in the experiment's home partition, and lasts, when this returns. Not
    to wait for ever, it raises a ConnectorError if nothing was written, and an UncertainError if
    that is not known."""


def connector_names() -> list[str]:
    """The names of all installed connectors."""
    return sorted(point.name for point in entry_points(group=ENTRY_POINTS))


def load_connector(name: str) -> Connector:
    """The connector of that name.

    Raises:
        ConfigurationError: there is none, or a package that it needs is not installed.
    """
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            try:
                connector = point.load()
            except ImportError as missing:
                raise ConfigurationError(
                    f"connector '{name}' needs a package that is not installed ({missing.name}); "
                    f"install streamduel[{name}]."
                ) from missing
            assert isinstance(connector, Connector)
            return connector
    names = connector_names()
    raise ConfigurationError(
        f"unknown connector '{name}'{nearest(name, names)} (installed: {', '.join(names)})."
    )
