"""Checks of what a policy proposes, and of its champion."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np

from streamduel.errors import PolicyError
from streamduel.testing.policies.under_test import (
    ARMS,
    PolicyUnderTest,
    duels,
    examples,
    knowledge,
    observe,
    play,
    raises,
)


def check_proposals_are_pairs_of_arms(tested: PolicyUnderTest) -> None:
    """Proposals are pairs of arms."""
    for n_arms, n in itertools.product((2, 3, 7), (1, 2, 50)):
        pairs = tested.new(n_arms).propose(n)
        assert pairs.shape == (n, 2)
        assert pairs.dtype == np.int64
        assert ((pairs >= 0) & (pairs < n_arms)).all()


def check_proposing_learns_nothing(tested: PolicyUnderTest) -> None:
    """Proposing does not change what has been learned."""
    for luck in examples():
        observed = duels(luck)
        policy = tested.new()
        observe(policy, observed)
        before = knowledge(policy)
        for n in (1, 2, 30):
            policy.propose(n)
            assert knowledge(policy) == before


def check_returned_arrays_may_be_changed(tested: PolicyUnderTest) -> None:
    """The caller may change the returned arrays."""
    policy, untouched = tested.new(), tested.new()
    for n in (1, 4):
        policy.propose(n)[:] = 0
        untouched.propose(n)
    assert policy.state_dict() == untouched.state_dict()
    assert play(policy, 40) == play(untouched, 40)


def check_proposals_without_feedback_spread(tested: PolicyUnderTest) -> None:
    """Proposals without outcomes are spread over pairs and arms."""
    n_arms = 6
    n = n_arms * (n_arms - 1) // 2
    for seed in range(5):
        pairs = np.sort(tested.new(n_arms, seed).propose(n), axis=1).tolist()
        frequency = Counter(map(tuple, pairs))
        most, found = max(frequency.values()), set(itertools.chain.from_iterable(frequency))
        assert most <= n // 3, f"{most} of {n} proposals without outcomes are of one pair"
        assert found == set(range(n_arms)), f"{n} proposals without outcomes are of arms {found}"


def check_asking_changes_nothing(tested: PolicyUnderTest) -> None:
    """Champion, candidates, state and explanations can be asked for without effect."""
    asked, unasked = tested.new(), tested.new()
    arms = [f"arm-{number}" for number in range(ARMS)]
    for part in range(20):
        for _ in range(3):
            assert asked.champion() == asked.champion()
            assert asked.candidates() == asked.candidates()
            assert asked.state_dict() == asked.state_dict()
        for first, second in itertools.permutations(range(ARMS), 2):
            sentence = asked.explain(first, second, arms)
            assert isinstance(sentence, str), sentence
            assert sentence, "an empty sentence"
        assert repr(asked).startswith(type(asked).__name__)
        assert play(asked, 5, seed=part) == play(unasked, 5, seed=part)
    assert asked.state_dict() == unasked.state_dict()


def check_champion_and_candidates_are_in_range(tested: PolicyUnderTest) -> None:
    """The champion is an arm, and there are at most K candidates."""
    for luck in examples():
        observed = duels(luck)
        policy = tested.new()
        observe(policy, observed)
        assert type(policy.champion()) is int
        assert 0 <= policy.champion() < ARMS
        assert type(policy.candidates()) is int
        assert 0 <= policy.candidates() <= ARMS


def check_the_first_champion_is_random(tested: PolicyUnderTest) -> None:
    """The champion before any duel is random."""
    champions = Counter(tested.new(seed=seed).champion() for seed in range(200))
    assert set(champions) == set(range(ARMS))
    assert max(champions.values()) < 80


def check_the_winner_is_found(tested: PolicyUnderTest) -> None:
    """The best arm is found, and worse arms are played less."""
    if not tested.remembers:
        return
    for batch, seed in ((1, 0), (1, 1), (20, 2)):
        policy = tested.new(seed=seed)
        # Some that plan for a horizon explore until then.
        steps = 11_000 if "horizon" in policy.parameters else 3_000
        played = play(policy, steps, seed, batch=batch, edge=0.3)
        assert policy.champion() == 0
        early, late = (sum(map(sum, part)) for part in (played[:1_000], played[-1_000:]))
        if tested.kind.adaptive:
            assert late < early, "worse arms have the higher numbers, and are to be played less"


def check_duels_ahead_are_those_proposed_one_by_one(tested: PolicyUnderTest) -> None:
    """`propose_ahead` gives the duels of `propose`, one by one."""
    for seed, most in ((0, 1), (1, 7), (2, 1_000)):
        stepping, jumping = tested.new(seed=seed), tested.new(seed=seed)
        luck, done = random.Random(seed), 0
        while done < 3_000:
            pairs, times = jumping.propose_ahead(most)
            assert pairs.shape == (len(times), 2)
            assert pairs.dtype == times.dtype == np.int64
            assert 1 <= times.min() <= times.sum() <= most
            assert ((times == 1) | (pairs[:, 0] == pairs[:, 1])).all()
            edges = 0.3 * np.sign(pairs[:, 1] - pairs[:, 0])
            wins = [float(luck.random() < 0.5 + edge) for edge in edges]
            for pair, won, often in zip(pairs.tolist(), wins, times.tolist(), strict=True):
                for _ in range(often):
                    assert stepping.propose().tolist() == [pair]
                    stepping.observe(pair[0], pair[1], won)
            jumping.observe(pairs[:, 0], pairs[:, 1], wins, times)
            done += int(times.sum())
        assert jumping.state_dict() == stepping.state_dict()


def check_the_horizon_ends_exploration(tested: PolicyUnderTest) -> None:
    """After the horizon, only the champion is proposed."""
    if "horizon" not in tested.kind.declared:
        return
    policy = tested.new()
    horizon = policy.parameters["horizon"]
    play(policy, min(horizon, 10_000) - 1)
    policy.observe(0, 1, 1.0, horizon - policy.duels)
    champion = policy.champion()
    assert policy.propose(3).tolist() == [[champion, champion]] * 3
    pairs, times = policy.propose_ahead(10**6)
    assert (pairs.tolist(), times.tolist()) == ([[champion, champion]], [10**6])
    with raises(PolicyError, r"policy.horizon must be at least .* \(found 4\)"):
        tested.kind(ARMS, **{**policy.parameters, "horizon": ARMS - 1})
