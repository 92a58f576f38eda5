"""From counts to findings."""

from __future__ import annotations

from streamduel.analysis.analyze import _tallies
from streamduel.analysis.counting import DEFAULT_RULES, Counts
from streamduel.analysis.engine import Engine
from streamduel.analysis.findings import Judged


def test_intervals_and_confidence_are_those_of_all_parts_together() -> None:
    counts = Counts.none(2).added(0, 1, [70, 30, 0, 0])
    one, of_20 = (Judged(counts, DEFAULT_RULES, looks) for looks in (1, 20))
    assert of_20.confidence == max(0.0, 1 - 20 * (1 - one.confidence)) < one.confidence
    (alone,), (among_20,) = one.pairs(["x", "y"]), of_20.pairs(["x", "y"])
    assert among_20.interval[0] < alone.interval[0]
    assert alone.interval[1] < among_20.interval[1]


def test_without_duels_nobody_leads() -> None:
    finding = Judged(Counts.none(3), DEFAULT_RULES).finding(["x", "y", "z"])
    assert (finding.leader, finding.champion, finding.ties) == (None, None, 0.0)


def test_reasons_are_told_in_an_order_of_their_own() -> None:
    rows = "(NULL, 'click', 'z', 1), ('y', 'click', NULL, 1), (NULL, 'click', 'b', 1)"
    with Engine() as engine:
        columns = "experiment, outcome, problem, records"
        engine.rows(f"CREATE TABLE outcomes AS SELECT * FROM (VALUES {rows}) AS t({columns})")
        _, unread = _tallies(engine, {})
    assert list(unread) == ["another experiment", "b", "z"]
