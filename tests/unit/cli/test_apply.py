"""`control apply`: a changed configuration and what runs."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamduel.config.experiment import JOIN_WINDOW_MS
from tests.logs import ARMS
from tests.unit.cli.commands import (
    COMMAND,
    LOG,
    SECONDS,
    Streamduel,
    configure,
    inspected,
    lines,
    run,
)

RAILS = {"control_arm": "bm25", "min_share": 0.1}
CHANGES = {"experiments.search.decide_every": 9, "experiments.search.guardrails": RAILS}


def written(folder: Path) -> list[dict[str, Any]]:
    """The records that were added to the log."""
    text = (folder / "clicks.jsonl").read_bytes()
    return [json.loads(line) for line in text.splitlines()[len(LOG) :]]


def control(folder: Path, *actions: dict[str, Any]) -> None:
    """Add control records to the log."""
    with (folder / "clicks.jsonl").open("a") as log:
        for action in actions:
            record = {"type": "control", "id": f"at-{log.tell()}", "experiment": "search", **action}
            log.write(json.dumps(record) + "\n")


def test_it_shows_and_writes_what_the_service_then_obeys(
    streamduel: Streamduel, folder: Path
) -> None:
    config = configure(folder, CHANGES)
    result = streamduel("control", "apply", config, "--yes", "--actor", "alice")
    assert result.status == 0
    assert "search:\n  decide_every: 1 → 9\n  guardrails: {" in result.err
    assert result.out == (
        f"Wrote decide_every, guardrails for experiment 'search' to {folder / 'clicks.jsonl'}.\n"
    )
    (record,) = written(folder)
    assert (record["action"], record["actor"]) == ("apply", "alice")
    assert record["settings"]["decide_every"] == 9
    assert run(config, "--until-end").status == 0
    pairs = json.loads(lines(folder)[-1])["pairs"]
    assert ["bm25", "bm25"] in [[pair["a"], pair["b"]] for pair in pairs]
    again = streamduel("control", "apply", config, "--yes")
    assert again == (0, "The running experiments are as configured.\n", "")
    assert len(written(folder)) == 1
    assert streamduel("replay", config).status == 0


def test_a_pending_change_is_not_written_again(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, CHANGES)
    for _ in range(2):
        assert streamduel("control", "apply", config, "--yes").status == 0
    assert len(written(folder)) == 1
    again = streamduel("control", "apply", config)
    assert (again.status, again.out) == (0, "")
    assert again.err == "search:\n  written already, not in effect yet: decide_every, guardrails\n"


def test_a_pending_change_can_be_taken_back(streamduel: Streamduel, folder: Path) -> None:
    arms = {"experiments.search.arms": [*ARMS[1:], "ltr-v4"]}
    for changes in ({"experiments.search.decide_every": 9}, {}, arms, arms):
        assert streamduel("control", "apply", configure(folder, changes), "--yes").status == 0
    first, second, third = written(folder)
    assert (first["settings"], second["settings"]) == ({"decide_every": 9}, {"decide_every": 1})
    assert list(third["settings"]) == ["arms"]


def test_a_pending_change_that_is_refused_hides_no_other(
    streamduel: Streamduel, folder: Path
) -> None:
    wrong = {"type": "control", "id": "1", "experiment": "search", "action": "apply"}
    with (folder / "clicks.jsonl").open("a") as log:
        log.write(json.dumps({**wrong, "settings": {"decide_every": -1}}) + "\n")
    config = configure(folder, CHANGES)
    assert streamduel("control", "apply", config, "--yes").status == 0
    assert written(folder)[-1]["settings"]["decide_every"] == 9


def test_a_pending_change_with_a_repeated_id_does_not_count(
    streamduel: Streamduel, folder: Path
) -> None:
    change = {"type": "control", "id": "1", "experiment": "search", "action": "apply"}
    with (folder / "clicks.jsonl").open("a") as log:
        for value in (3, 9):
            log.write(json.dumps({**change, "settings": {"decide_every": value}}) + "\n")
    config = configure(folder, {"experiments.search.decide_every": 9})
    assert streamduel("control", "apply", config, "--yes").status == 0
    assert [record["settings"]["decide_every"] for record in written(folder)] == [3, 9, 9]
    assert run(config, "--until-end").status == 0
    again = streamduel("control", "apply", config, "--yes")
    assert again.out == "The running experiments are as configured.\n"


def test_pending_arms_are_no_difference(streamduel: Streamduel, folder: Path) -> None:
    """Otherwise the next change of arms would retire the new one without showing it."""
    config = folder / "search.yaml"
    assert streamduel("control", config, "search", "add-arm", "ltr-v4").status == 0
    assert streamduel("control", config, "search", "retire-arm", "bm25").status == 0
    again = streamduel("control", "apply", config)
    assert again == (0, "", "search:\n  written already, not in effect yet: arms\n")
    config = configure(folder, {"experiments.search.arms": [*ARMS[1:], "ltr-v5"]})
    result = streamduel("control", "apply", config, "--yes")
    assert '"ltr-v4"] → [' in result.err
    again = streamduel("control", "apply", config, "--yes")
    assert again == (0, "", "search:\n  written already, not in effect yet: arms\n")


def test_an_arm_of_a_control_record_stays_when_the_configuration_lists_another(
    streamduel: Streamduel, folder: Path
) -> None:
    for arm in ("ltr-v4", "ltr-v5"):
        assert streamduel("control", folder / "search.yaml", "search", "add-arm", arm).status == 0
    assert run(folder / "search.yaml", "--until-end", "--quiet").status == 0
    config = configure(folder, {"experiments.search.arms": [*ARMS, "ltr-v4"]})
    again = streamduel("control", "apply", config)
    assert again == (0, "The running experiments are as configured.\n", "")
    config = configure(folder, {"experiments.search.arms": [*ARMS[1:], "ltr-v6"]})
    assert streamduel("control", "apply", config, "--yes").status == 0
    assert written(folder)[-1]["settings"]["arms"] == [*ARMS[1:], "ltr-v4", "ltr-v5", "ltr-v6"]
    assert run(config, "--until-end", "--quiet").status == 0
    again = streamduel("control", "apply", config)
    assert again == (0, "The running experiments are as configured.\n", "")


def test_the_name_of_a_retired_arm_is_refused(streamduel: Streamduel, folder: Path) -> None:
    """The service would refuse the whole record."""
    config = folder / "search.yaml"
    assert streamduel("control", config, "search", "retire-arm", "bm25").status == 0
    assert run(config, "--until-end", "--quiet").status == 0
    before = len(written(folder))
    config = configure(folder, {"experiments.search.arms": [*ARMS, "ltr-v4"]})
    result = streamduel("control", "apply", config, "--yes")
    assert (result.status, result.out) == (1, "")
    assert result.err.endswith(
        "refused: experiments.search.arms has 'bm25', which was retired, and its name stays taken; "
        "leave it out.\n"
    )
    assert len(written(folder)) == before


def test_the_name_of_an_arm_that_a_pending_change_retires_is_refused(
    streamduel: Streamduel, folder: Path
) -> None:
    added = configure(folder, {"experiments.search.arms": [*ARMS, "ltr-v4"]})
    assert streamduel("control", "apply", added, "--yes").status == 0
    back = configure(folder, {})
    assert streamduel("control", "apply", back, "--yes").status == 0
    again = configure(folder, {"experiments.search.arms": [*ARMS, "ltr-v4"]})
    refused = streamduel("control", "apply", again, "--yes")
    assert refused.status == 1
    assert "experiments.search.arms has 'ltr-v4', which was retired" in refused.err
    assert len(written(folder)) == 2


FREEZE = {"action": "freeze_pair", "a": "bm25", "b": "dense"}


@pytest.mark.parametrize("read", [True, False], ids=["read", "pending"])
def test_an_arm_of_a_frozen_pair_is_not_left_out(
    streamduel: Streamduel, folder: Path, read: bool
) -> None:
    """The service would refuse the whole record."""
    control(folder, FREEZE)
    if read:
        assert run(folder / "search.yaml", "--until-end", "--quiet").status == 0
    changes = {"experiments.search.arms": [*ARMS[1:]], "experiments.search.decide_every": 9}
    config = configure(folder, changes)
    result = streamduel("control", "apply", config, "--yes")
    assert (result.status, result.out) == (1, "")
    refused = (
        "refused: the settings cannot be applied: arm 'bm25' must stay: it is in the frozen pair."
    )
    assert refused in result.err
    assert len(written(folder)) == 1
    control(folder, {"action": "unfreeze_pair"})
    assert streamduel("control", "apply", config, "--yes").status == 0


def test_a_pending_retirement_that_is_refused_does_not_count(
    streamduel: Streamduel, folder: Path
) -> None:
    rails = {"experiments.search.guardrails": RAILS}
    assert streamduel("control", "apply", configure(folder, rails), "--yes").status == 0
    control(folder, {"action": "retire_arm", "arm": RAILS["control_arm"]})
    config = configure(folder, {**rails, "experiments.search.slate": 2})
    result = streamduel("control", "apply", config, "--yes")
    assert (result.status, written(folder)[-1]["settings"]) == (0, {"slate": 2})
    assert result.err.endswith("written already, not in effect yet: guardrails\n")
    assert run(config, "--until-end", "--quiet").status == 0
    assert b"must stay: it is the control arm" in lines(folder, "dead_letters.jsonl")[-1]


def test_arms_of_the_configuration_join_and_leave(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, {"experiments.search.arms": [*ARMS[1:], "ltr-v4"]})
    assert streamduel("control", "apply", config, "--yes", "--json").status == 0
    assert run(config, "--until-end").status == 0
    assert inspected(streamduel, folder)["experiments"]["search"]["arms"] == [*ARMS[1:], "ltr-v4"]


@pytest.mark.parametrize("is_open", [True, False])
def test_without_a_terminal_it_needs_yes(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    if not is_open:
        monkeypatch.setattr("sys.stdin", None)  # as Python does after `0<&-`
    result = streamduel("control", "apply", configure(folder, CHANGES))
    assert result.status == 2
    assert result.err.endswith(
        "streamduel: there is no terminal for the question; --yes writes the records.\n"
    )
    assert written(folder) == []


@pytest.mark.parametrize(("answer", "status", "records"), [("n", 1, 0), ("y", 0, 1)])
def test_what_is_confirmed_is_written(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch,
    answer: str, status: int, records: int,
) -> None:  # fmt: skip
    terminal = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    result = streamduel("control", "apply", configure(folder, CHANGES))
    assert (result.status, len(written(folder))) == (status, records)
    assert "Apply to this experiment? [y/N]" in result.err


def test_a_change_by_someone_else_during_the_question_is_not_undone(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of arms that was shown would retire the arm that has just joined."""
    config = configure(folder, {"experiments.search.arms": [*ARMS, "ltr-v4"]})
    other = {"type": "control", "id": "1", "experiment": "search", "action": "add_arm"}

    def confirm(*_: object, **__: object) -> None:
        with (folder / "clicks.jsonl").open("a") as log:
            log.write(json.dumps({**other, "arm": "dense-v9"}) + "\n")

    monkeypatch.setattr("streamduel.cli.apply.typer.confirm", confirm)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    result = streamduel("control", "apply", config)
    assert result.status == 1
    assert result.err.endswith(
        "streamduel: the experiments have changed since they were shown, so nothing was written; "
        "repeat the command.\n"
    )
    assert [record["action"] for record in written(folder)] == ["add_arm"]


def test_a_fixed_setting_is_not_written(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, {"experiments.search.max_per_client": 5})
    result = streamduel("control", "apply", config, "--yes")
    assert (result.status, result.out, written(folder)) == (1, "", [])
    assert "max_per_client: null → 5  (cannot change while it runs" in result.err


def test_settings_that_contradict_what_runs_are_refused(
    streamduel: Streamduel, folder: Path
) -> None:
    retire = ("control", folder / "search.yaml", "search", "retire-arm", "bm25")
    assert streamduel(*retire).status == 0
    assert run(folder / "search.yaml", "--until-end").status == 0
    result = streamduel("control", "apply", configure(folder, CHANGES), "--yes")
    assert (result.status, len(written(folder))) == (1, 1)
    assert "refused: experiments.search.guardrails.control_arm must be one of" in result.err


def test_without_a_snapshot_nothing_is_called_as_configured(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config, why = (
        configure(tmp_path),
        "No experiment runs yet: there is no snapshot to compare with.",
    )
    (tmp_path / "clicks.jsonl").touch()
    found = streamduel("validate", config, "--against-state")
    assert (found.status, found.out.splitlines()[1:]) == (0, [why])
    answer = json.loads(streamduel("validate", config, "--against-state", "--json").out)
    assert (answer["valid"], answer["differences"], answer["snapshots"]) == (True, {}, why)
    assert streamduel("control", "apply", config) == (0, f"{why}\n", "")


SAME_WINDOW = {"experiments.search.join_window_ms": JOIN_WINDOW_MS}  # null is ten minutes


def test_an_equal_join_window_is_no_difference(streamduel: Streamduel, folder: Path) -> None:
    result = streamduel("control", "apply", configure(folder, SAME_WINDOW))
    assert result == (0, "The running experiments are as configured.\n", "")


def test_replay_as_json_and_quiet(streamduel: Streamduel, folder: Path) -> None:
    found = json.loads(streamduel("replay", folder / "search.yaml", "--json").out)
    assert (found["equal"], found["difference"]) == (True, None)
    assert (found["records"], found["assignments"]) == (len(LOG), len(lines(folder)))
    assert streamduel("replay", folder / "search.yaml", "--quiet") == (0, "", "")
    path = folder / "out" / "assignments.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"epoch":2,', b'"epoch":2, '))
    differs = streamduel("replay", folder / "search.yaml", "--json")
    found = json.loads(differs.out)
    assert (differs.status, found["equal"]) == (1, False)
    assert found["difference"].startswith("epoch 2 of 'search' differs")
    assert found["records"] > 0


def test_run_as_json_and_quiet(streamduel: Streamduel, folder: Path) -> None:
    report = run(folder / "search.yaml", "--until-end", "--json", "--quiet")
    assert (report.status, report.err) == (0, "")
    assert json.loads(report.out) == inspected(streamduel, folder)
    assert run(folder / "search.yaml", "--until-end", "--quiet") == (0, "", "")
    refused = run(folder / "search.yaml", "--json")
    assert (refused.status, refused.out) == (2, "")
    assert "--json needs --until-end" in refused.err


@pytest.mark.parametrize("options", [["--help"], ["apply", "--help"]])
def test_the_help_names_apply(streamduel: Streamduel, options: list[str]) -> None:
    result = streamduel("control", *options)
    assert result.status == 0
    assert "control apply" in result.out


@pytest.mark.parametrize("form", ["first", "action"])
def test_a_note_is_shown_with_its_actor(streamduel: Streamduel, folder: Path, form: str) -> None:
    config = configure(folder, {"experiments.search.owner": "team search"})
    first = ("control", "note", config, "search", "hello")
    words = first if form == "first" else ("control", config, "search", "note", "hello")
    assert streamduel(*words, "--actor", "alice").status == 0
    assert run(config, "--until-end", "--quiet").status == 0
    found = inspected(streamduel, folder)["experiments"]["search"]
    assert found["owner"] == "team search"
    assert found["timeline"][0]["event"] == "started"
    assert {key: found["timeline"][-1][key] for key in ("event", "text", "actor")} == {
        "event": "note", "text": "hello", "actor": "alice",
    }  # fmt: skip
    assert streamduel("control", "apply", config).out == (
        "The running experiments are as configured.\n"
    )
    assert streamduel("replay", config).status == 0


def test_standard_input_is_not_read(folder: Path) -> None:
    config = configure(folder, {"source.path": "-", **CHANGES})
    words = [*COMMAND, "control", "apply", str(config), "--yes"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as apply:
        assert apply.wait(SECONDS) == 2  # standard input stays open
        assert apply.stderr is not None
        assert b"standard input, to which no record can be added" in apply.stderr.read()
