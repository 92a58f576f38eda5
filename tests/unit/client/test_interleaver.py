import sys
from collections import deque
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from streamduel.client import Draw, Interleaver, Merged
from streamduel.errors import InterleavingError
from streamduel.interleaving import INTERLEAVINGS
from streamduel.interleaving.probabilistic import chances

PAIR = Draw("bm25", "ltr", 17)
A = [f"d{n}" for n in range(30)]
B = A[::-1]


@pytest.mark.parametrize("method", sorted(INTERLEAVINGS))
def test_every_method_merges_as_without_the_client(method: str) -> None:
    merged = Interleaver(method, length=6, seed=3).merge(PAIR, A[:8], B[:8])
    rng = Random(3)
    INTERLEAVINGS[method]([], [], 6, rng)
    assert merged[:2] == INTERLEAVINGS[method](A[:8], B[:8], 6, rng)[:2]
    assert len(merged.docs) == 6


@pytest.mark.parametrize("method", sorted(INTERLEAVINGS))
def test_equal_keys_give_equal_lists_on_every_instance(method: str) -> None:
    one, other = Interleaver(method, length=6), Interleaver(method, length=6)
    lists = [one.merge(PAIR, A[:8], B[:8], sticky_key=f"s1 query {n}") for n in range(20)]
    assert lists == [other.merge(PAIR, A[:8], B[:8], f"s1 query {n}") for n in range(20)]
    assert len({tuple(merged.docs) for merged in lists}) > 1


def test_pages_of_one_key_are_slices_of_one_list() -> None:
    deep = Interleaver(length=30)
    merged = deep.merge(PAIR, A, B, sticky_key="s1 shoes")
    again = deep.merge(PAIR, A, B, sticky_key="s1 shoes")
    assert sorted(merged.docs[:10] + again.docs[10:20] + again.docs[20:]) == sorted(A)


def test_the_list_does_not_depend_on_the_epoch() -> None:
    merge = Interleaver().merge
    assert merge(PAIR, A, B, "s") == merge(Draw("bm25", "ltr", 18), A, B, "s")


@pytest.mark.parametrize("method", sorted(INTERLEAVINGS))
def test_the_list_does_not_depend_on_the_order_of_the_pair(method: str) -> None:
    merge = Interleaver(method, length=6).merge
    for key in map(str, range(20)):
        one, other = merge(PAIR, A[:8], B[:8], key), merge(Draw("ltr", "bm25"), B[:8], A[:8], key)
        assert one.docs == other.docs
        assert one.teams == [{"a": "b", "b": "a"}.get(str(team)) for team in other.teams]
        if one.chances is not None and other.chances is not None:
            assert one.chances == [None if it is None else 1 - it for it in other.chances]


def test_the_list_depends_on_seed_and_pair() -> None:
    merge = Interleaver().merge
    lists = [merge(PAIR, A, B, "s"), merge(Draw("bm25", "x"), A, B, "s")]
    lists.append(Interleaver(seed=1).merge(PAIR, A, B, "s"))
    assert len({tuple(merged.teams) for merged in lists}) == 3


def test_without_a_key_a_seed_makes_a_run_repeatable() -> None:
    one, other = Interleaver(seed=7), Interleaver(seed=7)
    lists = [one.merge(PAIR, A, B) for _ in range(20)]
    assert lists == [other.merge(PAIR, A, B) for _ in range(20)]
    assert len({tuple(merged.teams) for merged in lists}) > 1


def test_without_key_and_seed_lists_are_random() -> None:
    merge = Interleaver(length=1).merge
    first = [merge(PAIR, ["x"], ["y"]).docs[0] for _ in range(200)]
    # A fair coin 200 times: all alike once in 2^199.
    assert set(first) == {"x", "y"}


def test_a_ranker_alone_is_shown_unchanged() -> None:
    merged = Interleaver(length=3).merge(Draw("ltr", "ltr", 17), A, [])
    assert merged == Merged(["d0", "d1", "d2"], [None, None, None], None)


def test_short_rankings_give_short_lists() -> None:
    assert Interleaver().merge(PAIR, [], []) == Merged([], [])
    assert Interleaver().merge(PAIR, ["x"], []) == Merged(["x"], [None])


def test_probabilistic_interleaving_gives_chances() -> None:
    merged = Interleaver("probabilistic", length=3).merge(PAIR, ["x", "y"], ["y", "x", "z"], "s")
    assert merged.chances == chances(["x", "y"], ["y", "x", "z"], merged.docs)
    assert [chance is None for chance in merged.chances] == [False, False, True]
    assert Interleaver().merge(PAIR, ["x"], ["y"]).chances is None


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InterleavingError) as refused:
        Interleaver("team-draft")
    assert str(refused.value) == (
        "unknown interleaving method 'team-draft'; did you mean 'team_draft'?"
    )
    with pytest.raises(InterleavingError, match=r"'x'; there are balanced, .*team_draft\.$"):
        Interleaver("x")


@pytest.mark.parametrize(("method", "shown"), [(None, "nothing"), (["x"], "a list of 1")])
def test_a_method_that_is_no_name_is_refused(method: Any, shown: str) -> None:
    with pytest.raises(InterleavingError, match=rf"^unknown interleaving method {shown}; there"):
        Interleaver(method)


@pytest.mark.parametrize(
    ("method", "length"), [("team_draft", -1), ("optimised", 11), ("team_draft", 2.5)]
)
def test_an_invalid_length_is_refused_by_the_constructor(method: str, length: int) -> None:
    with pytest.raises(InterleavingError, match=rf"found {length}"):
        Interleaver(method, length)


def test_a_missing_solver_is_refused_by_the_constructor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(InterleavingError, match=r"^optimised interleaving needs scipy; install"):
        Interleaver("optimised")
    Interleaver("team_draft")


@pytest.mark.parametrize("draw", [PAIR, Draw("ltr", "bm25"), Draw("ltr", "ltr")])
@pytest.mark.parametrize(
    ("ranking", "key", "sentence"),
    [
        ([{"id": 1}], "s", "list_a must have hashable document ids (found dict at rank 0)."),
        (["x", ("y", [])], "s",
         "list_a must have hashable document ids (found tuple at rank 1)."),
        (None, "s", "list_a must be a sequence of document ids, such as a list (found NoneType)."),
        (iter(["x"]), "s",
         "list_a must be a sequence of document ids, such as a list (found list_iterator)."),
        ({"x": 1}, "s", "list_a must be a sequence of document ids, such as a list (found dict)."),
        (MappingProxyType({}), "s",
         "list_a must be a sequence of document ids, such as a list (found mappingproxy)."),
        (list, "s", "list_a must be a sequence of document ids, such as a list (found type)."),
        ({"x"}, "s", "list_a must be a sequence of document ids, such as a list (found set)."),
        (["x"], 5, "sticky_key must be a string, or None (found int)."),
        (["x"], b"5", "sticky_key must be a string, or None (found bytes)."),
    ],
)  # fmt: skip
def test_a_wrong_type_is_refused_whatever_is_served(
    draw: Draw, ranking: Any, key: Any, sentence: str
) -> None:
    with pytest.raises(InterleavingError) as refused:
        Interleaver().merge(draw, ranking, ["x"], sticky_key=key)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("draw", [PAIR, Draw("ltr", "ltr")])
def test_a_ranking_may_be_any_sequence(draw: Draw) -> None:
    assert Interleaver(length=2).merge(draw, deque("xyz"), deque("xyz")).docs == ["x", "y"]


@pytest.mark.parametrize("draw", [PAIR, Draw("ltr", "bm25")])
def test_a_refused_list_has_the_callers_name(draw: Draw) -> None:
    with pytest.raises(InterleavingError, match=r"^list_a must have each document once"):
        Interleaver().merge(draw, ["y", "y"], ["x"])


def test_lists_that_cannot_be_interleaved_are_refused() -> None:
    with pytest.raises(InterleavingError, match="list_b must have each document once"):
        Interleaver().merge(PAIR, ["x"], ["y", "y"])
