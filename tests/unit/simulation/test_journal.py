"""The journal: interrupted simulations resume, and files that are not journals stay unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.simulation.delay import GeometricDelay
from streamduel.simulation.journal import Journal
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.measurement import RunResult, measure
from streamduel.simulation.simulate import simulate
from tests.unit.simulation.bed import outcome, settings


def test_the_run_of_a_cut_off_line_is_repeated(tmp_path: Path) -> None:
    path = tmp_path / "runs.journal"
    simulate(settings(), journal=path)
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) - 50, len(whole.splitlines()[0]) - 3, 0):
        path.write_bytes(whole[:length])
        assert outcome(simulate(settings(), journal=path)) == outcome(simulate(settings()))
        assert all(json.loads(line) for line in path.read_bytes().splitlines())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"horizon": 300}, "horizon was 200, is 300"),
        ({"seed": 8}, "seed was 7, is 8"),
        ({"regret": "weak"}, 'regret was "condorcet", is "weak"'),
        ({"ties": 0.1}, "ties was 0.0, is 0.1"),
        ({"slate": 2}, "slate was 1, is 2"),
        ({"per_decade": 5}, "checkpoints was 10, is 5"),
        ({"until_sure": 0.9}, "until_sure was null, is 0.9"),
        ({"changes": {100: 1 - ARXIV}, "regret": "copeland"}, "matrix was"),
    ],
)
def test_a_journal_of_other_settings_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = tmp_path / "runs.journal"
    simulate(settings(), journal=path)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="holds runs of other settings") as error:
        simulate(settings(**changes), journal=path)
    assert words in str(error.value)
    assert "remove it to start again" in str(error.value)
    assert path.read_bytes() == before


NO_JOURNALS = [
    b"{}\n",
    b"hello\n",
    b"[1]\n",
    b'{"a": 1}\n{"b": 2}\n',
    b"precious",
    b"one\ntwo, without an end",
    b"\n\nprecious",
    b"{",
    b'{"journal": "my diary"',
    b'{"journal": broken\nand more',
    b"\xff\xfe\x00",
]


@pytest.mark.parametrize("content", NO_JOURNALS)
def test_a_file_that_is_not_a_journal_is_refused_and_not_changed(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="is not a journal of a simulation"):
        simulate(settings(), journal=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_a_journal_must_not_be_a_device_or_a_pipe(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match=r"must be a file \(found a device or a pipe\)"):
        Journal(tmp_path / path, settings())


def sound() -> dict[str, Any]:
    """A line of a journal, as an object."""
    run = measure(settings(), settings().specs[0], 0)
    return {each: getattr(run, each) for each in RunResult.__struct_fields__}


@pytest.mark.parametrize(
    "line",
    [
        b"{}", b"", b"rubbish", b'{"name": "rucb", "run": 1}', b"\xff", b"[" * 100_000,
        {"regret": "many"}, {"regret": [1.0]}, {"run": "0"}, {"run": -1}, {"run": True},
        {"run": 0.0}, {"name": None}, {"params": []}, {"right": 1}, {"seconds": "0"},
        {"seconds": float("nan")}, {"seconds": float("inf")}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes | dict[str, Any]) -> None:
    check_damaged(tmp_path / "runs.journal", line)


@pytest.mark.parametrize("value", ["0.5", None, float("nan"), float("inf"), -1.0, 10**400, True])
def test_a_damaged_regret_is_named(tmp_path: Path, value: object) -> None:
    check_damaged(tmp_path / "runs.journal", {"regret": [*sound()["regret"][:-1], value]})


@pytest.mark.parametrize("value", ["true", None, 1, 0.0])
def test_a_damaged_accuracy_is_named(tmp_path: Path, value: object) -> None:
    check_damaged(tmp_path / "runs.journal", {"right": [*sound()["right"][:-1], value]})


ANSWER = {"verdict": "champion", "duels": 70, "regret": 3.5, "wrong": False}


def test_an_answer_that_was_not_asked_for_is_named(tmp_path: Path) -> None:
    check_damaged(tmp_path / "runs.journal", {"answer": ANSWER})


@pytest.mark.parametrize(
    "answer",
    [
        None, {}, {**ANSWER, "verdict": "perhaps"}, {**ANSWER, "duels": 0},
        {**ANSWER, "regret": -1.0}, {**ANSWER, "wrong": None}, {**ANSWER, "more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_answer_is_named(tmp_path: Path, answer: dict[str, Any] | None) -> None:
    check_damaged(tmp_path / "runs.journal", {"answer": answer}, until_sure=0.9)


def test_answers_are_kept(tmp_path: Path) -> None:
    asked = settings(until_sure=0.5)
    whole = outcome(simulate(asked, journal=tmp_path / "runs.journal"))
    assert outcome(simulate(asked, journal=tmp_path / "runs.journal")) == whole
    assert all(policy["sure"]["confidence"] == 0.5 for policy in whole["policies"])


def check_damaged(path: Path, line: bytes | dict[str, Any], **changes: Any) -> None:
    """A journal with this line, and a cut-off one at its end, is refused and stays as it is."""
    simulate(settings(runs=1, **changes), journal=path)
    lines = path.read_bytes().splitlines()
    wrong = line if isinstance(line, bytes) else json.dumps({**sound(), **line}).encode()
    path.write_bytes(b"\n".join([lines[0], wrong, lines[1], b"cut o"]))
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=r"line 2 of the journal .* is damaged"):
        simulate(settings(**changes), journal=path)
    assert path.read_bytes() == before


def test_delays_that_differ_in_the_last_digit_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "runs.journal"
    simulate(settings(delay=GeometricDelay(123456.75)), journal=path)
    with pytest.raises(ConfigurationError, match=r'delay was "geometric:123456.75", is "geometri'):
        simulate(settings(delay=GeometricDelay(123456.76)), journal=path)


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.journal"
    with (
        Journal(path, settings()),
        pytest.raises(ConfigurationError, match="in use by another simulation"),
    ):
        simulate(settings(), journal=path)
    simulate(settings(), journal=path)


def test_a_journal_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        simulate(settings(), journal=tmp_path)


def test_a_full_disk_is_named_and_finished_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.journal"
    with Journal(path, settings()) as journal:
        first, second = (measure(settings(), settings().specs[0], run) for run in (0, 1))
        journal.add(first)
        room = Room(journal._file, 100)
        monkeypatch.setattr(journal, "_file", room)
        with pytest.raises(StreamduelError, match=r"cannot be written \(No space left on device\)"):
            journal.add(second)
    assert not path.read_bytes().endswith(b"\n")
    with Journal(path, settings()) as journal:
        assert list(journal) == [first]


class Room:
    """A file with room for so many bytes more."""

    def __init__(self, file: Any, left: int) -> None:
        self._file, self._left = file, left

    def write(self, content: memoryview) -> int:
        if not self._left:
            raise OSError(28, "No space left on device")
        written: int = self._file.write(content[: self._left])
        self._left -= written
        return written

    def close(self) -> None:
        self._file.close()
