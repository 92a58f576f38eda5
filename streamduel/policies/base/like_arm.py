"""An arm that joins with what is known of another one, such as its earlier version."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.policies.base.policy import AnyPolicy
from streamduel.policies.base.prior import MAX_WINS
from streamduel.preference.arrays import Floats


def with_arm_like(policy: AnyPolicy, like: int, discount: float, cap: float) -> AnyPolicy:
    """A copy of the policy with one more arm, of which a prior says what is known of another arm.

    The new arm has no duels. Its prior is the posterior of the other arm: the wins against each
    third arm, discounted, and those of a prior. Of the two arms themselves it says nothing. A prior
    that is not believed any more is dropped. The wager on the prior begins again: only later duels
    test it.

    Args:
        policy: has a parameter `prior`; not changed.
        like: the arm that the new one, the last, is like.
        discount: how many duels a duel counts for.
        cap: the most duels that the prior counts for, per pair.

    Raises:
        PolicyError: the policy uses no prior, or not with its parameters; or an arm too many.

    >>> from streamduel.policies.top_two import TopTwo
    >>> policy = TopTwo(2, seed=7)
    >>> policy.observe(0, 1, 1, 100)
    >>> with_arm_like(policy, 0, discount=0.1, cap=30).parameters["prior"]
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 10.0, 0.0]]
    """
    _check(policy)
    joined = with_arms(policy, [*range(policy.n_arms), None])
    stated = _believed(joined)
    known = stated + discount * joined.wins
    duels = known[like] + known[:, like]
    share = np.minimum(cap / np.maximum(duels, cap), MAX_WINS / np.maximum(duels, MAX_WINS))
    others = np.arange(policy.n_arms) != like
    stated[-1, :-1][others] = (known[like] * share)[:-1][others]
    stated[:-1, -1][others] = (known[:, like] * share)[:-1][others]
    state: dict[str, Any] = joined.state_dict()
    prior = {"prior": stated.tolist(), "prior_from": joined.wins.tolist()}
    ordered = {name: {**joined.parameters, **prior}.get(name) for name in joined.declared}
    parameters = {name: value for name, value in ordered.items() if value is not None}
    return type(joined).from_state({**state, "parameters": parameters})


def _check(policy: AnyPolicy) -> None:
    """Refuse a policy that uses no prior."""
    values = policy.parameters
    if "prior_from" not in policy.declared or values.get("aim") == "earn":
        raise PolicyError(
            "only policy 'top_two' with aim 'identify' uses what is known of another arm; leave out"
            " 'like'."
        )
    if "window" in values:
        raise PolicyError(
            "with a window, what is known of another arm is soon forgotten; leave out 'like'."
        )


def _believed(policy: AnyPolicy) -> Floats:
    """(K, K) the pseudo-wins of the prior; zeros if it is not believed, or there is none."""
    if not policy.steered:
        return np.zeros((policy.n_arms, policy.n_arms))
    believed: Floats = np.array(policy.parameters["prior"])
    return believed
