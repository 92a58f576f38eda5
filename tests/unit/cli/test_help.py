"""Help, version, and the commands that start nothing."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from streamduel import __version__, policies
from streamduel.cli import app
from streamduel.cli.app import COMMANDS
from streamduel.cli.policies import CHOICE
from tests.unit.cli.commands import COMMAND, SECONDS, Streamduel, configure


def test_without_arguments_the_help_is_shown(streamduel: Streamduel) -> None:
    result = streamduel()
    assert result.status == 2
    for command in ("run", "validate", "inspect", "control", "replay", "policies"):
        assert f" {command} " in result.out + result.err


def test_a_terminal_without_columns_hides_no_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "validate", tmp_path / "missing.yaml"],
        env={**os.environ, "COLUMNS": "0"}, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "missing.yaml" in done.stderr


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", ["--until-end", "SIGTERM", "exits with status 0", "CONFIG"]),
        ("validate", ["Check a configuration without starting anything"]),
        ("inspect", ["--json", "Show the newest snapshots"]),
        (
            "control",
            [
                *("pause, resume, add-arm, retire-arm, reset", "becomes a dead letter"),
                *("advances stream time", "--id", "--json", "EXPERIMENT", "ACTION"),
                "and the timeline show it",
            ],
        ),
        ("replay", ["Exits with 0 when all are equal", "exits with 1"]),
        ("policies", ["--json", "List every policy"]),
        ("simulate", ["reported an answer", "no arm beats all others", "smallest_difference"]),
    ],
)
def test_the_help_of_each_command(
    streamduel: Streamduel, command: str, words: list[str], option: str
) -> None:
    result = streamduel(command, option)
    assert result.status == 0
    for word in words:
        assert word in " ".join(result.out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["plan", "--difference", "3%"], "'--difference': must be a valid number"),
        (["analyze", "--join-window-ms=-5"], "must be greater than or equal to 0 (found '-5')"),
        (["analyze", "--ties", "hlf"], "'--ties': 'hlf' is not one of 'half', 'drop'"),
    ],
)
def test_the_value_that_cannot_be_used_is_named(
    arguments: list[str], sentence: str, streamduel: Streamduel
) -> None:
    result = streamduel(*arguments)
    assert result.status == 2
    assert sentence in " ".join(result.err.replace("│", " ").split())


@pytest.mark.parametrize("arguments", [["policies"], ["--version"], ["policies", "--json"]])
def test_a_full_disk_is_one_sentence(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS
        )
    assert done.returncode == 1
    assert done.stderr.decode().startswith("streamduel: standard output cannot be written: No sp")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [["policies"], ["policies", "--json"], ["inspect", "search.yaml", "--json"]]
)
def test_an_answer_is_whole_or_an_error(
    arguments: list[str], unbuffered: str, finished: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    path = tmp_path / "answer"

    def answered(before: str = "") -> subprocess.CompletedProcess[bytes]:
        code = f"{before}from streamduel.cli.app import main; main()"
        with path.open("wb") as out:
            return subprocess.run(
                [sys.executable, "-c", code, *arguments], cwd=finished, env=environment,
                stdout=out, stderr=subprocess.PIPE, timeout=SECONDS,
            )  # fmt: skip

    assert (answered().returncode, path.read_bytes()[-1:]) == (0, b"\n")
    limit = path.stat().st_size - 10
    done = answered(f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({limit}, {limit}));")
    assert (done.returncode, path.stat().st_size) == (1, limit)
    assert done.stderr == b"streamduel: standard output cannot be written: File too large.\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_characters_that_the_output_cannot_have_are_replaced(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [*COMMAND, "policies"], env=environment, capture_output=True, timeout=SECONDS
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "rucb" in done.stdout.decode(encoding)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_takes_nothing(closed: str, tmp_path: Path) -> None:
    config = configure(tmp_path)
    (tmp_path / "clicks.jsonl").touch()
    words = [*COMMAND, "run", str(config), "--until-end", "--json"]
    shell = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *words]
    assert subprocess.run(shell, stdout=subprocess.PIPE, timeout=SECONDS).returncode == 0


def test_the_version_is_shown(streamduel: Streamduel) -> None:
    assert streamduel("--version") == (0, f"streamduel {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run"], "Missing argument 'CONFIG'"),
        (["validate", "a.yaml", "b.yaml"], "unexpected extra argument"),
        (["inspect", "a.yaml", "--jsno"], "No such option"),
        (
            ["simulate", "--param", "alpha=0.6", "champion_set=true"],
            "--param takes one value each time: write --param champion_set=true",
        ),
        (["control", "a.yaml", "apply"], "Did you mean `streamduel control apply`?"),
        (["control", "--json", "note", "a.yaml"], "Did you mean `streamduel control note`?"),
    ],
)
def test_a_mistake_on_the_command_line_ends_with_status_2(
    streamduel: Streamduel, arguments: list[str], words: str
) -> None:
    result = streamduel(*arguments)
    assert result.status == 2
    assert words in result.err
    assert not result.out


def test_validate_shows_the_connectors_and_creates_no_file(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = configure(tmp_path)
    assert streamduel("validate", config) == (
        0, f"{config} is valid: 1 experiment, files to files.\n", "",
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [config]


def test_validate_counts_experiments(streamduel: Streamduel, tmp_path: Path) -> None:
    config = configure(tmp_path, {"experiments.ads": {"arms": ["x", "y"]}})
    assert " is valid: 2 experiments, " in streamduel("validate", config).out


def test_policies_are_listed_as_text(streamduel: Streamduel) -> None:
    result = streamduel("policies")
    assert result.status == 0
    text = " ".join(result.out.split())
    for name in policies.names():
        policy = policies.get(name)
        mark = " (default)" if name == policies.DEFAULT else ""
        assert f"{name}{mark}: {policy.summary}" in text
        assert policy.paper in text
        assert "; ".join(policy.traits()) in text
        for parameter in policy.declared.values():
            assert f"{parameter.name} ({parameter.symbol}): {parameter.meaning}; " in text
            assert parameter.allowed in text
    assert "true or false, default false" in text


def test_no_superseded_policy_is_advised() -> None:
    page = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    superseded = page.partition("### Superseded policies")[2].partition("\n\n`auto` starts")[0]
    old = set(re.findall("`(\\w+)`", "".join(re.findall(r"^\|[^|]+", superseded, re.MULTILINE))))
    advised = set(re.findall(r"\w+", CHOICE)) & set(policies.names())
    assert {"ccb", "rucb", "auto"} <= old
    assert {policies.DEFAULT, "double_thompson"} <= advised - old == advised


def test_policies_are_listed_as_json(streamduel: Streamduel) -> None:
    result = streamduel("policies", "--json")
    listed = {policy["name"]: policy for policy in json.loads(result.out)}
    assert list(listed) == policies.names()
    assert listed["rucb"]["parameters"]["alpha"] == {
        "symbol": "α", "default": 0.51, "required": False,
        "allowed": "a finite number greater than 0.5",
        "meaning": policies.get("rucb").declared["alpha"].meaning,
    }  # fmt: skip
    assert listed["c2b"]["parameters"]["rounds"]["default"] == "⌊ln T⌋"
    assert listed["c2b"]["parameters"]["horizon"]["default"] is None
    assert listed["c2b"]["parameters"]["horizon"]["required"] is True
    assert listed["rucb"]["parameters"]["window"]["default"] is None
    assert listed["rucb"]["parameters"]["window"]["required"] is False
    assert listed["rucb"].keys() == {
        "name", "default", "summary", "paper", "seeks", "horizon", "parameters",
    }  # fmt: skip
    assert {name for name, policy in listed.items() if policy["horizon"]} >= {"c2b", "rmed2fh"}
    assert listed["ccb"]["seeks"] == "copeland"
    assert [name for name, policy in listed.items() if policy["default"]] == [policies.DEFAULT]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_begins_the_help_of_its_command(name: str) -> None:
    function = getattr(import_module(f"streamduel.cli.{name}"), name)
    assert COMMANDS[name] == function.__doc__.partition("\n")[0]


def test_the_help_imports_no_command() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help']; from streamduel.cli import main\n"
        "try: main()\n"
        "finally: assert not {'numpy', 'streamduel.config'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr


def test_other_errors_of_the_operating_system_do_not_blame_the_output(
    streamduel: Streamduel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(app, "_group", lambda: refuse)
    result = streamduel("policies")
    assert (result.status, result.out) == (1, "")
    assert result.err == "streamduel: the operating system reports: Too many open files.\n"
