"""docs/quickstart-ranker.md: its commands are run, and their output compared with the page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from streamduel.client import Assignments, EventLog, InMemoryFeed
from tests.broker.fixture import without_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.local_kafka import LocalKafka, free_port
from tests.faults.processes import ROOT
from tests.unit.client.bed import PATIENCE, eventually, record

PAGE: Final = (ROOT / "docs" / "quickstart-ranker.md").read_text(encoding="utf-8")

SECONDS: Final = 600.0
"""For the whole page, which takes a minute."""

PREPARED: Final = ("1. Install", "2. Start Kafka")
"""Sections that the fixtures replace: a new environment would need the package index."""

PARTS: Final = re.compile(
    r"(?P<number>\d[\d.,]*\d|\d)|(?P<rule>[━─]+)|(?P<end>(?<=\w)\n)|(?P<blank>\s+)|(?P<rest>…)|\w+|."
)
LIKE: Final = {
    "number": r"\d[\d.,]*",
    "rule": "[━─]+",
    "end": r".*\n",  # a line may be longer, such as by one tally
    "blank": r"\s*",
    "rest": r"[\s\S]*?",  # omitted on the page
}
"""Patterns of the parts of an output."""


class Command(NamedTuple):
    """A command and its output on the page."""

    line: str
    answer: str


def sections() -> dict[str, list[tuple[str, str]]]:
    """The fenced blocks below each heading: language and text."""
    headed = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)[1:]
    return {
        heading: re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for heading, text in zip(headed[::2], headed[1::2], strict=True)
    }


def commands(console: str) -> list[Command]:
    """The commands of a console block: each line after a `$`, with the lines that follow it."""
    parts = re.split(r"^\$ ", console, flags=re.MULTILINE)
    assert parts.pop(0) == "", "a block begins with a command"
    return [Command(*part.split("\n", 1)) for part in parts]


def looks_like(answer: str) -> re.Pattern[str]:
    """Matches the same words in the same order, with any numbers and any layout.

    >>> bool(looks_like("│ ltr │ 65,513 │ 0.552 │").search("│ ltr    │ 7 │ 0.6  │"))
    True
    >>> bool(looks_like("champion ltr").search("champion bm25"))
    False
    >>> bool(looks_like("2 accepted\\nNo letters.").search("2 accepted, 1 late\\nNo letters."))
    True
    """
    return re.compile(
        "".join(
            LIKE.get(str(part.lastgroup), re.escape(part[0])) for part in PARTS.finditer(answer)
        )
    )


class Terminal:
    """A shell that runs the commands of the page."""

    def __init__(self, folder: Path) -> None:
        own = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{own}:{os.environ['PATH']}", "no_proxy": "localhost"}
        for name in [name for name in environment if name.startswith("STREAMDUEL_")]:
            del environment[name]
        self._bash = subprocess.Popen(
            ["bash"], cwd=folder, env=environment, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._deadline = threading.Timer(SECONDS, self._kill)
        self._deadline.start()

    def follow(self, command: Command) -> None:
        """Run a command until it succeeds with the output of the page.

        `curl` and `inspect` are repeated: the test is faster than a reader.
        """
        line, answer = command.line, looks_like(command.answer.strip())
        deadline = time.monotonic() + PATIENCE
        while not ((shown := self._type(line)).endswith("=0=\n") and answer.search(shown)):
            if line.endswith("&"):
                self._read_until(answer)
                break
            assert line.startswith(("curl", "streamduel inspect")), f"output of '{line}':\n{shown}"
            assert time.monotonic() < deadline, f"last output of '{line}':\n{shown}"
            time.sleep(0.2)

    def _type(self, line: str) -> str:
        assert self._bash.stdin is not None
        self._bash.stdin.write(f"{line}\nprintf '\\n=%d=\\n' $?\n")
        self._bash.stdin.flush()
        return self._read_until(re.compile(r"^=\d+=\n", re.MULTILINE))

    def _read_until(self, end: re.Pattern[str]) -> str:
        assert self._bash.stdout is not None
        shown = ""
        while not end.search(shown):
            line = self._bash.stdout.readline()
            assert line, f"nothing like '{end.pattern}' in {SECONDS:.0f} s after:\n{shown}"
            shown += line
        return shown

    def close(self) -> None:
        """Kill the shell and everything started in it."""
        self._deadline.cancel()
        self._kill()
        self._bash.communicate()

    def _kill(self) -> None:
        os.killpg(self._bash.pid, signal.SIGKILL)


@pytest.fixture
def broker() -> Iterator[LocalKafka]:
    """A broker without topics: those of the page have common names."""
    try:
        broker = LocalKafka().__enter__()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    yield broker
    broker.close()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A shell in an empty folder next to the source code."""
    (tmp_path / "streamduel").symlink_to(ROOT)
    (tmp_path / "recipes").mkdir()
    terminal = Terminal(tmp_path / "recipes")
    yield terminal
    terminal.close()


@pytest.mark.kafka
@pytest.mark.slow
def test_the_commands_have_the_output_of_the_page(
    broker: LocalKafka, terminal: Terminal, tmp_path: Path
) -> None:
    # In the output 'votes' has won and is shown alone. It wins some 70 % of the duels, and both are
    # shown until the answer is sure, which on a slow machine takes more of the searches.
    here = {
        "localhost:9092": broker.bootstrap_servers,
        "9400": str(free_port()),
        "8000": str(free_port()),
    }
    typed: list[str] = []
    for heading, blocks in sections().items():
        for language, text in blocks if heading not in PREPARED else ():
            for there, instead in here.items():
                assert there in PAGE
                text = text.replace(there, instead)  # noqa: PLW2901 - for this machine
            if language == "yaml":
                (tmp_path / "recipes" / "recipes.yaml").write_text(text, encoding="utf-8")
            for command in commands(text) if language == "console" else ():
                terminal.follow(command)
                typed.append(command.line)
                if command.line.startswith("streamduel run"):
                    ready = f"curl -sf localhost:{here['9400']}/readyz; true"
                    terminal.follow(Command(ready, '{"status":"ready"}'))
    assert typed[-1] == "kill %2 %3", "the last command of the page"


@pytest.mark.parametrize(
    ("pair", "logged"), [(("bm25", "ltr"), ["impression", "click"]), (("bm25", "new"), ["duel"])]
)
def test_the_example_of_an_own_service(
    pair: tuple[str, str], logged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((_, code),) = [block for block in sections()["Your own service"] if block[0] == "python"]
    clicks = tmp_path / "clicks.jsonl"
    given = InMemoryFeed()
    monkeypatch.setattr(
        Assignments, "from_kafka", lambda _, **options: Assignments(given, **options)
    )
    monkeypatch.setattr(EventLog, "to_kafka", lambda _: EventLog.to_file(clicks))
    names: dict[str, Any] = {
        "by_bm25": lambda query: ["d1", query], "by_ltr": lambda query: [query, "d1"]
    }  # fmt: skip
    exec(code, names)
    with names["assignments"] as assignments, names["events"]:
        assert names["search"]("d2", "session") == (None, ["d1", "d2"])
        given.add(record(1, {pair: 1.0}))
        eventually(lambda: assignments.draw("search").epoch == 1)
        impression, docs = names["search"]("d2", "session")
        assert sorted(docs) == ["d1", "d2"]
        if impression is not None:
            names["clicked"](impression, 1)
    assert re.findall(r'"type":"(\w+)"', clicks.read_text()) == ["duel", *logged]


def test_the_prepared_sections_are_the_first_ones() -> None:
    assert list(sections())[:2] == list(PREPARED)
