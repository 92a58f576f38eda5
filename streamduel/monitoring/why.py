"""Why the first pair of an assignment is served, in a sentence."""

from __future__ import annotations

from streamduel.stream.experiment import Experiment


def why_pair(experiment: Experiment) -> str:
    """Why the pair with the largest share is served; empty before the first decision.

    The numbers are those of now; the decision may be some duels older.
    """
    plan, policy = experiment.decisions.plan, experiment.policy
    if plan is None:
        return ""
    pair = plan.pairs[0]
    if plan.frozen:
        return f"A guardrail has frozen {pair.first} and {pair.second}, whatever the policy wants."
    if plan.status != "running":
        ended = "Exploration has ended" if plan.status == "finished" else "The experiment is paused"
        return f"{ended}: only the champion, {pair.first}, is served."
    if pair.first == pair.second:
        return (
            f"No other ranker is worth a comparison now: {policy.candidates()} of "
            f"{policy.n_arms} are not ruled out, and {pair.first} is served alone."
        )
    if pair.remaining is not None:
        wanted = sum(each.remaining or 0 for each in plan.pairs)
        return (
            f"The batch was decided with {wanted:,} duels to come, {pair.remaining:,} of them of "
            f"{pair.first} and {pair.second}; the next decision comes when it is complete."
        )
    index = experiment.roster.index
    return policy.explain(index[pair.first], index[pair.second], experiment.roster.arms)
