"""Guardrails: floors, caps, frozen pairs and expiring assignments, by hand and at random."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.config.experiment import GuardrailSettings
from streamduel.records import MAX_TIME, PairShare
from streamduel.stream.guardrails import guarded_shares, share_taken
from streamduel.stream.plan import PairPlan, Plan
from tests.unit.stream.folding import (
    CONTROL,
    DUEL,
    DUELS,
    Partition,
    config,
    letters,
    searched,
    text,
)

NAMES = ["bm25", "ltr-v1", "ltr-v2", "dense"]
START = 1_790_000_000_000


def part(shares: list[PairShare], arm: str) -> float:
    """The share of the impressions in which an arm takes part."""
    return sum(pair.share for pair in shares if arm in {pair.a, pair.b})


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda pair: pair[0] <= pair[1]),
            min_size=1, max_size=8, unique=True,
        )
    )  # fmt: skip
    weights = [draw(st.integers(1, 50)) for _ in pairs]
    ordered = sorted(zip(weights, pairs, strict=True), key=lambda entry: -entry[0])
    return Plan(
        draw(st.sampled_from(NAMES)),
        tuple(PairPlan(NAMES[i], NAMES[j], weight) for weight, (i, j) in ordered),
        "rucb",
    )


@st.composite
def rails(draw: st.DrawFn) -> GuardrailSettings:
    floor = draw(st.none() | st.floats(0.01, 0.9))
    least = floor or 0.01
    return GuardrailSettings(
        control_arm=None if floor is None else "bm25",
        min_share=floor,
        max_share=draw(st.none() | st.floats(least, 1.0)),
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(plans(), rails())
def test_floors_and_caps_hold_for_every_plan(plan: Plan, limits: GuardrailSettings) -> None:
    shares = guarded_shares(plan, limits)
    assert sum(pair.share for pair in shares) == pytest.approx(1, abs=1e-9)
    assert all(0 < pair.share <= 1 + 1e-12 for pair in shares)
    assert [pair.share for pair in shares] == sorted((it.share for it in shares), reverse=True)
    assert len({(pair.a, pair.b) for pair in shares}) == len(shares)
    for arm in NAMES:
        if limits.max_share is not None and arm != plan.champion:
            assert part(shares, arm) <= limits.max_share + 1e-9
    held = {(pair.a, pair.b): pair.share for pair in shares}
    if limits.control_arm is not None:
        assert held["bm25", "bm25"] >= limits.floor - 1e-12
    for pair in plan.shares():
        if not {pair.a, pair.b} <= {plan.champion, limits.control_arm}:  # only these gain
            ceiling = (1 - limits.floor) * pair.share
            assert held.get((pair.a, pair.b), 0) <= ceiling + 1e-12
    assert 0 <= share_taken(plan, limits) <= 1


def test_a_frozen_pair_respects_the_floor_and_ignores_the_cap() -> None:
    limits = GuardrailSettings(control_arm="bm25", min_share=0.2, max_share=0.3)
    plan = Plan("dense", (PairPlan("ltr-v1", "ltr-v2", 1),), "rucb", frozen=True)
    held = {(pair.a, pair.b): pair.share for pair in guarded_shares(plan, limits)}
    assert held == {("ltr-v1", "ltr-v2"): 0.8, ("bm25", "bm25"): 0.2}
    assert share_taken(plan, limits) == 1


@settings(max_examples=100, deadline=None, derandomize=True)
@given(plans(), st.floats(0.01, 0.9))
def test_a_floor_is_additive(plan: Plan, floor: float) -> None:
    shares = guarded_shares(plan, GuardrailSettings(control_arm="bm25", min_share=floor))
    held = {(pair.a, pair.b): pair.share for pair in shares}
    for pair in plan.shares():
        extra = floor if pair.a == pair.b == "bm25" else 0
        assert held.pop((pair.a, pair.b)) == pytest.approx(extra + (1 - floor) * pair.share)
    assert held in ({}, {("bm25", "bm25"): floor})


def test_without_guardrails_a_plan_stays_as_it_is() -> None:
    plan = Plan("bm25", (PairPlan("bm25", "dense", 2, 7), PairPlan("bm25", "bm25", 1)), "rucb")
    assert guarded_shares(plan, GuardrailSettings()) == plan.shares()
    assert share_taken(plan, GuardrailSettings()) == 0


@pytest.mark.parametrize("status", ["paused", "finished"])
def test_a_paused_or_finished_plan_is_unchanged(status: Any) -> None:
    plan = Plan("dense", (PairPlan("dense", "dense", 1),), "rucb", status)
    limits = GuardrailSettings(control_arm="bm25", min_share=0.2, max_share=0.3)
    assert guarded_shares(plan, limits) == plan.shares()


# In the fold.


class Stream:
    """An experiment with guardrails, and control of stream time."""

    def __init__(self, guardrails: dict[str, Any], **experiment: Any) -> None:
        self.partition = Partition(config(search={"guardrails": guardrails, **experiment}))
        self.first = searched(self.partition.begun)
        self.now = START
        self._number = 0

    def fold(self, *records: bytes) -> list[dict[str, Any]]:
        commit = self.partition.fold_at(self.now, *records)
        self.verdicts = [(it["reason"], it["error"]) for it in letters(commit)]
        return searched(commit)

    def duel(self, a: str, b: str, winner: str | None = "a") -> list[dict[str, Any]]:
        self._number += 1
        return self.fold(text(DUEL, id=f"{self._number}", a=a, b=b, winner=winner))

    def control(self, action: str, **fields: str) -> list[dict[str, Any]]:
        self._number += 1
        return self.fold(text(CONTROL, id=f"{self._number}", action=action, **fields))

    @property
    def served(self) -> dict[tuple[str, str], int]:
        served = self.partition.task.experiments["search"].decisions.guardrails.served
        again = self.partition.restarted().task.experiments["search"].decisions.guardrails.served
        assert again == served
        return served


def shares(assignment: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(pair["a"], pair["b"]): pair["share"] for pair in assignment["pairs"]}


def test_the_control_arm_is_served_alone_beside_the_policys_pair() -> None:
    stream = Stream({"control_arm": "bm25", "min_share": 0.1})
    [first] = stream.first
    pair = next((it["a"], it["b"]) for it in first["pairs"] if it["share"] > 0.5)
    assert shares(first) == {pair: 0.9, ("bm25", "bm25"): 0.1}


def test_duels_served_for_the_control_arm_are_counted_across_a_restart() -> None:
    stream = Stream({"control_arm": "bm25", "min_share": 0.1})
    for _ in range(3):
        stream.duel("bm25", "bm25", None)
        stream.duel("ltr-v1", "ltr-v2")
    assert stream.served == {("bm25", "bm25"): 3}
    stream.control("pause")
    stream.duel("bm25", "bm25", None)
    assert stream.served == {("bm25", "bm25"): 3}, "paused: no guardrail asked for it"
    stream.control("resume")
    stream.control("reset")
    assert stream.served == {}


@pytest.mark.parametrize("bulk", [False, True])
def test_duels_of_the_control_arm_with_another_arm_are_not_served_for_it(bulk: bool) -> None:
    stream = Stream({"control_arm": "bm25", "min_share": 0.1}, decide_every=1000)
    duels = [
        text(DUEL, id=f"{number}", a="bm25", b=("bm25", "ltr-v1", "ltr-v2")[number % 3])
        for number in range(300)
    ]
    for records in [duels] if bulk else [[duel] for duel in duels]:
        stream.fold(*records)
    assert stream.served == {("bm25", "bm25"): 100}


def test_guardrails_change_shares_not_quotas_of_a_batch() -> None:
    policy = {"name": "c2b", "horizon": 1000}
    [first] = Stream({"control_arm": "ltr-v2", "min_share": 0.25}, policy=policy).first
    free = Stream({}, policy=policy).first[0]
    wanted = {(it["a"], it["b"]): it for it in free["pairs"]}
    for pair in first["pairs"]:
        if pair["a"] == pair["b"]:
            assert (pair["a"], pair["share"], pair["remaining"]) == ("ltr-v2", 0.25, None)
        else:
            other = wanted.pop((pair["a"], pair["b"]))
            assert pair["share"] == pytest.approx(0.75 * other["share"])
            assert pair["remaining"] == other["remaining"]
    assert not wanted


def test_a_pair_frozen_by_configuration_is_served_and_its_duels_count() -> None:
    stream = Stream({"freeze_pair": ["ltr-v1", "bm25"]})
    [first] = stream.first
    assert list(shares(first)) == [("ltr-v1", "bm25")]
    published = [it for _ in range(30) for it in stream.duel("bm25", "ltr-v1", "b")]
    assert all(list(shares(it)) == [("ltr-v1", "bm25")] for it in published)
    assert stream.partition.wins()[1][0] == 30
    assert stream.served == {("ltr-v1", "bm25"): 30}
    [after] = stream.control("unfreeze_pair")
    assert list(shares(after)) != [("ltr-v1", "bm25")]


@pytest.mark.parametrize(
    "policy", [{"name": "rucb"}, {"name": "c2b", "horizon": 1000}, {"name": "auto"}]
)
def test_a_pair_may_be_frozen_and_released(policy: dict[str, Any]) -> None:
    stream = Stream({}, policy=policy)
    before = stream.first[0]["pairs"]
    [frozen] = stream.control("freeze_pair", a="ltr-v2", b="bm25")
    assert shares(frozen) == {("bm25", "ltr-v2"): 1.0}
    assert frozen["status"] == "running"
    for _ in range(5):
        stream.duel("ltr-v1", "ltr-v2")
        stream.duel("bm25", "ltr-v2")
    stream.fold(text(DUELS, id="bulk", a="bm25", b="ltr-v2", wins_a=2, wins_b=1, ties=4))
    assert stream.served == {("bm25", "ltr-v2"): 12}
    [free] = stream.control("unfreeze_pair")
    assert shares(free) != {("bm25", "ltr-v2"): 1.0}
    if policy["name"] == "c2b":  # the batch continues
        lacking = {(it["a"], it["b"]): it["remaining"] for it in before}
        lacking["bm25", "ltr-v2"] -= 12
        lacking["ltr-v1", "ltr-v2"] -= 5
        after = {(it["a"], it["b"]): it["remaining"] for it in free["pairs"]}
        assert after == {pair: count for pair, count in lacking.items() if count > 0}


def test_an_invalid_pair_to_freeze_is_one_dead_letter() -> None:
    stream = Stream({})
    assert stream.control("freeze_pair", a="bm25") == []
    sentence = "'freeze_pair' must name two arms, 'a' and 'b' (found %s)."
    assert stream.verdicts == [("invalid_record", sentence % "at most one")]
    assert stream.control("freeze_pair", a="bm25", b="bm25") == []
    assert stream.verdicts == [("invalid_record", sentence % "'bm25' twice")]
    assert stream.control("freeze_pair", a="bm25", b="ltr-v3") == []
    [(reason, sentence)] = stream.verdicts
    assert reason == "unknown_arm"
    assert sentence.startswith("unknown arm 'ltr-v3' in experiment 'search'; did you mean 'ltr-v")


def test_an_arm_that_a_guardrail_needs_must_stay() -> None:
    fallback = {"arm": "ltr-v1", "idle_ms": 60_000}
    stream = Stream({"control_arm": "bm25", "min_share": 0.1, "fallback": fallback})
    stream.control("add_arm", arm="dense")
    stream.control("freeze_pair", a="ltr-v2", b="dense")
    for arm, why in (("bm25", "it is the control arm"), ("dense", "it is in the frozen pair"),
                     ("ltr-v1", "it is the fallback")):  # fmt: skip
        stream.control("retire_arm", arm=arm)
        assert stream.verdicts == [("invalid_record", f"arm '{arm}' must stay: {why}.")]
    stream.duel("ltr-v2", "dense")
    stream.control("unfreeze_pair")
    assert stream.served == {("ltr-v2", "dense"): 1}
    stream.control("retire_arm", arm="dense")
    assert stream.served == {}


# Assignments that expire.


IDLE = 60_000


def lapsing(**experiment: Any) -> Stream:
    return Stream({"fallback": {"arm": "bm25", "idle_ms": IDLE}}, **experiment)


def test_before_the_first_record_assignments_do_not_expire() -> None:
    stream = lapsing(decide_every=1000)
    [first] = stream.first
    assert (first["ts"], first["valid_until"], first["fallback"]) == (0, None, "bm25")
    [renewed] = stream.duel("bm25", "ltr-v1")
    assert (renewed["epoch"], renewed["ts"], renewed["duels"]) == (2, START, 0)
    assert renewed["valid_until"] == START + IDLE
    assert renewed["pairs"] == first["pairs"]


def test_an_assignment_is_renewed_halfway_while_records_come() -> None:
    stream = lapsing(decide_every=1000)
    stream.duel("bm25", "ltr-v1")
    epoch = 2
    for _ in range(6):
        stream.now += IDLE // 2 - 1
        assert stream.duel("bm25", "ltr-v1") == []
        stream.now += 1
        [renewed] = stream.duel("bm25", "ltr-v1")
        epoch += 1
        assert renewed["epoch"] == epoch
        assert renewed["valid_until"] == stream.now + IDLE
        assert renewed["duels"] == stream.partition.duels() - 1, "as of the record before"
        assert renewed["offset"] == len(stream.partition.log) - 2


def test_the_validity_ends_at_the_latest_time_that_a_record_can_have() -> None:
    stream = lapsing()
    stream.now = MAX_TIME - 1
    [renewed, *_] = stream.duel("bm25", "ltr-v1")
    assert renewed["valid_until"] == MAX_TIME
    assert stream.partition.restarted().duels() == 1


OTHERS = text(DUEL, experiment="ads", a="x", b="y")


@pytest.mark.parametrize("bulk", [True, False])
def test_records_of_other_experiments_renew_no_assignment(bulk: bool) -> None:
    stream = lapsing(decide_every=1000)
    stream.duel("bm25", "ltr-v1")
    stream.duel("bm25", "ltr-v1")
    stream.now += IDLE // 2
    [renewed] = stream.fold(OTHERS)
    for _ in range(5):
        stream.now += IDLE
        assert stream.fold(OTHERS.replace(b'"1"', b'"%d"' % stream.now)) == []
    stream.partition = stream.partition.restarted()
    counted = text(DUELS, id="b", a="bm25", b="ltr-v1", wins_a=0, wins_b=0, ties=3)
    back = stream.fold(counted) if bulk else stream.duel("bm25", "ltr-v1")
    assert [it["valid_until"] for it in back] == [stream.now + IDLE], "at once"
    assert back[0]["epoch"] == renewed["epoch"] + 1
    assert stream.duel("bm25", "ltr-v1") == []


def test_a_renewal_is_not_a_decision() -> None:
    plain, renewed = Stream({}, decide_every=50), lapsing(decide_every=50)
    for number in range(400):
        for stream in (plain, renewed):
            stream.duel("bm25", "ltr-v1", "ab"[number % 3 == 0])
            stream.now += 5_000
    states = [it.partition.task.experiments["search"].state()["policy"] for it in (plain, renewed)]
    assert states[0] == states[1]


@pytest.mark.parametrize("action", ["pause", "freeze_pair"])
def test_every_kind_of_plan_is_renewed(action: str) -> None:
    stream = lapsing(decide_every=1000)
    stream.duel("bm25", "ltr-v1")
    [changed] = stream.control(action, a="bm25", b="ltr-v1")
    assert changed["valid_until"] == START + IDLE
    stream.now += IDLE
    [renewed] = stream.duel("bm25", "ltr-v1")
    assert renewed["pairs"] == changed["pairs"]
    assert renewed["valid_until"] == START + 2 * IDLE


def test_without_a_fallback_assignments_do_not_expire() -> None:
    stream = Stream({}, decide_every=1000)
    stream.duel("bm25", "ltr-v1")
    stream.now += 10**9
    assert stream.duel("bm25", "ltr-v1") == []
    [last] = stream.control("pause")
    assert (last["valid_until"], last["fallback"]) == (None, None)


def test_the_state_is_json() -> None:
    stream = Stream({"control_arm": "bm25", "min_share": 0.1, "freeze_pair": ["bm25", "ltr-v1"]})
    stream.duel("ltr-v1", "bm25")
    state = stream.partition.task.experiments["search"].state()
    assert json.dumps(json.loads(json.dumps(state))) == json.dumps(state)
    assert state["guardrails"] == {
        "frozen": ["bm25", "ltr-v1"], "served": [["bm25", "ltr-v1", 1]],
    }  # fmt: skip
