"""Levels, and what is logged."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import warnings

import pytest
import structlog
from kafka.errors import Cancelled, KafkaConnectionError, KafkaError

from streamduel.logging import LogFormat, log_uncaught, set_up
from streamduel.logging.setup import NOISY_LOGGER
from tests.unit.logging.conftest import Written

OURS = structlog.stdlib.get_logger("streamduel_kafka.topics")
CLIENT = logging.getLogger("streamduel.client.writers")
LIBRARY = logging.getLogger("kafka.coordinator")


@pytest.mark.parametrize(
    ("form", "verbosity", "expected"),
    [
        ("text", 0, ["ours warning", "library warning"]),
        ("text", 1, ["ours info", "ours warning", "library warning"]),
        ("text", 2, ["ours debug", "ours info", "ours warning", "library info", "library warning"]),
        ("json", 0, ["ours info", "ours warning", "library warning"]),
        ("json", 1, ["ours debug", "ours info", "ours warning", "library warning"]),
        (
            "json", 3,
            ["ours debug", "ours info", "ours warning",
             "library debug", "library info", "library warning"],
        ),
        (
            "text", 9,
            ["ours debug", "ours info", "ours warning",
             "library debug", "library info", "library warning"],
        ),
    ],
)  # fmt: skip
def test_levels_of_our_loggers_and_of_libraries(
    written: Written, form: LogFormat, verbosity: int, expected: list[str]
) -> None:
    set_up(form, verbosity)
    for level in ("debug", "info", "warning"):
        getattr(OURS, level)(f"ours {level}")
    for level in ("debug", "info", "warning"):
        getattr(LIBRARY, level)(f"library {level}")
    found = written.text.splitlines()
    assert len(found) == len(expected)
    assert all(event in line for event, line in zip(expected, found, strict=True))


def test_slow_event_loop_warnings_need_verbosity(written: Written) -> None:
    for verbosity in range(4):
        set_up("text", verbosity)
        logging.getLogger(NOISY_LOGGER).warning("Task %d ran for 0.110s", verbosity)
        logging.getLogger(NOISY_LOGGER).error("broken")
    assert re.findall(r"Task \d|broken", written.text) == [
        "broken", "broken", "Task 2", "broken", "Task 3", "broken",
    ]  # fmt: skip


@pytest.mark.parametrize("verbosity", [0, 3])
def test_a_socket_that_is_closed_while_it_is_read_needs_verbosity(
    written: Written, verbosity: int
) -> None:
    set_up("text", verbosity)
    for error in (AttributeError("no recv"), OSError("cut")):
        try:
            raise error
        except (AttributeError, OSError):
            logging.getLogger("kafka.net.transport").exception("Error receiving network data")
    # The second is a repeated line, unless the first is none.
    assert re.findall("no recv|cut", written.text) == (["no recv"] if verbosity else ["cut"])


def test_a_task_whose_socket_a_close_has_closed_needs_verbosity(written: Written) -> None:
    library = logging.getLogger("kafka.net.selector")
    for verbosity in (0, 3):
        set_up("text", verbosity)
        for descriptor in (-1, "x"):
            try:
                raise ValueError(f"Invalid file descriptor: {descriptor}")
            except ValueError:
                library.exception("Unhandled exception in task %s:", descriptor)
        assert ("in task -1" in written.text) == bool(verbosity)
        assert "in task x" in written.text


@pytest.mark.parametrize("error", [Cancelled(), KafkaConnectionError()])
def test_what_a_close_ends_needs_verbosity(written: Written, error: KafkaError) -> None:
    """A request, or a connection that is not yet established."""
    library = logging.getLogger("kafka.cluster")
    for verbosity in (0, 3):
        set_up("text", verbosity)
        library.error("Metadata refresh: failed %s", error)
        assert ("failed" in written.text) == bool(verbosity)
    library.error("Metadata refresh loop error: %s", KafkaConnectionError("refused"))
    assert "refused" in written.text


def test_lines_of_the_client_library_look_the_same(written: Written) -> None:
    set_up("json")
    CLIENT.error("%d records of the event log could not be written in time", 3)
    [line] = written.lines
    assert line["event"] == "3 records of the event log could not be written in time"
    assert line["logger"] == "streamduel.client.writers"


def test_a_second_set_up_replaces_the_first(written: Written) -> None:
    set_up("text")
    OURS.warning("read failed")
    set_up("json")
    OURS.warning("read failed", topic="another")
    text, json_ = written.text.splitlines()
    assert "[warning " in text
    assert json_.startswith("{")


def test_it_writes_to_the_present_standard_error(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up("text")
    above_the_bar = io.StringIO()
    monkeypatch.setattr(sys, "stderr", above_the_bar)
    OURS.warning("read failed")
    assert "read failed" in above_the_bar.getvalue()
    assert not written.text


def test_uncaught_exceptions_and_warnings_are_logged(written: Written) -> None:
    set_up("json")
    log_uncaught()
    try:
        raise RuntimeError("a defect")
    except RuntimeError as defect:
        sys.excepthook(RuntimeError, defect, defect.__traceback__)
    thread = threading.Thread(target=lambda: next(iter([])), name="restore")
    thread.start()
    thread.join()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("soon gone", DeprecationWarning, stacklevel=1)
    crashed, in_thread, warned = written.lines
    assert (crashed["level"], crashed["event"]) == ("critical", "crashed")
    assert crashed["exception"].endswith("RuntimeError: a defect")
    assert (in_thread["event"], in_thread["thread_name"]) == ("thread crashed", "restore")
    assert "StopIteration" in in_thread["exception"]
    assert "soon gone" in warned["event"]


def test_keyboard_interrupt_is_not_logged(written: Written) -> None:
    set_up("json")
    log_uncaught()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert "crashed" not in written.text
