"""The two formats of a line."""

from __future__ import annotations

import datetime as dt
import io
import json
import logging
import re
import sys

import pytest
import structlog

from streamduel.logging import FormatOption, LogFormat, resolve_format, set_up
from tests.unit.logging.conftest import Written

OURS = structlog.stdlib.get_logger("streamduel.monitoring.service_log")
LIBRARY = logging.getLogger("kafka.net.manager")

CUT = 16 * 1024
"""Container engines split longer lines."""

LEAST_WRITTEN = 3500
"""Bytes of a line whose value is not cut more than necessary."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("wanted", "stream", "form"),
    [
        ("auto", Terminal(), "text"),
        ("auto", io.StringIO(), "json"),
        ("json", Terminal(), "json"),
        ("text", io.StringIO(), "text"),
    ],
)
def test_auto_is_text_on_a_terminal_and_json_elsewhere(
    wanted: FormatOption, stream: io.StringIO, form: str
) -> None:
    assert resolve_format(wanted, stream) == form


def test_json_lines_begin_with_the_same_four_keys(written: Written) -> None:
    set_up("json")
    OURS.info("partitions lost", partitions=[1, 2])
    LIBRARY.warning("%s is away", "broker 1")
    ours, library = written.lines
    for line in (ours, library):
        assert list(line)[:4] == ["timestamp", "level", "event", "logger"]
        now, then = dt.datetime.now(dt.UTC), dt.datetime.fromisoformat(line.pop("timestamp"))
        assert abs(now - then) < dt.timedelta(minutes=1)
    assert ours == {
        "level": "info", "event": "partitions lost", "logger": "streamduel.monitoring.service_log",
        "partitions": [1, 2],
    }  # fmt: skip
    assert library == {
        "level": "warning", "event": "broker 1 is away", "logger": "kafka.net.manager",
    }  # fmt: skip


def test_text_names_only_loggers_of_libraries(written: Written) -> None:
    set_up("text", 1)
    OURS.info("stopped", why="the end of the log", offsets={0: 7}, seconds=0.25, none=None, name="")
    LIBRARY.warning("%s is away", "broker 1")
    ours, library = written.text.splitlines()
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(
        time + r' \[info     \] stopped why="the end of the log" offsets=\{"0": 7\} seconds=0\.25 '
        r'none=null name=""',
        ours,
    )
    assert re.fullmatch(time + r" \[warning  \] kafka\.net\.manager: broker 1 is away", library)


def test_values_with_line_breaks_stay_on_one_line(written: Written, form: LogFormat) -> None:
    set_up(form)
    OURS.error("failed", error="one\ntwo\x1b[2J", offsets={"a\nb": "\r"})
    LIBRARY.error("three\nfour\x1b[2J")
    assert len(written.text.splitlines()) == 2
    assert "\x1b" not in written.text


def test_colours(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(stream: io.StringIO) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        set_up("text")
        OURS.error("failed", error="away")
        return stream.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in shown(Terminal())
    assert "\x1b[" not in shown(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in shown(Terminal())


def test_a_traceback_is_one_value_in_json_and_follows_the_line_in_text(
    written: Written, form: LogFormat
) -> None:
    set_up(form)
    hunter = "a local variable"  # which tracebacks must not show
    try:
        raise ValueError(hunter[:1])
    except ValueError:
        OURS.exception("observer failed", observer="Nervous")
        LIBRARY.exception("gave up")
    assert written.text.count("Traceback (most recent call last)") == 2
    assert "a local variable" not in written.text.replace('hunter = "a local variable"', "")
    if form == "json":
        assert [line["exception"].splitlines()[-1] for line in written.lines] == [
            "ValueError: a", "ValueError: a",
        ]  # fmt: skip


LONG = {
    "plain": "begin" + 100_000 * "x" + "end",
    "two and three bytes": "begin" + 30_000 * "ß検" + "end",
    "beyond the plane": "begin" + 30_000 * "🦆" + "end",
    "escaped": "begin" + 30_000 * '\x00\n"' + "end",
}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
def test_a_long_value_loses_its_middle(written: Written, value: str) -> None:
    set_up("json")
    OURS.error("failed", error=value)
    [line] = written.lines
    beginning, left_out, end = line["error"].split(" … ")
    assert beginning.startswith("begin")
    assert end.endswith("end")
    count = int(left_out.removesuffix(" characters left out"))
    assert len(beginning) + count + len(end) == len(value)
    assert LEAST_WRITTEN < len(written.text.encode()) < CUT


def test_long_collections_are_cut_with_a_count(written: Written, form: LogFormat) -> None:
    set_up(form)
    OURS.error("stopped", offsets=dict.fromkeys(range(10_000), 10**9))
    OURS.error("partitions lost", partitions=list(range(10_000)))
    assert all(len(line.encode()) < CUT for line in written.text.splitlines())
    if form == "json":
        offsets, lost = written.lines[0]["offsets"], written.lines[1]["partitions"]
        assert offsets.pop("…") == f"{10_000 - len(offsets)} more"
        assert lost.pop() == f"… {10_000 - len(lost)} more"
        assert list(map(int, offsets)) == list(range(len(offsets)))
        assert lost == list(range(len(lost)))
        assert min(len(offsets), len(lost)) > 150


def test_a_line_of_many_long_values_is_bounded(written: Written) -> None:
    set_up("json")
    OURS.error("failed", **{f"value{number}": 10_000 * "検" for number in range(20)})
    [line] = written.lines
    assert all(line[f"value{number}"].startswith("検") for number in range(20))
    assert len(written.text.encode()) < CUT


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_in_any_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    said = "größe 検索, and half a letter: \ud83e"
    stream = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")  # as stderr is
    monkeypatch.setattr(sys, "stderr", stream)
    set_up("json")
    OURS.error("failed", error=said)
    stream.seek(0)
    text = stream.read()
    assert json.loads(text)["error"] == said
    assert ("größe 検索" in text) == (encoding == "utf-8")
