"""A published figure or table: its claim, its experiment and its outcome."""

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
        shows: its description, for readers who cannot see it.
    """

    file: str
    shows: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of an experiment.

    Attributes:
        method: of the computation, with its numbers.
        measured: the main numbers, for the summary.
        checks: the statements that decide the verdict.
        tables: the numbers behind them.
        pictures: of them.
        notes: paragraphs on differences from the paper and on limits.
    """

    method: str
    measured: str
    checks: Sequence[Check]
    tables: Sequence[Table] = field(default_factory=tuple)
    pictures: Sequence[Picture] = field(default_factory=tuple)
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def verdict(self) -> Verdict:
        """The verdict, by the rule of all figures."""
        return verdict(self.checks)


@dataclass(frozen=True)
class Experiment:
    """A published figure or table.

    Attributes:
        name: of its module, for the command line.
        title: with the paper's number.
        source: the paper, and the place in it.
        claim: in one or two sentences.
        matrices: the required files.
        run: computes the outcome.
    """

    name: str
    title: str
    source: str
    claim: str
    matrices: Sequence[str]
    run: Callable[[Laboratory], Outcome]
