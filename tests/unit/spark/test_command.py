"""The command line of the Spark job: help, and one sentence for each mistake."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from streamduel_spark import command
from tests.unit.config.configurations import GONE, GOOD, KAFKA, changed, written

SPARK: dict[str, Any] = changed({"spark": {"topic": "raw", "checkpoint": "c"}}, KAFKA)

MISTAKES: list[tuple[dict[str, Any], str]] = [
    (changed({"spark": GONE}, SPARK),
     "spark is missing in HERE/search.yaml: it names the topic of the raw records and a checkpoint,"
     " as in 'spark: {topic: raw-clicks, checkpoint: checkpoint/}'."),
    (changed({"spark": SPARK["spark"]}, GOOD),
     "source.connector must be 'kafka' for streamduel-spark (found 'files')."),
    (changed({"spark.topic": "clicks"}, SPARK),
     "spark.topic and source.topic must be two topics (found 'clicks' twice): the job reads raw"
     " records from one and writes counts into the other."),
    (changed({"source.format": "ubi"}, SPARK),
     "source.format must be left out for streamduel-spark: it reads and writes streamduel's own"
     " records."),
    (changed({"experiments.search.max_per_client": 3}, SPARK),
     "experiments.search.max_per_client must be null for streamduel-spark (found 3): counts of"
     " duels have no client."),
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


def test_the_help_teaches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, text = run(monkeypatch, capsys, "run", "--help")
    assert status == 0
    for word in ("CONFIG", "spark.topic", "--until-end", "--master", "--conf", "checkpoint"):
        assert word in text
    assert "run" in run(monkeypatch, capsys, "--help")[1]


def test_a_folder_is_relative_to_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    assert command._checkpoint(config, "state") == (tmp_path / "state").as_uri()
    assert command._checkpoint(config, "s3a://bucket/state") == "s3a://bucket/state"


def test_of_a_failed_query_one_sentence_is_left() -> None:
    own = "Traceback …\nstreamduel.errors.ConnectorError: Kafka did not take batch 3: gone\n\tat x"
    assert str(command._failure(RuntimeError(own))) == "Kafka did not take batch 3: gone"
    other = "[STREAM_FAILED] …\n\tat x\nCaused by: java.io.IOException: disk full\n\tat y"
    assert str(command._failure(RuntimeError(other))) == (
        "the Spark query failed: Caused by: java.io.IOException: disk full"
    )
