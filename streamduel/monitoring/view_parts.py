"""Parts of an experiment's view: impressions, the effect of guardrails, why a pair is served."""

from __future__ import annotations

from typing import NamedTuple

from streamduel.stream.conformance import Coin
from streamduel.stream.experiment import Experiment
from streamduel.stream.guardrails import share_taken


class Impressions(NamedTuple):
    """Counts of interleaved impressions, by which the services that log them are judged.

    Attributes:
        shown: with clicks or without.
        ties: impressions and duels without a winner.
        ranks: documents shown, of side a and of side b.
        unassigned: impressions of a pair that no recent assignment named.
        coins: of side a, and of each arm, what it got of things that a fair service splits evenly,
            and what its opponents got.
        named: those that name a client.
        per_client: how many of these the client of one has, on average.
        judged: those since the last `reset`, which `coins` are of; 0 if the click log does not tell
            which side each rank was of.
    """

    shown: int
    ties: int
    ranks: tuple[int, int]
    unassigned: int
    coins: tuple[Coin, ...]
    named: int = 0
    per_client: float = 0.0
    judged: int = 0

    @classmethod
    def of(cls, experiment: Experiment) -> Impressions:
        """The counts of an experiment."""
        conformance, clients = experiment.impressions.conformance, experiment.impressions.clients
        coins = conformance.coins(experiment.roster.arms) if conformance.judged else ()
        return cls(
            conformance.impressions,
            experiment.duels.ties,
            conformance.ranks,
            conformance.unassigned,
            coins,
            clients.impressions,
            clients.per_client,
            conformance.judged,
        )


class GuardrailEffect(NamedTuple):
    """What guardrails change.

    Attributes:
        share: of the impressions, taken from the policy at present.
        pairs: two arms, and how many of their duels guardrails have requested.
    """

    share: float
    pairs: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, experiment: Experiment) -> GuardrailEffect | None:
        """The effect on an experiment; None if it has, and has had, no guardrail."""
        rails, plan, index = (
            experiment.decisions.guardrails,
            experiment.decisions.plan,
            experiment.roster.index,
        )
        if not rails.at_work and not rails.served:
            return None
        pairs = tuple((index[a], index[b], duels) for (a, b), duels in rails.served.items())
        return cls(share_taken(plan, rails.settings) if plan else 0.0, pairs)


def why_pair(experiment: Experiment) -> str:
    """Why the plan's first pair of two arms is compared; empty before the first decision.

    If the plan has no such pair: why one arm is served alone. The sentence names the arms. The
    numbers are those of now; the decision may be some duels older.
    """
    plan, policy = experiment.decisions.plan, experiment.policy
    if plan is None:
        return ""
    compared = (each for each in plan.pairs if each.first != each.second)
    pair = next(compared, plan.pairs[0])
    if plan.frozen:
        return f"A guardrail has frozen {pair.first} and {pair.second}, whatever the policy wants."
    if plan.status != "running":
        ended = "Exploration has ended" if plan.status == "finished" else "The experiment is paused"
        return f"{ended}: only the champion, {pair.first}, is served."
    if pair.first == pair.second:
        return (
            f"The policy compares no pair now and serves {pair.first} alone: "
            f"{policy.candidates()} of {policy.n_arms} rankers are not ruled out."
        )
    batch = experiment.decisions.batch
    if batch is not None:
        return (
            f"{pair.first} and {pair.second} are in the open batch, which wants {batch[1]:,} more "
            f"duels; the next decision comes when it is complete."
        )
    index = experiment.roster.index
    return policy.explain(index[pair.first], index[pair.second], experiment.roster.arms)
