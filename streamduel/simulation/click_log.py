"""Generated click logs of an interleaving experiment, with the faults of real logs.

Winners are drawn from the published preferences `streamduel.simulation.matrices.ARXIV`,
so the best arm is known. Pairs are drawn uniformly, as in an experiment without streamduel.

    python -m streamduel.simulation.click_log run/clicks.jsonl --records 200000 --seed 7
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, repeat
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

from streamduel.errors import ConfigurationError
from streamduel.simulation.matrices import ARXIV, ARXIV_RANKERS

RECORDS = 200_000
SEED = 7
EXPERIMENT = "search"

DUPLICATE_RATE = 0.01
"""Share of lines that an at-least-once producer wrote a second time."""
BROKEN_RATE = 0.002
"""Share of lines that must become dead letters."""
TIE_RATE = 0.08
"""Share of ties: impressions with equally many clicks for both sides, or none."""

ROUNDS = 5
"""Rounds of team draft: each side picks one document per round, so a list has ten ranks."""
START_MS = 1_790_000_000_000
MAX_GAP_MS = 148
"""A gap is this times the square of a uniform number: 50 ms on average, mostly much less."""
DUPLICATE_DISTANCE = 500
"""A duplicate repeats one of this many impressions before it: at most half a minute."""
BLOCK = 4096

# (clicks of the winner, clicks of the loser) and (clicks of each side) with cumulative shares.
DECIDED = np.array([(1, 0), (2, 0), (2, 1), (3, 1)])
DECIDED_SHARES = np.array([0.78, 0.88, 0.97, 1.0])
TIED = np.array([(0, 0), (1, 1), (2, 2)])
TIED_SHARES = np.array([0.70, 0.95, 1.0])

TEAMS = tuple(
    json.dumps([side for coin in range(ROUNDS) for side in ("ab", "ba")[pattern >> coin & 1]])
    for pattern in range(2**ROUNDS)
)
"""The teams of a list as JSON; bit r of the index is whether b picks first in round r."""


class Breakage(NamedTuple):
    """A kind of broken line: what is wrong, the reason code of its dead letter, how to break it."""

    name: str
    reason: str
    apply: Callable[[dict[str, Any]], bytes]


def _line(record: object) -> bytes:
    return json.dumps(record).encode()


def _cut_off(record: dict[str, Any]) -> bytes:
    line = _line(record)
    return line[: len(line) * 2 // 3]


def _not_utf8(record: dict[str, Any]) -> bytes:
    return _line(record | {"id": "\0"}).replace(rb"\u0000", b"caf\xe9")


def _with(**changed: object) -> Callable[[dict[str, Any]], bytes]:
    return lambda record: _line(record | changed)


def _without_teams(record: dict[str, Any]) -> bytes:
    return _line({name: value for name, value in record.items() if name != "teams"})


BREAKAGES = (
    Breakage("cut off", "invalid_json", _cut_off),
    Breakage("not UTF-8", "invalid_json", _not_utf8),
    Breakage("not an object", "invalid_record", lambda record: _line([record["id"]])),
    Breakage("a field is missing", "invalid_record", _without_teams),
    Breakage("a wrong type", "invalid_record", _with(clicks="0")),
    Breakage("a rank outside the list", "invalid_record", _with(clicks=[2 * ROUNDS])),
    Breakage("an unknown arm", "unknown_arm", _with(a="ltr-v9")),
    Breakage("an unknown experiment", "unknown_experiment", _with(experiment="serach")),
)
"""All kinds; the broken lines of a log take them in turn."""


@dataclass(frozen=True, slots=True)
class ClickLog:
    """A click log that was written.

    Attributes:
        path: the file.
        records: the number of lines: impressions, duplicates and broken lines.
        impressions: valid lines that are not duplicates.
        ties: impressions that are ties.
        duplicates: lines that repeat an earlier one byte for byte.
        dead_letters: the number of broken lines by reason code.
        champion: the arm that beats all others.
    """

    path: Path
    records: int
    impressions: int
    ties: int
    duplicates: int
    dead_letters: dict[str, int]
    champion: str


class _Impression(NamedTuple):
    line: bytes
    tied: bool


def write_click_log(
    path: Path | str,
    records: int = RECORDS,
    seed: int = SEED,
    *,
    experiment: str = EXPERIMENT,
    arms: Sequence[str] = ARXIV_RANKERS,
    progress: Callable[[int], None] | None = None,
) -> ClickLog:
    """Write a click log of finished interleaved impressions; the same arguments, the same bytes.

    An existing file is replaced, and only when the new one is complete.

    Args:
        path: of the file; missing directories are created.
        records: the number of lines.
        seed: of all randomness. With the same seed, a longer log continues the impressions of a
            shorter one.
        experiment: the name in the records.
        arms: six names, in the order of the rows of the preferences: the first is the best.
        progress: called with the number of lines written since the last call.

    Raises:
        ConfigurationError: `records` is not positive, or `arms` is not six different names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     log = write_click_log(Path(directory, "clicks.jsonl"), records=1000)
    >>> log.impressions, log.duplicates, log.champion
    (988, 10, 'ltr-v3')
    >>> log.dead_letters
    {'invalid_json': 2}
    """
    if records < 1:
        raise ConfigurationError(f"records must be at least 1 (found {records}).")
    if len(arms) != len(ARXIV_RANKERS) or len(set(arms)) != len(arms):
        raise ConfigurationError(
            f"arms must be {len(ARXIV_RANKERS)} different names (found {', '.join(arms)})."
        )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    writer = _Writer(experiment, arms, seed)
    with unfinished.open("wb") as file:
        plan = writer.plan(records)
        for begin in range(0, records, BLOCK):
            lines = [writer.next_line(kind) for kind in plan[begin : begin + BLOCK]]
            file.write(b"\n".join(lines) + b"\n")
            if progress is not None:
                progress(len(lines))
    unfinished.replace(path)
    duplicates = plan.count(_DUPLICATE)
    counts = writer.impressions, writer.ties, duplicates, writer.dead_letters
    return ClickLog(path, records, *counts, champion=arms[0])


_VALID, _DUPLICATE, _BROKEN = range(3)


class _Writer:
    """Makes the lines of a log one after the other, and counts them."""

    def __init__(self, experiment: str, arms: Sequence[str], seed: int) -> None:
        # Two generators, so that the impressions do not depend on the faults.
        users, faults = np.random.SeedSequence(seed).spawn(2)
        self._impressions = _impressions(np.random.PCG64(users), experiment, arms, seed)
        self._faults = np.random.PCG64(faults)
        self._recent: deque[bytes] = deque(maxlen=DUPLICATE_DISTANCE)
        self._broken = 0
        self.impressions = 0
        self.ties = 0
        self.dead_letters: dict[str, int] = {}

    def plan(self, records: int) -> bytes:
        """The kind of each line, with exact numbers of duplicates and of broken lines."""
        duplicates = round(records * DUPLICATE_RATE)
        broken = round(records * BROKEN_RATE)
        # The first line stays valid: a duplicate needs a line to repeat.
        shuffled = 1 + np.argsort(_uniform(self._faults, records - 1), kind="stable")
        kinds = np.full(records, _VALID, dtype=np.uint8)
        kinds[shuffled[:duplicates]] = _DUPLICATE
        kinds[shuffled[duplicates : duplicates + broken]] = _BROKEN
        return kinds.tobytes()

    def next_line(self, kind: int) -> bytes:
        if kind == _DUPLICATE:
            return self._recent[int(_uniform(self._faults, 1)[0] * len(self._recent))]
        impression = next(self._impressions)
        if kind == _BROKEN:
            return self._break(impression.line)
        self._recent.append(impression.line)
        self.impressions += 1
        self.ties += impression.tied
        return impression.line

    def _break(self, line: bytes) -> bytes:
        breakage = BREAKAGES[self._broken % len(BREAKAGES)]
        self._broken += 1
        self.dead_letters[breakage.reason] = self.dead_letters.get(breakage.reason, 0) + 1
        return breakage.apply(json.loads(line))


def _uniform(bits: np.random.PCG64, *shape: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), equal on every machine and under every version of numpy.

    numpy guarantees the stream of a bit generator across versions, but not that of `Generator`.
    Nothing here takes a logarithm, whose last digit varies with the C library.
    """
    raw = bits.random_raw(int(np.prod(shape))).reshape(shape)
    mantissas: NDArray[np.float64] = (raw >> np.uint64(11)).astype(np.float64)
    return mantissas * 2.0**-53


def _impressions(
    bits: np.random.PCG64, experiment: str, arms: Sequence[str], seed: int
) -> Iterator[_Impression]:
    """An infinite sequence of impressions."""
    head = json.dumps({"type": "interleaving", "experiment": experiment})[:-1]
    names = [json.dumps(arm) for arm in arms]
    now = START_MS
    rows = chain.from_iterable(_Block(bits).rows() for _ in repeat(None))
    for number, (gap, first, second, pattern, clicks, tied) in enumerate(rows):
        now += gap
        line = (
            f'{head}, "id": "s{seed}-{number:08d}", "ts": {now}, "a": {names[first]}, '
            f'"b": {names[second]}, "teams": {TEAMS[pattern]}, "clicks": {clicks}}}'
        )
        yield _Impression(line.encode(), tied)


class _Block:
    """`BLOCK` impressions and their clicks, as arrays.

    First the winner is drawn, then the clicks that credit it: the credited winner follows the
    preferences exactly, whatever the bias for upper ranks.
    """

    def __init__(self, bits: np.random.PCG64) -> None:
        draws = _uniform(bits, 6, BLOCK)
        pairs = np.array(list(combinations(range(len(ARXIV)), 2)))
        pair = pairs[(draws[0] * len(pairs)).astype(np.int64)]
        swapped = draws[1] < 0.5
        self.first = np.where(swapped, pair[:, 1], pair[:, 0])
        self.second = np.where(swapped, pair[:, 0], pair[:, 1])
        self.tied = draws[2] < TIE_RATE
        self.first_wins = draws[3] < ARXIV[self.first, self.second]
        self.gaps = 1 + (draws[4] * draws[4] * MAX_GAP_MS).astype(np.int64)
        self._draw_counts(draws[5])
        self._draw_ranks(bits)

    def _draw_counts(self, draw: NDArray[np.float64]) -> None:
        """Draw the clicks per side: more for the winner, equally many in a tie."""
        decided = DECIDED[np.searchsorted(DECIDED_SHARES, draw, side="right")]
        tied = TIED[np.searchsorted(TIED_SHARES, draw, side="right")]
        clicks = np.where(self.tied[:, None], tied, decided)
        self.first_clicks = np.where(self.first_wins, clicks[:, 0], clicks[:, 1])
        self.second_clicks = np.where(self.first_wins, clicks[:, 1], clicks[:, 0])

    def _draw_ranks(self, bits: np.random.PCG64) -> None:
        """Draw team drafts, and per side the order in which its ranks are clicked."""
        coins = _uniform(bits, BLOCK, ROUNDS) < 0.5
        self.patterns = coins @ (1 << np.arange(ROUNDS))
        top = 2 * np.arange(ROUNDS)
        self.first_ranks = _by_appeal(bits, top + coins)
        self.second_ranks = _by_appeal(bits, top + ~coins)

    def rows(self) -> Iterator[tuple[int, int, int, int, list[int], bool]]:
        """Per impression: milliseconds since the last one, a, b, teams, clicked ranks, tied."""
        columns = (
            self.gaps, self.first, self.second, self.patterns, self.tied,
            self.first_ranks, self.first_clicks, self.second_ranks, self.second_clicks,
        )  # fmt: skip
        for gap, first, second, pattern, tied, ours, n, theirs, m in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            yield gap, first, second, pattern, sorted(ours[:n] + theirs[:m]), tied


def _by_appeal(bits: np.random.PCG64, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ranks of each row in a random order that favours the upper ranks."""
    reluctance = _uniform(bits, *ranks.shape) * np.arange(1, ROUNDS + 1)
    order = np.argsort(reluctance, axis=1, kind="stable")
    return np.take_along_axis(ranks, order, axis=1)


def main(
    path: Annotated[Path, typer.Argument(help="The file to write; an existing one is replaced.")],
    records: Annotated[int, typer.Option(min=1, help="Number of lines.")] = RECORDS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = SEED,
) -> None:
    """Write a click log of six rankers with known preferences."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"Writing {path}", total=records)
        log = write_click_log(path, records, seed, progress=lambda lines: bar.advance(task, lines))
    broken = sum(log.dead_letters.values())
    console.print(
        f"Wrote {log.records:,} lines to {path}: {log.impressions:,} impressions "
        f"({log.ties:,} ties), {log.duplicates:,} duplicates, {broken:,} broken lines.\n"
        f"The best ranker is '{log.champion}'.",
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
