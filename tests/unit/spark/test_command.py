"""The command line of the Spark job: help, and one sentence for each mistake."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from streamduel.errors import ConnectorError
from streamduel_spark import command, job
from tests.unit.config.configurations import GONE, KAFKA, changed, written

SPARK: dict[str, Any] = changed({"spark": {"topic": "raw", "checkpoint": "c"}}, KAFKA)

MISTAKES: list[tuple[dict[str, Any], str]] = [
    (changed({"spark": GONE}, SPARK),
     "spark is missing in HERE/search.yaml: it names the topic of the raw records and a checkpoint,"
     " as in 'spark: {topic: raw-clicks, checkpoint: checkpoint/}'."),
    (changed({"spark.topic": "clicks"}, SPARK),
     "spark.topic must be another topic than source.topic (found 'clicks'; HERE/search.yaml, line"
     " 27)."),
]  # fmt: skip


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["streamduel-spark", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, "".join(capsys.readouterr())


@pytest.mark.parametrize(("document", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(
    document: dict[str, Any], sentence: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "search.yaml"
    path.write_text(written(document))
    expected = f"streamduel-spark: {sentence.replace('HERE', str(tmp_path))}\n"
    assert run(monkeypatch, capsys, "run", path) == (2, expected)


def test_a_setting_of_spark_has_a_name_and_a_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, capsys, "run", "search.yaml", "--conf", "memory") == (
        2,
        "streamduel-spark: --conf must be NAME=VALUE with a name that begins with 'spark.' (found"
        " 'memory').\n",
    )


def test_without_spark_the_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(SPARK))
    missing = {"pyspark", "google.protobuf"}
    monkeypatch.setattr(
        command, "find_spec", lambda name: None if name in missing else find_spec(name)
    )
    assert run(monkeypatch, capsys, "run", path) == (
        1, "streamduel-spark: the Spark job needs pyspark, protobuf: pip install"
        " 'streamduel[spark]'.\n",
    )  # fmt: skip


STARTS = """
from pathlib import Path
from streamduel_spark import command
command._session(command._plan(command._load(Path("search.yaml"))), None, {})
"""


def test_without_java_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "search.yaml").write_text(written(SPARK))
    done = subprocess.run(
        [sys.executable, "-c", STARTS], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == (
        "streamduel.errors.ConnectorError: Spark does not start: Java is missing or has ended, as"
        " the lines above say. It needs Java 17 or later, in JAVA_HOME or on the PATH, and a"
        " --master and --conf that Spark knows."
    )


def test_the_help_teaches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, text = run(monkeypatch, capsys, "run", "--help")
    assert status == 0
    for word in ("CONFIG", "spark.topic", "--until-end", "--master", "--conf", "checkpoint"):
        assert word in text
    assert "Print only errors, lost records and Spark's own lines." in text
    assert "run" in run(monkeypatch, capsys, "--help")[1]


def test_a_folder_is_relative_to_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    assert command._checkpoint(config, "my état/") == f"file://{tmp_path}/my état"
    assert command._checkpoint(config, "s3a://bucket/state") == "s3a://bucket/state"


def test_of_a_failed_query_one_sentence_is_left() -> None:
    own = "Traceback …\nstreamduel.errors.ConnectorError: Kafka did not take batch 3: gone\n\tat x"
    assert str(command._failure(RuntimeError(own))) == "Kafka did not take batch 3: gone"
    other = "[STREAM_FAILED] …\n\tat x\nCaused by: java.io.IOException: disk full\n\tat y"
    assert str(command._failure(RuntimeError(other))) == (
        "the Spark query failed: Caused by: java.io.IOException: disk full"
    )
    overflow = "[STREAM_FAILED] …\nCaused by: java.lang.ArithmeticException: long overflow\n\tat x"
    assert str(command._failure(RuntimeError(overflow))).startswith(
        "a record of spark.topic has a timestamp that Spark cannot read; "
    )
    call = "An error occurred while calling o1.start.\n: java.io.IOException: no folder\n\tat x"
    assert str(command._failure(RuntimeError(call))) == (
        "the Spark query failed: java.io.IOException: no folder"
    )
    lost = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Some data may have been lost "
        "because they are not available in Kafka any more; …"
    )
    assert str(command._failure(RuntimeError(lost))).startswith(
        "spark.topic does not have the records that follow spark.checkpoint: "
    )
    fenced = own.replace("gone", "[Error 90] ProducerFencedError")
    assert str(command._failure(RuntimeError(fenced))).startswith(
        "another job with the same source.group was started, which ends this one; "
    )
    shared = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [CONCURRENT_STREAM_LOG_UPDATE] "
        "Concurrent update to the log. Multiple streaming queries are concurrently using file:/c."
    )
    assert str(command._failure(RuntimeError(shared))).startswith(
        "another job uses the same spark.checkpoint; "
    )


@pytest.mark.parametrize(
    "error",
    [
        Py4JError("An error occurred while calling o124.lastProgress"),
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
    ids=repr,
)
def test_java_that_was_killed_is_named(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = "Spark's Java process has ended. If the system killed it for its memory, "
    assert str(command._failure(error)).startswith(ended)

    def create(*_: object) -> None:
        raise error

    monkeypatch.setattr(job, "create_session", create)
    path = tmp_path / "search.yaml"
    path.write_text(written(SPARK))
    with pytest.raises(ConnectorError, match=f"^Spark does not start: {ended}"):
        command._session(command._plan(command._load(path)), None, {})


class Query:
    """A streaming query that is active for some checks."""

    def __init__(self, active: int) -> None:
        self._active = active
        self.calls: list[str] = []

    @property
    def isActive(self) -> bool:  # noqa: N802 - PySpark's name
        self._active -= 1
        return self._active >= 0

    @property
    def lastProgress(self) -> None:  # noqa: N802 - PySpark's name
        self.calls.append("progress")

    def stop(self) -> None:
        self.calls.append("stop")

    def awaitTermination(self) -> None:  # noqa: N802 - PySpark's name
        self.calls.append("await")


@pytest.mark.parametrize(
    ("active", "stopped", "calls"),
    [
        (0, False, ["await", "progress"]),
        (2, False, ["progress", "progress", "await", "progress"]),
        (0, True, ["stop"]),
        (2, True, ["stop"]),
    ],
)
def test_a_signal_stops_the_query_and_its_end_is_awaited(
    active: int, stopped: bool, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "POLL_SECONDS", 0.0)
    query: Any = Query(active)
    stop = threading.Event()
    if stopped:
        stop.set()
    command._wait(query, command.Report(quiet=True), stop)
    assert query.calls == calls


def test_only_before_a_signal_is_a_failure_an_error() -> None:
    stop = threading.Event()
    with (
        pytest.raises(ConnectorError, match=r"^the Spark query failed: gone$"),
        command._ended_by(stop),
    ):
        raise RuntimeError("gone")
    stop.set()
    with command._ended_by(stop):
        raise RuntimeError("gone")


def test_a_line_for_each_batch_and_for_chunks_that_came_too_late(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def progress(batch: int, *dropped: int) -> Any:
        operators = [{"numRowsDroppedByWatermark": it} for it in dropped]
        return SimpleNamespace(lastProgress={"batchId": batch, "stateOperators": operators})

    nothing: Any = SimpleNamespace(lastProgress=None)
    for quiet in (False, True):
        report = command.Report(quiet=quiet)
        report.progress(nothing)
        report.batch(0, {"duels": 1200, "clicks": 3, "dead letters": 0})
        report.batch(1, {"duels": 0})
        report.progress(progress(0, 2, 1))
        report.progress(progress(0, 2, 1))
        report.progress(progress(1, 0))
        counted = [] if quiet else ["batch 0: 3 clicks, 1,200 duels"]
        assert capsys.readouterr().err.splitlines() == [
            *counted,
            "batch 0: 3 chunks of records came later than spark.lateness_ms allows and were "
            "dropped",
        ]
