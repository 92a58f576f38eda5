"""The whole loop on a real Kafka: delayed and duplicate duels, changing arms, batches."""

from __future__ import annotations

import math
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import Run, configure
from tests.faults.processes import ROOT, RUN, streamduel
from tests.integration.evidence import Account, Evidence, batches
from tests.integration.simulated_service import (
    PATIENCE,
    ClosedLoop,
    Preferences,
    SimulatedService,
    preferences_by,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# The order of the users' and the policies' random numbers depends on the machine, so a policy must
# be right in any. The numbers below are of runs of these services and the fold in one process, with
# a lag of up to 1,500 records, control records anywhere while a command starts, and other seeds.

# In each of 190 runs hybrid beat all others by at least 3.1 standard errors, and at least 23 duels
# of the retired arm were in flight. An arm ahead of hybrid would meet it in most duels until it is
# not.
RANKERS = preferences_by(
    {"bm25": 0.0, "bm25-rm3": 0.05, "ltr-v1": 0.1, "dense": 0.15, "ltr-v2": 0.2, "hybrid": 0.3}
)
MEDIOCRE = ("bm25-rm3", "ltr-v1", "dense")

# In each of 550 runs only fusion was left after 7,400 to 39,100 duels; the horizon is 50,000.
SHOPS = preferences_by({"tfidf": 0.0, "bm25": 0.04, "clicks": 0.08, "dense": 0.12, "fusion": 0.16})

# In each of 1,000 runs only dense was left before fusion was added, and only fusion after at most
# 25,700 duels.
NEWCOMERS = preferences_by(
    {"tfidf": 0.0, "bm25": 0.05, "clicks": 0.1, "dense": 0.17, "fusion": 0.29}
)

WHILE_IT_STARTS = 1_000
"""Impressions served while a command starts; its record is somewhere among theirs."""


@contextmanager
def running(config: Path) -> Iterator[str]:
    """Run `streamduel run`; yields the URL of its metrics."""
    with subprocess.Popen(
        [*RUN, str(config)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            urls = (re.search(r"status page and metrics on (\S+)", line) for line in process.stderr)
            yield next(f"{found[1]}metrics" for found in urls if found)
            process.terminate()
            assert process.wait(timeout=PATIENCE) == 0
        finally:
            process.kill()
            print(process.stderr.read())  # pytest shows it if the test fails


def change(loop: ClosedLoop, run: Run, experiment: str, action: str, arm: str) -> None:
    """Run `streamduel control` while impressions are served."""
    with ThreadPoolExecutor(1) as beside:
        command = beside.submit(streamduel, "control", run.config, experiment, action, arm)
        loop.serve(WHILE_IT_STARTS)
        done = command.result()
    assert done.returncode == 0, done.stderr


def check_experiment(evidence: Evidence, service: SimulatedService, arms: Sequence[str]) -> Account:
    """Check what holds for every experiment and policy."""
    name = service.experiment
    log, found = evidence.log[name], evidence.inspected[name]
    account = Account(arms, log)
    assert len(log) == service.written + len(account.rosters) - 1
    assert found["tallies"] == account.tallies
    assert sum(found["tallies"].values()) == len(log)
    assert account.duplicates > 0
    assert evidence.dead_letters[name] == [(at, "unknown_arm") for at in account.dead_letters]
    assert found["arms"] == account.arms
    assert found["duels"] == account.duels
    assert found["wins"] == account.matrix()
    made = evidence.assignments[name]
    assert [each["epoch"] for each in made] == list(range(1, found["epoch"] + 1))
    assert service.assignments == made[: len(service.assignments)]
    for present, stretch in account.stretches(made):
        for assignment in stretch:
            check_pairs(assignment, present)
    assert found["champion"] == made[-1]["champion"] == best(service.preferences, account.arms)
    return account


def check_pairs(assignment: Mapping[str, Any], present: Sequence[str]) -> None:
    pairs = assignment["pairs"]
    assert math.fsum(pair["share"] for pair in pairs) == pytest.approx(1, abs=1e-12)
    named = {assignment["champion"], *(pair[side] for pair in pairs for side in "ab")}
    assert named <= set(present)


def best(preferences: Preferences, arms: Sequence[str]) -> str:
    """The Condorcet winner."""
    (winner,) = [a for a in arms if all(preferences[a][b] > 0.5 for b in arms if b != a)]
    return winner


def quotas(horizon: int) -> list[int]:
    """q_r = ⌊T^(r/B)⌋: the duels of a pair in each of the B = ⌊ln T⌋ batches of C2B."""
    most = int(math.log(horizon))
    return [int(horizon ** (number / most)) for number in range(1, most + 1)]


def demands(taken: Sequence[Sequence[Mapping[str, Any]]]) -> list[set[int]]:
    """The `remaining` of the pairs at the beginning of each batch."""
    return [{pair["remaining"] for pair in batch[0]["pairs"]} for batch in taken]


def is_over(assignment: Mapping[str, Any], champion: str) -> bool:
    """Whether exploration is finished and only the champion is served."""
    served = [(pair["a"], pair["b"], pair["share"]) for pair in assignment["pairs"]]
    return assignment["status"] == "finished" and served == [(champion, champion, 1.0)]


def wait_for_figures(url: str, expected: Mapping[str, float]) -> None:
    """Wait for metrics, which follow a commit."""
    deadline = time.monotonic() + PATIENCE
    while (found := figures(url, expected)) != expected:
        assert time.monotonic() < deadline, (found, expected)
        time.sleep(0.1)


def figures(url: str, names: Mapping[str, float]) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        samples = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines())
    return {name: float(samples[name]) for name in names}


def replay(run: Run, evidence: Evidence) -> None:
    """Check that a replay reproduces every assignment."""
    replayed = streamduel("replay", run.config)
    folded = sum(map(len, evidence.log.values()))
    equal = sum(map(len, evidence.assignments.values()))
    expected = f"{folded:,} records folded again, {equal:,} assignments equal, states equal."
    assert expected in replayed.stdout, replayed.stdout + replayed.stderr


def test_the_best_arm_is_found_with_delayed_outcomes_and_changing_arms(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    horizon = 50_000
    began, shops = [arm for arm in RANKERS if arm != "hybrid"], list(SHOPS)
    adaptive = {
        "arms": began, "policy": {"name": "double_thompson"}, "decide_every": 50, "slate": 50,
    }  # fmt: skip
    batched = {
        "arms": shops, "policy": {"name": "c2b", "horizon": horizon}, "batch_republish_ms": 1000,
    }  # fmt: skip
    run = configure(
        tmp_path, kafka.bootstrap_servers, topics(4), topics,
        monitoring={"port": 0}, experiments={"search": adaptive, "products": batched},
    )  # fmt: skip
    search = SimulatedService("search", RANKERS, seed=1)
    products = SimulatedService("products", SHOPS, seed=2)
    with running(run.config) as metrics, ClosedLoop(run, search, products) as loop:
        loop.serve(24_000)
        change(loop, run, "search", "add-arm", "hybrid")
        loop.follow_until(lambda: search.offers("hybrid"))
        loop.serve(1_000)
        # No duel of hybrid is known yet, so it still meets every arm.
        retired = max(MEDIOCRE, key=search.in_flight_of)
        change(loop, run, "search", "retire-arm", retired)
        doomed = search.in_flight_of(retired)
        loop.serve(60_000 - search.served)
        loop.end()
        evidence = Evidence(run)
        found = check_experiment(evidence, search, began)
        check_experiment(evidence, products, shops)
        taken = batches(evidence.assignments["products"])
        wait_for_figures(metrics, {
            'streamduel_records_total{experiment="search",outcome="accepted"}': found.accepted,
            'streamduel_records_total{experiment="search",outcome="duplicate"}': found.duplicates,
            'streamduel_dead_letters_total{reason="unknown_arm"}': len(found.dead_letters),
            'streamduel_batch_round{experiment="products"}': len(taken),
        })  # fmt: skip
    assert found.arms == [*(arm for arm in began if arm != retired), "hybrid"]
    assert len(found.dead_letters) >= doomed > 0
    asked = quotas(horizon)
    assert len(taken) <= len(asked)
    assert demands(taken) == [{quota} for quota in asked[: len(taken)]]
    assert is_over(evidence.assignments["products"][-1], champion="fusion")
    replay(run, evidence)


def test_c2b_restarts_its_batches_when_arms_change(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    horizon = 30_000
    began = [arm for arm in NEWCOMERS if arm != "fusion"]
    settings = {"arms": began, "policy": {"name": "c2b", "horizon": horizon}}
    run = configure(
        tmp_path, kafka.bootstrap_servers, topics(4), topics,
        monitoring={"port": 0}, experiments={"products": settings},
    )  # fmt: skip
    products = SimulatedService("products", NEWCOMERS, seed=3)
    with running(run.config), ClosedLoop(run, products) as loop:
        loop.serve(2_500)
        change(loop, run, "products", "retire-arm", "bm25")
        loop.serve(20_000 - products.served)
        change(loop, run, "products", "add-arm", "fusion")
        loop.serve(34_000 - products.served)
        loop.end()
        evidence = Evidence(run)
    account = check_experiment(evidence, products, began)
    before, between, after = (
        made for _, made in account.stretches(evidence.assignments["products"])
    )
    # Each change takes effect at its offset; before the second one the experiment has finished.
    since = [made[0]["offset"] for made in (before, between, after)]
    assert since == [offset for offset, _ in account.rosters]
    assert is_over(between[-1], champion="dense")
    assert after[0]["status"] == "running"
    assert is_over(after[-1], champion="fusion")
    asked = quotas(horizon)
    first, second, third = batches(before), batches(between), batches(after)
    # The counts are kept: the arms that stay have met often enough for the first batch, which ends
    # at once; a new arm needs a few duels with each of the others.
    assert demands(first) == [{quota} for quota in asked[: len(first)]]
    assert demands(second) == [{quota} for quota in asked[1 : 1 + len(second)]]
    assert demands(third) == [{quota} for quota in asked[: len(third)]]
    meetings = {(pair["a"], pair["b"]) for pair in third[0][0]["pairs"]}
    assert meetings == {(arm, "fusion") for arm in account.arms if arm != "fusion"}
    # At most B between two changes; in all, there may be more.
    assert max(map(len, (first, second, third))) <= len(asked)
    replay(run, evidence)
