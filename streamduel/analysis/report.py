"""What an analysis finds: the shape of `streamduel analyze --json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from streamduel.diagnosis import Grade
from streamduel.preference.evidence import Winner
from streamduel.preference.segments import Disagreement
from streamduel.preference.verdict import PairResult
from streamduel.records import Side


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Who has won some duels.

    Attributes:
        champion: the winner; None while the confidence is below 0.95.
        confidence: that `leader` is the winner.
        duels: all of them, those of an arm with itself included.
        leader: the arm that is ahead, whether by chance or not.
        ties: the share of the duels that neither arm won.
    """

    champion: str | None
    confidence: float
    duels: int
    leader: str | None
    ties: float


class Sensitivity(Finding, frozen=True, kw_only=True):
    """What one credit function says.

    Attributes:
        rules: what it says under each rule for ties and for lists without clicks.
    """

    rules: dict[str, Finding]


class Check(msgspec.Struct, frozen=True):
    """One check of the data.

    Attributes:
        name: what is checked.
        verdict: whether it is as it should be.
        sentence: what was found, and what to do.
    """

    name: str
    verdict: Grade
    sentence: str


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of clients.

    Attributes:
        unit: whether clients or duels are the independent units of confidence and intervals.
        clients: how many have duels of two arms.
        duels: those of them.
        unnamed: duels of two arms that name no client; each is taken as independent.
        busiest: the duels of the busiest client.
        most: m, as how many duels of a pair a client counts at most.
        confidence_of_duels: what the confidence would be if all duels were independent.
    """

    unit: Literal["client", "duel"]
    clients: int
    duels: int
    unnamed: int
    busiest: int
    most: float
    confidence_of_duels: float


class Day(msgspec.Struct, frozen=True):
    """The duels of one day or longer period, and how the arm did that leads in the end.

    Attributes:
        start: the first day, in UTC.
        duels: of all pairs of two arms.
        win_rate: the leader's share of its duels with its `most_met` opponent; None without one.
    """

    start: str
    duels: int
    win_rate: float | None


class Moment(msgspec.Struct, frozen=True):
    """A control record.

    Attributes:
        at: its time, in milliseconds since 1970; None if it has none.
        event: the action.
        text: the arm, the pair, the names of the settings, or the note.
        actor: who acted, as the record says.
    """

    at: int | None
    event: str
    text: str | None
    actor: str | None


class Example(msgspec.Struct, frozen=True):
    """A list of the leading pair that a user decided.

    Attributes:
        a: a ranker.
        b: the other.
        winner: the side that the clicks decided for.
        query: what the user searched for.
        docs: the documents of the first ranks.
        teams: the sides of these ranks.
        ranks: the number of all ranks.
        clicks: the first ranks that were clicked, from 0.
    """

    a: str
    b: str
    winner: Side
    query: str
    docs: list[str]
    teams: list[Side | None]
    ranks: int
    clicks: list[int]


EVERY_FUNCTION: Final = "every function"


def credit_rows(found: Mapping[str, Sensitivity]) -> Mapping[str, Sensitivity]:
    """What the credit functions say: one row if all say the same, as in a log of winners."""
    first, *others = found.values()
    if others and all(each == first for each in others):
        return {EVERY_FUNCTION: first}
    return found


class ExperimentAnalysis(Finding, frozen=True, kw_only=True):
    """Everything about one experiment.

    Attributes:
        seeks: the winner that the champion is: `condorcet`, it beats all others; `copeland`, none
            beats all others, and it beats the most.
        no_winner: whether surely no arm beats all others; unknown with clients as the unit.
        credit: the credit function that decided.
        arms: K names.
        wins: (K, K), [i, j] is how often i has beaten j, a tie being half a win each way.
        alone: the duels of an arm with itself.
        pairs: the pairs that met.
        credits: what every credit function says.
        segments: what each segment says, with the confidence corrected for their number.
        disagreements: for each kind of segments, whether they disagree by more than chance.
        checks: of the data.
        tallies: records by outcome.
        clients: the unit of confidence and intervals.
        most_met: the opponent with which the leader has most duels; None without a leader.
        days: the duels over time, and the leader's win rate against this opponent.
        examples: lists of the leader and its closest challenger that users decided.
        timeline: the control records, the oldest first.
    """

    seeks: Winner
    no_winner: bool
    credit: str
    arms: list[str]
    wins: list[list[float]]
    alone: int
    pairs: list[PairResult]
    credits: dict[str, Sensitivity]
    segments: dict[str, dict[str, Finding]]
    disagreements: dict[str, Disagreement]
    checks: list[Check]
    tallies: dict[str, int]
    clients: Clients
    most_met: str | None
    days: list[Day]
    examples: list[Example] = []
    timeline: list[Moment] = []

    @property
    def credit_rows(self) -> Mapping[str, Sensitivity]:
        """`credits` as rows of a table."""
        return credit_rows(self.credits)


class Analysis(msgspec.Struct, frozen=True):
    """The analysis of a click log.

    Attributes:
        experiments: by name.
        unread: records that belong to none of them, by reason.
        ignored: rows of other programs that say nothing about a duel, by reason.
        left_out: names of experiments with so few records that they are misspelt.
        empty_files: paths of files without content, which are no part of the log.
    """

    experiments: dict[str, ExperimentAnalysis]
    unread: dict[str, int]
    ignored: dict[str, int]
    left_out: list[str]
    empty_files: list[str] = []
