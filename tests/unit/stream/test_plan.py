"""Plans: pairs, shares and equality."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from streamduel import policies
from streamduel.config.changes import batch_bytes
from streamduel.policies import Policy, create
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.records import Status
from streamduel.stream.plan import PairPlan, Plan, alone, batch, frozen, slate
from tests.unit.stream.folding import DUELS, Partition, config, text

ARMS = ["bm25", "ltr-v1", "ltr-v2", "dense"]
BATCHED = [name for name in policies.names() if issubclass(policies.get(name), BatchedPolicy)]


class Scripted(Policy):
    """Proposes the pairs of a script; the champion is the arm that won a duel."""

    name = "scripted"
    summary = "as told"
    paper = "none"
    script: Sequence[tuple[int, int]] = ()

    def _choose(self, t: int) -> tuple[int, int]:
        return self.script[t - 1 - self.duels]

    def candidates(self) -> int:
        return self.n_arms


def scripted(champion: int, *script: tuple[int, int]) -> Policy:
    policy = Scripted(len(ARMS))
    policy.script = script
    policy.observe(champion, champion - 1, 1.0)
    return policy


def test_the_champion_alone_gets_everything() -> None:
    for status in ("paused", "finished"):
        plan = alone(scripted(3), ARMS, status)
        assert plan == Plan("dense", (PairPlan("dense", "dense", 1),), "scripted", status)
        assert [(pair.a, pair.b, pair.share, pair.remaining) for pair in plan.shares()] == [
            ("dense", "dense", 1.0, None)
        ]


@pytest.mark.parametrize("pair", [(0, 2), (2, 0)])
def test_a_slate_of_one_is_one_pair_in_the_order_of_arms(pair: tuple[int, int]) -> None:
    plan = slate(scripted(1, pair), ARMS, 1)
    assert plan == Plan("ltr-v1", (PairPlan("bm25", "ltr-v2", 1),), "scripted", "running")


def test_a_frozen_pair_gets_everything() -> None:
    plan = frozen(scripted(3), ARMS, ("bm25", "ltr-v1"))
    assert plan.champion == "dense"
    assert [(pair.a, pair.b, pair.share) for pair in plan.shares()] == [("bm25", "ltr-v1", 1.0)]
    assert (plan.status, plan.frozen) == ("running", True)


def test_the_share_in_a_slate_is_the_frequency() -> None:
    policy = scripted(3, (3, 0), (1, 2), (0, 3), (2, 2), (0, 3), (1, 0), (2, 1), (0, 0))
    plan = slate(policy, ARMS, 8)
    assert plan.champion == "dense"
    assert plan.pairs == (
        PairPlan("bm25", "dense", 3),
        PairPlan("ltr-v1", "ltr-v2", 2),
        PairPlan("bm25", "bm25", 1),
        PairPlan("bm25", "ltr-v1", 1),
        PairPlan("ltr-v2", "ltr-v2", 1),
    )
    assert [pair.share for pair in plan.shares()] == [3 / 8, 2 / 8, 1 / 8, 1 / 8, 1 / 8]


def test_a_plan_does_not_depend_on_the_order_in_a_slate() -> None:
    script = [(0, 1), (2, 3), (1, 1), (3, 2), (0, 1)]
    forward = slate(scripted(2, *script), ARMS, 5)
    assert slate(scripted(2, *script[::-1]), ARMS, 5) == forward


def test_a_batch_is_served_in_proportion_to_remaining_duels() -> None:
    remaining = np.zeros((4, 4), dtype=np.int64)
    for first, second, lacking in ((0, 1, 2), (0, 3, 5), (1, 2, 1), (2, 3, 2)):
        remaining[first, second] = remaining[second, first] = lacking
    plan = batch(scripted(2), ARMS, remaining)
    assert plan == Plan(
        "ltr-v2",
        (
            PairPlan("bm25", "dense", 5, 5),
            PairPlan("bm25", "ltr-v1", 2, 2),
            PairPlan("ltr-v2", "dense", 2, 2),
            PairPlan("ltr-v1", "ltr-v2", 1, 1),
        ),
        "scripted",
        "running",
    )
    assert [pair.share for pair in plan.shares()] == [0.5, 0.2, 0.2, 0.1]
    assert [pair.remaining for pair in plan.shares()] == [5, 2, 2, 1]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 2**50), min_size=6, max_size=6).filter(any),
    st.sampled_from(["running", "paused", "finished"]),
)
def test_shares_sum_to_one_in_descending_order(lacking: list[int], status: Status) -> None:
    remaining = np.zeros((4, 4), dtype=np.int64)
    remaining[np.triu_indices(4, k=1)] = lacking
    plan = batch(create("rucb", 4), ARMS, remaining)
    plan = structs.replace(plan, status=status)
    shares = plan.shares()
    assert sum(pair.share for pair in shares) == pytest.approx(1, abs=1e-12)
    total = sum(lacking)
    for pair in shares:
        assert pair.remaining
        assert pair.share == pytest.approx(Fraction(pair.remaining, total), rel=1e-15)
    assert [pair.remaining for pair in shares] == sorted(filter(None, lacking), reverse=True)
    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan


def test_plans_differ_if_any_field_differs() -> None:
    plan = Plan("bm25", (PairPlan("bm25", "dense", 4, 4),), "c2b")
    others = [
        structs.replace(plan, stage="ccb"),
        structs.replace(plan, frozen=True),
        structs.replace(plan, champion="dense"),
        structs.replace(plan, status="paused"),
        structs.replace(plan, pairs=(PairPlan("bm25", "dense", 3, 3),)),
        structs.replace(plan, pairs=(PairPlan("bm25", "dense", 4),)),
        structs.replace(plan, pairs=(PairPlan("bm25", "ltr-v1", 4, 4),)),
        structs.replace(plan, pairs=(*plan.pairs, PairPlan("bm25", "ltr-v1", 4, 4))),
    ]
    assert all(other != plan for other in others)
    for one in [plan, *others]:
        assert msgspec.convert(msgspec.to_builtins(one), Plan) == one


@pytest.mark.parametrize("length", [4, 80])
@pytest.mark.parametrize("segments", [{}, {"class": ["x"]}])
@pytest.mark.parametrize("policy", BATCHED)
def test_the_estimated_size_of_a_batched_plan_is_that_of_its_entry(
    policy: str, segments: dict[str, list[str]], length: int
) -> None:
    arms = [f"{number:0{length}}" for number in range(100)]
    chosen = {"name": policy, "horizon": 10**12}
    settings = config(
        search={"arms": arms, "policy": chosen, "decide_every": 4950, "segments": segments}
    )
    partition = Partition(settings)
    counts = {"wins_a": 300_000, "wins_b": 300_000, "ties": 399_999}
    duels = [
        text(DUELS, id=f"{a}-{b}", a=a, b=b, segment={"class": "x"}, **counts)
        for a, b in combinations(arms, 2)
    ]
    commit = partition.fold(*duels)
    assert not commit.dead_letters
    entries = [*partition.begun.entries.values(), *commit.entries.values()]
    entry = max(map(len, entries))
    estimate = batch_bytes(settings.experiments["search"], arms)
    assert entry < estimate < 1.8 * entry
