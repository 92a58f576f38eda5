"""The tables of the peers, and the goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.peers.peer import JavaPeer, Peer
from benchmarks.peers.runner import START_SECONDS, Figures, Recovery
from benchmarks.report import Goal, Result

LEAST_PYTHON, LEAST_STREAMS = 4.0, 1.0
"""How many times streamduel's records per second of processor time, by goal."""

NONE = "–"

METHOD = """\
Measured by `python -m benchmarks.peers`. The job: decode duels of about 250 bytes, drop repeated
ids, count the wins of each pair, and publish the counts after every 100 distinct duels. Four
partitions with an experiment each, every hundredth duel twice; one broker on the same machine; one
process of each peer, one thread where it can choose. The records become readable at once, by the
commit of a transaction, when the peer has counted {warm} others: its start is not measured. From
that moment until the last result is visible to a `read_committed` reader: records a second, and
processor time of all the peer's processes and threads, user and system. Other programs slow the
first down and hardly change the second. **streamduel ÷ peer** is of the records per second of
processor time, in this run. Memory: the largest resident sets of its processes. streamduel does
more than the job: its policy decides at every hundredth duel, and its assignments obey guardrails.
A JVM compiles while it runs: over more records it takes less time for each.

**After a kill**: the same records again, with an empty state; at half of them all processes are
killed with SIGKILL, and the program is started at once. Seconds until a result is visible that has
more records than all before the kill, start of the interpreter or JVM included; then whether the
counts are right at the end, and how many results were published twice. A peer is exactly-once if
its counts are right, nothing was published twice, and its documentation promises so. All that
commit in an interval do so every 500 ms, streamduel's default. Every first run had the right counts
unless the table says otherwise."""

HOW = """\
Versions and settings. Clients of a consumer group have a fixed `group.instance.id`, so that a
restart need not wait for the session of the killed process; bytewax and Spark assign partitions
themselves."""


@dataclass(frozen=True)
class Row:
    """What was found of a peer, or the reason why nothing was."""

    peer: Peer
    figures: Figures | None = None
    recovery: Recovery | None = None
    reason: str = ""

    @property
    def cpu_microseconds(self) -> float:
        """Processor time per record."""
        assert self.figures is not None
        return self.figures.cpu / self.figures.records * 1e6


def results(rows: Sequence[Row], warm: str = "20,000") -> list[Result]:
    """Both tables; ratios are to the cheapest streamduel."""
    ours = [row.cpu_microseconds for row in rows if row.figures and row.peer.ours]
    base = min(ours, default=None)
    method = METHOD.format(warm=warm)
    columns = [
        "peer", "records/s", "processor time, µs a record", "streamduel ÷ peer", "MB",
        "after a kill: s", "counts", "published twice", "exactly once",
    ]  # fmt: skip
    cells = [_cells(row, base) for row in rows]
    figures = Result("Other stream processors", method, columns, cells, _goals(rows, base))
    how = [[row.peer.name, row.peer.version, row.peer.settings] for row in rows]
    return [figures, Result("Settings of the peers", HOW, ["peer", "version", "settings"], how)]


def _cells(row: Row, base: float | None) -> list[str]:
    figures, recovery = row.figures, row.recovery
    if figures is None or recovery is None:
        return [row.peer.name, f"not measured: {row.reason}", *[NONE] * 7]
    wrong = f" (wrong: {'; '.join(figures.mistakes)})" if figures.mistakes else ""
    return [
        f"{row.peer.name}{wrong}",
        f"{figures.records / figures.seconds:,.0f}",
        f"{row.cpu_microseconds:,.1f}",
        f"{row.cpu_microseconds / base:,.1f}" if base else NONE,
        f"{figures.peak / 1e6:,.0f}",
        *_recovered(row.peer, recovery),
    ]


def _recovered(peer: Peer, recovery: Recovery) -> list[str]:
    """The cells after the kill."""
    if recovery.seconds is None:
        return [f"over {START_SECONDS:.0f}", NONE, f"{recovery.repeated:,}", "no"]
    counts = f"wrong: {recovery.mistakes[0].splitlines()[0]}" if recovery.mistakes else "right"
    if recovery.mistakes or recovery.repeated:
        exactly = "no"
    else:
        exactly = "yes" if peer.exactly else "not promised"
    return [f"{recovery.seconds:.1f}", counts, f"{recovery.repeated:,}", exactly]


def _goals(rows: Sequence[Row], base: float | None) -> list[Goal]:
    if base is None:
        return []
    ratios = [(row.peer, row.cpu_microseconds / base) for row in rows if row.figures]
    python = [ratio for peer, ratio in ratios if not peer.ours and not isinstance(peer, JavaPeer)]
    exactly = [
        ratio
        for peer, ratio in ratios
        if not peer.ours and not isinstance(peer, JavaPeer) and peer.exactly
    ]
    streams = [ratio for peer, ratio in ratios if isinstance(peer, JavaPeer)]
    named = (
        ("streamduel ÷ the best peer in Python", python, LEAST_PYTHON),
        ("streamduel ÷ the best exactly-once peer in Python", exactly, LEAST_PYTHON),
        ("streamduel ÷ the best Kafka Streams", streams, LEAST_STREAMS),
    )
    return [Goal(what, min(found), at_least=least) for what, found, least in named if found]
