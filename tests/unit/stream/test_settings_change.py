"""The control action `apply`: a running experiment continues with other settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamduel import policies
from streamduel.config import Config
from streamduel.stream import settings_change
from streamduel.stream.replay import replay
from streamduel.testing import Broker, MemoryOutlet, Record
from streamduel.testing.broker import run as run_broker
from tests.unit.stream.folding import (
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    assignments,
    config,
    letters,
    text,
)
from tests.unit.stream.restarts import run


def apply(number: int = 0, **settings: Any) -> bytes:
    return text(CONTROL, id=f"apply-{number}", action="apply", settings=settings)


def duels(count: int, first: int = 0) -> list[bytes]:
    """Duels of all pairs, of which the later arm wins three in four."""
    pairs = [("bm25", "ltr-v1"), ("bm25", "ltr-v2"), ("ltr-v1", "ltr-v2")]
    return [
        text(DUEL, id=f"d-{at}", a=pairs[at % 3][0], b=pairs[at % 3][1], winner="abbb"[at % 4])
        for at in range(first, first + count)
    ]


def settings(partition: Partition) -> Any:
    return partition.task.experiments["search"].settings


def required(name: str) -> dict[str, Any]:
    """The parameters without a default."""
    declared = policies.get(name).declared.values()
    return {each.name: 10_000 for each in declared if each.required}


def test_decisions_follow_the_new_interval() -> None:
    partition = Partition(config(search={"policy": {"name": "uniform"}}))
    often = assignments(partition.fold(*duels(40)))
    changed = assignments(partition.fold(apply(decide_every=20)))
    rarely = assignments(partition.fold(*duels(40, 40)))
    assert [len(changed), len(often) > 20, len(rarely) <= 2] == [1, True, True]
    assert settings(partition).decide_every == 20


def test_a_guardrail_holds_at_once() -> None:
    partition = Partition(config(search={"decide_every": 1000}))
    partition.fold(*duels(10))
    rails = {"control_arm": "bm25", "min_share": 0.25}
    (assignment,) = assignments(partition.fold(apply(guardrails=rails)))
    shares = {(pair["a"], pair["b"]): pair["share"] for pair in assignment["pairs"]}
    assert shares["bm25", "bm25"] >= 0.25
    retired = text(CONTROL, id="r", action="retire_arm", arm="bm25")
    assert letters(partition.fold(retired))[0]["error"].endswith("it is the control arm.")
    (assignment,) = assignments(partition.fold(apply(1, guardrails={})))
    assert ("bm25", "bm25") not in {(pair["a"], pair["b"]) for pair in assignment["pairs"]}


def test_a_pair_freezes_and_stays_frozen_while_other_settings_change() -> None:
    partition = Partition()
    (assignment,) = assignments(
        partition.fold(apply(guardrails={"freeze_pair": ["ltr-v2", "bm25"]}))
    )
    assert [(pair["a"], pair["b"]) for pair in assignment["pairs"]] == [("bm25", "ltr-v2")]
    partition.fold(apply(1, decide_every=5))
    assert partition.task.experiments["search"].decisions.guardrails.frozen == ("bm25", "ltr-v2")
    partition.fold(apply(2, guardrails={}))
    assert partition.task.experiments["search"].decisions.guardrails.frozen is None


def test_a_fallback_begins_and_ends() -> None:
    partition = Partition()
    partition.fold(*duels(5))
    (assignment,) = assignments(partition.fold(apply(guardrails={"fallback": {"arm": "bm25"}})))
    assert (assignment["fallback"], assignment["valid_until"]) == ("bm25", 5 + 600_000)
    (assignment,) = assignments(partition.fold(apply(1, guardrails={})))
    assert (assignment["fallback"], assignment["valid_until"]) == (None, None)


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_takes_over_the_counts(name: str) -> None:
    partition = Partition(config(search={"policy": {"name": "rucb"}}))
    partition.fold(*duels(60))
    wins, epoch = partition.wins(), partition.task.experiments["search"].decisions.epoch
    (assignment,) = assignments(partition.fold(apply(policy={"name": name, **required(name)})))
    assert (assignment["policy"], assignment["epoch"]) == (name, epoch + 1)
    assert (partition.wins(), partition.duels()) == (wins, 60)
    partition.fold(*duels(30, 60))
    assert partition.duels() == 90
    assert partition.restarted().knows() == partition.knows()


def test_a_window_begins_empty_and_is_kept_by_a_policy_with_the_same() -> None:
    partition = Partition(config(search={"policy": {"name": "rucb"}}))
    partition.fold(*duels(100), apply(policy={"name": "rucb", "window": 32}))
    policy = partition.task.experiments["search"].policy
    assert (policy.duels, policy.state_dict()["counts"]["recent"]) == (100, [[]] * 16)
    partition.fold(*duels(20, 100))
    recent = partition.task.experiments["search"].policy.state_dict()["counts"]["recent"]
    partition.fold(apply(1, policy={"name": "double_thompson", "window": 32}))
    policy = partition.task.experiments["search"].policy
    assert policy.name == "double_thompson"
    assert policy.state_dict()["counts"]["recent"] == recent
    partition.fold(apply(2, policy={"name": "rucb"}))
    assert partition.duels() == 120
    assert sum(map(sum, partition.wins())) == 120


def test_a_higher_confidence_starts_a_finished_experiment_again() -> None:
    partition = Partition()
    partition.fold(
        text(DUELS, id="1", a="bm25", b="ltr-v1", wins_a=45, wins_b=5),
        text(DUELS, id="2", a="bm25", b="ltr-v2", wins_a=45, wins_b=5),
    )
    (sure,) = assignments(partition.fold(apply(stop={"confidence": 0.9})))
    (unsure,) = assignments(partition.fold(apply(1, stop={"confidence": 0.999999999999})))
    (again,) = assignments(partition.fold(apply(2, stop={"confidence": 0.9})))
    assert [it["status"] for it in (sure, unsure, again)] == ["finished", "running", "finished"]


def test_credit_holds_for_what_comes() -> None:
    partition = Partition()
    shown = {"teams": ["a", "b", "b"], "clicks": [0, 1, 2]}
    partition.fold(text(INTERLEAVING, id="1", **shown))
    partition.fold(apply(credit={"name": "first_click"}, ties="drop"))
    partition.fold(text(INTERLEAVING, id="2", **shown), text(DUEL, id="3", winner="tie"))
    assert (partition.wins()[0][1], partition.wins()[1][0], partition.duels()) == (1, 1, 2)


def test_arms_join_and_leave_together_with_the_settings_that_name_them() -> None:
    rails = {"control_arm": "bm25", "min_share": 0.1}
    partition = Partition(config(search={"guardrails": rails}))
    partition.fold(*duels(30))
    between = partition.wins()[1][2]
    new = {"control_arm": "dense", "min_share": 0.1}
    partition.fold(apply(arms=["dense", "ltr-v2", "ltr-v1"], guardrails=new))
    experiment = partition.task.experiments["search"]
    assert experiment.roster.arms == ["ltr-v1", "ltr-v2", "dense"]
    assert (partition.wins()[0][1], partition.duels()) == (between, 30)
    partition.fold(text(DUEL, id="x", a="dense", b="ltr-v1"))
    assert partition.wins()[2] == [1, 0, 0]
    assert experiment.duels.by_arm.fought == [21, 20, 1]
    assert partition.restarted().knows() == partition.knows()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"slate": 0}, "settings.slate must be an integer from 1 to 10000 (found 0)."),
    # In a file, it would be absent.
    ({"guardrails": None}, "settings.guardrails must be a mapping (found nothing)."),
    ({"slates": 1}, "unknown key 'settings.slates'; did you mean 'slate'?"),
    ({"max_per_client": 3}, "settings.max_per_client must stay null while the experiment runs"),
    ({"join_window_ms": 5}, "settings.join_window_ms must stay null while"),
    ({"policy": {"name": "rubc"}}, "(found 'rubc'); did you mean 'rucb'?"),
    ({"policy": {"name": "x" * 200_000}}, "(found 'xxx"),
    ({"policy": {"name": "rucb", "alpha": [[]] * 1000}}, "number (found a list of 1000)."),
    ({"policy": {"name": "rucb", "alpha": [[]] * 10**5}}, "at most 262144 bytes (found 400"),
    (dict.fromkeys(map(str, range(101)), 1), "settings must be an object with 1 to 100 keys"),
    ({"x" * 257: 1}, "settings must be an object whose keys have 1 to 256 characters"),
    ({"policy": {"name": "rucb", "alpha": 0.1}}, "settings.policy.alpha must be greater than 0.5"),
    ({"guardrails": {"control_arm": "x", "min_share": 0.1}}, "control_arm must be one of the arms"),
    ({"arms": ["bm25"]}, "settings.arms must be"),
    ({"arms": ["bm25", "bm25"]}, "settings.arms has 'bm25' twice."),
    ({"aim": "earn", "stop": {"confidence": 0.9}}, "settings.aim must be 'identify'"),
    ({"prior": {"scores": {"nobody": 1.0}}}, "must name arms"),
    ({"prior": {"scores": dict.fromkeys(map(str, range(1001)), 1.0)}}, "at most 1000 entries"),
    ({"prior": {"wins": {"bm25": dict.fromkeys(map(str, range(1001)), 1.0)}}}, "at most 1000"),
    ({"segments": {"class": list(map(str, range(33)))}}, "settings.segments.class must be"),
    ({"segments": {"class": ["x"] * 20, "device": ["y"] * 20}}, "at most 32 names in all"),
    ({"owner": "me"}, "settings.owner is read from the configuration alone."),
    ({"decide_every": 10**30}, "settings.decide_every must be"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "sentence"), REFUSED, ids=lambda it: str(it)[:30])
def test_settings_that_are_not_allowed_are_one_dead_letter(
    wanted: dict[str, Any], sentence: str
) -> None:
    partition = Partition()
    partition.fold(*duels(10))
    before = partition.knows()
    (letter,) = letters(partition.fold(apply(**wanted)))
    assert letter["reason"] == "invalid_record"
    assert sentence in letter["error"]
    assert len(letter["error"]) < 600
    assert partition.knows() == before


def test_a_join_window_that_stays_the_same_is_allowed() -> None:
    partition = Partition()
    assert letters(partition.fold(apply(join_window_ms=600_000, slate=3))) == []
    settings = partition.task.experiments["search"].settings
    assert (settings.join_window_ms, settings.slate) == (600_000, 3)
    assert partition.restarted().knows() == partition.knows()


@pytest.mark.parametrize("found", [None, {}, [], "x", 5])
def test_an_apply_needs_settings(found: Any) -> None:
    partition = Partition()
    record = text(CONTROL, id="1", action="apply", settings=found)
    (letter,) = letters(partition.fold(record))
    assert letter["reason"] == "invalid_record"
    assert "settings" in letter["error"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(b"1e999", "settings has a number that is out of range."), (b'"\\ud800x"', "is not JSON: ")],
)
def test_settings_that_cannot_be_decoded_are_refused(value: bytes, sentence: str) -> None:
    record = apply(seed=987654).replace(b"987654", value)
    (letter,) = letters(Partition().fold(record))
    assert sentence in letter["error"]


def test_an_arm_of_a_frozen_pair_stays() -> None:
    partition = Partition()
    partition.fold(text(CONTROL, id="f", action="freeze_pair", a="bm25", b="ltr-v1"))
    (letter,) = letters(partition.fold(apply(arms=["ltr-v1", "ltr-v2"])))
    assert letter["error"].endswith("arm 'bm25' must stay: it is in the frozen pair.")


def test_a_pair_that_is_not_frozen_any_more_may_name_a_retired_arm() -> None:
    partition = Partition(config(search={"guardrails": {"freeze_pair": ["bm25", "ltr-v1"]}}))
    (letter,) = letters(partition.fold(apply(arms=["ltr-v1", "ltr-v2"])))
    assert letter["error"].endswith("arm 'bm25' must stay: it is in the frozen pair.")
    unfreeze = text(CONTROL, id="u", action="unfreeze_pair")
    partition.fold(unfreeze, text(CONTROL, id="r", action="retire_arm", arm="bm25"))
    assert letters(partition.fold(apply(1, decide_every=9))) == []
    assert settings(partition).decide_every == 9
    assert partition.restarted().knows() == partition.knows()
    (letter,) = letters(partition.fold(apply(2, guardrails={"freeze_pair": ["bm25", "ltr-v2"]})))
    assert "settings.guardrails.freeze_pair must be one of the arms" in letter["error"]


CHANGES: list[dict[str, Any]] = [
    {"decide_every": 3, "slate": 4},
    {"policy": {"name": "c2b", "horizon": 10_000}, "batch_deadline_ms": 50},
    {"guardrails": {"control_arm": "ltr-v1", "min_share": 0.2, "fallback": {"arm": "bm25"}}},
    {"policy": {"name": "double_thompson", "window": 40}, "ties": "drop"},
    {"arms": ["bm25", "ltr-v1", "dense"], "credit": {"name": "any_click"}},
    {"policy": {"name": "top_two"}, "stop": {"confidence": 0.6}},
]  # fmt: skip


def log() -> list[Record]:
    values: list[bytes] = []
    for number, change in enumerate(CHANGES):
        values += [*duels(37, 37 * number), apply(number, **change)]
    values += duels(20, 300)
    return [Record(at, value, 3 * at) for at, value in enumerate(values)]


def test_restarts_anywhere_change_nothing() -> None:
    records = log()
    undisturbed = run(config(), records, [], set())
    cuts = list(range(1, len(records), 5))
    assert run(config(), records, cuts, set(cuts)) == undisturbed


def test_a_replay_agrees_with_the_settings_at_their_time() -> None:
    broker = Broker([record.value or b"" for record in log()])
    run_broker(config(), broker)
    later = config(search={"decide_every": 7, "policy": {"name": "scb"}})
    for configuration in (config(), later):
        verdict = replay(configuration, broker.source(), MemoryOutlet(broker))
        assert (verdict.difference, verdict.records) == (None, len(log()))


def restarted(entries: dict[str, bytes], configuration: Config) -> Partition:
    return Partition(configuration, entries=entries)


def keys(partition: Partition) -> list[str]:
    found = settings_change.pending(partition.task.experiments["search"])
    return [difference.key for difference in found]


def test_a_changed_configuration_waits_for_its_control_record() -> None:
    partition = Partition()
    partition.fold(*duels(5))
    changed = config(search={"decide_every": 9, "slate": 2})
    again = restarted(partition.entries, changed)
    assert (settings(again).decide_every, keys(again)) == (1, ["decide_every", "slate"])
    again.fold(apply(decide_every=9))
    assert keys(again) == ["slate"]
    again.fold(apply(1, slate=2))
    assert keys(again) == []
    assert keys(restarted(again.entries, changed)) == []
    assert keys(restarted(again.entries, config())) == ["decide_every", "slate"]


def test_settings_are_restored_and_their_origin_is_kept() -> None:
    partition = Partition()
    partition.fold(apply(decide_every=9), apply(1, slate=2))
    again = partition.restarted()
    assert (settings(again).decide_every, settings(again).slate) == (9, 2)
    entry = json.loads(again.entries["experiment/search"])
    assert entry["settings"]["decide_every"] == 1
    assert entry["state"]["applied"] == {"decide_every": 9, "slate": 2}


@pytest.mark.parametrize(
    ("arms", "found"),
    [
        (["ltr-v2", "bm25", "ltr-v1"], []),  # the order means nothing
        (["bm25", "ltr-v1", "ltr-v2", "dense"], []),  # the present arms
        (["bm25", "ltr-v1"], ["arms"]),
    ],
)
def test_arms_of_control_records_are_no_difference(arms: list[str], found: list[str]) -> None:
    partition = Partition()
    partition.fold(text(CONTROL, action="add_arm", arm="dense"))
    assert keys(restarted(partition.entries, config(search={"arms": arms}))) == found


ADDED = [text(CONTROL, id=arm, action="add_arm", arm=arm) for arm in ("dense", "hybrid")]


@pytest.mark.parametrize(
    ("configured", "applied"),
    [
        (["bm25", "ltr-v1", "ltr-v2", "new"], ["bm25", "ltr-v1", "ltr-v2"]),
        (["bm25", "new"], ["bm25"]),
        (["dense", "new"], []),  # the settings list two arms in any case
        (["dense", "hybrid"], []),
    ],
)
def test_arms_of_control_records_stay_after_a_change_of_arms(
    configured: list[str], applied: list[str]
) -> None:
    new = ["new"] if "new" in configured else []
    partition = Partition()
    partition.fold(*ADDED)
    changed = restarted(partition.entries, config(search={"arms": configured}))
    assert keys(changed) == ["arms"]
    changed.fold(apply(arms=[*applied, "dense", "hybrid", *new]))
    for again in (changed, restarted(changed.entries, config(search={"arms": configured}))):
        assert again.task.experiments["search"].roster.arms == [*applied, "dense", "hybrid", *new]
        assert keys(again) == []
    assert changed.restarted().knows() == changed.knows()
    without = restarted(changed.entries, config(search={"arms": ["dense", "hybrid"]}))
    assert keys(without) == (["arms"] if applied or new else [])


def test_a_prior_may_name_an_arm_of_a_control_record() -> None:
    partition = Partition()
    arms = ["bm25", "ltr-v1", "ltr-v2", "dense", "hybrid", "new"]
    partition.fold(*ADDED, apply(arms=arms, prior={"scores": {"dense": 1.0, "bm25": 0.5}}))
    assert letters(partition.fold(apply(1, prior={"scores": {"hybrid": 1.0}}))) == []
    retired = text(CONTROL, id="r", action="retire_arm", arm="hybrid")
    assert letters(partition.fold(retired, apply(2, decide_every=9))) == []
    assert partition.restarted().knows() == partition.knows()
