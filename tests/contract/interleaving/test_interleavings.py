"""Every interleaving method keeps every promise that interleaving methods make."""

from __future__ import annotations

import importlib
import os
import pkgutil
import random
import subprocess
import sys
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import streamduel
from streamduel import interleaving
from streamduel.errors import InterleavingError
from streamduel.interleaving import INTERLEAVINGS, MULTILEAVINGS
from tests.contract.interleaving.contestants import (
    BIASED,
    LONGEST,
    METHODS,
    PAIRS,
    lengths,
    prepared,
    rankings,
    seeds,
)

every_method = pytest.mark.parametrize("name", METHODS)
every_pair = pytest.mark.parametrize(("list_a", "list_b"), PAIRS.values(), ids=PAIRS)


def test_every_file_with_a_method_is_registered_under_its_name() -> None:
    found: dict[str, Any] = {}
    for file in pkgutil.iter_modules(interleaving.__path__):
        module = importlib.import_module(f"{interleaving.__name__}.{file.name}")
        for verb in ("interleave", "multileave"):
            method = vars(module).get(verb)
            if method is not None and method.__module__ == module.__name__:
                found[file.name] = method
    assert found == {**INTERLEAVINGS, **MULTILEAVINGS}
    assert len(found) >= 5


@every_method
def test_a_method_describes_itself(name: str) -> None:
    text = {**INTERLEAVINGS, **MULTILEAVINGS}[name].__doc__
    assert text is not None
    for part in ("Args:", "Raises:", ">>>", "Source:"):
        assert part in text


def complete(list_a: list[Any], list_b: list[Any], length: int, shown: Any) -> None:
    """As many documents as there are and fit, each once, each with a team that can be its."""
    docs, teams = shown
    assert len(docs) == len(teams) == min(length, len({*list_a, *list_b}))
    assert len(set(docs)) == len(docs)
    for document, team in zip(docs, teams, strict=True):
        assert team in {"a", "b", None}
        assert document in {"a": list_a, "b": list_b, None: [*list_a, *list_b]}[team]


@every_method
@every_pair
def test_a_list_is_complete(name: str, list_a: list[int], list_b: list[int]) -> None:
    for length in range(11):  # also longer than both rankings together
        draw = prepared(name, list_a, list_b, length)
        for seed in range(10):
            complete(list_a, list_b, length, draw(random.Random(seed)))


@every_method
def test_any_list_is_complete(name: str) -> None:
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(list_a=rankings, list_b=rankings, length=lengths, seed=seeds)
    def holds(list_a: list[int], list_b: list[int], length: int, seed: int) -> None:
        complete(list_a, list_b, length, METHODS[name](list_a, list_b, length, random.Random(seed)))

    holds()


@every_method
@pytest.mark.parametrize("docs", [[], [7, 8, 9]])
def test_what_only_one_side_has_is_nobodys(name: str, docs: list[int]) -> None:
    for seed in range(20):
        for list_a, list_b in ((docs, []), ([], docs)):
            shown = METHODS[name](list_a, list_b, 5, random.Random(seed))
            assert sorted(shown.docs) == docs
            assert shown.teams == [None] * len(docs)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in BIASED])
@every_pair
def test_each_rank_is_as_often_of_one_team_as_of_the_other(
    name: str, list_a: list[int], list_b: list[int]
) -> None:
    """In 2,000 impressions the leads of a rank are independent, each -1, 0 or 1, of mean 0.

    Given that n of them are not 0, their sum has variance n. The picks of a whole list lead by a
    number of mean 0, too, whose square is its variance. Of some 300 such sums in all, one is beyond
    5 standard deviations by chance with probability 300 · 5.7e-7 < 0.0002; the seed is fixed.
    """
    rng = random.Random(2026)
    draw = prepared(name, list_a, list_b, 6)
    leads = [[(team == "a") - (team == "b") for team in draw(rng).teams] for _ in range(2000)]
    for at_rank in zip(*leads, strict=True):
        assert abs(sum(at_rank)) <= 5 * sqrt(sum(map(abs, at_rank)))
    picks = [sum(lead) for lead in leads]
    assert abs(sum(picks)) <= 5 * sqrt(sum(each * each for each in picks))


@every_method
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_sides_are_treated_alike(name: str, shift: int) -> None:
    """Half the impressions with the sides exchanged: what a has too much, it has too little there.

    The leads of a have the mean 0 together, and at most the variance that is measured around 0.
    """
    up = [1, 2, 3, 4, 5, 6]
    down = up[shift:] + up[:shift]
    rng = random.Random(11)
    leads = []
    for list_a, list_b in ((up, down), (down, up)):
        draw = prepared(name, list_a, list_b, 4)
        for _ in range(1000):
            teams = draw(rng).teams
            leads.append(teams.count("a") - teams.count("b"))
    assert abs(sum(leads)) <= 5 * sqrt(sum(lead * lead for lead in leads))


@every_method
def test_the_seed_decides_and_nothing_else(name: str) -> None:
    up, down = list(range(12)), list(range(12, 0, -1))
    interleave = METHODS[name]
    for seed in range(5):
        first, second = random.Random(seed), random.Random(seed)
        for _ in range(5):
            assert interleave(up, down, 10, first) == interleave(up, down, 10, second)
    shown = {tuple(interleave(up, down, 10, random.Random(seed)).docs) for seed in range(50)}
    assert len(shown) > 1


def test_hash_order_leaves_no_trace() -> None:
    code = (
        "import random; from tests.contract.interleaving.contestants import METHODS;"
        "up = [f'doc-{n}' for n in range(9)]; down = up[3:] + ['x', 'y'] + up[:3];"
        "print([m(up, down, 10, random.Random(s)) for m in METHODS.values() for s in range(5)])"
    )
    root = Path(streamduel.__file__).parents[1]
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert "doc-8" in printed.pop()


@every_method
def test_the_arguments_stay_as_they_are(name: str) -> None:
    list_a, list_b = [1, 2, 3], [3, 1, 4]
    shown = METHODS[name](list_a, list_b, 4, random.Random(1))
    shown.docs.append(9)
    shown.teams.append(None)
    assert (list_a, list_b) == ([1, 2, 3], [3, 1, 4])


@every_method
def test_any_hashable_id_will_do(name: str) -> None:
    list_a = ("d", ("q", 1), None, 2.5)
    list_b = (None, frozenset({1}), "d", b"d")
    for seed in range(20):
        complete(
            list(list_a), list(list_b), 9, METHODS[name](list_a, list_b, 9, random.Random(seed))
        )


@every_method
def test_mistakes_are_named(name: str) -> None:
    interleave, rng = METHODS[name], random.Random(1)
    twice = r"must have each document once \(found 'x' at ranks 0 and 2\)\.$"
    for pair in ((["x", "y", "x"], ["z"]), (["z"], ["x", "y", "x"])):
        with pytest.raises(InterleavingError, match=twice):
            interleave(*pair, 3, rng)
    below = r"^the length of an interleaved list must be at least 0 \(found -1\)\.$"
    with pytest.raises(InterleavingError, match=below):
        interleave(["x"], ["z"], -1, rng)
    no_integers: list[Any] = [2.5, "3", None]
    for length in no_integers:
        other = rf"^the length of an interleaved list must be an integer \(found {length!r}\)\.$"
        with pytest.raises(InterleavingError, match=other):
            interleave(["x"], ["z"], length, rng)
    assert rng.getstate() == random.Random(1).getstate()
    assert issubclass(InterleavingError, ValueError)


class Work:
    """How often document ids were hashed or compared."""

    done = 0


class Document:
    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        Work.done += 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        Work.done += 1
        return isinstance(other, Document) and self.number == other.number


class Ranking(tuple[Document, ...]):
    """Counts what is read of it; a slice counts as much as it is long."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        Work.done += len(found) if isinstance(key, slice) else 1
        return found


def work(name: str, order: str, n: int) -> int:
    """What it takes to interleave two rankings of n documents."""
    documents = [Document(number) for number in range(2 * n)]
    up = documents[:n]
    down = {
        "identical": up,
        "reversed": up[::-1],
        "shifted": up[1:] + up[:1],
        "disjoint": documents[n:],
    }[order]
    Work.done = 0
    length = LONGEST.get(name, 2 * n)
    shown = METHODS[name](Ranking(up), Ranking(down), length, random.Random(3))
    done = Work.done
    assert len(shown.docs) == min(length, len({*up, *down}))
    return done


@every_method
@pytest.mark.parametrize("order", ["identical", "reversed", "shifted", "disjoint"])
def test_the_work_grows_as_the_rankings_do(name: str, order: str) -> None:
    # Twice as much for twice as many documents; if it grew with their square, four times.
    assert 0 < work(name, order, 10_000) < 2.2 * work(name, order, 5_000) + 5_000
