"""Refused control records, and records of arms that are added or retired."""

from __future__ import annotations

import random
from typing import Any, get_args

import pytest

from streamduel.connector import PartitionCommit
from streamduel.records import Action
from tests.unit.stream.folding import (
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    assignments,
    config,
    control,
    letters,
    search,
    text,
)


def duel(number: int | str, a: str, b: str) -> bytes:
    return text(DUEL, id=f"duel-{number}", a=a, b=b)


def verdicts(commit: PartitionCommit) -> list[tuple[str, str]]:
    return [(letter["reason"], letter["error"]) for letter in letters(commit)]


RETIRED = (control("add_arm", "dense"), control("retire_arm", "bm25"))
ACTIONS = "one of " + ", ".join(f"'{action}'" for action in get_args(Action))
UNKNOWN_ACTION = f"action must be {ACTIONS} (found {{}})"
ARM = "an arm's name, a string of 1 to 256 characters"
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "unknown action": (
        control("stop"), "invalid_record", UNKNOWN_ACTION.format("'stop'") + ".",
    ),
    "like an arm that is unknown": (
        text(CONTROL, action="add_arm", arm="neural", like="ltr-v9"), "unknown_arm",
        "unknown arm 'ltr-v9' in experiment 'search'; did you mean 'ltr-v2'? Its arms are "
        "ltr-v1, ltr-v2, dense.",
    ),
    "like itself": (
        text(CONTROL, action="add_arm", arm="neural", like="neural"), "invalid_record",
        "like must name another arm than 'arm' (found 'neural').",
    ),
    "like a number": (
        text(CONTROL, action="add_arm", arm="neural", like=3), "invalid_record",
        f"like must be {ARM}, or null (found 3).",
    ),
    "misspelt action": (
        control("add-arm", "x"), "invalid_record",
        UNKNOWN_ACTION.format("'add-arm'") + "; did you mean 'add_arm'?",
    ),
    "action null": (
        text(CONTROL, action=None), "invalid_record", UNKNOWN_ACTION.format("null") + ".",
    ),
    "no action": (
        b'{"type": "control", "id": "c", "experiment": "search"}', "invalid_record",
        f"the record misses the field 'action'; it must be {ACTIONS}.",
    ),
    "no arm to add": (
        control("add_arm"), "invalid_record", "'add_arm' must name an 'arm' (found none).",
    ),
    "no arm to retire": (
        b'{"type": "control", "id": "c", "experiment": "search", "action": "retire_arm"}',
        "invalid_record", "'retire_arm' must name an 'arm' (found none).",
    ),
    "arm empty": (
        control("add_arm", ""), "invalid_record", f"arm must be {ARM} (found '').",
    ),
    "arm too long": (
        text(CONTROL, action="add_arm", arm="x" * 257), "invalid_record",
        f"arm must be {ARM} (found '{'x' * 78}…).",
    ),
    "arm a number": (
        text(CONTROL, action="add_arm", arm=5), "invalid_record", f"arm must be {ARM} (found 5).",
    ),
    "adding one that is there": (
        control("add_arm", "ltr-v1"), "invalid_record",
        "arm 'ltr-v1' is in the experiment already.",
    ),
    "adding one that was added": (
        control("add_arm", "dense", 2), "invalid_record",
        "arm 'dense' is in the experiment already.",
    ),
    "adding a retired one": (
        control("add_arm", "bm25"), "invalid_record",
        "arm 'bm25' was retired at offset 1, and its name stays taken; add the ranker under "
        "another name.",
    ),
    "retiring an unknown one": (
        control("retire_arm", "ltr-v3"), "unknown_arm",
        "unknown arm 'ltr-v3' in experiment 'search'; did you mean 'ltr-v2'? Its arms are ltr-v1, "
        "ltr-v2, dense.",
    ),
    "retiring a retired one": (
        control("retire_arm", "bm25", 2), "unknown_arm",
        "arm 'bm25' of experiment 'search' was retired at offset 1.",
    ),
    "unknown experiment": (
        text(CONTROL, experiment="serach"), "unknown_experiment",
        "unknown experiment 'serach'; did you mean 'search'? Configured are 'ads', 'search'.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_control_record_is_one_dead_letter_and_changes_nothing(case: str) -> None:
    value, reason, sentence = REFUSED[case]
    partition = search()
    partition.fold(*RETIRED, duel(1, "ltr-v1", "dense"))
    before, tallies = partition.knows(), partition.tallies()
    commit = partition.fold(value)
    assert verdicts(commit) == [(reason, sentence)]
    assert letters(commit)[0]["value"] == value.decode()
    assert letters(commit)[0]["offset"] == 3
    assert commit.assignments == []
    assert partition.knows() == before
    named = case != "unknown experiment"
    assert partition.tallies() == {**tallies, "dead_letter": int(named)}
    assert partition.task.dead_letters == {reason: 1}
    assert partition.restarted().knows() == before


def test_two_arms_must_remain() -> None:
    partition = search()
    commit = partition.fold(control("retire_arm", "bm25"), control("retire_arm", "ltr-v2"))
    assert verdicts(commit) == [
        ("invalid_record", "arm 'ltr-v2' must stay: an experiment has at least 2 arms.")
    ]
    partition.fold(control("add_arm", "dense"))
    assert letters(partition.fold(control("retire_arm", "ltr-v2", 2))) == []
    assert partition.task.experiments["search"].roster.arms == ["ltr-v1", "dense"]


@pytest.mark.parametrize("policy", ["c2b", "rmed2fh", "condorcet_savage"])
def test_the_horizon_limits_the_number_of_arms(policy: str) -> None:
    partition = search(policy={"name": policy, "horizon": 4})
    partition.fold(control("add_arm", "dense"), duel(1, "bm25", "dense"))
    before = partition.knows()
    commit = partition.fold(control("add_arm", "hybrid"))
    assert verdicts(commit) == [
        ("invalid_record",
         "arm 'hybrid' cannot be added: policy.horizon must be at least the number of arms, 5 "
         "(found 4).")
    ]  # fmt: skip
    assert partition.knows() == before
    commit = partition.fold(control("retire_arm", "dense"), control("add_arm", "hybrid", 2))
    assert letters(commit) == []


def test_the_size_of_its_plan_limits_the_number_of_arms() -> None:
    """Names of 249 bytes make 1,654 bytes of a pair, in 16 MiB."""
    partition = search(
        arms=[f"{number:0249}" for number in range(142)], policy={"name": "c2b", "horizon": 10**6}
    )
    large = text(CONTROL, id="large", action="add_arm", arm=f"{142:0249}")
    commit = partition.fold(large, control("add_arm", "dense"))
    assert verdicts(commit) == [
        ("invalid_record",
         f"arm '{'0' * 80}' cannot be added: the plan of a batched policy lists all pairs of arms,"
         " and would be too large.")
    ]  # fmt: skip
    assert len(partition.task.experiments["search"].roster.arms) == 143


def test_a_refused_record_does_not_change_buffered_duels() -> None:
    partition = search(decide_every=3)
    commit = partition.fold(
        duel(1, "bm25", "ltr-v1"),
        control("add_arm", "bm25"),
        duel(2, "bm25", "ltr-v1"),
        control("retire_arm", "nobody"),
        duel(3, "bm25", "ltr-v2"),
    )
    assert partition.wins() == [[0, 2, 1], [0, 0, 0], [0, 0, 0]]
    assert [assignment["offset"] for assignment in assignments(commit)] == [4]


def test_a_control_record_delivered_twice_is_applied_once() -> None:
    partition = search()
    for action, arm in (("add_arm", "dense"), ("retire_arm", "bm25"), ("reset", None)):
        partition.fold(control(action, arm), duel(f"before-{action}", "ltr-v1", "ltr-v2"))
        before, duplicates = partition.knows(), partition.tallies()["duplicate"]
        commit = partition.fold(control(action, arm))
        assert (commit.assignments, commit.dead_letters) == ([], [])
        assert partition.tallies()["duplicate"] == duplicates + 1
        before["search"]["tallies"]["duplicate"] += 1
        assert partition.knows() == before


def test_a_refused_control_record_enters_the_dedupe_window() -> None:
    """A repetition is a duplicate even if it were valid by now; with another id it is applied."""
    partition = search()
    partition.fold(control("retire_arm", "bm25"), control("retire_arm", "ltr-v1"))
    partition.fold(control("add_arm", "dense"))
    for process in (partition, partition.restarted()):
        commit = process.fold(control("retire_arm", "ltr-v1"))
        assert commit.dead_letters == []
        assert process.tallies() == {
            "accepted": 2, "duplicate": 1, "dead_letter": 1, "late": 0, "unjoined": 0, "capped": 0,
        }  # fmt: skip
        assert letters(process.fold(control("retire_arm", "ltr-v1", "again"))) == []


def test_a_control_record_without_a_field_does_not_enter_the_dedupe_window() -> None:
    partition = search()
    for value in (text(CONTROL, action="add_arm"), text(CONTROL, action="halt")):
        for process in (partition, partition.restarted()):
            assert len(letters(process.fold(value, value))) == 2
    assert letters(partition.fold(text(CONTROL, action="pause"))) == []
    assert partition.tallies()["duplicate"] == 0


EVERY_TYPE = [DUEL, DUELS, INTERLEAVING]


@pytest.mark.parametrize("record", EVERY_TYPE, ids=lambda record: str(record["type"]))
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_record_that_names_a_retired_arm_is_a_dead_letter(
    record: dict[str, Any], side: str
) -> None:
    partition = search()
    other = {"a": "b", "b": "a"}[side]
    late = text(record, **{side: "ltr-v2", other: "bm25"})
    assert letters(partition.fold(late)) == []
    partition.fold(control("retire_arm", "ltr-v2"))
    before = partition.knows()
    for process in (partition, partition.restarted()):
        commit = process.fold(text(record, id="late", **{side: "ltr-v2", other: "bm25"}), late)
        sentence = "arm 'ltr-v2' of experiment 'search' was retired at offset 1."
        assert verdicts(commit) == [("unknown_arm", sentence)] * 2
        assert process.knows() == before


@pytest.mark.parametrize("record", EVERY_TYPE, ids=lambda record: str(record["type"]))
def test_records_before_an_arm_was_added_do_not_count_for_it(record: dict[str, Any]) -> None:
    early = text(record, b="dense")
    partition = search()
    assert verdicts(partition.fold(early)) == [
        ("unknown_arm",
         "unknown arm 'dense' in experiment 'search'; its arms are bm25, ltr-v1, ltr-v2.")
    ]  # fmt: skip
    partition.fold(control("add_arm", "dense"))
    restarted = partition.restarted()
    for process in (partition, restarted):
        assert letters(process.fold(early)) == [], "its id was not remembered"
        assert process.wins()[0][3] >= 1
        assert process.tallies()["duplicate"] == 0
    assert restarted.knows() == partition.knows()


def test_clicks_on_a_retired_arm_do_not_count_for_another() -> None:
    partition = search()
    partition.fold(duel(1, "bm25", "ltr-v1"), control("retire_arm", "bm25"))
    assert len(letters(partition.fold(control("add_arm", "bm25")))) == 1
    partition.fold(control("add_arm", "BM25"), duel(2, "BM25", "ltr-v1"))
    assert partition.wins()[2] == [1, 0, 0]
    assert len(letters(partition.fold(duel(3, "bm25", "ltr-v1")))) == 1


def test_a_restart_checks_records_against_the_arms_of_their_time() -> None:
    partition = search()
    partition.fold(
        duel("early", "dense", "bm25"),  # dense is not added yet
        duel("known", "bm25", "ltr-v1"),
        control("add_arm", "dense"),
        duel("new", "dense", "bm25"),
        control("retire_arm", "bm25"),
        duel("late", "bm25", "ltr-v1"),  # bm25 is retired
    )
    again = [duel(name, "dense", "ltr-v1") for name in ("early", "known", "new", "late")]
    restarted = partition.restarted()
    for process in (partition, restarted):
        process.fold(*again)
        assert process.tallies() == {
            "accepted": 6, "duplicate": 2, "dead_letter": 2, "late": 0, "unjoined": 0, "capped": 0,
        }  # fmt: skip
    assert restarted.knows() == partition.knows()


@pytest.mark.parametrize("seed", range(25))
def test_a_record_repeated_after_a_restart_has_the_same_outcome_as_without(seed: int) -> None:
    """Duels of all arms while arms are added and retired, with a small dedupe window."""
    luck = random.Random(seed)
    names = ["bm25", "ltr-v1", "ltr-v2", "new-0", "new-1", "new-2"]
    partition = Partition(config(dedupe={"window_records": 40, "window_ms": 10_000}))
    values = []
    for _ in range(120):
        if luck.random() < 0.15:
            action = luck.choice(["add_arm", "add_arm", "retire_arm"])
            values.append(control(action, luck.choice(names), luck.randrange(3)))
        else:
            record = luck.choice(EVERY_TYPE)
            a, b = luck.sample(names, 2)
            values.append(text(record, id=str(luck.randrange(90)), a=a, b=b))
    for begin in range(0, 120, 30):
        partition.fold(*values[begin : begin + 30])
        restarted = partition.restarted()
        assert restarted.knows() == partition.knows()
        again = luck.sample(values[: begin + 30], 30)
        assert restarted.fold(*again) == partition.fold(*again)
    assert min(partition.tallies()[fate] for fate in ("accepted", "duplicate", "dead_letter")) > 9
    assert len(partition.task.experiments["search"].roster.state()["retired"]) >= 1


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ({"name": "rucb"}, "only policy 'top_two' with aim 'identify' uses"),
        ({"name": "top_two", "aim": "earn"}, "only policy 'top_two' with aim 'identify' uses"),
        ({"name": "top_two", "window": 1000}, "with a window, what is known of another arm"),
    ],
)
def test_an_arm_is_like_another_one_only_where_a_prior_steers(
    policy: dict[str, Any], sentence: str
) -> None:
    partition = search(policy=policy)
    add = text(CONTROL, id="like", action="add_arm", arm="dense", like="bm25")
    [(reason, error)] = verdicts(partition.fold(add))
    assert reason == "invalid_record"
    assert error.startswith(f"arm 'dense' cannot be added: {sentence}")
    assert "dense" not in partition.task.experiments["search"].roster.index
