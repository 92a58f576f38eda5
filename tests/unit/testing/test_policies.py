"""The checks of policies find faulty ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies.base.parameter import Horizon
from streamduel.policies.rucb import RUCB
from streamduel.policies.uniform import Uniform
from streamduel.testing.policies import CHECKS, PolicyUnderTest
from streamduel.testing.policies.arms import check_a_new_arm_that_is_the_best_is_found
from streamduel.testing.policies.proposing import (
    check_asking_changes_nothing,
    check_proposals_without_feedback_spread,
    check_the_horizon_ends_exploration,
)
from streamduel.testing.policies.state import check_equal_seeds_give_equal_duels_in_another_process


def drawing(policy: Any, *_: object) -> str:
    return f"drawn {policy._generator.below(100)}"


def raising(*_: object) -> str:
    raise NotImplementedError("not written yet")


@pytest.mark.parametrize(
    ("explain", "shown"),
    [
        (drawing, r"At index 0 diff: \[4, 1\] != \[0, 2\]"),
        (raising, "not written yet"),
        (lambda *_: None, "None"),
        (lambda *_: "", "an empty sentence"),
    ],
)
def test_a_faulty_explain_is_found(
    explain: Callable[..., Any], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies.get("uniform"), "explain", explain)
    with pytest.raises((AssertionError, NotImplementedError), match=shown):
        check_asking_changes_nothing(PolicyUnderTest(policies.get("uniform")))


class OnePair(Uniform):
    """It compares the last two arms alone."""

    def _choose(self, t: int) -> tuple[int, int]:
        return self.n_arms - 2, self.n_arms - 1


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (check_proposals_without_feedback_spread,
         "15 of 15 proposals without outcomes are of one pair"),
        (check_a_new_arm_that_is_the_best_is_found,
         "arm 1 is the champion, 3000 duels after the best arm was added"),
    ],
)  # fmt: skip
def test_a_policy_that_compares_one_pair_is_found(
    check: Callable[[PolicyUnderTest], None], sentence: str
) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check(PolicyUnderTest(OnePair))


class Planned(Uniform):
    horizon = Horizon()


class ExploresLonger(Planned):
    """By 50 duels."""

    def _begin(self) -> None:
        super()._begin()
        self._horizon = self.horizon + 50


@pytest.mark.parametrize("horizon", [5, 500, 10_000, 20_000, 10**9])
def test_exploration_after_any_horizon_is_found(horizon: int) -> None:
    check_the_horizon_ends_exploration(PolicyUnderTest(Planned, {"horizon": horizon}))
    with pytest.raises(AssertionError):
        check_the_horizon_ends_exploration(PolicyUnderTest(ExploresLonger, {"horizon": horizon}))


class LateHashOrder(Uniform):
    """Its first choices depend on the seed alone."""

    name = "late_hash_order"

    def _choose(self, t: int) -> tuple[int, int]:
        first, second = super()._choose(t)
        return (first, second) if t <= 400 or hash(f"{t}") % 2 else (second, first)


def test_hash_order_after_hundreds_of_duels_is_found() -> None:
    with pytest.raises(AssertionError, match=r"^choice 4\d\d\b"):
        check_equal_seeds_give_equal_duels_in_another_process(PolicyUnderTest(LateHashOrder))


class Draws(Uniform):
    """It draws where nothing is to change."""

    def learn(self, *given: Any) -> None:
        super().learn(*given)
        self._generator.below(2)

    @classmethod
    def from_state(cls, state: Any) -> Any:
        policy = super().from_state(state)
        policy._generator.below(2)
        return policy


class DrawsForLists(Uniform):
    def observe(self, first: Any, *others: Any) -> None:
        super().observe(first, *others)
        if isinstance(first, list):
            self._generator.below(2)


class ToleratesAll(Uniform):
    """It accepts whatever it is given."""

    def __init__(self, n_arms: int, *, seed: int = 0, **_: object) -> None:
        super().__init__(n_arms, seed=seed)

    def observe(self, *given: Any) -> None:
        with contextlib.suppress(PolicyError):
            super().observe(*given)

    @classmethod
    def from_state(cls, state: Any) -> Any:
        try:
            return super().from_state(state)
        except PolicyError:
            return cls(5)


class LearnsTooMuch(Uniform):
    """A refused call and a proposal count as duels."""

    def observe(self, *given: Any) -> None:
        try:
            super().observe(*given)
        except PolicyError:
            super().observe(0, 1, 1)
            raise

    def _choose(self, t: int) -> tuple[int, int]:
        self._counts.add_one(0, 1, 1.0, 1)
        return super()._choose(t)


class IgnoresCounts(Uniform):
    def _observe_one(self, first: int, second: int, first_wins: float, count: int) -> None:
        super()._observe_one(first, second, first_wins, 1)


class DependsOnOrder(Uniform):
    """Every second duel counts for the other arm, and one of an arm with itself for the next."""

    def _observe_one(self, first: int, second: int, first_wins: float, count: int) -> None:
        if first == second:
            second = (first + 1) % self.n_arms
        outcome = 1 - first_wins if self.duels % 2 else first_wins
        super()._observe_one(first, second, outcome, count)


class Shares(Uniform):
    """What it is given and what it returns are its own."""

    def observe(self, first: Any, *others: Any) -> None:
        super().observe(first, *others)
        if isinstance(first, np.ndarray):
            first[:] = 0

    def state_dict(self) -> dict[str, Any]:
        kept: dict[str, Any] = vars(self).setdefault("_kept", super().state_dict())
        return kept

    def clone(self) -> Any:
        return self

    @property
    def wins(self) -> Any:
        return super().wins.copy()


class BeyondTheArms(Uniform):
    def propose(self, n: int = 1) -> Any:
        return super().propose(n) + 1

    def champion(self) -> int:
        return super().champion() + 1

    def candidates(self) -> int:
        return self.n_arms + 1


class OfOtherTypes(Uniform):
    def propose(self, n: int = 1) -> Any:
        return super().propose(n).astype(np.int32)

    def champion(self) -> Any:
        return np.int64(super().champion())


class Stubborn(Uniform):
    """One pair, and the last arm as champion, with any seed."""

    def _choose(self, t: int) -> tuple[int, int]:
        return 0, 1

    def champion(self) -> int:
        return self.n_arms - 1


class SaysThatItAdapts(Uniform):
    adaptive = True


class Finished(Uniform):
    finished = True


class LooksAhead(Uniform):
    def _choose_ahead(self, t: int, limit: int) -> Any:
        pairs, times = super()._choose_ahead(t, limit)
        return pairs[:, ::-1], times


class Hoards(Uniform):
    """Its class keeps an integer of each proposal, and a policy needs K x K x K numbers."""

    proposals: ClassVar[list[int]] = []

    def _begin(self) -> None:
        super()._begin()
        self._trios = np.zeros((self.n_arms,) * 3)

    def _choose(self, t: int) -> tuple[int, int]:
        self.proposals.append(t)
        return super()._choose(t)


class KeepsAnswers(Uniform):
    """What it was asked is not asked again, and not saved."""

    _kept: int | None = None

    def champion(self) -> int:
        self._kept = super().champion() if self._kept is None else self._kept
        return self._kept


class RulesNoneOut(RUCB):
    def candidates(self) -> int:
        return self.n_arms


class RulesAllOut(RUCB):
    def candidates(self) -> int:
        return 0


FAULTS: dict[type[Policy], str] = {
    Draws: "a_batch_equals_one_by_one no_duels_change_nothing state_round_trip_is_exact"
    " restoring_often_changes_nothing changes_of_arms_are_deterministic_and_survive_json",
    DrawsForLists: "every_type_of_arguments_is_equal",
    ToleratesAll: "damaged_states_are_refused refused_calls_change_nothing"
    " wrong_construction_is_refused",
    LearnsTooMuch: "refused_calls_change_nothing proposing_learns_nothing",
    IgnoresCounts: "a_count_equals_repetition counts_of_billions_are_exact"
    " counts_are_the_duels_observed",
    DependsOnOrder: "any_order_of_delivery_gives_equal_counts self_duels_only_advance_time",
    Shares: "copies_are_independent state_shares_nothing_with_the_policy"
    " arguments_are_not_changed wins_cannot_be_written",
    BeyondTheArms: "proposals_are_pairs_of_arms champion_and_candidates_are_in_range"
    " with_other_arms_only_these_are_proposed",
    OfOtherTypes: "proposals_are_pairs_of_arms champion_and_candidates_are_in_range",
    Stubborn: "different_seeds_give_different_duels proposals_without_feedback_spread"
    " the_first_champion_is_random the_winner_is_found a_new_arm_that_is_the_best_is_found"
    " without_the_best_arm_the_next_is_found a_new_arm_is_explored_after_the_winner_was_found",
    SaysThatItAdapts: "the_winner_is_found",
    Finished: "a_finished_policy_proposes_its_champion_alone",
    Hoards: "memory_does_not_grow_with_proposals memory_is_quadratic_in_the_number_of_arms",
    KeepsAnswers: "state_round_trip_is_exact",
    RulesNoneOut: "candidates_are_the_arms_not_ruled_out",
    RulesAllOut: "candidates_are_the_arms_not_ruled_out",
    LooksAhead: "duels_ahead_are_those_proposed_one_by_one",
}
BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize(
    ("policy", "check"), [(policy, name) for policy in FAULTS for name in FAULTS[policy].split()]
)
def test_a_faulty_policy_is_found(policy: type[Policy], check: str) -> None:
    with pytest.raises(AssertionError):
        BY_NAME[f"check_{check}"](PolicyUnderTest(policy))
