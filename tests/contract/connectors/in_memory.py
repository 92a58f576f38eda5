"""The in-memory broker, with the checks' fixture around it."""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.connector import Failpoint, Source, no_failpoint
from streamduel.testing import Broker, MemoryOutlet, MemorySource


class InMemory:
    """The in-memory broker of `streamduel.testing`."""

    def __init__(self) -> None:
        self.broker = Broker([])

    def append(self, values: Sequence[bytes]) -> None:
        self.broker.log = [*self.broker.log, *values]

    def append_controls(self, records: Sequence[tuple[bytes, bytes]]) -> list[str]:
        self.append([value for _, value in records])
        return [MemorySource.topic for _ in records]

    def source(self) -> MemorySource:
        return self.broker.source()

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> MemoryOutlet:
        assert isinstance(source, MemorySource)
        return MemoryOutlet(self.broker, source)

    def archive(self) -> MemoryOutlet:
        return self.broker.outlet()

    def log(self) -> Source:
        return self.broker.source()

    def dead_letters(self) -> list[bytes]:
        return [message.value for message in self.broker.dead_letters]
