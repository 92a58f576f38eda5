"""Every credit function keeps every promise that credit functions make."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.interleaving import credit
from streamduel.interleaving.credit import CREDITS, Click, Credit, Shown, create, on_ranks
from streamduel.records import Interleaving, RankClick

READY: dict[str, Credit] = {
    "click_count": create("click_count"),
    "any_click": create("any_click"),
    "first_click": create("first_click"),
    "last_click": create("last_click"),
    "weighted": create("weighted", weights={"click": 0.1, "cart": 0.3}),
    "weighted, one alone": create("weighted", weights={"click": 1}),
    "position_debiased": create("position_debiased", propensities=[1, 0.7, 0.1]),
    "position_debiased, power law": create("position_debiased", eta=0.7),
    "probabilistic": create("probabilistic"),
}
BY_ORDER = {"first_click", "last_click"}
"""Those that go by the order of the clicks where there is no time."""

every_credit = pytest.mark.parametrize("name", READY)
examples = settings(max_examples=150, deadline=None, derandomize=True)

SIDES = {"a": "b", "b": "a", None: None}

# In 16ths, so that one minus it is exact.
chances = st.integers(0, 16).map(lambda sixteenths: sixteenths / 16)


@st.composite
def impressions(draw: st.DrawFn, timed: bool = False) -> tuple[Shown, list[Click]]:
    """Lists of up to eight ranks, with or without chances, and up to six clicks."""
    teams = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=8))
    known = draw(st.booleans())
    likely = [None if team is None else draw(chances) for team in teams] if known else None
    ranks = draw(st.lists(st.integers(0, len(teams) - 1), max_size=6))
    times = draw(st.permutations(range(len(ranks)))) if timed else [None] * len(ranks)
    actions = st.sampled_from(["click", "cart"])
    clicks = [Click(rank, draw(actions), ts) for rank, ts in zip(ranks, times, strict=True)]
    return Shown(teams, likely), clicks


def swapped(shown: Shown) -> Shown:
    """The same list with the sides exchanged."""
    teams = [SIDES[team] for team in shown.teams]
    if shown.chances is None:
        return Shown(teams)
    return Shown(teams, [None if each is None else 1 - each for each in shown.chances])


def test_every_credit_function_is_tried() -> None:
    assert {name.partition(",")[0] for name in READY} == CREDITS.keys()


@pytest.mark.parametrize("name", CREDITS)
def test_a_credit_function_describes_itself(name: str) -> None:
    text = getattr(credit, name).__doc__
    for part in ("Args:", "Returns:", "Raises:", "IndexError", "A tie:", ">>>", "Source:"):
        assert part in text
    assert CREDITS[name].summary
    assert CREDITS[name].source


@every_credit
def test_the_outcome_is_a_win_or_a_tie_and_nothing_else_happens(name: str) -> None:
    @examples
    @given(impressions())
    def holds(impression: tuple[Shown, list[Click]]) -> None:
        before = deepcopy(impression)
        assert READY[name](*impression) in {0.0, 0.5, 1.0}
        assert READY[name](*impression) == READY[name](*before)
        assert impression == before

    holds()


@every_credit
def test_sides_are_treated_alike(name: str) -> None:
    @examples
    @given(impressions())
    def holds(impression: tuple[Shown, list[Click]]) -> None:
        shown, clicks = impression
        assert READY[name](swapped(shown), clicks) == 1 - READY[name](shown, clicks)

    holds()


@every_credit
def test_without_clicks_it_is_a_tie(name: str) -> None:
    for shown in (Shown([]), Shown(["a", "b", "a"]), Shown(["a", "a"], [0.9, None])):
        assert READY[name](shown, []) == 0.5


@every_credit
def test_a_click_on_nobodys_document_is_nobodys(name: str) -> None:
    @examples
    @given(impressions(), st.integers(0, 6))
    def holds(impression: tuple[Shown, list[Click]], place: int) -> None:
        (teams, likely), clicks = impression
        longer = Shown([*teams, None], None if likely is None else [*likely, None])
        more = [*clicks[:place], Click(len(teams)), *clicks[place:]]
        assert READY[name](longer, more) == READY[name](longer, clicks)
        assert READY[name](longer, on_ranks([len(teams)])) == 0.5

    holds()


@every_credit
@pytest.mark.parametrize("ranks", [[0], [2], [0, 2], [2, 2, 0]])
def test_whose_documents_alone_are_clicked_wins(name: str, ranks: list[int]) -> None:
    for likely in (None, [1.0, 0.0, 1.0], [0.9, 0.1, 0.6]):
        shown = Shown(["a", "b", "a"], likely)
        assert READY[name](shown, on_ranks(ranks)) == 1.0
        assert READY[name](swapped(shown), on_ranks(ranks)) == 0.0


@every_credit
def test_with_their_times_the_clicks_may_come_in_any_order(name: str) -> None:
    @examples
    @given(impressions(timed=True), st.randoms(use_true_random=False))
    def holds(impression: tuple[Shown, list[Click]], order: Any) -> None:
        shown, clicks = impression
        mixed = order.sample(clicks, len(clicks))
        assert READY[name](shown, mixed) == READY[name](shown, clicks)

    holds()


@pytest.mark.parametrize("name", [name for name in READY if name not in BY_ORDER])
def test_most_do_not_care_for_the_order(name: str) -> None:
    @examples
    @given(impressions(), st.randoms(use_true_random=False))
    def holds(impression: tuple[Shown, list[Click]], order: Any) -> None:
        shown, clicks = impression
        mixed = order.sample(clicks, len(clicks))
        assert READY[name](shown, mixed) == READY[name](shown, clicks)

    holds()


@every_credit
@pytest.mark.parametrize("ranks", [[2], [0, 2], [2, 0], [0, 0, 1, 2, 0], [2**53]])
def test_a_rank_outside_the_list_is_an_error(name: str, ranks: list[int]) -> None:
    for shown in (Shown(["a", "b"]), Shown(["a", "b"], [0.8, 0.3])):
        with pytest.raises(IndexError):
            READY[name](shown, on_ranks(ranks))


@every_credit
def test_records_are_credited_as_they_are(name: str) -> None:
    @examples
    @given(impressions())
    def holds(impression: tuple[Shown, list[Click]]) -> None:
        (teams, likely), clicks = impression
        record: Any = Interleaving("1", "search", "x", "y", list(teams), [], likely)  # type: ignore[arg-type]
        sent = [RankClick(click.rank, click.ts, click.action) for click in clicks]
        assert READY[name](record, sent) == READY[name](*impression)

    holds()
