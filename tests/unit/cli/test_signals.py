"""Signals, locks and live click logs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line import run_command
from tests.logs import values
from tests.unit.cli.commands import (
    COMMAND,
    LOG,
    SECONDS,
    Result,
    Streamduel,
    configure,
    inspected,
    lines,
)


class Service:
    """`streamduel run` in the background; `wait_for` ends with it."""

    def __init__(self, config: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "run", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; the service must keep running."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, "the condition never held"
            try:
                self.process.wait(timeout=0.01)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(self.process.communicate()[1])

    def has_read(self, path: Path) -> bool:
        """Whether the service has read a file to its end, by its file position."""
        return _positions(self.process.pid, path) == {path.stat().st_size}

    def stop(self, number: int) -> Result:
        """Send a signal and wait as long as an orchestrator does."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=10)
        return Result(self.process.returncode, out, err)


def _positions(pid: int, path: Path) -> set[int]:
    """The positions of a process's descriptors of a file."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if link.samefile(path):
                info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
                found.add(int(info.split()[1]))
        except OSError:  # closed in the meantime, or no file
            continue
    return found


@pytest.fixture
def start() -> Iterator[Callable[[Path], Service]]:
    started: list[Service] = []

    def begin(config: Path) -> Service:
        started.append(Service(config))
        return started[-1]

    yield begin
    for service in started:
        service.process.kill()
        service.process.communicate()


on_linux = pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="needs /proc")


@on_linux
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_commits_what_is_done_and_ends_with_status_0(
    finished: Path, folder: Path, start: Callable[[Path], Service], streamduel: Streamduel,
    number: int,
) -> None:  # fmt: skip
    shutil.rmtree(folder / "out")
    shutil.rmtree(folder / "state")
    service = start(configure(folder, {"commit": {"interval_ms": 60_000}}))
    service.wait_for(lambda: service.has_read(folder / "clicks.jsonl"))
    result = service.stop(number)
    assert (result.status, result.out) == (0, "")
    assert all("[warning  ] dead letters reason=" in line for line in result.err.splitlines())
    assert inspected(streamduel, folder)["experiments"]["search"]["offset"]["next"] == len(LOG)
    assert lines(folder) == lines(finished)


@on_linux
def test_a_log_is_followed_as_it_grows(
    finished: Path, tmp_path: Path, start: Callable[[Path], Service]
) -> None:
    log = tmp_path / "clicks.jsonl"
    log.write_bytes(b"")
    service = start(configure(tmp_path))
    for begin in range(0, len(LOG), 500):
        with log.open("ab") as file:
            file.write(b"".join(value + b"\n" for value in LOG[begin : begin + 500]))
        service.wait_for(lambda: service.has_read(log))
    assert service.stop(signal.SIGTERM).status == 0
    assert lines(tmp_path) == lines(finished)


def test_a_second_process_on_the_same_folder_is_refused(
    folder: Path, start: Callable[[Path], Service]
) -> None:
    lock = folder / "state" / ".lock"
    lock.unlink()
    first = start(folder / "search.yaml")
    first.wait_for(lock.exists)
    service = start(folder / "search.yaml")
    assert service.process.wait(timeout=SECONDS) == 1
    assert service.process.communicate() == (
        "",
        f"streamduel: another streamduel writes to {folder / 'state'}; each needs directories of "
        f"its own for its outputs and its snapshots.\n",
    )
    assert first.stop(signal.SIGTERM).status == 0


@on_linux
def test_inspect_and_replay_do_not_disturb_the_service(
    folder: Path, start: Callable[[Path], Service], streamduel: Streamduel
) -> None:
    service = start(folder / "search.yaml")
    service.wait_for(lambda: service.has_read(folder / "clicks.jsonl"))
    assert streamduel("inspect", folder / "search.yaml").status == 0
    assert streamduel("replay", folder / "search.yaml").status == 0
    assert service.stop(signal.SIGTERM).status == 0


def test_lines_of_a_live_pipe_are_committed_on_a_signal(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = configure(tmp_path, {"source.path": "-"})
    with subprocess.Popen([*COMMAND, "run", str(config)], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(value + b"\n" for value in LOG[:50]))
        process.stdin.flush()
        try:
            deadline = time.monotonic() + SECONDS
            while _next_offset(streamduel, tmp_path) < 50:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=SECONDS) == 0
        finally:
            process.kill()  # leaving the block would otherwise wait for it


def test_a_signal_ends_a_restart_that_waits_for_its_pipe(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    """As one that counts the lines of a large file on a slow disk."""
    config = configure(tmp_path, {"source.path": "-", "dedupe.window_records": 100})
    log, errors = tmp_path / "log", tmp_path / "errors"
    log.write_bytes(b"".join(value + b"\n" for _, value in values(21, 20_000)))
    assert run_command("run", config, "--until-end", seconds=SECONDS, stdin=log).returncode == 0
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [*COMMAND, "run", str(config)], stdin=subprocess.PIPE, stderr=stderr
        ) as process,
    ):
        try:
            deadline = time.monotonic() + SECONDS
            while "position delayed" not in errors.read_text():
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=SECONDS) == 0
        finally:
            process.kill()  # leaving the block would otherwise wait for it
    assert _next_offset(streamduel, tmp_path) == 20_000


def _next_offset(streamduel: Streamduel, folder: Path) -> int:
    """The next offset of the newest snapshot; 0 before the first commit."""
    if not (folder / "state" / "snapshot.json").exists():
        return 0
    result = streamduel("inspect", folder / "search.yaml", "--json")
    experiments = json.loads(result.out)["experiments"]
    assert result.status == (0 if experiments else 1)
    return int(experiments["search"]["offset"]["next"]) if experiments else 0


def test_a_replaced_click_log_is_an_error(start: Callable[[Path], Service], folder: Path) -> None:
    service = start(folder / "search.yaml")
    service.wait_for(lambda: service.has_read(folder / "clicks.jsonl"))
    (folder / "new.jsonl").write_bytes(b"".join(value + b"\n" for value in [*LOG, *LOG]))
    (folder / "new.jsonl").replace(folder / "clicks.jsonl")
    _, err = service.process.communicate(timeout=SECONDS)
    assert service.process.returncode == 1
    assert "clicks.jsonl was replaced by another file; a click log may only grow. Restore" in err
    assert "'streamduel repair new-log CONFIG'" in err


GIVING_UP = """
import os, signal, sys, time
from streamduel import service
from streamduel.logging import set_up
service.SHUTDOWN_SECONDS = service.OVERDUE_LOG_SECONDS = 0.1
set_up("json")
stop = service.StopSignal()
stop.listen()
os.set_blocking(2, False)
try:
    while True:
        os.write(2, bytes(4096))
except BlockingIOError:
    os.set_blocking(2, True)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""


def test_the_service_ends_although_standard_error_is_not_read() -> None:
    with subprocess.Popen([*COMMAND[:2], GIVING_UP], stderr=subprocess.PIPE) as process:
        try:
            assert process.wait(timeout=30) == 1
        finally:
            process.kill()
