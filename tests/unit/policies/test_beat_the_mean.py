"""Beat the Mean, hand-computed: turns, removal, attribution of duels to arms."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from streamduel.errors import PolicyError
from streamduel.policies import from_state
from streamduel.policies.beat_the_mean import BeatTheMean

HORIZON = 10_000


def test_arms_take_turns_against_random_opponents() -> None:
    policy = BeatTheMean(4, seed=1, horizon=HORIZON)
    opponents: Counter[tuple[int, int]] = Counter()
    for _ in range(300):
        turns = []
        for _ in range(4):
            arm, other = policy.propose()[0].tolist()
            policy.observe(arm, other, 0.5)
            turns.append(arm)
            opponents[arm, other] += 1
        assert sorted(turns) == [0, 1, 2, 3]
    assert len(opponents) == 12
    # 300 turns, each of three others with probability 1/3: 100 ± 4 · 8.2.
    assert all(abs(times - 100) < 33 for times in opponents.values())


def propose_until_turn(policy: BeatTheMean, arm: int) -> int:
    """Propose until the turn of the arm and return its opponent."""
    while True:
        first, second = policy.propose()[0].tolist()
        if first == arm:
            return int(second)


@pytest.mark.parametrize("order", ["as proposed", "the other way round"])
def test_duel_counts_for_arm_whose_turn_it_was(order: str) -> None:
    policy = BeatTheMean(3, seed=1, horizon=HORIZON)
    other = propose_until_turn(policy, 0)
    duel = (0, other, 1) if order == "as proposed" else (other, 0, 0)
    policy.observe(*duel, 5)
    own = policy.state_dict()["own"]
    assert own["won"][0][other] == own["played"][0][other] == 5
    assert sum(map(sum, own["played"])) == 5
    bulk = from_state(policy.state_dict())
    bulk.observe([duel[0]] * 30, [duel[1]] * 30, [duel[2]] * 30)
    assert bulk.state_dict()["own"]["won"][0][other] == 35


def test_unrequested_duels_counted_without_removal() -> None:
    policy = BeatTheMean(3, seed=1, horizon=HORIZON)
    policy.observe([0, 1, 0], [1, 2, 2], [1, 1, 1], [10**6] * 3)
    assert policy.champion() == 0
    assert policy.state_dict()["own"]["played"] == [[0.0] * 3] * 3
    assert policy.candidates() == 3


@pytest.mark.parametrize("tight", [False, True])
def test_worst_arm_removed_when_intervals_separate(tight: bool) -> None:
    policy = BeatTheMean(2, seed=1, horizon=HORIZON, gamma=1, tight=tight)
    # Shares 1 and 0 are apart when 2 (1 or 3) sqrt(ln(2TK) / n) <= 1.
    needed = math.ceil(4 * (1 if tight else 9) * math.log(2 * HORIZON * 2))
    for duels, left in ((needed - 1, 2), (needed, 1)):
        trial = from_state(policy.state_dict())
        for arm, won in ((0, 1), (1, 0)):
            while trial.propose()[0, 0] != arm:
                trial.observe(1 - arm, arm, 1 - won)  # its turn, then the usual removal
            own = trial.state_dict()["own"]
            trial.observe(arm, 1 - arm, won, duels - int(own["played"][arm][1 - arm]))
        trial.propose()
        assert trial.candidates() == left
    assert trial.propose().tolist() == [[0, 0]]
    assert trial.champion() == 0


def test_removed_arms_duels_discarded() -> None:
    policy = BeatTheMean(3, seed=2, horizon=HORIZON, gamma=1, tight=True)
    state = policy.state_dict()
    counts = {"duels": 6_000, "wins": [[0, 1500, 2000], [500, 0, 2000], [0, 0, 0]]}
    played = [[0, 1000, 1000], [1000, 0, 1000], [1000, 1000, 0]]
    won = [[0, 750, 1000], [250, 0, 1000], [0, 0, 0]]
    own = {**state["own"], "won": won, "played": played}
    policy = BeatTheMean.from_state({**state, "counts": counts, "own": own})
    policy.propose()
    # Arm 2 wins nothing and is removed. Then arm 0 has 750 of 1,000 and arm 1 has 250: removed too.
    assert policy.candidates() == 1
    assert policy.champion() == 0


def test_mismatched_state_rejected() -> None:
    state = BeatTheMean(3, seed=1, horizon=HORIZON).state_dict()
    changes: list[dict[str, Any]] = [
        {"working": []},
        {"working": [7]},
        {"played": [[1.0] * 3] * 3},
        {"won": [[1.0] * 3] * 3},
        {"asked_by": [[0]]},
    ]
    for change in changes:
        with pytest.raises(PolicyError):
            from_state({**state, "own": {**state["own"], **change}})
