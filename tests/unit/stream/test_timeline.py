"""The timeline of an experiment: what it keeps, and for how long."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from streamduel.connector import PartitionCommit
from streamduel.records import Control
from streamduel.stream.alarms import alarms
from streamduel.stream.saved_state import state_hash
from streamduel.stream.timeline import (
    MAX_ALARMS,
    MAX_CHAMPIONS,
    MAX_MOMENTS,
    Moment,
    Timeline,
    ended_without_winner,
)
from streamduel.testing import Record, encode
from streamduel.testing.simulation.workload import ARMS, CONTROLS
from tests.unit.stream.batches import START
from tests.unit.stream.folding import (
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    assignments,
    config,
    last,
    letters,
    search,
    text,
)
from tests.unit.stream.restarts import run
from tests.unit.stream.sealing import changed


def control(action: str, number: int = 0, **fields: Any) -> bytes:
    return text(CONTROL, id=f"{action}-{number}", action=action, actor="alice", **fields)


def wins(number: int, a: str, b: str, wins_a: int, wins_b: int) -> bytes:
    return text(DUELS, id=f"w{number}", a=a, b=b, wins_a=wins_a, wins_b=wins_b)


def timeline(partition: Partition) -> tuple[Moment, ...]:
    return partition.task.experiments["search"].timeline.moments


def told(partition: Partition) -> list[tuple[str, str | None, str | None]]:
    return [(moment.event, moment.text, moment.actor) for moment in timeline(partition)]


def test_control_actions_are_told_with_their_actor() -> None:
    partition = Partition(config(search={"decide_every": 1000}))
    partition.fold(
        control("add_arm", arm="dense"),
        control("retire_arm", arm="dense"),
        control("pause"),
        control("resume"),
        control("freeze_pair", a="bm25", b="ltr-v1"),
        control("unfreeze_pair"),
        control("apply", settings={"slate": 2, "decide_every": 5}),
        control("note", text="trained again"),
        control("reset"),
    )
    assert [it for it in told(partition) if it[0] != "champion"] == [
        ("started", None, None),
        ("add_arm", "dense", "alice"),
        ("retire_arm", "dense", "alice"),
        ("pause", None, "alice"),
        ("resume", None, "alice"),
        ("freeze_pair", "bm25 / ltr-v1", "alice"),
        ("unfreeze_pair", None, "alice"),
        ("apply", "decide_every, slate", "alice"),
        ("note", "trained again", "alice"),
        ("reset", None, "alice"),
    ]


def test_an_arm_that_begins_like_another_is_told_with_it() -> None:
    partition = Partition()
    partition.fold(control("add_arm", arm="dense", like="bm25"))
    assert ("add_arm", "dense / like bm25", "alice") in told(partition)


def test_champions_and_their_confidence_are_told() -> None:
    partition = Partition(config(search={"policy": {"name": "rucb"}, "decide_every": 10}))
    partition.fold(wins(1, "ltr-v2", "bm25", 30, 0), wins(2, "ltr-v2", "ltr-v1", 30, 0))
    found = [(it.event, it.text, it.duels) for it in timeline(partition)]
    assert ("confidence", "99% ltr-v2", 60) in found
    partition.fold(wins(3, "bm25", "ltr-v2", 900, 0), wins(4, "bm25", "ltr-v1", 900, 0))
    found = [(it.event, it.text, it.duels) for it in timeline(partition)]
    assert found[-2:] == [("champion", "bm25", 1860), ("confidence", "99% bm25", 1860)]


def test_no_confidence_of_another_arm_is_told_of_the_champion_of_a_batch() -> None:
    """An open batch keeps its champion until it is published again, 60 s later."""
    policy = {"name": "batched_top_two", "horizon": 100_000, "rounds": 3}
    partition = search(arms=["bm25", "ltr"], policy=policy, stop={"confidence": 0.9999999})
    for number, winner in enumerate("ab" * 22 + "aa" + "b" * 40):
        partition.fold_at(START, text(DUEL, id=f"{number}", b="ltr", winner=winner))
    assert told(partition) == [("started", None, None), ("champion", "bm25", None)]
    partition.fold_at(START + 60_000, text(DUEL, id="next", b="ltr", winner="b"))
    assert told(partition)[2:] == [("champion", "ltr", None), ("confidence", "99% ltr", None)]


def claim(partition: Partition) -> tuple[Any, ...]:
    """What a champion is confident of, and the duels that say so."""
    experiment = partition.task.experiments["search"]
    return list(experiment.roster.arms), experiment.settings.policy, partition.wins()


@pytest.mark.parametrize("fields", CONTROLS, ids=lambda it: f"{it['action']}-{len(str(it))}")
def test_an_action_that_changes_the_claim_or_its_evidence_ends_a_confidence(
    fields: dict[str, Any],
) -> None:
    arms = dict.fromkeys([*ARMS, *([fields["arm"]] if fields["action"] == "retire_arm" else [])])
    partition = Partition(config(search={"arms": list(arms)}))
    partition.fold(wins(1, "ltr", "bm25", 3, 0))
    before = claim(partition)
    partition.fold(text({**CONTROL, "id": "k", **fields}))
    alone = Timeline({"level": 0.99, "check_at": 100})
    alone.acted(Control("k", "search", **fields), 3, 0)
    assert (alone.state()["level"] == 0) == (claim(partition) != before)


@pytest.mark.parametrize(
    ("action", "fields", "again"),
    [
        ("note", {"text": "trained again"}, False),
        ("pause", {}, False),
        ("add_arm", {"arm": "dense"}, True),
    ],
)
def test_a_confidence_is_told_again_with_another_rival(
    action: str, fields: dict[str, Any], again: bool
) -> None:
    partition = Partition(config(search={"policy": {"name": "rucb"}, "decide_every": 10}))
    partition.fold(wins(1, "ltr-v2", "bm25", 30, 0), wins(2, "ltr-v2", "ltr-v1", 30, 0))
    partition.fold(control(action, **fields), control("resume"))
    for number, rival in enumerate(("bm25", "ltr-v1", "dense"), start=3):
        partition.fold(wins(number, "ltr-v2", rival, 100, 0))  # refused of an unknown rival
    assert told(partition).count(("confidence", "99% ltr-v2", None)) == 1 + again


@pytest.mark.parametrize(
    ("action", "again"),
    [
        *((control("apply", settings=settings), again) for settings, again in [
            ({"slate": 3}, False),
            ({"decide_every": 20}, False),
            ({"stop": {"confidence": 0.9999999999}}, False),
            ({"ties": "drop"}, False),
            ({"credit": {"name": "first_click"}}, False),
            ({"prior": {"scores": {"bm25": 1, "ltr-v1": 1, "ltr-v2": 2}}}, False),
            ({"arms": ["bm25", "ltr-v2"]}, True),
            ({"policy": {"name": "double_thompson"}}, True),
        ]),
        (control("retire_arm", arm="bm25"), True),
        (control("reset"), True),
    ],
)  # fmt: skip
def test_a_confidence_is_told_again_only_of_another_claim(action: bytes, again: bool) -> None:
    partition = Partition()
    one, other = ("ltr-v2", "ltr-v1", 40, 0), ("ltr-v2", "bm25", 40, 0)
    assert letters(partition.fold(wins(1, *one), wins(2, *other), action)) == []
    partition.fold(wins(3, *one), wins(4, *other))
    found = [it.text for it in timeline(partition) if it.event == "confidence"]
    assert found == ["99% ltr-v2"] * (1 + again)


@pytest.mark.parametrize("third", [("ltr-v1", "bm25"), ("bm25", "ltr-v1")])
def test_an_end_without_a_winner_is_told_whatever_comes_later(third: tuple[str, str]) -> None:
    partition = Partition()
    for number, pair in enumerate((("ltr-v2", "ltr-v1"), ("bm25", "ltr-v2"), third)):
        partition.fold(wins(number, *pair, 50, 0))
    cycle = third[0] == "ltr-v1"
    assert [it.no_winner for it in timeline(partition) if it.event == "finished"] == [cycle]
    partition.fold(wins(4, "ltr-v2", "bm25", 50, 0))
    assert ended_without_winner(timeline(partition)) == cycle
    partition.fold(control("reset"))
    assert not ended_without_winner(timeline(partition))


def test_the_end_of_exploration_is_told() -> None:
    partition = Partition()
    partition.fold(wins(1, "ltr-v2", "bm25", 50, 0), wins(2, "ltr-v2", "ltr-v1", 50, 0))
    partition.fold(control("apply", settings={"stop": {"confidence": 0.9999999999}}))
    events = [it.event for it in timeline(partition)]
    assert events.index("finished") < events.index("apply") < events.index("running")


HIGHER = control("apply", settings={"stop": {"confidence": 0.9999999999}})
SURE = wins(1, "ltr-v2", "bm25", 50, 0), wins(2, "ltr-v2", "ltr-v1", 50, 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            [control("pause"), *SURE, control("resume")],
            ["pause", "resume", "finished"],
            id="ends",
        ),
        pytest.param(
            [*SURE, control("pause"), HIGHER, control("resume")],
            ["finished", "pause", "apply", "resume", "running"],
            id="goes on",
        ),
        pytest.param(
            [*SURE, control("pause"), control("resume")],
            ["finished", "pause", "resume"],
            id="had ended",
        ),
        pytest.param(
            [*SURE, HIGHER, control("pause"), control("resume")],
            ["finished", "apply", "running", "pause", "resume"],
            id="had gone on",
        ),
        pytest.param([control("pause"), control("resume")], ["pause", "resume"], id="begins"),
    ],
)
def test_what_happens_when_a_pause_ends_is_told(values: list[bytes], expected: list[str]) -> None:
    partition = Partition()
    partition.fold(*values)
    partition = partition.restarted()
    partition.fold(text(DUEL, id="next"))
    others = {"started", "champion", "confidence"}
    assert [it.event for it in timeline(partition) if it.event not in others] == expected


def test_the_confidence_with_which_exploration_ended_is_told() -> None:
    """Later duels may lower the confidence that is shown, and it is checked every 5 % only."""
    partition = Partition()
    for number in range(1, 1000):
        rival, won = ("bm25", "ltr-v1")[number % 2], int(number % 11 < 7)
        partition.fold(wins(number, "ltr-v2", rival, won, 1 - won))
    found = [(it.event, it.text, it.duels) for it in timeline(partition)]
    (ended,) = (duels for event, _, duels in found if event == "finished")
    assert ("confidence", "95% ltr-v2", ended) in found


def test_a_note_changes_nothing_else() -> None:
    noted, other = Partition(), Partition()
    for number in range(30):
        duel = text(DUEL, id=f"d{number}")
        published = assignments(noted.fold(duel, control("note", number, text="x")))
        assert [it["pairs"] for it in published] == [
            it["pairs"] for it in assignments(other.fold(duel))
        ]
    one, two = noted.knows()["search"], other.knows()["search"]
    assert one["policy"] == two["policy"]


@pytest.mark.parametrize("wrong", [None, "", "x" * 1001, 5, ["x"]])
def test_a_note_needs_a_text(wrong: Any) -> None:
    partition = Partition()
    commit: PartitionCommit = partition.fold(control("note", text=wrong))
    (letter,) = letters(commit)
    assert letter["reason"] == "invalid_record"
    assert "text" in letter["error"]


def test_it_is_bounded_and_champions_go_first() -> None:
    line, partition = Timeline(), Partition()
    decisions = partition.task.experiments["search"].decisions
    before = decisions.plan
    assert before is not None
    for number in range(2 * MAX_CHAMPIONS):
        decisions.plan = Moved(before, f"arm-{number}")
        line.decided(Moved(before, "other"), decisions, number)
    champions = [it for it in line.moments if it.event == "champion"]
    assert len(champions) == MAX_CHAMPIONS
    assert champions[-1].text == f"arm-{2 * MAX_CHAMPIONS - 1}"
    partition.fold(*(control("note", number, text=f"{number}") for number in range(150)))
    assert len(timeline(partition)) == MAX_MOMENTS
    assert timeline(partition)[-1].text == "149"


def Moved(plan: Any, champion: str) -> Any:  # noqa: N802 - a plan with another champion
    return type(plan)(champion, plan.pairs, plan.stage)


def test_restarts_anywhere_keep_it() -> None:
    values = [
        value
        for number in range(12)
        for value in (
            *(text(DUEL, id=f"{number}-{at}", winner="ab"[number % 2]) for at in range(9)),
            control("note", number, text="x") if number % 2 else control("reset", number),
        )
    ]
    records = [Record(at, value, at) for at, value in enumerate(values)]
    cuts = list(range(1, len(records), 4))
    undisturbed = run(config(), records, [], set())
    assert run(config(), records, cuts, set(cuts)) == undisturbed
    assert len(json.loads(undisturbed.entries["experiment/search"])["state"]["timeline"]) > 1


def test_state_without_a_timeline_begins_one_and_hashes_equal() -> None:
    partition = Partition()
    partition.fold(text(DUEL))
    state = json.loads(partition.entries["experiment/search"])["state"]
    without = {key: value for key, value in state.items() if key != "timeline"}
    assert state_hash(state) == state_hash(without)
    entries = changed(
        partition.entries, "experiment/search", lambda entry: entry["state"].pop("timeline")
    )
    again = Partition(entries=entries)
    assert timeline(again) == ()
    again.fold(control("note", text="hello"))
    assert told(again)[-1] == ("note", "hello", "alice")


def test_an_alarm_is_told_when_it_begins() -> None:
    partition = Partition(config(search={"decide_every": 1}))
    partition.fold(*(text(DUEL, id=f"a-{number}") for number in range(30)))
    partition.fold(*(text(DUEL, id=f"b-{number}", a="nobody") for number in range(20)))
    assert [it for it in told(partition) if it[0] == "alarm"] == []
    partition.fold(*(text(DUEL, id=f"c-{number}") for number in range(5)))
    assert told(partition)[-1] == ("alarm", "dead letters", None)
    partition = partition.restarted()
    partition.fold(*(text(DUEL, id=f"d-{number}") for number in range(3000)))
    partition.fold(*(text(DUEL, id=f"e-{number}", b="nobody") for number in range(80)))
    assert len([it for it in told(partition) if it[0] == "alarm"]) == 1
    partition.fold(*(text(DUEL, id=f"f-{number}") for number in range(400)))
    assert [it for it in told(partition) if it[0] == "alarm"] == 2 * [
        ("alarm", "dead letters", None)
    ]


def shown(number: int, a: str, b: str) -> bytes:
    teams = ["ab"[number % 2], "ba"[number % 2]]
    return text(INTERLEAVING, id=f"{a}-{b}-{number}", a=a, b=b, teams=teams)


UNASSIGNED = "impressions of pairs that are not assigned"


def clicked(number: int) -> bytes:
    """A click on an impression that never comes."""
    fields = {"type": "click", "experiment": "search", "impression": "none", "rank": 0}
    return encode({**fields, "id": f"c{number}"})


@pytest.mark.parametrize(
    ("lost", "alarm"),
    [
        ([shown(it, "bm25", "ltr-v1") for it in range(20)], UNASSIGNED),
        ([clicked(it) for it in range(20)], "clicks that are late or unjoined"),
    ],
    ids=["unassigned", "unjoined"],
)
def test_twenty_lost_records_of_a_hundred_are_an_alarm(lost: list[bytes], alarm: str) -> None:
    partition = Partition(config(search={"join_window_ms": 1000, "decide_every": 1000}))
    (assigned,) = last(partition.begun)["pairs"]
    pair = assigned["a"], assigned["b"]
    assert pair == ("bm25", "ltr-v2")
    partition.fold_at(1, *lost)
    partition.fold_at(2000, *(shown(it, *pair) for it in range(80)))
    assert list(alarms(partition.task.experiments["search"])) == [alarm]


def test_alarms_do_not_push_out_what_people_did() -> None:
    partition = Partition(config(search={"decide_every": 1}))
    decisions = partition.task.experiments["search"].decisions
    kept = Timeline()
    kept.acted(Control("n", "search", "note", text="x"), 0, 0)
    for number in range(200):
        partition.fold(text(DUELS, id=f"w{number}", wins_a=1 + int(1.06**number), wins_b=0))
        wrong = [] if number % 2 else ["services do not interleave fairly"]
        kept.decided(decisions.plan, decisions, number, partial(list, wrong))
    assert [it.text for it in kept.moments if it.event == "note"] == ["x"]
    assert len([it for it in kept.moments if it.event == "alarm"]) == MAX_ALARMS
