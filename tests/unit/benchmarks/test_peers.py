"""Peers side by side: the records, the verification, the measurement of processes, and the page."""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks.machine import ROOT
from benchmarks.peers.catalog import PEERS
from benchmarks.peers.clicks import Clicks, clicks
from benchmarks.peers.environments import HERE
from benchmarks.peers.job import EVERY, Job, Result, Tally, decode
from benchmarks.peers.ledger import Ledger
from benchmarks.peers.peer import Peer
from benchmarks.peers.processes import Program
from benchmarks.peers.programs.streamduel_service import configuration
from benchmarks.peers.runner import Figures, Recovery, Results, RunError, measure, recover
from benchmarks.peers.table import Row, results

TRIVIAL = Peer(name="trivial", version="1", exactly=False, settings="", program="none")

COUNT = """
import sys, time
from pathlib import Path
from benchmarks.peers.job import Tally, decode

folder = Path(sys.argv[1])
tallies, published = {}, 0
with (folder / "results").open("a") as results:
    for name in ("warm", "main"):
        while not (folder / name).exists():
            time.sleep(0.01)
        for value in (folder / name).read_bytes().splitlines():
            duel = decode(value)
            result = tallies.setdefault(duel.experiment, Tally()).count(duel)
            if result:
                print(result.decode(), file=results, flush=True)
                published += 1
            if published == 12 and not (folder / "again").exists():
                time.sleep(600)
    time.sleep(600)
"""
"""The first run stops after half of its results, as if something slow came next."""


class Folder:
    """A program in a folder instead of a topic; it keeps no state, so a restart begins at zero."""

    def __init__(self, folder: Path, warm: Clicks) -> None:
        self._folder = folder
        self._read = 0
        (folder / "results").touch()
        self.write("warm", warm)

    def write(self, name: str, clicks: Clicks) -> None:
        """Make the records readable, all at once."""
        rows = itertools.zip_longest(*clicks.values.values())
        values = [value for row in rows for value in row if value is not None]
        (self._folder / "hidden").write_bytes(b"\n".join(values))
        (self._folder / "hidden").rename(self._folder / name)

    def start(self) -> Program:
        """Start the program; the second time, it runs to the end."""
        if self._read:
            (self._folder / "again").touch()
        command = [sys.executable, "-c", COUNT, str(self._folder)]
        return Program(command, {"PYTHONPATH": str(ROOT)}, self._folder, self._folder / "log")

    def look(self) -> list[bytes]:
        lines = (self._folder / "results").read_bytes().splitlines(keepends=True)
        found = [line for line in lines[self._read :] if line.endswith(b"\n")]
        self._read += len(found)
        return found

    def has_more(self) -> bool:
        return False

    def committed(self) -> dict[int, int]:
        return {}


def test_a_program_is_measured_and_verified(tmp_path: Path, both: tuple[Clicks, Clicks]) -> None:
    warm, main = both
    folder = Folder(tmp_path, warm)
    (tmp_path / "again").touch()
    with folder.start() as program:
        found = measure(
            program, Results(TRIVIAL, folder), lambda: folder.write("main", main), warm, main
        )
    assert found.records == main.count
    assert found.mistakes == []
    assert found.seconds > 0
    assert 0 <= found.cpu < found.seconds * (os.cpu_count() or 1) + 1
    assert found.peak > 5_000_000


def test_a_killed_program_is_started_again(tmp_path: Path, both: tuple[Clicks, Clicks]) -> None:
    warm, main = both
    folder = Folder(tmp_path, warm)
    folder.write("main", main)
    found = recover(folder.start, Results(TRIVIAL, folder), main)
    assert found.mistakes == []
    assert found.repeated == 12
    assert found.seconds is not None
    assert found.seconds > 0


def test_a_program_that_ends_is_an_error(tmp_path: Path, both: tuple[Clicks, Clicks]) -> None:
    warm, main = both
    folder = Folder(tmp_path, warm)
    command = [sys.executable, "-c", "print('broken')"]
    with (
        Program(command, {}, tmp_path, tmp_path / "log") as program,
        pytest.raises(RunError, match=r"(?s)the program ended before all results:.*broken"),
    ):
        measure(program, Results(TRIVIAL, folder), lambda: None, warm, main)


@pytest.fixture(scope="module")
def both() -> tuple[Clicks, Clicks]:
    return clicks(100, 500)


def counted(main: Clicks, warm: Clicks) -> list[Result]:
    """What a right peer publishes."""
    published = []
    for name in main.values:
        tally = Tally()
        for value in warm.values[name] + main.values[name]:
            result = tally.count(decode(value))
            if result:
                published.append(msgspec.json.decode(result, type=Result))
    return published


def ledger(found: list[Result]) -> Ledger:
    made = Ledger()
    for result in found:
        made.add(result)
    return made


def test_every_hundredth_duel_comes_twice_and_counts_once(both: tuple[Clicks, Clicks]) -> None:
    warm, main = both
    assert warm.expected.records == dict.fromkeys(warm.values, 100)
    assert main.expected.records == dict.fromkeys(main.values, 600)
    assert [len(values) for values in main.values.values()] == [505] * 4
    assert main.count == 2020
    assert main.ends == [100 + 1 + 505] * 4


def test_a_right_peer_has_no_mistakes(both: tuple[Clicks, Clicks]) -> None:
    warm, main = both
    found = ledger(counted(main, warm))
    assert found.has(main.expected.records)
    assert found.mistakes(main.expected.wins) == []
    assert found.repeated == 0


def test_a_lost_a_wrong_and_a_repeated_result_are_found(both: tuple[Clicks, Clicks]) -> None:
    warm, main = both
    published = counted(main, warm)
    last, first = published[5], published[0]
    name = last.experiment

    assert ledger(published[1:]).mistakes(main.expected.wins) == [f"{name}: 1 results are missing"]

    wins = {**(last.wins or {})}
    wins[next(iter(wins))] += 1
    wrong = [*published[:5], Result(name, last.records, wins), *published[6:]]
    assert ledger(wrong).mistakes(main.expected.wins) == [f"{name}: the wins of 1 pairs are wrong"]

    short = [*published[:5], *published[6:]]
    assert ledger(short).mistakes(main.expected.wins) == [f"{name}: 500 records instead of 600"]
    assert not ledger(short).has(main.expected.records)

    again = ledger([*published, first])
    assert again.repeated == 1
    assert again.mistakes(main.expected.wins) == []


def test_only_a_result_with_more_records_is_further() -> None:
    found = Ledger()
    assert found.add(Result("search", EVERY))
    assert found.add(Result("search", 3 * EVERY))
    assert not found.add(Result("search", 2 * EVERY))
    assert not found.add(Result("search", 3 * EVERY))
    assert found.repeated == 1


SPIN = """
import subprocess, sys, time
child = "import time; [0 for _ in iter(lambda: time.process_time() < 0.3, False)];"
child += "print('spun', flush=True); time.sleep(600)"
subprocess.run([sys.executable, "-c", child])
"""


def test_processor_time_and_memory_include_what_a_program_starts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Program([sys.executable, "-c", SPIN], {}, tmp_path, log) as program:
        while "spun" not in program.last_lines:
            assert not program.ended, program.last_lines
        assert program.cpu_seconds() >= 0.25  # of 0.3, in ticks of 10 ms for user and system
        assert program.peak_bytes() > 2 * 5_000_000  # two interpreters
        program.kill()
        assert program.ended
        assert program.peak_bytes() == 0


def test_ratios_are_of_processor_time_and_failures_are_named() -> None:
    ours = replace(TRIVIAL, name="streamduel", exactly=True, ours=True)
    rows = [
        Row(ours, Figures(1000, 1.0, 0.01, 50_000_000, []), Recovery(0.5, 0, [])),
        Row(TRIVIAL, Figures(1000, 2.0, 0.03, 50_000_000, []), Recovery(None, 3, ["it hangs\nx"])),
        Row(replace(TRIVIAL, name="old"), reason="it does not install"),
        Row(TRIVIAL, Figures(1000, 2.0, 0.03, 50_000_000, []), Recovery(1.5, 0, [])),
        Row(TRIVIAL, Figures(1000, 2.0, 0.03, 50_000_000, []), Recovery(1.5, 0, ["lost"])),
    ]
    figures, how = results(rows)
    assert figures.rows[0] == [
        "streamduel", "1,000", "10.0", "1.0", "50", "0.5", "right", "0", "yes",
    ]  # fmt: skip
    assert figures.rows[1] == [
        "trivial", "500", "30.0", "3.0", "50", "over 120", "–", "3", "no",
    ]  # fmt: skip
    assert figures.rows[3][5:] == ["1.5", "right", "0", "not promised"]
    assert figures.rows[4][5:] == ["1.5", "wrong: lost", "0", "no"]
    assert figures.rows[2][:2] == ["old", "not measured: it does not install"]
    assert [goal.met for goal in figures.goals] == [False]
    assert [row[0] for row in how.rows] == ["streamduel", "trivial", "old", "trivial", "trivial"]


def test_every_peer_has_its_program_and_its_settings(tmp_path: Path) -> None:
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    for peer in PEERS:
        assert peer.settings
        program = HERE / "programs" / f"{peer.program}.py"
        assert program.exists() or (HERE / peer.maven / f"{peer.program}.java").exists()
        assert not peer.maven or (HERE / peer.maven / "pom.xml").exists()
    job = Job("127.0.0.1:1", "duels", "results", "group", str(tmp_path), ["search"])
    assert '"group": "group"' in configuration(job).read_text()
    assert msgspec.json.decode(job.text(), type=Job) == job
