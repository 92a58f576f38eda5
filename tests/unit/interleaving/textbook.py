"""Slow, plain versions of the methods: exact distributions from the papers' definitions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

from hypothesis import settings
from scipy.stats import chi2

Shown = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The documents and their teams."""

Distribution = dict[Shown, Fraction]

examples = settings(max_examples=100, deadline=None, derandomize=True)
"""For tests over generated rankings."""


def team_draft(list_a: Sequence[Any], list_b: Sequence[Any], length: int) -> Distribution:
    """Radlinski, Kurup and Joachims 2008, Algorithm 2, cut off at a length.

    The smaller team picks; of equal ones, a coin says which. The list ends with a ranking.
    """
    found: Distribution = defaultdict(Fraction)

    def go_on(docs: tuple[Any, ...], teams: tuple[Any, ...], chance: Fraction) -> None:
        left = {
            "a": [each for each in list_a if each not in docs],
            "b": [each for each in list_b if each not in docs],
        }
        if len(docs) == length or not left["a"] or not left["b"]:
            found[docs, teams] += chance
            return
        lead = teams.count("a") - teams.count("b")
        pickers = "ab" if lead == 0 else "b" if lead > 0 else "a"
        for team in pickers:
            go_on((*docs, left[team][0]), (*teams, team), chance / len(pickers))

    go_on((), (), Fraction(1))
    return found


def multileave(rankings: Sequence[Sequence[Any]], length: int) -> Distribution:
    """Schuth et al. 2014: any of the smallest teams picks. No ranking may run out."""
    found: Distribution = defaultdict(Fraction)

    def go_on(docs: tuple[Any, ...], teams: tuple[Any, ...], chance: Fraction) -> None:
        if len(docs) == length:
            found[docs, teams] += chance
            return
        sizes = [teams.count(number) for number in range(len(rankings))]
        pickers = [number for number, size in enumerate(sizes) if size == min(sizes)]
        for number in pickers:
            pick = next(each for each in rankings[number] if each not in docs)
            go_on((*docs, pick), (*teams, number), chance / len(pickers))

    go_on((), (), Fraction(1))
    return found


def balanced(list_a: Sequence[Any], list_b: Sequence[Any], a_first: bool) -> list[Any]:
    """Radlinski, Kurup and Joachims 2008, Algorithm 1: ends where a pointer leaves its ranking."""
    shown: list[Any] = []
    k_a = k_b = 0
    while k_a < len(list_a) and k_b < len(list_b):
        if k_a < k_b or (k_a == k_b and a_first):
            if list_a[k_a] not in shown:
                shown.append(list_a[k_a])
            k_a += 1
        else:
            if list_b[k_b] not in shown:
                shown.append(list_b[k_b])
            k_b += 1
    return shown


def softmax(ranking: Sequence[Any], docs: Sequence[Any]) -> dict[Any, Fraction]:
    """What a ranking draws next: 1 / r³ by its own ranks, normalised over what is left."""
    weights = {
        document: Fraction(1, rank**3)
        for rank, document in enumerate(ranking, start=1)
        if document not in docs
    }
    return {document: weight / sum(weights.values()) for document, weight in weights.items()}


def probabilistic(list_a: Sequence[Any], list_b: Sequence[Any], length: int) -> Distribution:
    """Hofmann, Whiteson and de Rijke 2011; no teams below the length of the shorter ranking."""
    fair = min(len(list_a), len(list_b))
    found: Distribution = defaultdict(Fraction)

    def go_on(docs: tuple[Any, ...], teams: tuple[Any, ...], chance: Fraction) -> None:
        drawn = {"a": softmax(list_a, docs), "b": softmax(list_b, docs)}
        sides = [side for side in "ab" if drawn[side]]
        if len(docs) == length or not sides:
            found[docs, teams] += chance
            return
        for side in sides:
            for document, share in drawn[side].items():
                team = side if len(docs) < fair else None
                go_on((*docs, document), (*teams, team), chance * share / len(sides))

    go_on((), (), Fraction(1))
    return found


def marginal(
    list_a: Sequence[Any], list_b: Sequence[Any], docs: Sequence[Any], ranks: Sequence[int]
) -> Fraction:
    """Hofmann, Whiteson and de Rijke 2011: the credit of all assignments, one after the other."""
    total = weighed = Fraction(0)
    for teams in product("ab", repeat=len(docs)):
        chance = Fraction(1)
        credited: list[str | None] = list(teams)
        for rank, team in enumerate(teams):
            if rank < min(len(list_a), len(list_b)):
                drawn = softmax(list_a if team == "a" else list_b, docs[:rank])
                chance *= drawn.get(docs[rank], Fraction(0))
            else:  # a ranking may have run out, and the click counts for neither
                credited[rank] = None
                chance /= 2  # both values of this team stand for the same
        total += chance
        weighed += chance * Fraction(click_count(credited, ranks))
    return weighed / total


def allowed(list_a: Sequence[Any], list_b: Sequence[Any], ranks: int) -> set[tuple[Any, ...]]:
    """Radlinski and Craswell 2013, equation 5, by trying all lists of these documents."""
    unions = {
        frozenset({*list_a[:i], *list_b[:j]})
        for i in range(len(list_a) + 1)
        for j in range(len(list_b) + 1)
    }
    return {
        docs
        for docs in permutations({*list_a, *list_b}, ranks)
        if all(frozenset(docs[:k]) in unions for k in range(ranks + 1))
    }


def click_count(teams: Sequence[str | None], ranks: Sequence[int]) -> float:
    """Radlinski, Kurup and Joachims 2008, section 3.2: who has more clicks; 0.5 is a tie."""
    clicked = [teams[rank] for rank in ranks]
    ours, theirs = clicked.count("a"), clicked.count("b")
    return 0.5 if ours == theirs else float(ours > theirs)


def check_sample(draw: Callable[[], Shown], expected: Distribution, n: int) -> None:
    """Compare n lists with their exact distribution, by Pearson's chi-square.

    Where it is right, the statistic is above the bound with probability 1e-6. Lists that are
    expected fewer than 5 times are counted together, where the statistic would not have that law.
    """
    seen = Counter(draw() for _ in range(n))
    assert seen.keys() <= expected.keys()
    cells = [(seen[shown], float(chance * n)) for shown, chance in expected.items()]
    often = [cell for cell in cells if cell[1] >= 5]
    rare = [cell for cell in cells if cell[1] < 5]
    if sum(mean for _, mean in rare) >= 5:
        often.append((sum(count for count, _ in rare), sum(mean for _, mean in rare)))
    assert len(often) > 1
    statistic = sum((count - mean) ** 2 / mean for count, mean in often)
    assert statistic < chi2.isf(1e-6, len(often) - 1)


def mean(values: Iterable[tuple[Fraction, float]]) -> float:
    """The mean of values with their probabilities."""
    return sum(float(chance) * value for chance, value in values)
