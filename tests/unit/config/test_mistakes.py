"""Every mistake in a configuration is one sentence: the key, what was found, what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamduel.cli import app as cli
from streamduel.config import load
from streamduel.errors import ConfigurationError
from tests.unit.config.configurations import GONE, GOOD, KAFKA, changed, written
from tests.unit.config.mistakes import ARMS, KAFKA_MISTAKES, MISTAKES


def told(path: Path, text: str | bytes, environment: dict[str, str] | None = None) -> list[str]:
    """What is said of a configuration, a sentence a line."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError) as refused:
        load(path, environment or {})
    return str(refused.value).replace(str(path.parent), "HERE").splitlines()


def test_the_good_configuration_is_good(tmp_path: Path) -> None:
    """So that each mistake below is the only one."""
    path = tmp_path / "search.yaml"
    for document in (GOOD, KAFKA):
        path.write_text(written(document))
        load(path, {})


def case(it: object) -> str:
    return it.partition(" (found")[0][:70] if isinstance(it, str) else ""


@pytest.mark.parametrize(("where", "value", "sentence"), MISTAKES, ids=case)
def test_a_mistake_is_one_sentence(where: str, value: Any, sentence: str, tmp_path: Path) -> None:
    assert told(tmp_path / "search.yaml", written(changed({where: value}))) == [sentence]


@pytest.mark.parametrize(("where", "value", "sentence"), KAFKA_MISTAKES, ids=case)
def test_a_connectors_mistake_is_one_sentence(
    where: str, value: Any, sentence: str, tmp_path: Path
) -> None:
    """Also where sink and snapshots have taken the mistake from the source."""
    assert told(tmp_path / "kafka.yaml", written(changed({where: value}, KAFKA))) == [sentence]


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    wrong = {"monitoring": {"port": -1}, "sorce": 1, "experiments.search.ties": "win", ARMS: GONE}
    assert len(told(tmp_path / "search.yaml", written(changed(wrong)))) == 4
    wrong = {
        "experiments.search.policy": {"name": "rubc"}, "source.connector": "fils",
        "experiments.ads": {"arms": ["a", "b"], "policy": {"name": "rucb", "alpha": 0}},
    }  # fmt: skip
    assert len(told(tmp_path / "search.yaml", written(changed(wrong)))) == 3
    wrong = {"source.path": GONE, "sink.path": 5, "snapshots.pth": "x"}
    assert len(told(tmp_path / "search.yaml", written(changed(wrong)))) == 3


FOUND = "must be a mapping with source, sink, snapshots and experiments"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", f"{FOUND} (found nothing)."),
        ("# nothing but a comment\n", f"{FOUND} (found nothing)."),
        ("- source\n", f"{FOUND} (found a list of 1)."),
        ("source", f"{FOUND} (found 'source')."),
        ("5", f"{FOUND} (found 5)."),
        (b"a: \xff", "is not UTF-8 text."),
        ("a: [1", "is not YAML: expected ',' or ']', but got '<stream end>' (line 1, column 6)."),
        ("a: b: c", "is not YAML: mapping values are not allowed here (line 1, column 5)."),
        ("a: 1\n\tb: 2", "is not YAML: found character '\\t' that cannot start any token "
         "(line 2, column 1)."),
        ("a: \0", "is not YAML: it has a character that YAML does not allow."),
        ("a: 1\n---\nb: 2", "is not YAML: found another document (line 2, column 1)."),
        ("? [1]\n: 2", "is not YAML: found unhashable key (line 1, column 3)."),
        ("a: !!int one", "is not YAML: found a value that its type does not allow "
         "(line 1, column 4)."),
        ("a: " + "9" * 5000, "is not YAML: found a value that its type does not allow "
         "(line 1, column 4)."),
        ("a: !!python/object:os.system x", "is not YAML: could not determine a constructor for the "
         "tag (line 1, column 4)."),
        ("a: " + "[" * 5000, "is nested too deep."),
    ],
    ids=case,
)  # fmt: skip
def test_what_is_no_configuration_at_all_is_told_so(
    text: str | bytes, sentence: str, tmp_path: Path
) -> None:
    assert told(tmp_path / "search.yaml", text) == [
        f"the configuration HERE/search.yaml {sentence}"
    ]


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("source: {}\nsink: {}\nsource: {}\n", "source", 3),
        ("source: {path: a, path: b}", "path", 1),
        ("experiments:\n  search: {arms: [a, b]}\n  search: {arms: [c, d]}\n", "search", 3),
        ("a:\n  <<: {b: 1}\n  c: &x {d: 1,\n    d: 2}\n", "d", 4),
        ("1: a\n'1': b", "1", 2),
    ],
)
def test_a_key_given_twice_is_told_with_its_line(
    text: str, key: str, line: int, tmp_path: Path
) -> None:
    assert told(tmp_path / "search.yaml", text) == [
        f"the configuration has the key '{key}' twice (line {line})."
    ]


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.yaml"
    with pytest.raises(ConfigurationError) as refused:
        load(path, {})
    assert str(refused.value) == (
        f"the configuration {path} cannot be read: No such file or directory."
    )


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read: Is a directory\.$"):
        load(tmp_path, {})


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("STREAMDUEL_EXPERIMENTS__SEARCH__SEED", "nine",
         "experiments.search.seed must be an integer from 0 to 2^64 - 1 (found 'nine')."),
        ("STREAMDUEL_Monitoring__Port", "70000",
         "monitoring.port must be an integer from 0 to 65535 (found 70000)."),
        ("STREAMDUEL_EXPERIMENTS__SEARCH__ARMS", "[a, a]", f"{ARMS} has 'a' twice."),
        ("STREAMDUEL_EXPERIMENTS__SEARCH__ARMS__0", "a",
         f"{ARMS} must be a list of 2 to 1000 entries (found a mapping)."),
        ("STREAMDUEL_SOURCE", "clicks.jsonl", "source must be a mapping (found 'clicks.jsonl')."),
        ("STREAMDUEL_DEDUPE", "[", "dedupe must be a mapping (found '[')."),
        ("STREAMDUEL_DEDUPE", "{window_ms: 1, window_ms: 2}",
         "dedupe must be a mapping (found '{window_ms: 1, window_ms: 2}')."),
        ("STREAMDUEL_SOURCE__PTH", "x",
         "unknown key 'source.pth'; did you mean 'path'? Allowed there: connector, path."),
        ("STREAMDUEL_SOURCE__CONNECTOR", "fils",
         "source.connector must be 'files' or 'kafka' (found 'fils'); did you mean 'files'?"),
        ("STREAMDUEL_SOURCE__CONNECTOR__NAME", "files",
         "source.connector must be 'files' or 'kafka' (found a mapping)."),
        ("STREAMDUEL_SORCE__PATH", "x",
         "unknown key 'sorce' in the environment variable STREAMDUEL_SORCE__PATH; "
         "did you mean 'source'?"),
        ("STREAMDUEL_QQQ__X", "x",
         "unknown key 'qqq' in the environment variable STREAMDUEL_QQQ__X."),
    ],
    ids=case,
)  # fmt: skip
def test_a_mistake_in_a_variable_is_told_as_well(
    variable: str, value: str, sentence: str, tmp_path: Path
) -> None:
    document = written(changed({"monitoring": {}}))
    assert told(tmp_path / "search.yaml", document, {variable: value}) == [sentence]


SECRET = "hunter2"


@pytest.mark.parametrize(
    "changes",
    [
        {"source.sasl_plain_password": [SECRET]},
        {"source.sasl_plain_password": {SECRET: SECRET}},
        {"source.ssl_password": [SECRET]},
        {"source.sasl_plain_pasword": SECRET},
        {"source.sasl_mechanism": GONE},
        {"source.security_protocol": "PLAINTEXT"},
        {"source.group": GONE},
        {"sink.sasl_plain_password": "another"},
        {"snapshots.connector": "files"},
        {"source.connector": "files"},
        {"source.connector": "fils"},
        {"sorce": {"sasl_plain_password": SECRET}},
    ],
)
def test_no_sentence_shows_a_secret(changes: dict[str, Any], tmp_path: Path) -> None:
    sentences = told(tmp_path / "kafka.yaml", written(changed(changes, KAFKA)))
    assert SECRET not in "\n".join(sentences)


@pytest.mark.parametrize(
    "value",
    [
        f'"{SECRET}', f"*{SECRET}", f"!{SECRET}", f"!{SECRET}!x", f"!!int {SECRET}", f"[{SECRET}",
        f"{SECRET}: {SECRET}", f"%{SECRET}", f"@{SECRET}", f"`{SECRET}`",
        f"&{SECRET} *{SECRET}x", f"[&{SECRET} 1, &{SECRET} 2",
    ],
)  # fmt: skip
def test_text_that_is_no_yaml_is_not_repeated_as_it_may_be_a_secret(
    value: str, tmp_path: Path
) -> None:
    sentences = told(tmp_path / "kafka.yaml", f"source:\n  sasl_plain_password: {value}\n")
    assert SECRET not in "\n".join(sentences)


def streamduel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    """The command line: its exit status and what it says on standard error."""
    monkeypatch.setattr("sys.argv", ["streamduel", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("where", "value", "sentence"), MISTAKES, ids=case)
def test_a_mistake_ends_the_command_with_status_2(
    where: str, value: Any, sentence: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({where: value})))
    assert streamduel(monkeypatch, capsys, "validate", path) == (2, f"streamduel: {sentence}\n")


@pytest.mark.parametrize("command", ["run", "validate", "inspect", "replay"])
def test_every_command_checks_first_and_starts_nothing(
    command: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({ARMS: ["bm25", "bm25"]})))
    assert streamduel(monkeypatch, capsys, command, path) == (
        2, f"streamduel: {ARMS} has 'bm25' twice.\n",
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]
