"""A policy for other arms: what it goes on with when rankers join or leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from streamduel.policies.base.generator import Generator
from streamduel.policies.base.policy import Policy

AnyPolicy = TypeVar("AnyPolicy", bound=Policy)


def with_arms(policy: AnyPolicy, kept: Sequence[int | None]) -> AnyPolicy:
    """The policy for other arms: some have left, others have joined.

    The counts among the arms that stay are kept, the recent ones where there is a window too, and
    so is the number of all duels. What the algorithm keeps besides them, such as a round or the
    arms that are out, begins anew: from the counts, if it follows from them, else from the
    beginning. The new generator is seeded by the present one's next word. The given policy stays
    as it is.

    Args:
        policy: any.
        kept: for each of the K' arms to be, which arm it is now, or None if it is new. No arm
            twice.

    Raises:
        PolicyError: fewer than two arms, or more than the parameters allow.

    >>> from streamduel.policies import RUCB
    >>> policy = RUCB(3, seed=7)
    >>> policy.observe([0, 0, 1], [1, 2, 2], [1, 1, 0])
    >>> with_arms(policy, [0, 2, None]).wins.tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    before = policy.state_dict()
    seed = int(Generator.from_state(before["generator"]).words(1)[0])
    state = type(policy)(len(kept), seed=seed, **policy.parameters).state_dict()
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
    """What a block of recent counts holds of the pairs of which both arms stay."""
    rows = []
    for first, second, first_wins, second_wins in block:
        if first in places and second in places:
            one, other = [places[first], first_wins], [places[second], second_wins]
            (low, low_wins), (high, high_wins) = sorted((one, other))
            rows.append([low, high, low_wins, high_wins])
    return sorted(rows)
