"""The checks of interleaving methods find faulty ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from streamduel.errors import InterleavingError
from streamduel.interleaving import Interleave, Interleaved, RandomBits, team_draft
from streamduel.interleaving.credit import Click, Shown, click_count
from streamduel.testing.interleaving import (
    CREDIT_CHECKS,
    METHOD_CHECKS,
    CreditUnderTest,
    MethodUnderTest,
    check_the_arguments_are_not_changed,
    check_the_result_depends_on_the_seed_alone,
)


def reversing(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Changes a ranking."""
    list_a.reverse()  # type: ignore[attr-defined]
    return Interleaved([], [])


def test_a_failed_check_shows_the_values_that_differ() -> None:
    with pytest.raises(AssertionError, match=r"\[3, 2, 1\]"):
        check_the_arguments_are_not_changed(MethodUnderTest(reversing))


def in_hash_order(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Its coin is a hash."""
    coin = random.Random(hash(list_a[0]) + rng.getrandbits(32))
    return team_draft.interleave(list_a, list_b, length, coin)


def of_one_seed(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Does not use its generator."""
    return team_draft.interleave(list_a, list_b, length, random.Random(1))


def random_each_time(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Uses a generator of its own."""
    return team_draft.interleave(list_a, list_b, length, random.SystemRandom())


@pytest.mark.parametrize("method", [in_hash_order, of_one_seed, random_each_time])
def test_a_result_that_depends_on_more_or_less_than_the_seed_is_found(method: Interleave) -> None:
    with pytest.raises(AssertionError, match=r"^assert"):
        check_the_result_depends_on_the_seed_alone(MethodUnderTest(method))


CHECKS: dict[str, Any] = {check.__name__: check for check in METHOD_CHECKS}
CREDIT: dict[str, Any] = {check.__name__: check for check in CREDIT_CHECKS}


def without_the_last(*given: Any) -> Interleaved[Any]:
    docs, teams = team_draft.interleave(*given)
    return Interleaved(docs[:-1], teams[:-1])


def twice_the_first(*given: Any) -> Interleaved[Any]:
    docs, teams = team_draft.interleave(*given)
    return Interleaved([*docs[:1], *docs[:-1]], [*teams[:1], *teams[:-1]])


def all_of_one_side(*given: Any) -> Interleaved[Any]:
    docs, _ = team_draft.interleave(*given)
    return Interleaved(docs, ["a"] * len(docs))


def of_texts(*given: Any) -> Interleaved[Any]:
    docs, teams = team_draft.interleave(*given)
    return Interleaved([f"{each}" for each in docs], teams)


def tolerating_all(*given: Any) -> Interleaved[Any]:
    try:
        return team_draft.interleave(*given)
    except InterleavingError:
        return Interleaved([], [])


def upside_down(*given: Any) -> Interleaved[Any]:
    docs, teams = team_draft.interleave(*given)
    return Interleaved(docs[::-1], teams[::-1])


def from_the_bottom(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    return team_draft.interleave(list_a[::-1], list_b[::-1], length, rng)


def from_the_middle(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    docs, teams = team_draft.interleave(list_a, list_b, len(list_a) + len(list_b), rng)
    start = rng.getrandbits(3) % max(1, len(docs) - length + 1)
    return Interleaved(docs[start : start + length], teams[start : start + length])


def with_the_upper_two_exchanged(*given: Any) -> Interleaved[Any]:
    docs, teams = team_draft.interleave(*given)
    return Interleaved([*docs[:2][::-1], *docs[2:]], [*teams[:2][::-1], *teams[2:]])


@pytest.mark.parametrize(
    ("method", "check"),
    [
        (without_the_last, "check_lists_are_complete"),
        (without_the_last, "check_lists_of_random_rankings_are_complete"),
        (twice_the_first, "check_lists_are_complete"),
        (all_of_one_side, "check_lists_are_complete"),
        (all_of_one_side, "check_documents_of_one_side_alone_have_no_team"),
        (all_of_one_side, "check_each_rank_is_equally_likely_of_either_team"),
        (all_of_one_side, "check_sides_are_treated_alike"),
        (upside_down, "check_documents_keep_the_order_of_the_rankings"),
        (upside_down, "check_better_documents_are_shown_higher"),
        (from_the_bottom, "check_documents_keep_the_order_of_the_rankings"),
        (from_the_bottom, "check_better_documents_are_shown_higher"),
        (from_the_middle, "check_documents_keep_the_order_of_the_rankings"),
        (from_the_middle, "check_better_documents_are_shown_higher"),
        (with_the_upper_two_exchanged, "check_documents_keep_the_order_of_the_rankings"),
        (with_the_upper_two_exchanged, "check_better_documents_are_shown_higher"),
        (of_texts, "check_any_hashable_id_is_allowed"),
        (tolerating_all, "check_invalid_arguments_are_refused"),
    ],
)
def test_a_faulty_method_is_found(method: Interleave, check: str) -> None:
    with pytest.raises(AssertionError):
        CHECKS[check](MethodUnderTest(method))


def short(
    most: int, list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Refuses to draw longer lists."""
    if isinstance(length, int) and length > most:
        raise InterleavingError(f"the length must be at most {most} (found {length}).")
    return team_draft.interleave(list_a, list_b, length, rng)


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
def test_a_method_of_short_lists_passes(check: Any, most: int) -> None:
    check(MethodUnderTest(partial(short, most), max_length=most))


def a_quarter(shown: Shown, clicks: Sequence[Click]) -> float:
    return 0.25


def always_a(shown: Shown, clicks: Sequence[Click]) -> float:
    return 1.0


def the_other_side(shown: Shown, clicks: Sequence[Click]) -> float:
    return 1 - click_count(shown, clicks)


def of_no_team_for_a(shown: Shown, clicks: Sequence[Click]) -> float:
    return click_count(Shown([team or "a" for team in shown.teams]), clicks)


def the_last_that_is_listed(shown: Shown, clicks: Sequence[Click]) -> float:
    return click_count(shown, clicks[-1:])


def from_the_end(shown: Shown, clicks: Sequence[Click]) -> float:
    n = len(shown.teams)
    return click_count(shown, [click._replace(rank=click.rank % n) for click in clicks])


def of_tuples(shown: Shown, clicks: Sequence[Click]) -> float:
    return click_count(shown, clicks) if isinstance(shown, Shown) else 0.5


def that_removes_clicks(shown: Shown, clicks: Sequence[Click]) -> float:
    outcome = click_count(shown, clicks)
    clicks.clear()  # type: ignore[attr-defined]
    return outcome


@pytest.mark.parametrize(
    ("credit", "check"),
    [
        (a_quarter, "check_the_outcome_is_a_win_or_a_tie"),
        (that_removes_clicks, "check_the_outcome_is_a_win_or_a_tie"),
        (always_a, "check_exchanging_the_sides_exchanges_the_outcome"),
        (always_a, "check_no_clicks_are_a_tie"),
        (the_other_side, "check_the_only_side_with_clicks_wins"),
        (of_no_team_for_a, "check_clicks_on_ranks_of_no_team_change_nothing"),
        (the_last_that_is_listed, "check_the_order_of_clicks_does_not_matter"),
        (from_the_end, "check_a_rank_outside_the_list_is_an_index_error"),
        (of_tuples, "check_records_are_credited_directly"),
    ],
)
def test_a_faulty_credit_function_is_found(credit: Any, check: str) -> None:
    with pytest.raises(AssertionError):
        CREDIT[check](CreditUnderTest(credit))
