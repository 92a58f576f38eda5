"""The checks that every interleaving method and credit function must pass, also a third party's.

A check raises AssertionError. With `pytest.register_assert_rewrite("streamduel.testing")` in your
conftest.py, pytest shows the values that differ. A test runs each check:

    from streamduel.testing.interleaving import METHOD_CHECKS, MethodUnderTest

    @pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
    def test_my_method(check):
        check(MethodUnderTest(my_method.interleave))

The method must be importable: a check starts another process.

>>> from streamduel.interleaving import credit
>>> for check in CREDIT_CHECKS:
...     check(CreditUnderTest(credit.click_count))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any, Final

from streamduel.errors import InterleavingError
from streamduel.interleaving import Interleave, Interleaved, RandomBits
from streamduel.interleaving.credit import Click, Credit, Shown, on_ranks
from streamduel.records import Interleaving, RankClick
from streamduel.testing.interleaving_work import ORDERS, operations
from streamduel.testing.other_process import in_another_process

Draw = Callable[[RandomBits], Interleaved[Any]]

PAIRS: Final[dict[str, tuple[list[int], list[int]]]] = {
    "identical": ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
    "reversed": ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1]),
    "shifted": ([1, 2, 3, 4, 5], [2, 3, 4, 5, 1]),
    "disjoint": ([1, 2, 3, 4], [5, 6, 7, 8]),
    "one inside the other": ([1, 2, 3, 4, 5, 6], [4, 2]),
    "one at the end of the other": ([5, 6], [1, 2, 3, 4, 5, 6]),
    "partly the same": ([1, 2, 3, 4], [3, 5, 1, 6]),
    "one short": ([1], [2, 3, 4, 5]),
    "one short and the same": ([1], [1, 2, 3]),
    "one empty": ([], [1, 2, 3]),
    "the other empty": ([1, 2, 3], []),
    "both empty": ([], []),
}
"""Pairs of rankings with the special cases of interleaving."""


@dataclass(frozen=True)
class MethodUnderTest:
    """An interleaving method for two rankers.

    Attributes:
        interleave: the method.
        prepare: from two rankings and a length to a function that draws lists, for methods with a
            solution that many draws share.
        max_length: the longest list that the method allows; None: any length.
        unbiased: whether each rank is equally likely to be of either team.
        keeps_order: whether each document shown is the topmost of either ranking that is not above
            it; False for a method that draws documents.
    """

    interleave: Interleave
    prepare: Callable[[Sequence[Any], Sequence[Any], int], Draw] | None = None
    max_length: int | None = None
    unbiased: bool = True
    keeps_order: bool = True

    def drawing(self, list_a: Sequence[Any], list_b: Sequence[Any], length: int) -> Draw:
        """A function that draws lists of the same two rankings."""
        if self.prepare is not None:
            return self.prepare(list_a, list_b, length)
        return lambda rng: self.interleave(list_a, list_b, length, rng)

    def at_most(self, length: int) -> int:
        """The length, or the longest that the method allows."""
        return length if self.max_length is None else min(length, self.max_length)


def _assert_complete(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, shown: Interleaved[Any]
) -> None:
    """All documents that fit, each once, each with a team that has it."""
    docs, teams = shown
    assert len(docs) == len(teams) == min(length, len({*list_a, *list_b})), shown
    assert len(set(docs)) == len(docs), shown
    sources = {"a": list_a, "b": list_b, None: [*list_a, *list_b]}
    for document, team in zip(docs, teams, strict=True):
        assert team in sources, shown
        assert document in sources[team], shown


def check_lists_are_complete(method: MethodUnderTest) -> None:
    """A list has all documents that fit, each once, and only teams that have the document."""
    for list_a, list_b in PAIRS.values():
        for length in range(method.at_most(10) + 1):  # also longer than both rankings together
            draw = method.drawing(list_a, list_b, length)
            for seed in range(10):
                _assert_complete(list_a, list_b, length, draw(random.Random(seed)))


def check_lists_of_random_rankings_are_complete(method: MethodUnderTest) -> None:
    """`check_lists_are_complete` with 200 random pairs of rankings."""
    rng = random.Random(1)
    for _ in range(200):
        list_a, list_b = (rng.sample(range(10), rng.randint(0, 7)) for _ in range(2))
        length = method.at_most(rng.randint(0, 10))
        shown = method.interleave(list_a, list_b, length, random.Random(rng.getrandbits(32)))
        _assert_complete(list_a, list_b, length, shown)


def check_documents_keep_the_order_of_the_rankings(method: MethodUnderTest) -> None:
    """Each document is the topmost of either ranking that is not above it, if the method says so.

    So the first one is the best of either ranking, and identical rankings are shown unchanged.
    """
    if not method.keeps_order:
        return
    for list_a, list_b in PAIRS.values():
        for length in map(method.at_most, (1, 3, 6)):
            draw = method.drawing(list_a, list_b, length)
            for seed in range(10):
                docs = draw(random.Random(seed)).docs
                for rank, document in enumerate(docs):
                    above = docs[:rank]
                    tops = [next((x for x in y if x not in above), None) for y in (list_a, list_b)]
                    assert document in tops, (list_a, list_b, docs)


def check_better_documents_are_shown_higher(method: MethodUnderTest) -> None:
    """In 2,000 impressions of identical rankings, the mean rank shown rises with the true rank.

    A document that is not shown counts as just below the list. The seed is fixed; a sum may be
    larger than the next one by 4 standard errors, at most length / 2 * sqrt(2 * 2000) each.
    """
    ranking = PAIRS["identical"][0]
    for length in map(method.at_most, (3, len(ranking))):
        rng = random.Random(5)
        draw = method.drawing(ranking, ranking, length)
        totals = dict.fromkeys(ranking, 0)
        for _ in range(2000):
            shown_at = {document: rank for rank, document in enumerate(draw(rng).docs)}
            for document in ranking:
                totals[document] += shown_at.get(document, length)
        sums, slack = [*totals.values()], 2 * length * sqrt(2 * 2000)
        assert all(x <= y + slack for x, y in pairwise(sums)), (length, totals)
        assert sums[0] < sums[-1], (length, totals)


def check_documents_of_one_side_alone_have_no_team(method: MethodUnderTest) -> None:
    """Where one ranking is empty, all documents are of no team."""
    length = method.at_most(5)
    for docs in ([], [7, 8, 9]):
        for seed in range(20):
            for list_a, list_b in ((docs, []), ([], docs)):
                shown = method.interleave(list_a, list_b, length, random.Random(seed))
                _assert_complete(list_a, list_b, length, shown)
                assert shown.teams == [None] * len(shown.docs), shown


def check_each_rank_is_equally_likely_of_either_team(method: MethodUnderTest) -> None:
    """In 2,000 impressions no rank, and no list, favours a side by 5 standard deviations.

    The leads of a rank are independent, each -1, 0 or 1, of mean 0. Given that n of them are not 0,
    their sum has variance n. The lead of a whole list has mean 0, too, and its square estimates its
    variance. Of some 70 such sums of a method, one is beyond 5 standard deviations by chance with
    probability 70 · 5.7e-7 < 0.00005; the seed is fixed. Biased methods are not checked.
    """
    if not method.unbiased:
        return
    for list_a, list_b in PAIRS.values():
        rng = random.Random(2026)
        draw = method.drawing(list_a, list_b, method.at_most(6))
        leads = [[(team == "a") - (team == "b") for team in draw(rng).teams] for _ in range(2000)]
        for at_rank in zip(*leads, strict=True):
            assert abs(sum(at_rank)) <= 5 * sqrt(sum(map(abs, at_rank))), (list_a, list_b)
        picks = [sum(lead) for lead in leads]
        assert abs(sum(picks)) <= 5 * sqrt(sum(each * each for each in picks)), (list_a, list_b)


def check_sides_are_treated_alike(method: MethodUnderTest) -> None:
    """With the sides exchanged in half of the impressions, neither side has more documents.

    The leads of side a have the mean 0 together, and at most the variance measured around 0.
    """
    for shift in (0, 1, 3):
        up = [1, 2, 3, 4, 5, 6]
        down = up[shift:] + up[:shift]
        rng = random.Random(11)
        leads = []
        for list_a, list_b in ((up, down), (down, up)):
            draw = method.drawing(list_a, list_b, method.at_most(4))
            for _ in range(1000):
                teams = draw(rng).teams
                leads.append(teams.count("a") - teams.count("b"))
        assert abs(sum(leads)) <= 5 * sqrt(sum(lead * lead for lead in leads)), shift


def check_the_result_depends_on_the_seed_alone(method: MethodUnderTest) -> None:
    """Equal generators give equal lists, with another hash seed too; different seeds do not."""
    length = method.at_most(10)
    here = _courses(method.interleave, length)
    assert here == _courses(method.interleave, length)
    assert here == in_another_process("the method", _courses, method.interleave, length)
    up, down = _texts()
    shown = {tuple(method.interleave(up, down, length, random.Random(n)).docs) for n in range(50)}
    assert len(shown) > 1


def _courses(interleave: Interleave, length: int) -> list[Any]:
    """For each of five seeds five lists."""
    return [
        [[*map(list, interleave(*_texts(), length, rng))] for _ in range(5)]
        for rng in map(random.Random, range(5))
    ]


def _texts() -> tuple[list[str], list[str]]:
    """Two rankings of ids whose hashes depend on the process."""
    return [f"doc-{n}" for n in range(12)], [f"doc-{n}" for n in range(12, 0, -1)]


def check_the_arguments_are_not_changed(method: MethodUnderTest) -> None:
    """Neither the method nor changes of its result change the rankings."""
    list_a, list_b = [1, 2, 3], [3, 1, 4]
    shown = method.interleave(list_a, list_b, method.at_most(4), random.Random(1))
    shown.docs.append(9)
    shown.teams.append(None)
    assert (list_a, list_b) == ([1, 2, 3], [3, 1, 4])


def check_any_hashable_id_is_allowed(method: MethodUnderTest) -> None:
    """Rankings are any sequences of any hashable ids."""
    list_a = ("d", ("q", 1), None, 2.5)
    list_b = (None, frozenset({1}), "d", b"d")
    length = method.at_most(9)
    for seed in range(20):
        shown = method.interleave(list_a, list_b, length, random.Random(seed))
        _assert_complete(list_a, list_b, length, shown)


def check_invalid_arguments_are_refused(method: MethodUnderTest) -> None:
    """A repeated document and an invalid length raise InterleavingError, before a bit is drawn."""
    rng, few = random.Random(1), method.at_most(3)
    lengths: list[Any] = [-1, 2.5, "3", None]
    cases: list[tuple[list[str], list[str], Any, str]] = [
        (["x", "y", "x"], ["z"], few, "must have each document once (found 'x' at ranks 0 and 2)."),
        (["z"], ["x", "y", "x"], few, "must have each document once (found 'x' at ranks 0 and 2)."),
        *((["x"], ["z"], length, f"(found {length!r}).") for length in lengths),
    ]
    for list_a, list_b, length, sentence in cases:
        try:
            method.interleave(list_a, list_b, length, rng)
        except InterleavingError as error:
            assert str(error).endswith(sentence), error  # noqa: PT017 - without pytest
        else:
            raise AssertionError(f"no InterleavingError for {list_a}, {list_b}, {length!r}")
    assert rng.getstate() == random.Random(1).getstate()


def check_the_work_is_linear(method: MethodUnderTest) -> None:
    """Twice as many documents need about twice as many operations; quadratic work: four times."""
    for order in ORDERS:
        twice, once = (
            operations(method.interleave, order, n, method.max_length or 2 * n)
            for n in (10_000, 5_000)
        )
        assert 0 < twice < 2.2 * once + 5_000, (order, once, twice)


METHOD_CHECKS: Final[list[Callable[[MethodUnderTest], None]]] = [
    check for name, check in globals().items() if name.startswith("check_")
]
"""All checks of an interleaving method."""


@dataclass(frozen=True)
class CreditUnderTest:
    """A credit function.

    Attributes:
        credit: the function, with its parameters bound.
        uses_order: whether the order of clicks without times matters.
    """

    credit: Credit
    uses_order: bool = False


def _impressions(timed: bool = False) -> Iterator[tuple[Shown, list[Click]]]:
    """150 random lists of up to eight ranks, with or without chances, and up to six clicks."""
    rng = random.Random(7)
    for _ in range(150):
        teams = [rng.choice(["a", "b", None]) for _ in range(rng.randint(1, 8))]
        chances = None
        if rng.random() < 0.5:  # in 16ths, so that one minus it is exact
            chances = [None if team is None else rng.randint(0, 16) / 16 for team in teams]
        n = rng.randint(0, 6)
        times: Sequence[int | None] = rng.sample(range(n), n) if timed else [None] * n
        yield (
            Shown(teams, chances),
            [Click(rng.randrange(len(teams)), rng.choice(["click", "cart"]), ts) for ts in times],
        )


def _exchanged(shown: Shown) -> Shown:
    """The list with the sides exchanged."""
    teams = [{"a": "b", "b": "a"}.get(team or "") for team in shown.teams]
    if shown.chances is None:
        return Shown(teams)
    return Shown(teams, [None if each is None else 1 - each for each in shown.chances])


def check_the_outcome_is_a_win_or_a_tie(tested: CreditUnderTest) -> None:
    """The outcome is 1, 0 or 0.5, is the same for equal arguments, and leaves them unchanged."""
    for impression in _impressions():
        before = deepcopy(impression)
        assert tested.credit(*impression) in {0.0, 0.5, 1.0}, impression
        assert tested.credit(*impression) == tested.credit(*before), impression
        assert impression == before


def check_exchanging_the_sides_exchanges_the_outcome(tested: CreditUnderTest) -> None:
    """A win of a becomes a win of b; a tie stays a tie."""
    for shown, clicks in _impressions():
        outcome = tested.credit(shown, clicks)
        assert tested.credit(_exchanged(shown), clicks) == 1 - outcome, (shown, clicks)


def check_no_clicks_are_a_tie(tested: CreditUnderTest) -> None:
    """Without clicks there is no winner."""
    for shown in (Shown([]), Shown(["a", "b", "a"]), Shown(["a", "a"], [0.9, None])):
        assert tested.credit(shown, []) == 0.5, shown


def check_clicks_on_ranks_of_no_team_change_nothing(tested: CreditUnderTest) -> None:
    """A click on a rank of no team counts for neither side, wherever it is in the order."""
    for (teams, chances), clicks in _impressions():
        longer = Shown([*teams, None], None if chances is None else [*chances, None])
        for place in range(len(clicks) + 1):
            more = [*clicks[:place], Click(len(teams)), *clicks[place:]]
            assert tested.credit(longer, more) == tested.credit(longer, clicks), (longer, more)
        assert tested.credit(longer, on_ranks([len(teams)])) == 0.5, longer


def check_the_only_side_with_clicks_wins(tested: CreditUnderTest) -> None:
    """A side wins if all clicks are on its documents."""
    for ranks in ([0], [2], [0, 2], [2, 2, 0]):
        for chances in (None, [1.0, 0.0, 1.0], [0.9, 0.1, 0.6]):
            shown = Shown(["a", "b", "a"], chances)
            assert tested.credit(shown, on_ranks(ranks)) == 1.0, (shown, ranks)
            assert tested.credit(_exchanged(shown), on_ranks(ranks)) == 0.0, (shown, ranks)


def check_the_order_of_clicks_does_not_matter(tested: CreditUnderTest) -> None:
    """With distinct times; without times it matters only to functions that have `uses_order`."""
    rng = random.Random(3)
    untimed = () if tested.uses_order else _impressions()
    for shown, clicks in (*_impressions(timed=True), *untimed):
        mixed = rng.sample(clicks, len(clicks))
        assert tested.credit(shown, mixed) == tested.credit(shown, clicks), (shown, clicks, mixed)


def check_a_rank_outside_the_list_is_an_index_error(tested: CreditUnderTest) -> None:
    """A click below or above the list raises IndexError, also among valid ones."""
    for ranks in ([-1], [0, -2], [2], [0, 2], [2, 0], [0, 0, 1, 2, 0], [2**53]):
        for shown in (Shown(["a", "b"]), Shown(["a", "b"], [0.8, 0.3])):
            try:
                tested.credit(shown, on_ranks(ranks))
            except IndexError:
                continue
            raise AssertionError(f"no IndexError for {shown}, {ranks}")


def check_records_are_credited_directly(tested: CreditUnderTest) -> None:
    """An `Interleaving` record and its `RankClick`s serve as list and clicks."""
    for (teams, chances), clicks in _impressions():
        record: Any = Interleaving("1", "search", "x", "y", list(teams), [], chances)  # type: ignore[arg-type]
        sent = [RankClick(click.rank, click.ts, click.action) for click in clicks]
        assert tested.credit(record, sent) == tested.credit(Shown(teams, chances), clicks), record


CREDIT_CHECKS: Final[list[Callable[[CreditUnderTest], None]]] = [
    check
    for name, check in globals().items()
    if name.startswith("check_") and check not in METHOD_CHECKS
]
"""All checks of a credit function."""
