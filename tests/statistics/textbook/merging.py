"""MergeRUCB and MergeDTS, tournaments in small groups of arms, which are pruned and merged: Zoghi,
Whiteson and de Rijke, "MergeRUCB: A Method for Large-Scale Online Ranker Evaluation", WSDM 2015,
Algorithm 1; Li, Markov, de Rijke and Zoghi, "MergeDTS: A Method for Effective Large-Scale Online
Ranker Evaluation", TOIS 2020, Algorithm 1, and its authors' program.

What the papers leave open, and the reading taken:

- The arms are shuffled and cut into groups of `size`, the last smaller.
- u_ij = mean + sqrt(α ln(t + C) / n), C = ((4α-1)K² / ((2α-1)δ))^(1/(2α-1)), or as given; t and
  the counts continue over all stages.
- Duel t belongs to group t mod (number of groups). There, beaten arms (u_ij < 1/2 for a j of the
  group) are dropped one at a time, at random, so that a cycle cannot empty the group.
- A group with one arm: MergeRUCB skips to the next group without a duel; MergeDTS joins it
  with the next group at once.
- MergeRUCB: champion uniform, challenger the largest u_jc among the others. MergeDTS: champion
  by a sampled tournament within the group, challenger the smallest of a second sample (the
  weakest arm), never the champion.
- After the duel: as soon as at most K/2^S arms are left (stage S = 1, 2, …) or only groups of one,
  groups are joined, the smallest with the largest, up to 3/2 of `size`; again, as long as a group
  has less than half of `size` and the number of groups still falls.
- The last arm: against itself.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.estimates import (
    largest,
    play,
    second_sample,
    smallest,
    tournament,
    upper,
)
from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Truths,
    jitted,
    new_history,
    one_of,
    settle,
    summary,
)


@jitted
def offset(n_arms: int, alpha: float, delta: float) -> float:
    """C(δ)."""
    power = 2 * alpha - 1
    return float(((4 * alpha - 1) * n_arms**2 / (power * delta)) ** (1 / power))


@jitted
def prune(group: Ints, m: int, wins: Ints, scale: float) -> None:
    """Drop the beaten arms of group m."""
    n_arms = len(group)
    while True:
        beaten = np.zeros(n_arms, dtype=np.bool_)
        for i in range(n_arms):
            for j in range(n_arms):
                if group[i] == m and group[j] == m and upper(wins, i, j, scale) < 0.5:
                    beaten[i] = True
        if not beaten.any():
            return
        group[one_of(beaten)] = -1


@jitted
def sizes(group: Ints, n_groups: int) -> Ints:
    """Number of arms of each group."""
    return np.array([np.sum(group == m) for m in range(n_groups)])


@jitted
def join_small_and_large(group: Ints, n_groups: int, size: int) -> int:
    """Join the smallest group with the largest and so on; returns the number of groups."""
    before = sizes(group, n_groups)
    order = np.argsort(before + np.random.random(n_groups))  # noqa: NPY002
    label = np.zeros(n_groups, dtype=np.int64)
    low, high, groups = 0, n_groups - 1, 0
    while low <= high:
        label[order[high]] = groups
        if low < high and before[order[low]] + before[order[high]] <= 1.5 * size:
            label[order[low]] = groups
            low += 1
        high -= 1
        groups += 1
    for arm in range(len(group)):
        if group[arm] >= 0:
            group[arm] = label[group[arm]]
    return groups


@jitted
def merge(group: Ints, n_groups: int, size: int) -> int:
    """Merge at the end of a stage; returns the number of groups."""
    while n_groups > 1:
        fewer = join_small_and_large(group, n_groups, size)
        done = fewer == n_groups or np.min(sizes(group, fewer)) >= 0.5 * size
        n_groups = fewer
        if done:
            break
    return n_groups


@jitted
def join_with_next(group: Ints, m: int, n_groups: int) -> int:
    """Join group m with the next one; returns the index of the joined group."""
    following = (m + 1) % n_groups
    for arm in range(len(group)):
        if group[arm] == m:
            group[arm] = following
    for arm in range(len(group)):
        if group[arm] > m:
            group[arm] -= 1
    return following - 1 if following > m else following


@jitted
def next_group(group: Ints, m: int, n_groups: int, wins: Ints, scale: float) -> int:
    """MergeRUCB: the first group from m with two arms left after pruning, or -1."""
    for k in range(n_groups):
        following = (m + k) % n_groups
        prune(group, following, wins, scale)
        if np.sum(group == following) > 1:
            return following
    return -1


@jitted
def joined_group(group: Ints, m: int, n_groups: int, wins: Ints, scale: float) -> tuple[int, int]:
    """MergeDTS: group m, joined with the next ones until two arms are left after pruning."""
    prune(group, m, wins, scale)
    while np.sum(group == m) == 1 and n_groups > 1:
        m = join_with_next(group, m, n_groups)
        n_groups -= 1
        prune(group, m, wins, scale)
    return m, n_groups


@jitted
def pair_of_merge_rucb(inside: Truths, wins: Ints, scale: float) -> tuple[int, int]:
    """Champion at random, challenger by upper bounds, both in the group."""
    champion = one_of(inside)
    bounds = np.array([upper(wins, j, champion, scale) for j in range(len(wins))])
    return champion, largest(bounds, inside & (np.arange(len(wins)) != champion))


@jitted
def pair_of_merge_dts(inside: Truths, wins: Ints) -> tuple[int, int]:
    """Champion by a sampled tournament, challenger the weakest of a second sample."""
    n_arms = len(wins)
    theta = tournament(wins)
    score = np.array([float(np.sum(inside & (theta[i] > 0.5))) for i in range(n_arms)])
    champion = largest(score, inside)
    others = inside & (np.arange(n_arms) != champion)
    return champion, smallest(second_sample(wins, champion), others)


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    alpha: float = 1.01,
    size: int = 4,
    delta: float = 0.01,
) -> tuple[Ints, Ints]:
    """MergeRUCB: α > 1/2, groups of `size` arms, δ the failure probability."""
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    constant = offset(n_arms, alpha, delta)
    group = np.random.permutation(n_arms) // size  # noqa: NPY002
    n_groups = group.max() + 1
    stage = 1
    for t in range(1, len(history) + 1):
        scale = alpha * np.log(t + constant)
        m = next_group(group, t % n_groups, n_groups, wins, scale)
        while m < 0 and n_groups > 1:  # no arm has an opponent
            n_groups = merge(group, n_groups, size)
            stage += 1
            m = next_group(group, t % n_groups, n_groups, wins, scale)
        if m < 0:
            settle(history, t, len(history), one_of(group >= 0))
            break
        champion, challenger = pair_of_merge_rucb(group == m, wins, scale)
        play(preferences, history, t, champion, challenger, wins)
        if n_groups > 1 and np.sum(group >= 0) <= n_arms / 2**stage:
            n_groups = merge(group, n_groups, size)
            stage += 1
    return summary(history, n_arms, checkpoints)


@jitted
def run_dts(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    alpha: float = 1.01,
    size: int = 4,
    delta: float = 0.01,
    constant: float = 0.0,
) -> tuple[Ints, Ints]:
    """MergeDTS: `constant` replaces C(δ) unless it is 0."""
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    if constant == 0.0:
        constant = offset(n_arms, alpha, delta)
    group = np.random.permutation(n_arms) // size  # noqa: NPY002
    n_groups = group.max() + 1
    stage = 1
    for t in range(1, len(history) + 1):
        scale = alpha * np.log(t + constant)
        m, n_groups = joined_group(group, t % n_groups, n_groups, wins, scale)
        if np.sum(group >= 0) == 1:
            settle(history, t, len(history), one_of(group >= 0))
            break
        champion, challenger = pair_of_merge_dts(group == m, wins)
        play(preferences, history, t, champion, challenger, wins)
        if n_groups > 1 and np.sum(group >= 0) <= n_arms / 2**stage:
            n_groups = merge(group, n_groups, size)
            stage += 1
    return summary(history, n_arms, checkpoints)


@jitted
def run_dts_as_measured(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int
) -> tuple[Ints, Ints]:
    """MergeDTS with the parameters of the paper's experiments, outside its theory."""
    return run_dts(preferences, horizon, checkpoints, seed, 0.8**6, 16, 0.01, 400_000.0)
