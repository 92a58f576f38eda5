"""A published figure or table: what it claims, how it is computed again, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.verdict import Check, Verdict, verdict


@dataclass(frozen=True)
class Table:
    """Rows of a table; the first column is text, the others are figures."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A file among the page's images.

    Attributes:
        file: its name.
        shows: in a sentence, for who cannot see it.
    """

    file: str
    shows: str


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes:
        method: what was computed, with its numbers.
        measured: the main numbers in a few words, for the summary.
        checks: the statements that the verdict rests on.
        tables: the numbers behind them.
        pictures: of them.
        notes: paragraphs on what differs from the paper, and what should not be read into it.
    """

    method: str
    measured: str
    checks: Sequence[Check]
    tables: Sequence[Table] = field(default_factory=tuple)
    pictures: Sequence[Picture] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def verdict(self) -> Verdict:
        """By the rule that all figures share."""
        return verdict(self.checks)


@dataclass(frozen=True)
class Experiment:
    """A published figure or table.

    Attributes:
        name: of its module, for the command line.
        title: as the paper numbers it.
        source: the paper, and the place in it.
        claim: what it says, in a sentence or two.
        matrices: the files it needs.
        run: computes it again.
    """

    name: str
    title: str
    source: str
    claim: str
    matrices: Sequence[str]
    run: Callable[[Laboratory], Outcome]
