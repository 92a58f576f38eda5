"""Change of the arms of a policy, when rankers join or leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamduel.policies.base.generator import Generator
from streamduel.policies.base.policy import AnyPolicy, Policy
from streamduel.preference.recent_counts import blocks_after


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
    return with_counts_of(type(policy)(len(kept), seed=seed, **parameters), policy, kept)


def with_counts_of(
    fresh: AnyPolicy, policy: Policy, kept: Sequence[int | None] | None = None
) -> AnyPolicy:
    """A policy without duels continues with the counts of another one, of any kind.

    With a window, it takes over the recent counts of a policy with an equal window; the order of
    other duels is not known, and they count as forgotten.

    Args:
        fresh: without any duels; not changed.
        policy: has the counts.
        kept: for each arm of `fresh`, its number in `policy`, or None if it is new; by default, the
            arms are the same.

    Raises:
        PolicyError: `fresh` cannot have these counts.

    >>> from streamduel.policies.rucb import RUCB
    >>> from streamduel.policies.uniform import Uniform
    >>> policy = RUCB(2, seed=7)
    >>> policy.observe(0, 1, 1, 20)
    >>> with_counts_of(Uniform(2, seed=7), policy).wins.tolist()
    [[0.0, 20.0], [0.0, 0.0]]
    """
    kept = range(policy.n_arms) if kept is None else kept
    before, state = policy.state_dict()["counts"], fresh.state_dict()
    wins = np.zeros((len(kept), len(kept)))
    stay = [place for place, arm in enumerate(kept) if arm is not None]
    were = [arm for arm in kept if arm is not None]
    wins[np.ix_(stay, stay)] = policy.wins[np.ix_(were, were)]
    counts = {**state["counts"], "duels": before["duels"], "wins": wins.tolist()}
    if "window" in counts:
        places = {arm: place for place, arm in enumerate(kept) if arm is not None}
        same = counts["window"] == before.get("window")
        blocks = before["recent"] if same else blocks_after(before["duels"], counts["window"])
        counts["recent"] = [_among(block, places) for block in blocks]
    return type(fresh).from_state({**state, "counts": counts})


def _among(block: list[list[Any]], places: Mapping[int, int]) -> list[list[Any]]:
    """The pairs of a block of recent counts of which both arms stay."""
    rows = []
    for first, second, first_wins, second_wins in block:
        if first in places and second in places:
            one, other = [places[first], first_wins], [places[second], second_wins]
            (low, low_wins), (high, high_wins) = sorted((one, other))
            rows.append([low, high, low_wins, high_wins])
    return sorted(rows)
