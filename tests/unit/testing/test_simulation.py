"""The simulation: the service survives a thousand schedules, and no defect put back does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import get_args

import pytest

from streamduel.records import Action
from streamduel.testing.simulation import Failure, Schedule, simulate
from streamduel.testing.simulation.__main__ import main
from streamduel.testing.simulation.workload import CONTROLS
from tests.unit.testing.defects import DEFECTS

SCHEDULES = 250
"""Of each test: half a minute of one core."""

FOUND_WITHIN = 1500
"""Schedules, somewhat less than a minute; the rarest defect is found after 400."""

FOUND_BY = {
    "moved_with_former_offsets": 400,
    "removed_experiment_forgotten": 287,
    "told_by_the_offset_alone": 328,
}
"""Seeds that find the rare defects; they are tried first, because the search takes a minute."""


def test_every_control_action_is_tried() -> None:
    assert {control["action"] for control in CONTROLS} == set(get_args(Action))


def survive(seeds: Iterable[int]) -> None:
    for seed in seeds:
        simulate(seed)


@pytest.mark.slow
@pytest.mark.parametrize("quarter", range(4))
def test_the_service_survives_every_schedule(quarter: int) -> None:
    survive(range(quarter * SCHEDULES, (quarter + 1) * SCHEDULES))


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_that_is_put_back_is_found(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS[defect](monkeypatch)
    with pytest.raises(Failure, match="To repeat it"):
        survive(chain([FOUND_BY.get(defect, 0)], range(FOUND_WITHIN)))


def test_a_seed_determines_every_step() -> None:
    first, second = Schedule(11), Schedule(11)
    assert first.run() == second.run()
    assert first.trace == second.trace
    assert first.trace != Schedule(12).trace


def test_a_failure_says_how_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    DEFECTS["generator_not_saved"](monkeypatch)
    assert main(["--seeds", "0:20"]) == 1
    written = capsys.readouterr()
    [seed, *_] = re.findall(r"simulation --seed (\d+) --verbose", written.err)
    assert f"[{seed}" in written.out
    assert main(["--seed", seed, "--verbose"]) == 1
    assert "COMMITS" in capsys.readouterr().out


def test_schedules_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "3:5"]) == 0
    assert "schedules=2" in capsys.readouterr().out
    assert main(["--seed", "3", "--verbose"]) == 0
    assert "heartbeat" in capsys.readouterr().out


def test_a_range_of_seeds_has_two_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--seeds", "5"])
    assert "FIRST:END" in capsys.readouterr().err
