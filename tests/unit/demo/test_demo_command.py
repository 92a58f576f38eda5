"""`streamduel demo` in a terminal, in a pipe, and with mistakes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from streamduel.cli import app as cli
from streamduel.cli import demo as demo_command
from streamduel.demo.run import Settings
from tests.command_line import run_command
from tests.unit.cli.commands import COMMAND, SECONDS

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
ENDED = r"After [\d,]+ impressions .* says that \S+ is the best, .*\(confidence [01]\.\d{3}.*\)\."
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in {"FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES"}
}


def demo(*options: object) -> subprocess.CompletedProcess[str]:
    return streamduel("demo", *options)


def streamduel(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, seconds=SECONDS, env=ENVIRONMENT)


class Terminal:
    """A demo in a terminal of 80 columns and 24 lines."""

    def __init__(self, *options: object) -> None:
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, "demo", *map(str, options)],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - no threads
            env=ENVIRONMENT | {"TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, pattern: str) -> re.Match[str]:
        """Read on until it has been on the screen."""
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, self.seen[-3000:]
            assert self._read(), f"ended without {pattern!r}: {self.seen[-3000:]}"
        return found

    def _read(self) -> str:
        with contextlib.suppress(OSError):  # how Linux reports the end of the output
            said = os.read(self.master, 1 << 16).decode(errors="replace")
            self.seen += said
            return said
        return ""

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def ended(self) -> int:
        """Read to the end; the exit status."""
        while self._read():
            pass
        return self.process.wait(SECONDS)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    started: list[Terminal] = []

    def begin(*options: object) -> Terminal:
        started.append(Terminal(*options))
        return started[-1]

    yield begin
    for each in started:
        each.process.kill()
        each.process.wait()
        os.close(each.master)


def asked(url: str, path: str) -> tuple[int, bytes]:
    address = urlsplit(url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def experiment(url: str) -> dict[str, Any]:
    status, text = asked(url, "/api/experiments")
    assert status == 200
    found: dict[str, Any] = json.loads(text)["experiments"]["recipes"]
    return found


def test_in_a_terminal_the_demo_shows_frames_serves_a_page_and_prints_the_result(
    terminal: Callable[..., Terminal],
) -> None:
    demo = terminal("--impressions", 100_000, "--port", 0, "--speed", 200)
    url = demo.until(r"http://127\.0\.0\.1:\d+/")[0]
    demo.until("◀ click")
    assert demo.seen.startswith("\x1b[?1049h")
    assert asked(url, "/healthz")[0] == 200
    assert experiment(url)["policy"] == "top_two"
    assert b"streamduel_duels_total" in asked(url, "/metrics")[1]
    demo.type(b"\x03")
    assert demo.ended() == 0
    _, _, after = demo.seen.rpartition("\x1b[?1049l")
    assert "measured counts and true win rates" in after
    assert "regret over impressions" in after
    assert re.search(ENDED, after.replace("\r\n", " "))
    assert "Traceback" not in demo.seen


def test_in_a_terminal_the_demo_ends_automatically(terminal: Callable[..., Terminal]) -> None:
    demo = terminal("--impressions", 50, "--speed", 0, "--no-page")
    assert demo.ended() == 0
    assert "After 50 impressions" in demo.seen
    assert "http://" not in demo.seen


@pytest.mark.parametrize("key", [b"\n", b"\x04", b"\x03"])
def test_in_a_terminal_the_page_stays_until_enter_is_pressed(
    terminal: Callable[..., Terminal], key: bytes
) -> None:
    demo = terminal("--impressions", 50, "--speed", 0, "--port", 0)
    demo.type(b"\n")  # before the end, it means nothing
    url = demo.until(r"The page (http://127\.0\.0\.1:\d+/) stays until you press Enter\.")[1]
    assert experiment(url)["duels"] == 50
    demo.type(key)
    assert demo.ended() == 0
    assert "Traceback" not in demo.seen


def test_a_closed_terminal_leaves_no_files(tmp_path: Path) -> None:
    ENVIRONMENT["TMPDIR"] = str(tmp_path)
    try:
        demo = Terminal("--impressions", 100_000, "--port", 0)
    finally:
        del ENVIRONMENT["TMPDIR"]
    try:
        demo.until("◀ click")
        assert list(tmp_path.iterdir())
        os.close(demo.master)
        demo.process.wait(SECONDS)
    finally:
        demo.process.kill()
        demo.process.wait()
    assert not list(tmp_path.iterdir())


def test_in_a_pipe_it_prints_lines_without_control_characters() -> None:
    done = demo("--speed", 0, "--port", 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert not CONTROL.search(done.stdout)
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"status page and metrics: http://127\.0\.0\.1:\d+/", lines[0])
    assert "0 of 1,000 impressions, epoch 1: champion not known yet" in lines[1]
    assert re.fullmatch(ENDED + r" Showing .* worse rankers\.", lines[-1])
    assert "says that ltr-v1 is the best, and it is (confidence 0.95" in lines[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_demo_with_the_result_so_far_and_status_0(number: int) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        url = process.stdout.readline().split()[-1]
        deadline = time.monotonic() + SECONDS
        while not experiment(url)["duels"]:
            assert time.monotonic() < deadline
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    assert re.search(ENDED, out.splitlines()[-1])


def test_kept_files_can_be_inspected_and_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "of" / "demo"
    done = demo("--speed", 0, "--impressions", 205, "--no-page", "--keep", folder)
    assert done.returncode == 0
    config = folder / "streamduel.yaml"
    assert done.stdout.splitlines()[-1] == (
        f"Kept in {folder}: streamduel inspect {config}; streamduel replay {config}"
    )
    assert "205 duels" in streamduel("inspect", config).stdout
    replayed = streamduel("replay", config)
    assert replayed.returncode == 0
    assert "205 records folded again" in replayed.stdout
    again = demo("--keep", folder)
    assert again.returncode == 2
    assert again.stderr.startswith(
        "streamduel: --keep must be an empty directory, or one that does not exist (found '"
    )


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    ENVIRONMENT["TMPDIR"] = str(tmp_path)
    try:
        assert demo("--speed", 0, "--impressions", 50, "--no-page").returncode == 0
    finally:
        del ENVIRONMENT["TMPDIR"]
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_a_mistake_only_if_it_was_asked_for() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = demo("--port", port)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"streamduel: --port {port} is in use on 127.0.0.1; choose another, or 0 for a free one.\n"
    )
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # in use by something else: as good
            stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", 9400))))
        done = demo("--speed", 0, "--impressions", 10)
    assert done.returncode == 0
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", done.stdout)
    assert found
    assert found[1] != "9400"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--arms", "1"), "--arms must be from 2 to 20 (found 1)."),
        (("--arms", "21"), "--arms must be from 2 to 20 (found 21)."),
        (("--impressions", "0"), "--impressions must be from 1 to 1000000 (found 0)."),
        (("--seconds", "0"), "--seconds must be from 1 to 86400 (found 0.0)."),
        (("--seconds", "nan"), "--seconds must be from 1 to 86400 (found nan)."),
        (("--seed", "-1"), "--seed must be from 0 to 18446744073709551615 (found -1)."),
        (("--port", "65536"), "--port must be from 0 to 65535 (found 65536)."),
        (
            ("--speed", "0.5"),
            "--speed must be from 1 to 10000, or 0 for as fast as possible (found 0.5).",
        ),
        (
            ("--policy", "rubc"),
            "unknown policy 'rubc'; did you mean 'rucb'? 'streamduel policies' lists all.",
        ),
        (
            ("--policy", "rucb:alpha=0.3"),
            "policy.alpha must be greater than 0.5 (found 0.3); the regret bounds of RUCB hold "
            "only above it.",
        ),
        (
            ("--policy", "rucb:beta=2"),
            "policy 'rucb' has no parameter 'beta'; it has 'alpha', 'champion_set', 'window'.",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["streamduel", "demo", *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"streamduel: {sentence}\n")


ENDLESS = float("inf")


@pytest.mark.parametrize(
    ("options", "limit", "speed", "horizon"),
    [
        ((), (1000, ENDLESS), 20.0, 1000),
        (("--impressions", "1"), (1, ENDLESS), 20.0, 6),
        (("--impressions", "50", "--seconds", "10"), (50, 10.0), 20.0, 50),
        (("--seconds", "10"), (1_000_000, 10.0), 20.0, 200),
        (("--seconds", "10", "--speed", "0"), (1_000_000, 10.0), ENDLESS, 1_000_000),
        (("--arms", "20", "--speed", "1", "--seconds", "1"), (1_000_000, 1.0), 1.0, 20),
        (("--speed", "10000", "--seconds", "86400"), (1_000_000, 86_400.0), 10_000.0, 1_000_000),
        (("--port", "65535", "--arms", "2"), (1000, ENDLESS), 20.0, 1000),
    ],
)
def test_the_horizon_is_the_length_of_the_demo(
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    limit: tuple[int, float],
    speed: float,
    horizon: int,
) -> None:
    played: list[Settings] = []
    monkeypatch.setattr(demo_command, "_play", lambda settings, *_: played.append(settings))
    monkeypatch.setattr(demo_command, "StopSignal", Mock())
    monkeypatch.setattr(
        "sys.argv", ["streamduel", "demo", "--policy", "condorcet_savage", *options]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    [found] = played
    assert (found.limit, found.speed, found.parameters["horizon"]) == (limit, speed, horizon)


def test_keep_must_be_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    done = demo("--keep", path)
    assert done.returncode == 2
    assert done.stderr == (
        f"streamduel: --keep must be a directory that can be written to (found '{path}': "
        f"File exists).\n"
    )


def test_the_log_needs_no_optional_package() -> None:
    extras = dict.fromkeys(["kafka", "scipy", "matplotlib", "numba"])
    code = f"import sys; sys.modules.update({extras}); from streamduel.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", "--speed", "0", "--impressions", "50", "--port", "0"],
        capture_output=True, text=True, check=False, timeout=SECONDS, env=ENVIRONMENT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "After 50 impressions" in done.stdout


def test_the_help_shows_examples() -> None:
    said = " ".join(re.sub(r"[│╭╮╰╯─]", " ", demo("--help").stdout).split())
    for words in (
        "Watch streamduel find the best of six rankers in about a minute.",
        "Ctrl-C ends the demo with the result so far and exit status 0.",
        "Without a terminal, the demo prints a line every five seconds.",
        "streamduel demo --policy double_thompson --arms 10",
        "0 for as fast as possible",
        "[default: 1000, without --seconds]",
    ):
        assert words in said
