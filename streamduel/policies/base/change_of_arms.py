"""Change of the arms of a policy, when rankers join or leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamduel.policies.base.generator import Generator
from streamduel.policies.base.policy import AnyPolicy


def with_arms(policy: AnyPolicy, kept: Sequence[int | None]) -> AnyPolicy:
    """A copy of the policy for other arms, after some have left and others have joined.

    The counts and the prior among the arms that stay are kept, and so are the number of all duels
    and, with a window, the recent counts. What the algorithm keeps besides them, such as a round or
    eliminated arms, starts from the counts, if it follows from them, else from the beginning. The
    next word of the policy's generator seeds that of the copy. The given policy is not changed.

    Args:
        policy: any.
        kept: (K',) for each arm of the copy, its number in `policy`, or None if it is new; no arm
            twice.

    Raises:
        PolicyError: fewer than two arms, or more than the parameters allow.

    >>> from streamduel.policies.rucb import RUCB
    >>> policy = RUCB(3, seed=7)
    >>> policy.observe([0, 0, 1], [1, 2, 2], [1, 1, 0])
    >>> with_arms(policy, [0, 2, None]).wins.tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    before = policy.state_dict()
    seed = int(Generator.from_state(before["generator"]).words(1)[0])
    parameters = {
        name: policy.declared[name].for_arms(value, kept)
        for name, value in policy.parameters.items()
    }
    state = type(policy)(len(kept), seed=seed, **parameters).state_dict()
    wins = np.zeros((len(kept), len(kept)))
    stay = [place for place, arm in enumerate(kept) if arm is not None]
    were = [arm for arm in kept if arm is not None]
    wins[np.ix_(stay, stay)] = policy.wins[np.ix_(were, were)]
    counts = {**before["counts"], "wins": wins.tolist()}
    if "recent" in counts:
        places = {arm: place for place, arm in enumerate(kept) if arm is not None}
        counts["recent"] = [_among(block, places) for block in counts["recent"]]
    return type(policy).from_state({**state, "counts": counts})


def _among(block: list[list[Any]], places: Mapping[int, int]) -> list[list[Any]]:
    """The pairs of a block of recent counts of which both arms stay."""
    rows = []
    for first, second, first_wins, second_wins in block:
        if first in places and second in places:
            one, other = [places[first], first_wins], [places[second], second_wins]
            (low, low_wins), (high, high_wins) = sorted((one, other))
            rows.append([low, high, low_wins, high_wins])
    return sorted(rows)
