"""The checks of an experiment's page."""

from __future__ import annotations

import json

import pytest

from streamduel.testing import Record, encode
from tests.unit.monitoring.fold import STREAM_TIME, config, duels, fold, task
from tests.unit.monitoring.page.watched import ARMS, Watched, counted, plain

ADVICE = "Choose a policy that seeks a Copeland winner."


def impression(number: int, teams: list[str], a: str = "bm25", b: str = "ltr") -> bytes:
    return json.dumps(
        {"type": "interleaving", "experiment": "search", "id": f"i{number}", "a": a, "b": b,
         "teams": teams, "clicks": []}
    ).encode()  # fmt: skip


def test_a_healthy_experiment_has_no_problems() -> None:
    outcomes = {check.result for check in Watched().page().checks}
    assert outcomes == {"ok", "unknown"}


def test_unfair_interleaving_is_a_problem() -> None:
    watched = Watched()
    for number in range(100):
        fold(watched.task, impression(number, ["a", "b", "a"]))
    watched.commit()
    check = watched.check("interleave fairly")
    assert check.result == "problem"
    assert "Do not trust the champion" in check.sentence
    assert plain(check.sentence).startswith("Side a has more top ranks than fair coins")
    control = {"type": "control", "id": "r", "experiment": "search", "action": "reset"}
    fold(watched.task, encode(control))
    watched.commit()
    assert watched.check("interleave fairly").result == "unknown"
    fold(watched.task, impression(100, ["a", "b"]))
    watched.commit()
    sentence = watched.check("interleave fairly").sentence
    assert plain(sentence) == "1 impression: no sign of unfairness."


def test_the_favoured_ranker_is_named() -> None:
    watched = Watched()
    for number in range(400):
        a, b = [("bm25", "ltr"), ("dense", "bm25"), ("ltr", "dense"), ("dense", "ltr")][number % 4]
        top = "b" if b == "ltr" or (a != "ltr" and number % 8 < 4) else "a"
        fold(watched.task, impression(number, [top, "a" if top == "b" else "b"], a=a, b=b))
    watched.commit()
    assert watched.check("interleave fairly").sentence.startswith("The ranker ltr has more top")


def test_unassigned_impressions_are_a_problem() -> None:
    watched = Watched(guardrails={"freeze_pair": ["bm25", "ltr"]})
    for number in range(100):
        sides = ["a", "b"] if number % 2 else ["b", "a"]
        fold(watched.task, impression(number, sides, b="dense"))
    watched.commit()
    assert watched.check("follow assignments").result == "problem"
    assert "100 of 100 impressions (100.0" in watched.check("follow assignments").sentence


def test_heavy_clients_are_a_problem() -> None:
    watched = Watched()
    assert watched.check("many clients").result == "unknown"
    shown = json.loads(impression(0, ["a", "b"]))
    for number in range(60):
        fold(watched.task, encode({**shown, "id": f"i{number}", "client": f"u{number % 3}"}))
    watched.commit()
    check = watched.check("many clients")
    assert check.result == "problem"
    assert check.sentence.startswith(
        "Of 60 impressions with a client, the client of one has about 20.0, on average"
    )
    assert watched.view.impressions.per_client == 20.0


def test_dead_letters_are_a_problem() -> None:
    watched = Watched()
    watched.fold(
        *duels("search", 0, "ltr", "nobody", "aa"), *duels("search", 5, "ltr", "bm25", "a")
    )
    assert watched.check("valid").result == "problem"
    assert watched.check("valid").sentence.startswith("2 of 3 became dead letters")


def test_dead_letters_of_no_experiment_are_mentioned() -> None:
    watched = Watched()
    watched.fold(*duels("search", 0, "ltr", "bm25", "a"))
    assert watched.check("valid").sentence == "0 of 1 became dead letters."
    watched.fold(*duels("elsewhere", 0, "ltr", "bm25", "ab"))
    assert watched.check("valid") == (
        "Records are valid",
        "ok",
        "0 of 1 became dead letters. "
        "Dead letters of this process that count for none of its experiments: 2.",
    )


def test_dead_letters_of_a_removed_experiment_are_those_of_no_experiment_of_the_process() -> None:
    both = task(config({"search": ARMS, "ads": ARMS}))
    fold(both, *duels("ads", 0, "ltr", "nobody", "a" * 5))
    watched = Watched()
    watched.task = task(config({"search": ARMS}), entries=both.take_commit().entries)
    watched.fold(*duels("search", 0, "ltr", "bm25", "a"))
    assert watched.check("valid").sentence.endswith("count for none of its experiments: 5.")


def test_unjoined_clicks_are_a_problem() -> None:
    watched = Watched()
    click = {"type": "click", "experiment": "search", "impression": "?", "rank": 0}
    watched.fold(*(encode({**click, "id": f"c{number}"}) for number in range(3)))
    assert watched.view.open["clicks"] == 3
    assert watched.check("joined").result == "ok"
    much_later = STREAM_TIME + 10**9
    watched.task.fold([Record(watched.task.next_offset, impression(1, ["a", "b"]), much_later)])
    watched.commit()
    check = watched.check("joined")
    assert check.result == "problem"
    assert check.sentence.startswith("0 clicks are late, 3 are unjoined")


def test_a_stopped_partition_is_a_problem() -> None:
    watched = Watched()
    watched.metrics.lagging({0: 0})
    assert watched.check("folded").result == "ok"
    watched.metrics.lagging({0: 1200})
    watched.clock.now += 61
    check = watched.check("folded")
    assert check.result == "problem"
    assert "Partition 0 has a lag of 1,200 records" in check.sentence


@pytest.mark.parametrize("lag", [0, 1200])
def test_the_lag_is_unknown_without_a_connection(lag: int) -> None:
    watched = Watched()
    watched.metrics.lagging({0: lag})
    watched.metrics.stable_offset_lagging({0: lag})
    watched.metrics.connection(source=False)
    watched.clock.now += 3600
    check = watched.check("folded")
    assert check.result == "unknown"
    assert check.sentence == "The lag of partition 0 is unknown without a connection."
    watched.metrics.connection(source=True)
    assert "has a lag of" in watched.check("folded").sentence


def test_an_open_transaction_is_named() -> None:
    watched = Watched()
    watched.metrics.lagging({0: 1200})
    watched.metrics.stable_offset_lagging({0: 1200})
    assert watched.check("folded").result == "ok", "it may end in time"
    watched.clock.now += 61
    check = watched.check("folded")
    assert check.result == "problem"
    assert "behind an open transaction of a producer, and nothing was read" in check.sentence
    watched.metrics.stable_offset_lagging({0: 1199})
    assert "the partition has stopped" in watched.check("folded").sentence


def test_capped_records_are_a_problem() -> None:
    watched = Watched(max_per_client=19)
    records = [
        encode({**json.loads(each), "client": "crawler"})
        for each in duels("search", 0, "bm25", "ltr", "a" * 21)
    ]
    watched.fold(*records[:20])
    assert watched.check("clients are counted").result == "ok"
    watched.fold(records[20])
    check = watched.check("clients are counted")
    assert check.result == "problem"
    assert check.sentence.startswith("2 of 21 records were beyond the limit")


def test_time_outliers_are_a_problem() -> None:
    watched = Watched()
    watched.fold(*duels("search", 0, "bm25", "ltr", "ab" * 20))
    assert watched.check("Clocks").result == "ok"
    assert watched.check("Clocks").sentence.startswith("0 records of partition 0 had")
    (wrong,) = duels("search", 100, "bm25", "ltr", "a")
    next_offset = watched.task.next_offset
    watched.task.fold([Record(next_offset, wrong, STREAM_TIME + 10**9)])
    watched.fold(*duels("search", 200, "bm25", "ltr", "ab" * 20))
    assert watched.check("Clocks").result == "problem"
    assert watched.check("Clocks").sentence.startswith("1 records of partition 0 had")


def test_missing_records_are_a_problem_with_a_fallback() -> None:
    watched = Watched(guardrails={"fallback": {"arm": "bm25", "idle_ms": 60_000}})
    assert watched.check("arrive").result == "unknown", "none so far"
    watched.fold(*duels("search", 0, "bm25", "ltr", "a"))
    assert watched.check("arrive").result == "ok"
    watched.clock.now += 61
    assert watched.check("arrive").result == "problem"


def test_a_cycle_is_a_problem_for_a_condorcet_policy() -> None:
    cycle = [counted(a, b, 900, 100) for a, b in
             (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))]  # fmt: skip
    watched = Watched()
    assert watched.check("Condorcet").result == "ok"
    watched.fold(*cycle)
    assert watched.check("Condorcet").result == "problem"
    other = Watched(policy={"name": "ccb"})
    other.fold(*cycle)
    assert not [check for check in other.page().checks if "Condorcet" in check.title]


@pytest.mark.parametrize(
    ("policy", "status", "end"),
    [
        ({"name": "rucb"}, "running", "explores permanently. " + ADVICE),
        ({"name": "rmed2fh", "horizon": 9000}, "running", "explore until its horizon. " + ADVICE),
        ({"name": "rmed2fh", "horizon": 3000}, "finished", ": none beats all others."),
        ({"name": "top_two"}, "finished", ": none beats all others."),
    ],
)
def test_a_cycle_tells_how_long_the_policy_explores(
    policy: dict[str, object], status: str, end: str
) -> None:
    watched = Watched(policy=policy)
    for a, b in (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25")):
        watched.fold(counted(a, b, 900, 100))
    sentence = watched.check("Condorcet").sentence
    assert watched.view.status == status
    assert sentence.endswith(end)
