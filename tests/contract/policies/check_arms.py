"""What a policy promises when arms join and leave, and about the end of its exploration."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies.base.change_of_arms import with_arms
from tests.contract.policies.rehearsal import (
    ARMS,
    Duel,
    duels,
    examples,
    fresh,
    kind,
    play,
    tell,
    through_json,
)


@st.composite
def others(draw: st.DrawFn) -> list[int | None]:
    """Some of the arms in any order, new ones among them; two at least."""
    stay = draw(st.permutations(range(ARMS)))[: draw(st.integers(0, ARMS))]
    kept: list[int | None] = [*stay, *[None] * draw(st.integers(max(0, 2 - len(stay)), 3))]
    return draw(st.permutations(kept))


def decided(name: str) -> Policy:
    """A policy that has been told without any doubt that each arm beats all of higher number."""
    policy = fresh(name)
    first, second = np.triu_indices(ARMS, k=1)
    for _ in range(60):
        policy.propose()
        policy.observe(first, second, np.ones(len(first)), np.full(len(first), 10))
    return policy


def check_arms_that_stay_keep_their_counts(name: str) -> None:
    @examples
    @given(duels(), others())
    def holds(told: list[Duel], kept: list[int | None]) -> None:
        policy = fresh(name)
        tell(policy, told)
        policy.propose(3)
        before = policy.state_dict()
        changed = with_arms(policy, kept)
        assert policy.state_dict() == before
        assert type(changed) is type(policy)
        assert changed.parameters == policy.parameters
        assert (changed.n_arms, changed.duels) == (len(kept), policy.duels)
        for i, one in enumerate(kept):
            for j, other in enumerate(kept):
                known = one is not None and other is not None
                assert changed.wins[i, j] == (policy.wins[one, other] if known else 0)

    holds()


def check_with_other_arms_only_these_are_proposed(name: str) -> None:
    @examples
    @given(duels(), others(), st.sampled_from([1, 4]))
    def holds(told: list[Duel], kept: list[int | None], batch: int) -> None:
        policy = fresh(name)
        tell(policy, told)
        policy.propose(2)
        changed, n_arms = with_arms(policy, kept), len(kept)
        assert 0 <= changed.champion() < n_arms
        assert 0 <= changed.candidates() <= n_arms
        played = np.array(play(changed, 60, batch=batch))
        assert ((played >= 0) & (played < n_arms)).all()
        assert changed.duels == policy.duels + 60
        assert 0 <= changed.champion() < n_arms
        pairs, times = changed.foresee(1_000)
        assert ((pairs >= 0) & (pairs < n_arms)).all()
        assert times.sum() <= 1_000

    holds()


def check_changes_of_arms_are_deterministic_and_survive_json(name: str) -> None:
    @examples
    @given(duels(), others())
    def holds(told: list[Duel], kept: list[int | None]) -> None:
        policy = fresh(name)
        tell(policy, told)
        policy.propose(2)
        one, other = with_arms(policy, kept), policies.from_state(through_json(policy.state_dict()))
        other = with_arms(other, tuple(kept))
        assert one.state_dict() == other.state_dict()
        restored = policies.from_state(through_json(one.state_dict()))
        assert play(one, 40, batch=2) == play(restored, 40, batch=2) == play(other, 40, batch=2)
        assert one.state_dict() == restored.state_dict() == other.state_dict()

    holds()


def check_a_changed_policy_shares_nothing_with_the_former(name: str) -> None:
    policy = fresh(name)
    play(policy, 50)
    before = policy.state_dict()
    changed = with_arms(policy, range(ARMS))
    play(changed, 50)
    assert policy.state_dict() == before
    after = changed.state_dict()
    play(policy, 50)
    assert changed.state_dict() == after


def check_a_new_arm_that_is_the_best_is_found(name: str) -> None:
    changed = with_arms(decided(name), [None, *range(ARMS)])
    # Some that plan for a horizon explore until then.
    steps = 11_000 if "horizon" in changed.parameters else 3_000
    play(changed, steps, edge=0.3)
    assert changed.champion() == 0


def check_without_the_best_arm_the_next_is_found(name: str) -> None:
    changed = with_arms(decided(name), range(1, ARMS))
    assert changed.champion() == 0
    play(changed, 500, edge=0.3)
    assert changed.champion() == 0


def check_arms_may_change_again_and_again(name: str) -> None:
    policy = fresh(name)
    for turn in range(12):
        play(policy, 30, seed=turn)
        stay = [arm for arm in range(policy.n_arms) if arm != turn % policy.n_arms]
        policy = with_arms(policy, [*stay, None] if turn % 3 else [None, *stay, None])
        policy = policies.from_state(through_json(policy.state_dict()))
    assert policy.n_arms == ARMS + 4
    assert policy.duels == 360


def check_too_few_or_too_many_arms_are_refused(name: str) -> None:
    policy = fresh(name)
    play(policy, 30)
    before = policy.state_dict()
    for kept in ([], [0], [None]):
        with pytest.raises(PolicyError, match="n_arms must be an integer from 2"):
            with_arms(policy, kept)
    assert policy.state_dict() == before
    if "horizon" in kind(name).declared:
        tight = type(policy)(ARMS, **{**policy.parameters, "horizon": ARMS})
        assert with_arms(tight, [0, 3, None]).n_arms == 3
        with pytest.raises(PolicyError, match=r"policy.horizon must be at least .* \(found 5\)"):
            with_arms(tight, [*range(ARMS), None])


def check_what_is_finished_serves_its_champion_alone(name: str) -> None:
    policy = fresh(name)
    assert not policy.finished
    for _ in range(2_000):
        before = policy.state_dict()
        finished, champion = policy.finished, policy.champion()
        assert policy.state_dict() == before, "asking changes nothing"
        [[first, second]] = policy.propose().tolist()
        if finished:
            assert first == second == champion
            assert policy.finished
        policy.observe(first, second, float(first < second), 10)
    assert policy.finished or "horizon" not in policy.parameters
    assert policies.from_state(through_json(policy.state_dict())).finished is policy.finished


def check_what_has_found_its_winner_looks_again_at_a_new_arm(name: str) -> None:
    policy = decided(name)
    assert policy.duels < policy.parameters.get("horizon", policy.duels + 1)
    for _ in range(200):
        policy.propose()
    changed = with_arms(policy, [*range(ARMS), None])
    assert not changed.finished
    assert any(ARMS in pair for pair in play(changed, 3_000, edge=0.3))


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]
