"""Duels by segment: counted beside the total, over restarts, and through control records."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.config import Config
from streamduel.stream.segments import Segments
from streamduel.testing import Record
from tests.unit.stream.folding import (
    ARMS,
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    config,
    letters,
    text,
)
from tests.unit.stream.restarts import run
from tests.unit.stream.test_attribution import CLICK, IMPRESSION, START, WINDOW

CLASSES = {"class": ["navigational", "informational"], "device": ["phone"]}


def made(**search: Any) -> Config:
    return config(search={"segments": CLASSES, "join_window_ms": WINDOW, **search})


def counted(partition: Partition) -> dict[str, Any]:
    """The pairs of each segment that has any."""
    state = partition.task.experiments["search"].state()["segments"]
    return {name: rows for names in state["duels"].values() for name, rows in names.items() if rows}


def duel(number: int, segment: Any, **changes: Any) -> bytes:
    return text(DUEL, id=f"d-{number}", segment=segment, **changes)


def test_a_duel_counts_in_its_segments_and_in_the_total() -> None:
    partition = Partition(made())
    partition.fold(
        duel(1, "navigational"),
        duel(2, {"class": "navigational", "device": "phone"}, winner="b"),
        duel(3, {"class": "informational", "country": "de"}, winner="tie"),
        duel(4, "other"),
        duel(5, {"class": "phone"}),
        duel(6, None),
        duel(7, "phone", b="bm25", winner=None),
        duel(1, "informational"),
    )
    assert counted(partition) == {
        "navigational": [[0, 1, 1, 1, 0]],
        "informational": [[0, 1, 0, 0, 1]],
        "phone": [[0, 1, 0, 1, 0]],
    }
    assert partition.duels() == 7
    assert partition.tallies()["duplicate"] == 1


def test_counts_of_duels_and_interleaved_lists() -> None:
    partition = Partition(made(ties="drop"))
    partition.fold(
        text(DUELS, id="n", a="ltr-v1", b="bm25", wins_a=5, wins_b=2, ties=3, segment="phone"),
        text(INTERLEAVING, id="l", clicks=[0], segment="phone"),
        text(INTERLEAVING, id="m", clicks=[], segment="phone"),
    )
    assert counted(partition) == {"phone": [[0, 1, 3, 5, 0]]}


def test_clicks_inherit_the_segment_of_their_impression() -> None:
    partition = Partition(made())
    partition.fold_at(START, text(IMPRESSION, segment="phone"), text(CLICK, segment="navigational"))
    assert counted(partition) == {}
    partition.fold_at(START + WINDOW + 1, duel(9, None))
    assert counted(partition) == {"phone": [[0, 1, 1, 0, 0]]}


def test_without_segments_the_state_is_that_of_earlier_releases() -> None:
    partition = Partition()
    partition.fold(duel(1, "navigational"))
    assert "segments" not in partition.task.experiments["search"].state()
    assert partition.task.experiments["search"].coder.plain[0]


def test_segments_decide_nothing() -> None:
    apart, whole = Partition(made()), Partition(made(segments={}))
    rng = random.Random(7)
    records = [
        duel(number, rng.choice(["phone", None]), winner=rng.choice("ab")) for number in range(99)
    ]
    assert apart.fold(*records).assignments == whole.fold(*records).assignments


def test_arms_and_reset() -> None:
    partition = Partition(made())
    partition.fold(
        duel(1, "phone"),
        duel(2, "phone", a="ltr-v1", b="ltr-v2"),
        text(CONTROL, id="c-1", action="retire_arm", arm="bm25"),
        text(CONTROL, id="c-2", action="add_arm", arm="new"),
        duel(3, "phone", a="new", b="ltr-v1"),
    )
    assert counted(partition) == {"phone": [[0, 1, 1, 0, 0], [0, 2, 0, 1, 0]]}
    partition.fold(text(CONTROL, id="c-3", action="reset"))
    assert counted(partition) == {}
    partition.fold(duel(4, "phone", a="new", b="ltr-v1"))
    assert counted(partition) == {"phone": [[0, 2, 0, 1, 0]]}


def test_segments_can_change_while_it_runs() -> None:
    """Those that stay keep their counts; impressions that are open belong to none."""
    partition = Partition(made())
    change = {"class": ["informational", "navigational"], "country": ["de"]}
    apply = text(CONTROL, id="c-1", action="apply", settings={"segments": change})
    partition.fold_at(START, duel(1, "navigational"), duel(2, "phone"))
    partition.fold_at(START, text(IMPRESSION, segment="navigational"), apply)
    partition.fold_at(START, text(IMPRESSION, id="i-2", segment="de"))
    again = partition.restarted()
    for each in (partition, again):
        each.fold_at(START + WINDOW + 1, duel(3, None))
        assert counted(each) == {"navigational": [[0, 1, 1, 0, 0]], "de": [[0, 1, 0, 0, 1]]}
    assert partition.knows() == again.knows()


def test_too_many_segments_for_another_arm() -> None:
    segments = {"class": [f"s-{number}" for number in range(32)]}
    partition = Partition(made(arms=[f"a-{number}" for number in range(79)], segments=segments))
    commit = partition.fold(text(CONTROL, id="c-1", action="add_arm", arm="new"))
    assert "there are too many segments for one more arm" in letters(commit)[0]["error"]


def test_too_many_segments_for_the_arms_that_have_joined() -> None:
    partition = Partition(made(arms=["x", "y"]))
    joining = (text(CONTROL, id=f"c-{at}", action="add_arm", arm=f"a-{at}") for at in range(78))
    partition.fold(*joining)
    segments = {"class": [f"s-{number}" for number in range(32)]}
    commit = partition.fold(text(CONTROL, id="c", action="apply", settings={"segments": segments}))
    assert "segments must be fewer with 80 arms" in letters(commit)[0]["error"]


def noise(rng: random.Random, count: int) -> list[Record]:
    found: list[Record] = []
    now = START
    for offset in range(count):
        now += rng.choice([0, 0, 1, WINDOW // 10, WINDOW])
        segment = rng.choice([None, "phone", "other", {"class": "navigational", "device": "phone"}])
        a, b = rng.sample(ARMS, 2)
        shown = {"id": f"i-{offset}", "segment": segment, "a": a, "b": b}
        chance = rng.random()
        if chance < 0.4:
            value = text(IMPRESSION, **shown)
        elif chance < 0.6:
            impression = f"i-{max(0, offset - rng.randint(-2, 5))}"
            value = text(CLICK, id=f"c-{offset}", impression=impression, rank=rng.randint(0, 1))
        elif chance < 0.97:
            value = text(DUEL, **shown, winner=rng.choice(["a", "b", "tie"]))
        else:
            change = {"class": rng.choice([["navigational"], ["x", "navigational"]])}
            value = text(CONTROL, id=f"k-{offset}", action="apply", settings={"segments": change})
        found.append(Record(offset, value, now, b"search"))
    return found


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_results_do_not_depend_on_chunks_and_restarts(seed: int) -> None:
    rng = random.Random(seed)
    log = noise(rng, 200)
    cuts = sorted(rng.sample(range(1, len(log)), 12))
    restarts = set(rng.sample(cuts, 5))
    assert run(made(), log, cuts, restarts) == run(made(), log, [], set())


@pytest.mark.parametrize("row", [[1, 0, 1, 1, 1], [0, 3, 1, 1, 1], [0, 1, -1, 1, 1], [0, 1]])
def test_damaged_counts_are_refused(row: list[int]) -> None:
    from streamduel.stream import saved_state  # noqa: PLC0415 - only here

    partition = Partition(made())
    partition.fold(duel(1, "phone"))
    state = json.loads(json.dumps(partition.task.experiments["search"].state()))
    saved_state.check("search", state)
    state["segments"]["duels"]["device"]["phone"] = [row]
    with pytest.raises(ValueError, match="segments"):
        saved_state.check("search", state)


def test_a_name_in_two_kinds_belongs_to_both() -> None:
    segments = Segments({"class": ["x"], "device": ["x", "y"]}, n_arms=2)
    assert segments.numbers("x") == (0, 1)
    assert segments.numbers({"device": "x"}) == (1,)
    assert segments.numbers({"device": "y", "class": "x"}) == (0, 2)
