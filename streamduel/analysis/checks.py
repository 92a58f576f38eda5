"""Checks of the data: what would make the result wrong or surprising."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from streamduel.analysis.changes import changes
from streamduel.analysis.client_checks import bots, dependence
from streamduel.analysis.control_checks import controls
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.findings import Judged
from streamduel.analysis.report import (
    EVERY_FUNCTION,
    Check,
    Clients,
    Finding,
    Sensitivity,
    credit_rows,
)
from streamduel.analysis.side_checks import fairness, named, sides
from streamduel.analysis.tables import UNCOUNTED, rejects
from streamduel.diagnosis import Grade
from streamduel.errors import counted, readable
from streamduel.stream.alarms import TOLERATED

CONTENT: Final = ("a", "b", "winner", "wins_a", "wins_b", "ties", "teams", "clicks", "impression",
                  "rank", "doc", "action")  # fmt: skip
"""What a record says; a record that is sent again says the same."""

SERIOUS: Final = 0.1
"""The share of records whose loss may change the result."""

FEW: Final = 100
"""Records without an id that may be equal by chance."""

MAX_TIMES: Final = 10
"""How often a log may be in its export, at most; records of one day are equal more often."""

SAMPLE: Final = 100_000
"""Records without an id that are compared, about, those of some moments."""

FIRST_TIME: Final = 10**11
LAST_TIME: Final = 10**14
"""Milliseconds since 1970 that a log may have, 1973 to 5138: seconds are below, microseconds above,
whichever unit the column is taken to have."""


class Facts(NamedTuple):
    """What the checks of one experiment look at.

    `rules` has the options that decide how duels count, by the setting of the service.
    """

    experiment: str
    arms: Sequence[str]
    credit: str
    tallies: Mapping[str, int]
    finding: Finding
    credits: Mapping[str, Sensitivity]
    clients: Clients
    quarters: Mapping[str, Judged]
    rules: Mapping[str, str]


def checks(engine: Engine, facts: Facts) -> list[Check]:
    """All checks of one experiment."""
    most = facts.clients.most if facts.clients.unit == "client" else None
    return [
        *named(engine, facts.experiment, facts.arms),
        *fairness(engine, facts.experiment),
        *sides(engine, facts.experiment, facts.credit, most),
        _joined(engine, facts),
        *_times(engine, facts),
        *_readings(engine),
        *_ties(engine, facts),
        *controls(engine, facts.experiment, facts.rules),
        _duplicates(engine, facts),
        _usable(engine, facts),
        bots(engine, facts.clients),
        _position(engine, facts),
        _credit(facts),
        dependence(engine, facts.finding, facts.clients),
        changes(
            engine,
            facts.experiment,
            facts.credit,
            most,
            facts.quarters,
            facts.arms,
            facts.finding.leader,
        ),
    ]


def _judged(name: str, share: float, sentence: str, advice: str) -> Check:
    """A check of a share of records that are lost."""
    verdict: Grade = "fine"
    if share > TOLERATED:
        verdict = "failed" if share > SERIOUS else "warning"
    return Check(name, verdict, sentence if verdict == "fine" else f"{sentence} {advice}")


def _joined(engine: Engine, facts: Facts) -> Check:
    name = "clicks joined"
    late, unjoined = facts.tallies["late"], facts.tallies["unjoined"]
    joined = engine.rows(
        "SELECT count(*) FROM clicks WHERE outcome = 'accepted' AND experiment ="
        f" {quoted(facts.experiment)}"
    )[0][0]
    if not joined + late + unjoined:
        return _within(engine, facts)
    share = (late + unjoined) / (joined + late + unjoined)
    advice = "Check whether all lists are in the log, and whether --join-window-ms is long enough."
    if late > joined:
        advice += " Clocks or time zones of lists and clicks may differ."
    if late and _twice(engine):
        advice = "Lists have clicks of their own; leave out their column of clicks, or these rows."
    return _judged(
        name,
        share,
        f"{late:,} of {joined + late + unjoined:,} clicks are late and {unjoined:,} name no list"
        f" of the log ({share:.1%}).",
        advice,
    )


def _twice(engine: Engine) -> bool:
    """Whether clicks name lists that have clicks of their own."""
    return bool(
        engine.rows(
            "SELECT 1 FROM clicks AS c JOIN events AS e ON e.rowid = c.list"
            " WHERE e.kind = 'interleaving' LIMIT 1"
        )
    )


def _within(engine: Engine, facts: Facts) -> Check:
    """Whether lists have clicks, if no clicks are records of their own."""
    lists, clicked = engine.rows(
        "SELECT count(*), count(*) FILTER (len(clicks) > 0) FROM lists WHERE NOT is_outside AND"
        f" experiment = {quoted(facts.experiment)}"
    )[0]
    name = "clicks joined"
    if clicked or not lists:
        return Check(name, "fine", "No clicks are records of their own.")
    return Check(
        name,
        "failed",
        f"None of {lists:,} lists has a click. Name the column of the ranks that were clicked,"
        " --map clicks=COLUMN, or the file with the clicks.",
    )


def _times(engine: Engine, facts: Facts) -> Iterator[Check]:
    """Whether times can be read, and have one unit; a log without times needs none."""
    unusable = "problem IS NULL AND unusable IS NOT NULL"
    unread, example, far, near = engine.rows(
        f"SELECT count(*) FILTER ({unusable}), min(unusable) FILTER ({unusable}),"
        f" count(*) FILTER (ts NOT BETWEEN {FIRST_TIME} AND {LAST_TIME}),"
        f" count(*) FILTER (ts BETWEEN {FIRST_TIME} AND {LAST_TIME}) FROM events"
        f" WHERE coalesce(experiment, {quoted(facts.experiment)}) = {quoted(facts.experiment)}"
    )[0]
    if unread:
        yield Check(
            "times", "warning",
            f"{counted(unread, 'time')} cannot be read, such as '{readable(example, 80)}', and left"
            " out; write ISO 8601, or a number since 1970.",
        )  # fmt: skip
    elif far and near:
        yield Check(
            "times", "warning",
            f"{far:,} of {far + near:,} times are before 1973 or after 5138: does the column mix"
            " seconds and milliseconds, or have 0 for a missing time?",
        )  # fmt: skip


def _readings(engine: Engine) -> list[Check]:
    """The assumptions about ambiguous columns, such as whether ranks begin with 0."""
    rows = engine.rows("SELECT DISTINCT * FROM readings ORDER BY ALL LIMIT 6")
    return [Check(name, verdict, readable(sentence, 400)) for name, verdict, sentence in rows]


def _ties(engine: Engine, facts: Facts) -> list[Check]:
    """Whether ties may have been logged as defeats of the only side whose victories are logged."""
    columns = [
        str(column) for (column,) in engine.rows("SELECT DISTINCT col FROM half_winners ORDER BY 1")
    ]
    tied = f"SELECT 1 FROM events WHERE winner = 't' AND experiment = {quoted(facts.experiment)}"
    if not columns or engine.rows(f"{tied} LIMIT 1"):
        return []
    sentence = (
        f"No duel is a tie. If '{readable(columns[0], 80)}' is false for ties too, they count for"
        " the other side: leave it empty for ties, or add a column for them (--map ties=COLUMN)."
    )
    return [Check("ties", "warning", sentence)]


def _duplicates(engine: Engine, facts: Facts) -> Check:
    opened = _opened_again(engine, facts.experiment)
    duplicates = facts.tallies["duplicate"] - opened
    total = sum(facts.tallies.values()) - opened
    share = duplicates / max(1, total)
    (without_id,) = engine.rows(
        "SELECT count(*) FROM events AS e LEFT JOIN clicks AS c ON c.row = e.rowid"
        " WHERE e.problem IS NULL AND e.key IS NULL"
        f" AND coalesce(c.experiment, e.experiment) = {quoted(facts.experiment)}"
    )[0]
    sentence = f"{duplicates:,} of {total:,} records repeat an id ({share:.1%}); each counts once."
    if without_id:
        unnoticed = f"{counted(without_id, 'record')} without an id may be repeated unnoticed."
        if times := _repeated(engine, facts.experiment, without_id):
            again = f"Nearly all records without an id are there {times} times, at the same moment"
            return Check(
                "duplicates", "warning", f"{again}: leave out the rows that repeat others."
            )
        if without_id + facts.tallies["dead_letter"] >= total:
            return Check("duplicates", "unknown", unnoticed)
        sentence = f"{sentence} {unnoticed}"
    advice = "Check whether `id` is the id of a list or click, and not of a user or query."
    lost = _lost_by_id(engine, facts.experiment) if share > TOLERATED else 0
    if lost / max(1, total) > TOLERATED:
        sentence = f"{sentence} {lost:,} of them say something else than the first, and are lost."
        return _judged("duplicates", lost / total, sentence, advice)
    if share > SERIOUS:
        return Check("duplicates", "warning", f"{sentence} {advice}")
    return Check("duplicates", "fine", sentence)


def _opened_again(engine: Engine, experiment: str) -> int:
    """The duplicates that no row repeats: each event that names a side opens its impression."""
    ((opened,),) = engine.rows(
        "SELECT count(*) FROM duplicates AS d JOIN events AS e ON e.rowid = d.row"
        f" WHERE e.kind = 'impression' AND e.is_sides AND e.experiment = {quoted(experiment)}"
    )
    return int(opened)


def _repeated(engine: Engine, experiment: str, records: int) -> int:
    """How often the log has nearly every record without an id; 0 if that differs, or is once.

    Equal records happen, such as two ties of a pair in one second, but not equally often.
    """
    if records < FEW:
        return 0
    found = engine.rows(
        f"""
        WITH records AS (
            SELECT hash({", ".join(CONTENT)}, ts, client, query) AS content FROM events
            WHERE key IS NULL AND problem IS NULL AND ts IS NOT NULL
                AND hash(ts) % {1 + records // SAMPLE} = 0
                AND coalesce(experiment, {quoted(experiment)}) = {quoted(experiment)}
        ), contents AS (SELECT count(*) AS times FROM records GROUP BY content)
        SELECT times, sum(times) / sum(sum(times)) OVER () AS share
        FROM contents GROUP BY times ORDER BY share DESC LIMIT 1
        """
    )
    if not found:
        return 0
    times, share = found[0]
    return int(times) if 1 < times <= MAX_TIMES and share > 1 - SERIOUS else 0


def _lost_by_id(engine: Engine, experiment: str) -> int:
    """The duplicates that differ from the record that counts, so that their id is not theirs."""
    e, f = (f"hash({', '.join(f'{table}.{column}' for column in CONTENT)})" for table in ("e", "f"))
    ((lost,),) = engine.rows(
        "SELECT count(*) FROM duplicates AS d JOIN events AS e ON e.rowid = d.row"
        f" JOIN events AS f ON f.rowid = d.first WHERE {e} <> {f}"
        f" AND coalesce(e.experiment, {quoted(experiment)}) = {quoted(experiment)}"
    )
    return int(lost)


def _usable(engine: Engine, facts: Facts) -> Check:
    problems = engine.rows(
        "SELECT problem, sum(records)::BIGINT AS n FROM outcomes WHERE outcome = 'dead_letter'"
        f" AND experiment = {quoted(facts.experiment)} GROUP BY problem ORDER BY n DESC, problem"
    )
    rejected = rejects(engine)
    unread = sum(rejected.values())
    lost, total = facts.tallies["dead_letter"] + unread, sum(facts.tallies.values()) + unread
    examples = dict(
        engine.rows(
            "SELECT problem, min(unusable) FROM events WHERE problem IS NOT NULL AND unusable <> ''"
            f" AND experiment = {quoted(facts.experiment)} GROUP BY problem"
        )
    )
    such = {problem: f" (such as '{readable(text, 80)}')" for problem, text in examples.items()}
    reasons = [f"{problem}{such.get(problem, '')}" for problem, _ in problems]
    counts = [*rejected.values(), *(n for _, n in problems)]
    named = ", ".join(
        f"{n:,} because of their {reason}"
        for n, reason in list(zip(counts, [*rejected, *reasons], strict=True))[:5]
    )
    is_known = not any(reason.endswith(UNCOUNTED) for reason in rejected)
    return _judged(
        "usable records",
        lost / max(1, total) if is_known else 1.0,
        f"{lost:,} of {total:,} records cannot be used{': ' + named if named else ''}.",
        "See docs/analyze.md for what each field may contain.",
    )


def _position(engine: Engine, facts: Facts) -> Check:
    name = "position bias"
    rows = engine.rows(
        f"""
        SELECT click.rank, count(*) AS n FROM (
            SELECT unnest(clicks) AS click FROM lists
            WHERE experiment = {quoted(facts.experiment)} AND NOT is_outside AND len(teams) > 2
        ) GROUP BY click.rank ORDER BY click.rank
        """
    )
    total = sum(n for _, n in rows)
    if not total:
        return Check(name, "unknown", "No list of more than two ranks has a click with a rank.")
    first = next((n for rank, n in rows if rank == 0), 0)
    plain, weighed = facts.credits.get("click_count"), facts.credits.get("position_debiased")
    sentence = f"{first / total:.0%} of {total:,} clicks are on the first rank."
    if plain is None or weighed is None:
        return Check(name, "fine", sentence)
    if plain.champion == weighed.champion:
        same = "is undecided, too" if plain.champion is None else "has the same champion"
        return Check(name, "fine", f"{sentence} Weighing clicks by their rank {same}.")
    now, before = (
        "undecided" if arm is None else readable(arm) for arm in (weighed.champion, plain.champion)
    )
    changed = f"Weighing clicks by their rank changes the champion: {now} instead of {before}."
    return Check(name, "warning", f"{sentence} {changed}")


def _credit(facts: Facts) -> Check:
    """Whether the champion depends on how clicks are credited."""
    name = "dependence on credit"
    rows = credit_rows(facts.credits)
    found = {
        rule if credit == EVERY_FUNCTION else f"{credit}, {rule}": each
        for credit, rules in rows.items()
        for rule, each in rules.rules.items()
    }
    ways = f"{len(found)} ways to credit clicks and ties"
    if EVERY_FUNCTION in rows:
        ways = f"{len(found)} ways to count ties, with every credit function,"
    champions = {each.champion for each in found.values() if each.champion is not None}
    undecided = sum(each.champion is None for each in found.values())
    if len(champions) > 1:
        named = {each.champion: how for how, each in found.items() if each.champion is not None}
        listed = "; ".join(f"{readable(str(arm))} with {how}" for arm, how in sorted(named.items()))
        return Check(
            name,
            "failed",
            f"The champion depends on the credit: {listed}. Decide which one is right before you"
            " look at the result.",
        )
    if champions and undecided:
        return Check(
            name,
            "warning",
            f"{undecided} of {ways} are undecided; the others agree on"
            f" {readable(champions.pop())}.",
        )
    what = f"agree on {readable(champions.pop())}" if champions else "are undecided"
    return Check(name, "fine", f"All {ways} {what}.")
