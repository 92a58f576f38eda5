"""`streamduel doctor` on files: what works, what counts, and what to do otherwise."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest

from streamduel import doctor
from streamduel.config import load
from streamduel.diagnosis import CommittedOffset, Diagnosis, Finding
from streamduel.doctor.newest_records import MAX_SENTENCES, NEWEST
from streamduel.errors import MissingError
from streamduel.testing import duel, encode
from streamduel_files.source import FileSource
from tests.logs import ARMS
from tests.unit.cli.commands import LOG, Streamduel, configure, run, running

BEFORE = int(1000 * time.time())


def write(folder: Path, *values: bytes) -> Path:
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in values))
    return configure(folder)


def dated(number: int, *, ahead: int = 0, **changes: Any) -> bytes:
    record = json.loads(duel("search", number, ARMS[0], ARMS[1], "a"))
    return encode({**record, "ts": int(1000 * time.time()) + ahead, **changes})


def checks(streamduel: Streamduel, config: Path, status: int = 0) -> dict[str, tuple[str, str]]:
    result = streamduel("doctor", config, "--json")
    answer = json.loads(result.out)
    assert (result.status, answer["works"]) == (status, status == 0)
    return {it["name"]: (it["verdict"], it["sentence"]) for it in answer["checks"]}


def test_a_service_that_works(streamduel: Streamduel, tmp_path: Path) -> None:
    config = write(tmp_path, *(dated(number) for number in range(300)))
    assert run(config, "--until-end", "--quiet").status == 0
    found = checks(streamduel, config)
    assert {verdict for verdict, _ in found.values()} == {"fine"}
    assert found["records"][1] == ("among the newest 200 records: 200 valid, 0 dead letters.")
    text = streamduel("doctor", config)
    assert len(text.out.splitlines()) == len(found)
    assert text.out.startswith("fine    source.path: ")


def test_a_service_that_commits_meanwhile(half: Path) -> None:
    found = {it.name: it for it in doctor.examine(running(half / "search.yaml"))}
    assert "failed" not in {it.verdict for it in found.values()}
    behind = "those of 1 partition are intact; 100 records of the click log are not in them."
    assert found["snapshots"].sentence == behind


def test_duplicates_are_counted(streamduel: Streamduel, tmp_path: Path) -> None:
    for repeats, counted in ((1, "1 duplicate"), (2, "2 duplicates")):
        config = write(tmp_path, *[dated(1)] * (1 + repeats))
        sentence = checks(streamduel, config)["records"][1]
        assert sentence.endswith(f": 1 valid, 0 dead letters, {counted}.")


def test_records_do_not_control_the_terminal(streamduel: Streamduel, tmp_path: Path) -> None:
    config = write(tmp_path, duel("search", 1, ARMS[0], "\x1b[2J", "a"))
    result = streamduel("doctor", config)
    assert "\x1b[2J" not in result.out
    assert "x1b[2J" in result.out


def test_it_writes_nothing(streamduel: Streamduel, tmp_path: Path) -> None:
    config = write(tmp_path, dated(1))
    checks(streamduel, config)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["clicks.jsonl", "search.yaml"]


def test_a_missing_log_fails(streamduel: Streamduel, tmp_path: Path) -> None:
    found = checks(streamduel, configure(tmp_path), status=1)
    assert found["source.path"][0] == "failed"
    assert "does not exist; create it" in found["source.path"][1]


def test_a_path_that_cannot_be_examined_fails(streamduel: Streamduel, tmp_path: Path) -> None:
    deep = "/".join(["x" * 100] * 50)
    found = checks(streamduel, configure(tmp_path, {"source.path": deep}), status=1)
    assert found["source.path"][0] == "failed"
    assert found["source.path"][1].endswith("… cannot be examined: File name too long.")


def test_an_output_that_cannot_be_written_fails(streamduel: Streamduel, tmp_path: Path) -> None:
    config = write(tmp_path, dated(1))
    path = tmp_path / "out" / "assignments.jsonl"
    path.mkdir(parents=True)
    found = checks(streamduel, config, status=1)
    assert found["sink.path"] == ("failed", f"{path} cannot be written as a file by this user.")


def test_a_link_to_nothing_fails(streamduel: Streamduel, tmp_path: Path) -> None:
    config = write(tmp_path, dated(1))
    path = tmp_path / "out"
    path.symlink_to(tmp_path / "unmounted")
    found = checks(streamduel, config, status=1)
    assert found["sink.path"] == ("failed", f"{path} is not a directory.")
    assert run(config, "--until-end").status == 1


def test_an_empty_log_is_a_warning(streamduel: Streamduel, tmp_path: Path) -> None:
    found = checks(streamduel, write(tmp_path))
    assert found["records"][0] == "warning"
    assert "do the ranker services write to it?" in found["records"][1]


def test_a_log_that_is_not_read_in_time_is_not_called_empty(
    streamduel: Streamduel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamduel.doctor.newest_records.READ_SECONDS", 0.0)
    found = checks(streamduel, write(tmp_path, dated(0)))
    assert found["records"] == (
        "unknown", "none came within 0 s; is a broker, or the network, slow?",
    )  # fmt: skip


def test_records_of_another_name_all_fail(streamduel: Streamduel, tmp_path: Path) -> None:
    found = checks(
        streamduel, write(tmp_path, *(dated(n, experiment="serach") for n in range(7))), status=1
    )
    assert found["records"] == (
        "failed", "among the newest 7 records: 0 valid, 7 dead letters.",
    )  # fmt: skip
    verdict, sentence = found["dead letters: unknown_experiment"]
    assert verdict == "warning"
    assert sentence.startswith("7 of them, the last at offset 6 of partition 0: unknown experiment")
    assert "did you mean 'search'?" in sentence


def test_of_many_kinds_of_dead_letters_the_most_frequent_are_told(tmp_path: Path) -> None:
    arms = [*(f"arm-{number}" for number in range(MAX_SENTENCES + 1)), "last", "last"]
    write(tmp_path, *(duel("search", at, ARMS[0], arm, "a") for at, arm in enumerate(arms)))
    found = [it for it in doctor.examine(load(tmp_path / "search.yaml")) if "letters" in it.name]
    first, *_, rest = [it.sentence for it in found]
    assert len(found) == MAX_SENTENCES + 1
    assert first.startswith(f"2 of them, the last at offset {len(arms) - 1} of partition 0: ")
    assert rest == "2 more, for other reasons."


def test_arms_and_settings_are_those_that_run(streamduel: Streamduel, tmp_path: Path) -> None:
    config = write(tmp_path, *(dated(number) for number in range(5)))
    assert streamduel("control", config, "search", "add-arm", "late").status == 0
    assert run(config, "--until-end", "--quiet").status == 0
    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(dated(9, a="late") + b"\n")
    found = checks(streamduel, configure(tmp_path, {"experiments.search.slate": 3}))
    assert found["records"][0] == "fine"
    assert found["snapshots"][1].endswith("; 1 record of the click log is not in them.")
    assert found["settings"][0] == "warning"
    assert "slate" in found["settings"][1]


def test_records_of_a_retired_arm_counted_before_its_retirement(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = write(tmp_path, *(dated(number) for number in range(5)))
    assert streamduel("control", config, "search", "retire-arm", ARMS[0]).status == 0
    assert run(config, "--until-end", "--quiet").status == 0
    found = checks(streamduel, config)
    assert found["records"] == (
        "fine",
        "among the newest 6 records: 5 valid, 0 dead letters, 1 control record not checked.",
    )  # fmt: skip
    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(dated(9) + b"\n")
    found = checks(streamduel, config)
    assert found["records"] == (
        "warning",
        "among the newest 7 records: 5 valid, 1 dead letter, 1 control record not checked.",
    )  # fmt: skip
    assert "was retired at offset 5." in found["dead letters: unknown_arm"][1]
    write(tmp_path, *(dated(number) for number in range(2)))
    assert streamduel("repair", "new-log", config).status == 0
    found = checks(streamduel, config, status=1)
    sentence = found["dead letters: unknown_arm"][1]
    assert sentence.endswith(f"arm '{ARMS[0]}' of experiment 'search' was retired.")


def test_an_arm_that_was_retired_long_ago_is_not_called_unknown(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = write(tmp_path, dated(0))
    assert streamduel("control", config, "search", "retire-arm", ARMS[0]).status == 0
    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(b"".join(dated(n, a=ARMS[2]) + b"\n" for n in range(1, NEWEST)))
    assert run(config, "--until-end", "--quiet").status == 0
    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(dated(NEWEST) + b"\n")
    found = checks(streamduel, config)
    assert found["records"][1] == "among the newest 200 records: 199 valid, 1 dead letter."
    assert "was retired at offset 1." in found["dead letters: unknown_arm"][1]


def test_a_control_record_that_waits_counts_as_it_will(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = write(tmp_path, dated(1))
    counts = "3 valid, 1 dead letter.", "4 valid, 1 dead letter, 2 control records not checked."
    for saved in (False, True):
        arm = f"late-{saved}"
        assert streamduel("control", config, "search", "retire-arm", "nobody").status == 0
        assert streamduel("control", config, "search", "add-arm", arm).status == 0
        with (tmp_path / "clicks.jsonl").open("ab") as file:
            file.write(dated(2 + saved, a=arm) + b"\n")
        found = checks(streamduel, config)
        assert found["records"][1].endswith(f" records: {counts[saved]}")
        assert "unknown arm 'nobody'" in found["dead letters: unknown_arm"][1]
        assert run(config, "--until-end", "--quiet").status == 0


def test_an_arm_that_an_unread_record_may_add_is_told(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = write(tmp_path, dated(0))
    assert run(config, "--until-end", "--quiet").status == 0
    assert streamduel("control", config, "search", "add-arm", "late").status == 0
    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(b"".join(dated(n, a="late") + b"\n" for n in range(1, NEWEST + 3)))
    sentence = checks(streamduel, config, status=1)["dead letters: unknown_arm"][1]
    assert sentence.endswith(
        "A control record among 3 earlier records that the service has not read yet may add the "
        "arm."
    )
    assert run(config, "--until-end", "--quiet").status == 0
    assert checks(streamduel, config)["records"][0] == "fine"


def test_records_from_before_a_repair_are_not_checked(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = write(tmp_path, *(dated(number) for number in range(9)))
    assert run(config, "--until-end", "--quiet").status == 0
    write(tmp_path, dated(0), *(dated(number, a="nobody") for number in range(4)))
    assert streamduel("repair", "new-log", config, "--at-end").status == 0
    earlier = "0 dead letters, 5 records from before a repair not checked."
    found = checks(streamduel, config)
    assert found["records"] == ("fine", f"among the newest 5 records: 0 valid, {earlier}")
    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(dated(9) + b"\n")
    found = checks(streamduel, config)
    assert found["records"] == ("fine", f"among the newest 6 records: 1 valid, {earlier}")


def test_no_control_record_changes_a_fixed_setting(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, {"experiments.search.join_window_ms": 5000})
    verdict, sentence = checks(streamduel, config)["settings"]
    assert verdict == "warning"
    assert "differ from the configuration in join_window_ms, " in sentence
    assert sentence.endswith("it cannot change while they run; use a new experiment name.")


def test_what_can_change_and_what_cannot_are_told_apart(folder: Path) -> None:
    changes = {"experiments.search.join_window_ms": 5000, "experiments.search.slate": 3}
    found = doctor.examine(load(configure(folder, changes)))
    applied, fixed = (it.sentence for it in found if it.name == "settings")
    assert "in slate, and run on" in applied
    assert "slate" not in fixed
    assert "in join_window_ms, " in fixed
    assert "join_window_ms" not in applied


@pytest.mark.parametrize(
    ("ahead", "sentence"),
    [(7_200_000, "2.0 h ahead of this machine's clock"), (-90_000_000, "is 25.0 h old")],
)
def test_clocks(streamduel: Streamduel, tmp_path: Path, ahead: int, sentence: str) -> None:
    found = checks(streamduel, write(tmp_path, dated(1, ahead=ahead)))
    assert found["clocks"][0] == "warning"
    assert sentence in found["clocks"][1]


def test_a_damaged_snapshot_fails(streamduel: Streamduel, folder: Path) -> None:
    path = folder / "state" / "snapshot.json"
    path.write_bytes(path.read_bytes()[:-20])
    found = checks(streamduel, folder / "search.yaml", status=1)
    assert found["snapshots"][0] == "failed"


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("out/assignments.jsonl", "has 0 bytes, but the snapshot has "),
        ("state/snapshot.json", "holds the outputs of an earlier run, but "),
    ],
)
def test_outputs_that_a_start_would_refuse_fail(
    streamduel: Streamduel, folder: Path, missing: str, sentence: str
) -> None:
    (folder / missing).unlink()
    found = checks(streamduel, folder / "search.yaml", status=1)
    assert found["outputs"][0] == "failed"
    assert sentence in found["outputs"][1]
    assert run(folder / "search.yaml", "--until-end").err == f"streamduel: {found['outputs'][1]}\n"


def findings(folder: Path, **connector: Any) -> dict[str, str]:
    """The verdicts on a configuration whose connector has these functions."""
    loaded = load(write(folder, dated(1)))
    changed = dataclasses.replace(loaded.source_connector, **connector)
    update = {"source_connector": changed, "outlet_connector": changed}
    return {it.name: it.verdict for it in doctor.examine(loaded.model_copy(update=update))}


@pytest.mark.parametrize(
    ("partition", "beyond", "is_own", "problem"),
    [
        (0, 0, False, None),
        (0, -1, True, None),
        (0, -1, False, f"its snapshot continues at {len(LOG)}: were the offsets reset? "),
        (0, 1, True, f"its snapshot continues at {len(LOG)}: were the offsets reset? "),
        (1, 0, True, "of partition 1, which has no snapshot: "),
    ],
)
def test_a_start_continues_where_the_snapshots_do(
    folder: Path, partition: int, beyond: int, is_own: bool, problem: str | None
) -> None:
    loaded = load(configure(folder))
    committed = {partition: CommittedOffset(len(LOG) + beyond, is_own)}
    found = Diagnosis([], committed=committed)
    connector = dataclasses.replace(loaded.source_connector, diagnose=lambda *_: found)
    checked = doctor.examine(loaded.model_copy(update={"source_connector": connector}))
    told = [(it.verdict, it.sentence) for it in checked if it.name == "offsets"]
    assert len(told) == (problem is not None)
    if problem is not None:
        assert told[0][0] == "failed"
        assert problem in told[0][1]


class AsksItsFile(FileSource):
    """A source that answers no question after `close`."""

    def home(self, experiment: str) -> int:
        self._file.fileno()
        return super().home(experiment)

    def log_id(self, partition: int) -> str | None:
        self._file.fileno()
        return super().log_id(partition)


def test_the_click_log_is_open_while_findings_ask_it(folder: Path) -> None:
    loaded = load(configure(folder))
    opened: list[AsksItsFile] = []

    def open_log(settings: Any, options: object) -> AsksItsFile:
        opened.append(AsksItsFile(settings.path, to_end=True))
        return opened[-1]

    connector = dataclasses.replace(loaded.source_connector, open_log=open_log)
    update = {"source_connector": connector}
    found = {it.name: it for it in doctor.examine(loaded.model_copy(update=update))}
    assert found["snapshots"].verdict == "fine"
    assert found["records"].sentence.startswith("among the newest ")
    assert [it._file.closed for it in opened] == [True]


def test_nothing_is_checked_behind_what_no_connector_reaches(tmp_path: Path) -> None:
    found = Diagnosis([Finding("cluster", "failed", "it is down.")], reachable=False)
    assert findings(tmp_path, diagnose=lambda *_: found) == {"cluster": "failed"}
    found = Diagnosis([Finding("broker", "failed", "the second of two is down.")])
    assert "records" in findings(tmp_path, diagnose=lambda *_: found)


@pytest.mark.parametrize(
    ("created_by_run", "records", "snapshots"),
    [(True, None, "fine"), (False, "failed", "warning")],
)
def test_what_is_missing_is_wrong_unless_run_creates_it(
    tmp_path: Path, created_by_run: bool, records: str | None, snapshots: str
) -> None:
    def missing(*_: object) -> None:
        raise MissingError("nobody knows the stream 'clicks'.", created_by_run=created_by_run)

    found = findings(tmp_path, open_log=missing, open_archive=missing)
    assert (found.get("records"), found["snapshots"]) == (records, snapshots)


def test_a_mistake_in_the_configuration_is_one_sentence(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = configure(tmp_path, {"experiments.search.slate": 0})
    result = streamduel("doctor", config)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("streamduel: experiments.search.slate must be")
    (check,) = json.loads(streamduel("doctor", config, "--json").out)["checks"]
    assert (check["name"], check["verdict"]) == ("configuration", "failed")
    assert check["sentence"].startswith("experiments.search.slate must be")
