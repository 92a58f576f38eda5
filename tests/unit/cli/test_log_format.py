"""The application log of `run`, as text and as JSON."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamduel import __version__
from tests.command_line import run_command
from tests.unit.cli.commands import COMMAND, LOG, SECONDS, Result, configure, lines


def run(config: Path, *options: str, wanted: str | None = None, before: str = "") -> Result:
    """`streamduel run --until-end`, with no variable of streamduel but the given one."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("STREAMDUEL_")}
    if wanted is not None:
        environment["STREAMDUEL_LOG_FORMAT"] = wanted
    words = [*before.split(), "run", config, "--until-end", *options]
    done = run_command(*words, seconds=SECONDS, env=environment)
    return Result(done.returncode, done.stdout, done.stderr)


def decoded(text: str) -> list[dict[str, Any]]:
    """Lines of JSON, decoded."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def fresh(folder: Path) -> Path:
    """A configuration with an unread click log, and monitoring on a free port."""
    log = (folder / "clicks.jsonl").read_bytes()
    for left in ("out", "state"):
        for path in sorted((folder / left).rglob("*")):
            path.unlink()
    assert log
    # A single commit: on a busy machine another one has a champion that is not the last.
    return configure(folder, {"monitoring": {"port": 0}, "commit": {"interval_ms": 60_000}})


@pytest.mark.parametrize("wanted", ["json", "auto"])
def test_without_a_terminal_every_line_is_json(fresh: Path, wanted: str) -> None:
    result = run(fresh, wanted=wanted)
    assert result.status == 0
    assert "champion" in result.out, "the report is for people"
    events = decoded(result.err)
    by_name = {line["event"]: line for line in events}
    assert [line["event"] for line in events][:3] == [
        "started", "monitoring served", "partition restored",
    ]  # fmt: skip
    assert by_name["started"]["version"] == __version__
    assert by_name["started"]["config"] == str(fresh)
    assert by_name["monitoring served"]["url"].startswith("http://127.0.0.1:")
    assert by_name["partition restored"]["next_offset"] == 0
    last = json.loads(lines(fresh.parent)[-1])
    assert by_name["champion changed"]["champion"] == last["champion"]
    letters = sum(line["records"] for line in events if line["event"] == "dead letters")
    assert letters == len(lines(fresh.parent, "dead_letters.jsonl"))
    assert events[-1]["event"] == "stopped"
    assert (events[-1]["why"], events[-1]["offsets"]) == ("the end of the log", {"0": len(LOG)})


def test_the_option_overrides_the_environment(fresh: Path) -> None:
    result = run(fresh, "--log-format=text", wanted="json")
    assert result.err.startswith("status page and metrics on http://127.0.0.1:")


def test_text_is_the_default_and_logs_only_warnings(fresh: Path) -> None:
    [line] = run(fresh).err.splitlines()
    assert line.startswith("status page and metrics on http://127.0.0.1:")


def unwritten(place: str, unbuffered: str, *arguments: str) -> tuple[int, bytes]:
    """The status and standard output of a command whose standard error cannot be written."""
    if place == "a full disk":
        log = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, log = os.pipe()
        os.close(reader)
    done = subprocess.run(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=log, timeout=SECONDS, check=False,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    os.close(log)
    return done.returncode, done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("place", ["a full disk", "a closed pipe"])
class TestUnwritable:
    @pytest.mark.parametrize("wanted", ["text", "json"])
    def test_the_service_goes_on(
        self, fresh: Path, wanted: str, place: str, unbuffered: str
    ) -> None:
        folds = ("run", str(fresh), "--until-end", "--log-format", wanted)
        status, shown = unwritten(place, unbuffered, *folds)
        assert status == 0
        assert b"champion" in shown

    def test_a_mistake_keeps_its_status(self, place: str, unbuffered: str) -> None:
        assert unwritten(place, unbuffered, "inspect", "nowhere.yaml") == (2, b"")


def test_verbose_text_logs_events(fresh: Path) -> None:
    err = run(fresh, before="-v").err
    for words in ("[info     ] started version=", "status page and metrics on ", "] stopped why="):
        assert words in err


@pytest.mark.parametrize("spoilt", ["arms: [x]", "experiments: {search: {arms: [x, y, x]}}"])
def test_a_mistake_is_a_line_of_json_with_the_sentence_and_the_status(
    fresh: Path, spoilt: str
) -> None:
    fresh.write_text(spoilt)
    sentence = run(fresh).err.removeprefix("streamduel: ").removesuffix("\n")
    result = run(fresh, wanted="json")
    [line] = decoded(result.err)
    assert (result.status, result.out) == (2, "")
    assert (line["level"], line["event"], line["status"]) == ("error", "failed", 2)
    assert line["error"] == sentence


def test_a_failure_is_logged_after_the_service_has_stopped(fresh: Path) -> None:
    (fresh.parent / "clicks.jsonl").unlink()
    result = run(fresh, wanted="json")
    stopped, failed = decoded(result.err)[-2:]
    assert (result.status, failed["event"], failed["status"]) == (1, "failed", 1)
    assert "clicks.jsonl cannot be read" in failed["error"]
    assert (stopped["event"], stopped["why"]) == ("stopped", "an error")


def test_a_service_whose_port_is_in_use_logs_its_start_and_end(fresh: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        configure(fresh.parent, {"monitoring": {"port": taken.getsockname()[1]}})
        result = run(fresh, wanted="json")
    started, stopped, failed = decoded(result.err)
    assert (result.status, failed["event"]) == (2, "failed")
    assert "is in use" in failed["error"]
    assert (started["event"], stopped["event"]) == ("started", "stopped")
    assert stopped["why"] == "an error"


def test_an_unknown_format_is_refused_with_the_allowed_ones(fresh: Path) -> None:
    result = run(fresh, wanted="yaml")
    assert result.status == 2
    assert all(word in result.err for word in ("yaml", "text", "json", "auto"))


def test_auto_is_text_on_a_terminal(fresh: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", str(fresh), "--log-format", "auto", "--until-end"],
        stdout=subprocess.DEVNULL, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        os.close(ours)
    assert process.wait(SECONDS) == 0
    assert b"status page and metrics on http://" in shown
    assert b'"event"' not in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so when the other end is closed
        return b""
