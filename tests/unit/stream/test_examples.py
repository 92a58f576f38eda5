"""Examples: which impressions are kept, within what bounds, and over restarts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.stream import examples
from streamduel.stream.examples import MAX_DOC, MAX_QUERY, MAX_RANKS, Example
from streamduel.stream.saved_state import state_hash
from streamduel.testing import Record
from tests.unit.stream.folding import CONTROL, DUELS, INTERLEAVING, Partition, config, text
from tests.unit.stream.restarts import run
from tests.unit.stream.test_attribution import CLICK, IMPRESSION, START, WINDOW, Stream

ARMS = ["bm25", "ltr-v1", "ltr-v2"]
DOCS = ["d1", "d2", "d3"]


def kept(partition: Partition) -> tuple[Example, ...]:
    return partition.task.experiments["search"].impressions.examples.newest_first


def state(partition: Partition) -> dict[str, Any]:
    return partition.task.experiments["search"].state()


def counts(number: int, a: str, b: str, wins_a: int, wins_b: int = 0) -> bytes:
    return text(DUELS, id=f"w{number}", a=a, b=b, wins_a=wins_a, wins_b=wins_b)


LEADING = (
    counts(1, "bm25", "ltr-v1", 60, 50),
    counts(2, "bm25", "ltr-v2", 900),
    counts(3, "ltr-v1", "ltr-v2", 900),
)
"""`bm25` and `ltr-v1` lead."""


def listed(number: int, query: str | None = "red shoes", **changes: Any) -> bytes:
    changes = {"docs": DOCS, **changes}
    return text(INTERLEAVING, id=f"l-{number}", query=query, **changes)


def shown(number: int, **changes: Any) -> bytes:
    return text(IMPRESSION, **{"id": f"i-{number}", "query": "red shoes", **changes})


def clicked(number: int, **changes: Any) -> bytes:
    return text(CLICK, id=f"c-{number}", impression=f"i-{number}", **changes)


def test_a_list_of_the_leading_pair_that_a_user_decided_is_kept() -> None:
    partition = Partition()
    partition.fold(*LEADING, listed(0), listed(1, clicks=[1], a="ltr-v1", b="bm25"))
    [found] = kept(partition)
    assert (found.a, found.b, found.winner) == ("ltr-v1", "bm25", "b")
    assert (found.query, found.docs, found.teams) == (
        "red shoes",
        ("d1", "d2", "d3"),
        (*"ab", None),
    )
    assert (found.clicks, found.ranks, found.offset, found.at) == ((1,), 3, 4, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"query": None},
        {"docs": None},
        {"clicks": []},  # a tie
        {"clicks": [0, 1]},  # a tie
        {"b": "ltr-v2"},  # not the leading pair
        {"teams": ["a", None, None]},  # the rankers agree
    ],
)
def test_other_lists_are_not_kept(changes: dict[str, Any]) -> None:
    partition = Partition()
    partition.fold(*LEADING, listed(0), listed(1, **changes))
    assert kept(partition) == ()


def test_an_impression_is_kept_when_its_window_closes() -> None:
    stream = Stream()
    stream.fold(*LEADING, shown(0), shown(1), clicked(1, doc="d2", rank=None), clicked(2), shown(2))
    assert kept(stream.partition) == ()
    stream.tick()
    assert [(it.clicks, it.winner, it.at) for it in kept(stream.partition)] == [
        ((0,), "a", START),
        ((1,), "b", START),
    ]


def test_long_texts_are_cut() -> None:
    partition = Partition()
    ranks = 30
    changes: dict[str, Any] = {
        "docs": ["\N{SNOWMAN}" * 1000] * ranks, "teams": ["a", "b"] * (ranks // 2),
        "clicks": [*range(0, ranks, 2)],
    }  # fmt: skip
    partition.fold(*LEADING, listed(0), listed(1, query="q" * 1000, **changes))
    [found] = kept(partition)
    assert found.query == "q" * (MAX_QUERY - 1) + "…"
    assert found.docs == ("\N{SNOWMAN}" * (MAX_DOC - 1) + "…",) * MAX_RANKS
    assert (len(found.teams), found.ranks, len(found.clicks)) == (MAX_RANKS, ranks, MAX_RANKS)


def test_a_sample_of_fixed_size_is_drawn_by_the_hash_of_the_id() -> None:
    partition = Partition(config(search={"examples": 5}))
    partition.fold(*LEADING, *(listed(number) for number in range(100)))
    found = kept(partition)
    assert len(found) == 5
    assert [it.offset for it in found] == sorted((it.offset for it in found), reverse=True)
    again = Partition(config(search={"examples": 20}))
    again.fold(*LEADING, *(listed(number) for number in range(100)))
    smallest = sorted(kept(again), key=lambda it: it.draw)[:5]
    assert {it.offset for it in found} == {it.offset for it in smallest}


def test_lists_are_drawn_more_rarely_as_more_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts that wait for clicks are bounded, however many impressions are open."""
    monkeypatch.setattr(examples, "PASSES", 8)
    stream = Stream()
    stream.fold(*LEADING, *(shown(number) for number in range(4000)))
    waiting = stream.partition.task.experiments["search"].impressions.examples.waiting
    assert 8 < len(waiting) <= 8 * 10  # a level for each doubling
    stream.fold(*(clicked(number) for number in range(4000)))
    stream.tick()
    assert waiting == {}
    assert 0 < len(kept(stream.partition)) <= 20


def test_another_leading_pair_takes_the_places() -> None:
    partition = Partition(config(search={"examples": 3}))
    partition.fold(*LEADING, *(listed(number) for number in range(10)))
    assert {(it.a, it.b) for it in kept(partition)} == {("bm25", "ltr-v1")}
    partition.fold(counts(4, "bm25", "ltr-v1", 10_000), counts(5, "ltr-v2", "bm25", 1200, 400))
    pair = {"a": "bm25", "b": "ltr-v2"}
    partition.fold(listed(10, **pair), listed(11, **pair))
    assert [it.b for it in kept(partition)] == ["ltr-v2", "ltr-v1", "ltr-v1"]
    partition.fold(*(listed(number, **pair) for number in range(12, 30)))
    assert [it.b for it in kept(partition)] == ["ltr-v2"] * 3


def test_none_are_kept_if_none_are_wanted() -> None:
    partition = Partition(config(search={"examples": 0}))
    partition.fold(*LEADING, listed(0), listed(1))
    assert "examples" not in state(partition)


def test_without_queries_the_state_is_that_of_earlier_releases() -> None:
    partition = Partition()
    partition.fold(*LEADING, listed(0, query=None), listed(1, docs=None))
    assert "examples" not in state(partition)


def test_the_number_can_change_while_it_runs() -> None:
    partition = Partition()
    partition.fold(*LEADING, *(listed(number) for number in range(9)))
    assert len(kept(partition)) == 8

    def apply(number: int) -> bytes:
        return text(CONTROL, id=f"a-{number}", action="apply", settings={"examples": number})

    partition.fold(apply(3))
    assert [it.offset for it in kept(partition)] == [11, 10, 9]
    partition.fold(apply(0), listed(20))
    assert kept(partition) == ()
    partition.fold(apply(2), listed(21), listed(22))
    assert [it.offset for it in kept(partition)] == [17]


def test_arms_and_reset() -> None:
    partition = Partition()
    partition.fold(*LEADING, listed(0), listed(1))
    partition.fold(text(CONTROL, id="c-1", action="add_arm", arm="new"))
    assert len(kept(partition)) == 1
    partition.fold(text(CONTROL, id="c-2", action="retire_arm", arm="ltr-v1"))
    assert kept(partition) == ()
    pair = {"a": "bm25", "b": "ltr-v2"}
    partition.fold(*(listed(number, **pair) for number in (2, 3)))
    partition.fold(*(listed(number, a="new", b="ltr-v2") for number in (4, 5)))
    partition.restarted()
    partition.fold(text(CONTROL, id="c-3", action="reset"))
    assert kept(partition) == ()


def test_examples_decide_nothing_and_are_not_hashed() -> None:
    some, none = Partition(), Partition(config(search={"examples": 0}))
    records = [*LEADING, *(listed(number, clicks=[number % 2]) for number in range(50))]
    assert some.fold(*records).assignments == none.fold(*records).assignments
    assert state_hash(state(some)) == state_hash(state(none))
    assert kept(some)


@pytest.mark.parametrize("docs", [["d1"], [1, 2, 3], "abc", {"0": "d1"}, 7, ["d" * 30_000] * 3])
def test_other_documents_of_a_list_are_ignored(docs: Any) -> None:
    """Earlier releases did not read them, and accepted the record."""
    partition = Partition()
    partition.fold(*LEADING, listed(0), listed(1, docs=docs))
    assert kept(partition) == ()
    assert partition.tallies()["accepted"] == 5


@pytest.mark.parametrize("docs", [b"1e999", b"[1e4000, 1, 2]"])
def test_documents_of_a_list_may_be_numbers_of_any_size(docs: bytes) -> None:
    partition = Partition()
    found = listed(1, docs=987654).replace(b"987654", docs)
    partition.fold(*LEADING, listed(0), found)
    assert partition.tallies()["accepted"] == 5


def test_null_documents_are_as_none() -> None:
    null, none = Partition(), Partition()
    null.fold(*LEADING, listed(0, docs=None))
    none.fold(*LEADING, text(INTERLEAVING, id="l-0", query="red shoes"))
    assert state(null) == state(none)


def click_log(seed: int, records: int) -> list[Record]:
    """Impressions of three arms with clicks, in a join window of a second."""
    rng = random.Random(seed)
    log, now = list[bytes](), START
    times = list[int]()
    for number in range(records):
        a, b = rng.sample(ARMS, 2)
        now += rng.choice((0, 10, 100, 300))
        which = rng.random()
        if which < 0.55:
            log.append(shown(number, a=a, b=b))
        elif which < 0.9:
            log.append(clicked(number) if rng.random() < 0.1 else text(
                CLICK, id=f"c-{number}", impression=f"i-{number - rng.randint(1, 5)}",
                rank=rng.randrange(3)))  # fmt: skip
        elif which < 0.97:
            log.append(listed(number, a=a, b=b, clicks=[rng.randrange(3)]))
        else:
            log.append(counts(number, a, b, rng.randint(0, 9), 9))
        times.append(now)
    return [Record(at, value, now) for at, (value, now) in enumerate(zip(log, times, strict=True))]


@given(
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.integers(1, 199), max_size=8, unique=True).map(sorted),
    passes=st.sampled_from([2, 256]),
    wanted=st.sampled_from([2, 20]),
)
@settings(max_examples=25, deadline=None)
def test_a_restart_keeps_the_same_examples(
    seed: int, cuts: list[int], passes: int, wanted: int
) -> None:
    """However often, and wherever: also with impressions open that wait for clicks."""
    log = click_log(seed, 200)
    made = config(search={"join_window_ms": WINDOW, "examples": wanted})
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(examples, "PASSES", passes)
        once = run(made, log, [], set())
        assert run(made, log, cuts, set(cuts)) == once
    assert "examples" in json.loads(once.entries["experiment/search"])["state"]
