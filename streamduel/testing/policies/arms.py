"""Checks of the change of arms, and of the end of exploration."""

from __future__ import annotations

import random

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.testing.policies.under_test import (
    ARMS,
    PolicyUnderTest,
    duels,
    examples,
    observe,
    play,
    raises,
    through_json,
)


def others(luck: random.Random) -> list[int | None]:
    """Some of the arms in any order, with new ones; at least two."""
    stay = luck.sample(range(ARMS), k=luck.randint(0, ARMS))
    kept: list[int | None] = [*stay, *[None] * luck.randint(max(0, 2 - len(stay)), 3)]
    return luck.sample(kept, k=len(kept))


def decided(tested: PolicyUnderTest) -> Policy:
    """A policy with many duels, in all of which the lower arm won."""
    policy = tested.new()
    first, second = np.triu_indices(ARMS, k=1)
    for _ in range(60):
        policy.propose()
        policy.observe(first, second, np.ones(len(first)), np.full(len(first), 10))
    return policy


def check_arms_that_stay_keep_their_counts(tested: PolicyUnderTest) -> None:
    """With other arms, the counts among the arms that stay are kept."""
    for luck in examples():
        observed, kept = duels(luck), others(luck)
        policy = tested.new()
        observe(policy, observed)
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


def check_with_other_arms_only_these_are_proposed(tested: PolicyUnderTest) -> None:
    """With other arms, only these are proposed and named."""
    for luck in examples():
        observed, kept, batch = duels(luck), others(luck), luck.choice([1, 4])
        policy = tested.new()
        observe(policy, observed)
        policy.propose(2)
        changed, n_arms = with_arms(policy, kept), len(kept)
        assert 0 <= changed.champion() < n_arms
        assert 0 <= changed.candidates() <= n_arms
        played = np.array(play(changed, 60, batch=batch))
        assert ((played >= 0) & (played < n_arms)).all()
        assert changed.duels == policy.duels + 60
        assert 0 <= changed.champion() < n_arms
        pairs, times = changed.propose_ahead(1_000)
        assert ((pairs >= 0) & (pairs < n_arms)).all()
        assert times.sum() <= 1_000


def check_changes_of_arms_are_deterministic_and_survive_json(tested: PolicyUnderTest) -> None:
    """A change of arms depends on the state alone."""
    for luck in examples():
        observed, kept = duels(luck), others(luck)
        policy = tested.new()
        observe(policy, observed)
        policy.propose(2)
        one, other = (
            with_arms(policy, kept),
            tested.kind.from_state(through_json(policy.state_dict())),
        )
        other = with_arms(other, tuple(kept))
        assert one.state_dict() == other.state_dict()
        restored = tested.kind.from_state(through_json(one.state_dict()))
        assert play(one, 40, batch=2) == play(restored, 40, batch=2) == play(other, 40, batch=2)
        assert one.state_dict() == restored.state_dict() == other.state_dict()


def check_a_changed_policy_shares_nothing_with_the_former(tested: PolicyUnderTest) -> None:
    """The copy for other arms is independent of the policy."""
    policy = tested.new()
    play(policy, 50)
    before = policy.state_dict()
    changed = with_arms(policy, range(ARMS))
    play(changed, 50)
    assert policy.state_dict() == before
    after = changed.state_dict()
    play(policy, 50)
    assert changed.state_dict() == after


def check_a_new_arm_that_is_the_best_is_found(tested: PolicyUnderTest) -> None:
    """A new arm that is the best becomes the champion."""
    if not tested.remembers:
        return
    changed = with_arms(decided(tested), [None, *range(ARMS)])
    # Some that plan for a horizon explore until then.
    steps = 11_000 if "horizon" in changed.parameters else 3_000
    play(changed, steps, edge=0.3)
    found = changed.champion()
    assert found == 0, f"arm {found} is the champion, {steps} duels after the best arm was added"


def check_without_the_best_arm_the_next_is_found(tested: PolicyUnderTest) -> None:
    """After the best arm has left, the next one is the champion."""
    if not tested.remembers:
        return
    changed = with_arms(decided(tested), range(1, ARMS))
    for more in (0, 500):
        play(changed, more, edge=0.3)
        found = changed.champion()
        assert found == 0, f"arm {found} is the champion, {more} duels after the best arm has left"


def check_arms_may_change_again_and_again(tested: PolicyUnderTest) -> None:
    """Arms may change many times."""
    policy = tested.new()
    for turn in range(12):
        play(policy, 30, seed=turn)
        stay = [arm for arm in range(policy.n_arms) if arm != turn % policy.n_arms]
        policy = with_arms(policy, [*stay, None] if turn % 3 else [None, *stay, None])
        policy = tested.kind.from_state(through_json(policy.state_dict()))
    assert policy.n_arms == ARMS + 4
    assert policy.duels == 360


def check_too_few_or_too_many_arms_are_refused(tested: PolicyUnderTest) -> None:
    """A change to an impossible number of arms is refused."""
    policy = tested.new()
    play(policy, 30)
    before = policy.state_dict()
    for kept in ([], [0], [None]):
        with raises(PolicyError, "n_arms must be an integer from 2"):
            with_arms(policy, kept)
    assert policy.state_dict() == before
    if "horizon" in tested.kind.declared:
        tight = type(policy)(ARMS, **{**policy.parameters, "horizon": ARMS})
        assert with_arms(tight, [0, 3, None]).n_arms == 3
        with raises(PolicyError, r"policy.horizon must be at least .* \(found 5\)"):
            with_arms(tight, [*range(ARMS), None])


def check_a_finished_policy_proposes_its_champion_alone(tested: PolicyUnderTest) -> None:
    """A finished policy proposes its champion against itself."""
    policy = tested.new()
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
    assert tested.kind.from_state(through_json(policy.state_dict())).finished is policy.finished


def check_candidates_are_the_arms_not_ruled_out(tested: PolicyUnderTest) -> None:
    """There are some before any duel, and fewer than K, but some, after many one-sided ones."""
    policy = tested.new()
    assert policy.candidates() > 0
    if not (tested.remembers and tested.kind.adaptive):
        return
    for _ in range(500):  # some count only duels that they asked for
        [[first, second]] = policy.propose().tolist()
        policy.observe(first, second, float(first < second), 20)
    firsts, seconds = np.triu_indices(ARMS, k=1)  # others leave some pairs out
    policy.observe(firsts, seconds, np.ones(len(firsts)), np.full(len(firsts), 100))
    policy.propose()
    assert 0 < policy.candidates() < ARMS, f"{policy.candidates()} candidates of {ARMS} arms"


def check_a_new_arm_is_explored_after_the_winner_was_found(tested: PolicyUnderTest) -> None:
    """A policy that has found its winner explores a new arm."""
    if not tested.remembers:
        return
    policy = decided(tested)
    assert policy.duels < policy.parameters.get("horizon", policy.duels + 1)
    for _ in range(200):
        policy.propose()
    changed = with_arms(policy, [*range(ARMS), None])
    assert not changed.finished
    assert any(ARMS in pair for pair in play(changed, 3_000, edge=0.3))
