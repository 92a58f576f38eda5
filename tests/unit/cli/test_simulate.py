"""`streamduel simulate`: options, results and errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from streamduel.policies import DEFAULT
from streamduel.simulation.matrices import ARXIV
from tests.unit.cli.commands import Streamduel, into_closed_pipe
from tests.unit.cli.simulating import loaded, run


def test_json_follows_the_contract(matrix: Path, tmp_path: Path) -> None:
    result = run(
        "--matrix", "./arxiv.txt", "--policy", "rucb", "--policy", "c2b", "--param", "alpha=0.6",
        "--horizon", 1500, "--runs", 4, "--seed", 3, "--json", "r.json", folder=tmp_path,
    )  # fmt: skip
    assert result.status == 0, result.err
    report = json.loads((tmp_path / "r.json").read_text())
    asked = {
        "matrix": "./arxiv.txt", "arms": 6, "horizon": 1500, "runs": 4, "seed": 3,
        "regret": "condorcet", "ties": 0.0, "delay": None, "slate": 1, "changes": [],
    }  # fmt: skip
    assert set(report) == {*asked, "policies"}
    assert {key: report[key] for key in asked} == asked
    rucb, c2b = report["policies"]
    assert (rucb["name"], rucb["params"]) == ("rucb", {"alpha": 0.6, "champion_set": False})
    assert c2b["name"] == "c2b"
    assert c2b["params"]["horizon"] == 1500
    for policy in (rucb, c2b):
        times = policy["checkpoints"]
        assert times == sorted(set(times))
        assert times[-1] == 1500
        lists = [policy[k] for k in ("mean", "std_error", "min", "max", "champion_accuracy")]
        assert {len(each) for each in lists} == {len(times)}
        for mean, error, least, most, accuracy in zip(*lists, strict=True):
            assert least <= mean <= most
            assert error >= 0
            assert 0 <= accuracy <= 1
        assert policy["seconds_per_run"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arxiv.txt", "r.json"]


def test_the_table_begins_with_the_smallest_regret(matrix: Path, tmp_path: Path) -> None:
    result = run(
        "--matrix", matrix, "--policy", "uniform", "--policy", "rucb", "--horizon", "2e4",
        "--runs", 2, "--param", "alpha=0.52", folder=tmp_path,
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "condorcet regret after 20,000 duels on arxiv.txt" in result.out.splitlines()[0]
    assert result.out.index("rucb (alpha=0.52)") < result.out.index("uniform ")
    assert not result.err


def test_files_are_written_before_a_reader_of_the_table_ends(matrix: Path, tmp_path: Path) -> None:
    found, picture = tmp_path / "r.json", tmp_path / "r.svg"
    into_closed_pipe(
        "simulate", "--matrix", matrix, "--policy", "rucb", "--horizon", 100, "--runs", 1,
        "--jobs", 1, "--json", found, "--plot", picture,
    )  # fmt: skip
    assert loaded(found)["policies"]
    assert sorted(tmp_path.iterdir()) == [matrix, found, picture]


def test_the_title_of_a_single_duel_has_no_plural(matrix: Path, tmp_path: Path) -> None:
    result = run("--matrix", matrix, "--horizon", 1, "--runs", 1, folder=tmp_path)
    assert "regret after 1 duel on arxiv.txt" in result.out.splitlines()[0]


def test_the_number_of_jobs_changes_nothing(matrix: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        result = run(
            "--matrix", matrix, "--policy", "rucb", "--policy", "rmed1", "--horizon", 400,
            "--runs", 5, "--ties", 0.1, "--jobs", jobs, "--json", f"{jobs}.json", folder=tmp_path,
        )  # fmt: skip
        assert result.status == 0, result.err
    assert loaded(tmp_path / "1.json") == loaded(tmp_path / "2.json")


def test_a_policy_may_be_repeated_with_other_parameters(
    streamduel: Streamduel, matrix: Path, tmp_path: Path
) -> None:
    path = tmp_path / "r.json"
    result = streamduel(
        "simulate", "--matrix", matrix, "--policy", "rucb", "--policy", "rucb:alpha=0.9",
        "--horizon", 100, "--runs", 1, "--jobs", 1, "--json", path,
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "rucb (alpha=0.9)" in result.out
    assert "rucb (alpha=0.51)" in result.out
    report = loaded(path)
    assert [policy["params"]["alpha"] for policy in report["policies"]] == [0.51, 0.9]
    assert set(report["policies"][0]["std_error"]) == {0.0}


@pytest.mark.parametrize("name", ["bradley-terry", "gaussian", "condorcet", "cyclic"])
def test_preferences_can_be_drawn(streamduel: Streamduel, tmp_path: Path, name: str) -> None:
    has_gap = name in {"condorcet", "cyclic"}
    reports = []
    for seed, *gap in ((1, "--gap", 0.1), (1, "--gap", 0.1), (1,)) if has_gap else ((1,), (1,)):
        result = streamduel(
            "simulate", "--environment", name, "--arms", 5, *gap, "--policy", "uniform",
            "--regret", "copeland", "--horizon", 50, "--runs", 2, "--seed", seed, "--jobs", 1,
            "--json", tmp_path / "r.json",
        )  # fmt: skip
        assert result.status == 0, result.err
        reports.append(loaded(tmp_path / "r.json"))
    assert reports[0]["matrix"] is None
    assert reports[0]["arms"] == 5
    assert reports[0]["environment"] == {"name": name, "gap": 0.1 if has_gap else None}
    assert reports[0] == reports[1]
    assert reports[-1]["environment"]["gap"] == (0.05 if has_gap else None)


def test_delay_slate_change_and_kind_of_regret(
    streamduel: Streamduel, matrix: Path, tmp_path: Path
) -> None:
    reversed_matrix = tmp_path / "reversed.txt"
    np.savetxt(reversed_matrix, 1 - ARXIV)
    result = streamduel(
        "simulate", "--matrix", matrix, "--policy", "rucb", "--horizon", 300, "--runs", 2,
        "--delay", "uniform:3-9", "--slate", 4, "--change", f"1e2:{reversed_matrix}",
        "--regret", "copeland", "--checkpoints", 3, "--jobs", 1, "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert result.status == 0, result.err
    report = loaded(tmp_path / "r.json")
    assert (report["regret"], report["delay"], report["slate"]) == ("copeland", "uniform:3-9", 4)
    assert report["changes"] == [{"t": 100, "matrix": str(reversed_matrix)}]
    assert report["ties"] == 0.0
    assert report["policies"][0]["checkpoints"] == [1, 2, 5, 10, 22, 46, 100, 215, 300]


def test_until_sure_tells_when_there_was_an_answer(streamduel: Streamduel, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("0.5 0.8 0.8\n0.2 0.5 0.8\n0.2 0.2 0.5\n")
    result = streamduel(
        "simulate", "--matrix", tmp_path / "p.txt", "--policy", "top_two", "--policy", "rmed1",
        "--horizon", 300, "--runs", 3, "--until-sure", 0.95, "--jobs", 1,
        "--json", tmp_path / "r.json", "--plot", tmp_path / "r.svg",
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "duels until an answer with 95 % confidence" in result.out
    top_two, rmed1 = (policy["sure"] for policy in loaded(tmp_path / "r.json")["policies"])
    assert set(top_two) == {"confidence", "median", "p90", "never", "none", "wrong", "regret"}
    assert 10 < top_two["median"] <= top_two["p90"] < 300
    assert top_two["confidence"] == 0.95
    assert (top_two["never"], top_two["none"], top_two["wrong"]) == (0, 0, 0)
    assert rmed1["never"] > 0
    assert rmed1["p90"] == 300
    assert "never" in result.out.splitlines()[-2]
    assert "no winner" not in result.out
    assert "share 95 % sure" in (tmp_path / "r.svg").read_text()


@pytest.mark.parametrize("policy", ["top_two", "batched_top_two"])
def test_policies_explore_until_the_confidence_that_is_asked(
    policy: str, streamduel: Streamduel, tmp_path: Path
) -> None:
    (tmp_path / "p.txt").write_text("0.5 0.8\n0.2 0.5\n")
    result = streamduel(
        "simulate", "--matrix", tmp_path / "p.txt", "--policy", policy, "--horizon", 2000,
        "--runs", 3, "--until-sure", 0.999, "--jobs", 1, "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert result.status == 0, result.err
    (found,) = loaded(tmp_path / "r.json")["policies"]
    assert (found["params"]["confidence"], found["sure"]["never"]) == (0.999, 0)


def test_an_answer_at_the_horizon_is_shown(streamduel: Streamduel, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("0.5 1\n0 0.5\n")
    result = streamduel(
        "simulate", "--matrix", tmp_path / "p.txt", "--policy", "top_two", "--horizon", 18,
        "--runs", 3, "--until-sure", 0.95, "--jobs", 1,
    )  # fmt: skip
    assert result.status == 0, result.err
    assert result.out.splitlines()[-2].split("│")[2:4] == ["     18 ", "   18 "]


def test_until_sure_shows_that_there_is_no_winner(streamduel: Streamduel) -> None:
    result = streamduel(
        "simulate", "--environment", "cyclic", "--arms", 3, "--gap", 0.35, "--regret", "copeland",
        "--policy", "top_two", "--horizon", 200, "--runs", 2, "--until-sure", 0.9, "--jobs", 1,
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "no winner" in result.out


def test_plots_are_drawn(streamduel: Streamduel, matrix: Path, tmp_path: Path) -> None:
    result = streamduel(
        "simulate", "--matrix", matrix, "--policy", "rucb", "--horizon", 100, "--runs", 2,
        "--jobs", 1, "--plot", tmp_path / "r.png", "--plot", tmp_path / "r.svg",
        "--scale", "log", "--band", "quantiles",
    )  # fmt: skip
    assert result.status == 0, result.err
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "r.svg").read_text()


@pytest.mark.parametrize("name", ["cost_$5_vs_$9.txt", os.fsdecode(b"caf\xe9.txt")])
def test_any_name_of_a_matrix_is_drawn(
    streamduel: Streamduel, matrix: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(matrix.read_text())
    result = streamduel(
        "simulate", "--matrix", tmp_path / name, "--policy", "rucb", "--horizon", 100, "--runs", 1,
        "--jobs", 1, "--plot", tmp_path / "r.svg", "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert result.status == 0, result.err
    shown = name.replace("\udce9", "\\udce9")
    assert loaded(tmp_path / "r.json")["matrix"] == str(tmp_path / shown)
    assert shown in (tmp_path / "r.svg").read_text()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"--matrix": "none.txt"}, "none.txt must be a file (found nothing of this name)."),
        ({"--policy": "rubc"}, "unknown policy 'rubc'; did you mean 'rucb'? 'streamduel policies'"),
        ({"--param": "alhpa=1"}, "no simulated policy has a parameter 'alhpa'; did you mean 'al"),
        ({"--param": "alpha=0.3"}, "policy.alpha must be greater than 0.5 (found 0.3)"),
        ({"--param": "rucb.alhpa=1"}, "policy 'rucb' has no parameter 'alhpa'; did you mean 'alp"),
        ({"--horizon": "soon"}, "--horizon must be an integer such as 1000 or 1e6 (found 'soon')."),
        ({"--horizon": "0"}, "the horizon must be an integer from 1 to"),
        ({"--horizon": "1.5"}, "--horizon must be an integer such as 1000 or 1e6 (found '1.5')."),
        ({"--runs": "-1"}, "the number of runs must be an integer from 1"),
        ({"--seed": "-1"}, "the seed must be an integer from 0 (found -1)."),
        (
            {"--matrix": None, "--environment": "condorcet", "--arms": "5", "--seed": "-1"},
            "the seed must be an integer from 0 (found -1).",
        ),
        ({"--jobs": "0"}, "the number of jobs must be from 1 to 1000 (found 0)."),
        ({"--slate": "0"}, "the slate must be an integer from 1"),
        ({"--checkpoints": "0"}, "the number of checkpoints per decade must be an integer from 1"),
        (
            {"--until-sure": "95"},
            "the confidence to reach must be greater than 0 and less than 1, ",
        ),
        ({"--regret": "wek"}, "The regret must be one of condorcet, copeland, weak, strong (foun"),
        ({"--ties": "1.5"}, "the probability of a tie must be from 0 to 1 (found 1.5)."),
        ({"--delay": "long"}, "the delay must be a number of duels from 0 as in 20, uniform:10-3"),
        ({"--environment": "gaussian"}, "a simulation needs either --matrix FILE or --environmen"),
        ({"--matrix": None}, "a simulation needs either --matrix FILE or --environment NAME."),
        ({"--arms": "5"}, "--arms and --gap go with --environment, not with --matrix."),
        ({"--matrix": None, "--environment": "gaussian"}, "--environment gaussian needs --arms K."),
        (
            {"--matrix": None, "--environment": "gausian", "--arms": "5"},
            "the environment must be one of bradley-terry, gaussian, condorcet, cyclic (found"
            " 'gausian'; did you mean 'gaussian'?).",
        ),
        (
            {"--matrix": None, "--environment": "cyclic", "--arms": "5"},
            "The regret 'condorcet' needs a Condorcet winner",
        ),
        ({"--change": "soon"}, "--change must be written as T:FILE (found 'soon')."),
        ({"--change": "0:arxiv.txt"}, "the time of a change must be an integer from 1 (found 0)."),
        (
            {"--change": "10:arxiv.txt"},
            "the time of a change must be less than the horizon 10 (found 10).",
        ),
        (
            {"--matrix": None, "--environment": "gaussian", "--arms": "5", "--gap": "0.1"},
            "--gap goes with --environment condorcet or cyclic (found 'gaussian').",
        ),
        ({"--scale": "linear"}, "--scale goes with --plot FILE (found no --plot)."),
        ({"--band": "error"}, "--band goes with --plot FILE (found no --plot)."),
        ({"--plot": "r.png", "--scale": ""}, "the scale of the plot must be linear or log (found"),
        ({"--plot": "r.gif"}, "the plot must be a file named .png, .svg or .pdf (found 'r.gif')."),
        ({"--plot": "r.png", "--scale": "lin"}, "the scale of the plot must be linear or log"),
        ({"--json": "no/r.json"}, "--json must be in a directory that exists (found 'no/r.json')."),
        (
            {"--json": "-"},
            "--json must be a file (found '-', which is not standard output here; in bash, "
            "--json >(COMMAND) pipes it).",
        ),
        ({"--plot": "-"}, "--plot must be a file (found '-', which is not standard output here)."),
        ({"--json": "."}, "--json must be a file (found the directory '.')."),
        ({"--json": "/proc/r.json"}, "--json must be a file that can be written (found '/proc/r."),
        ({"--plot": "/proc/r.png"}, "--plot must be a file that can be written (found '/proc/r."),
        ({"--journal": "/dev/full"}, "the journal '/dev/full' must be a file (found a device or"),
        ({"--journal": "/proc/j"}, "the journal '/proc/j' cannot be written (No such file or dir"),
        (
            {"--journal": "arxiv.txt"},
            "--matrix and --journal must name different files (found 'arxiv.txt' for both).",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(
    streamduel: Streamduel,
    matrix: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str | None],
    sentence: str,
) -> None:
    monkeypatch.chdir(matrix.parent)
    options = {"--matrix": "arxiv.txt", "--policy": "rucb", "--horizon": "10", "--jobs": "1"}
    given = {option: value for option, value in {**options, **changes}.items() if value is not None}
    result = streamduel("simulate", *(part for each in given.items() for part in each))
    assert result.status == 2
    assert not result.out
    assert result.err.startswith(f"streamduel: {sentence}")
    assert result.err.count("\n") == 1
    assert [path.name for path in matrix.parent.iterdir()] == ["arxiv.txt"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0.5 0.7\n0.3 0.5\n0.1 0.2\n", "bad.txt must have as many lines as numbers in a line"),
        ("0.5 0.7\n0.4 0.5\n", "row 1, column 2 and row 2, column 1 must add up to 1"),
        ("0.5 1.7\n-0.7 0.5\n", "bad.txt: row 1, column 2 must be from 0 to 1 (found 1.7)."),
        ("0.5 x\n0.4 0.5\n", "bad.txt, line 1, column 2 must be a number from 0 to 1 (found 'x')."),
        ("", "bad.txt must have from 1 to"),
    ],
)
def test_a_bad_matrix_is_refused_with_the_place(
    streamduel: Streamduel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_text(text)
    result = streamduel("simulate", "--matrix", "bad.txt", "--policy", "rucb")
    assert result.status == 2
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_the_default_policy_is_that_of_an_experiment(
    streamduel: Streamduel, matrix: Path, tmp_path: Path
) -> None:
    found = tmp_path / "found.json"
    result = streamduel("simulate", "--matrix", matrix, "--horizon", 100, "--json", found)
    assert result.status == 0
    assert [each["name"] for each in json.loads(found.read_text())["policies"]] == [DEFAULT]


def test_help_shows_an_example(streamduel: Streamduel) -> None:
    result = streamduel("simulate", "--help")
    assert result.status == 0
    text = " ".join(result.out.split())
    assert "streamduel simulate --matrix p.txt --policy rucb --policy ccb" in text
    for option in (
        "--matrix",
        "--param",
        "--regret",
        "--jobs",
        "--json",
        "--plot",
        "--delay",
        "--until-sure",
    ):
        assert f" {option} " in text
