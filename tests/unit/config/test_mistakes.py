"""Every mistake in a configuration is one sentence: the key, what was found, what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamduel.cli import app as cli
from streamduel.config import load
from streamduel.config.document import MAX_BYTES
from streamduel.errors import ConfigurationError
from tests.unit.config.configurations import GONE, GOOD, KAFKA, changed, written
from tests.unit.config.mistakes import ARMS, CONNECTORS, MISTAKES, SOURCE
from tests.unit.config.sentences import case, placed, told, without_place


def test_the_base_configurations_are_valid(tmp_path: Path) -> None:
    """Otherwise the mistakes below would not be the only ones."""
    path = tmp_path / "search.yaml"
    for document in (GOOD, KAFKA):
        path.write_text(written(document))
        load(path, {})


@pytest.mark.parametrize(("where", "value", "sentence"), MISTAKES, ids=case)
def test_a_mistake_is_one_sentence(where: str, value: Any, sentence: str, tmp_path: Path) -> None:
    [shown] = placed(tmp_path / "search.yaml", written(changed({where: value})))
    assert without_place(shown) == sentence
    assert "HERE/search.yaml" in shown


@pytest.mark.parametrize(
    ("base", "key", "misspelt"),
    [
        (GOOD, "source", "sorce"),
        (GOOD, "experiments", "experiment"),
        (GOOD, "experiments.search.arms", "experiments.search.arm"),
        (GOOD, "sink.path", "sink.pth"),
        (KAFKA, "snapshots.topic", "snapshots.topc"),
        # A key that sink and snapshots take from the source.
        (KAFKA, "source.bootstrap_servers", "source.bootstrap_server"),
    ],
)
def test_a_misspelt_key_is_not_missing_too(
    base: dict[str, Any], key: str, misspelt: str, tmp_path: Path
) -> None:
    written_there = base
    for step in key.split("."):
        written_there = written_there[step]
    wrong = written(changed({key: GONE, misspelt: written_there}, base))
    [sentence] = told(tmp_path / "search.yaml", wrong)
    hint = f"did you mean '{key.rpartition('.')[2]}'?"
    assert sentence.startswith(f"unknown key '{misspelt}'; {hint}")


def test_an_unknown_key_hides_no_missing_one_that_it_does_not_resemble(tmp_path: Path) -> None:
    assert len(told(tmp_path / "search.yaml", written(changed({"source": GONE, "xyz": 1})))) == 2


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    wrong = {"monitoring": {"port": -1}, "sorce": 1, "experiments.search.ties": "win", ARMS: GONE}
    assert len(told(tmp_path / "search.yaml", written(changed(wrong)))) == 4
    wrong = {
        "experiments.search.policy": {"name": "rubc"}, "source.connector": "fils",
        "experiments.ads": {"arms": ["a", "b"], "policy": {"name": "rucb", "alpha": 0}},
    }  # fmt: skip
    assert len(told(tmp_path / "search.yaml", written(changed(wrong)))) == 3
    wrong = {"source.path": GONE, "sink.path": 5, "snapshots.depth": 1}
    assert len(told(tmp_path / "search.yaml", written(changed(wrong)))) == 3


def test_more_mistakes_than_anybody_reads_are_counted(tmp_path: Path) -> None:
    wrong = {f"unknown-{number}": 1 for number in range(1100)}
    shown = told(tmp_path / "search.yaml", written(changed(wrong)))
    assert (len(shown), shown[-1]) == (101, "1,000 more mistakes are not shown.")


FOUND = "must be a mapping with source, sink, snapshots and experiments"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", f"{FOUND} (found nothing)."),
        ("# nothing but a comment\n", f"{FOUND} (found nothing)."),
        ("- source\n", f"{FOUND} (found a list of 1)."),
        ("source", f"{FOUND} (found text)."),
        ("5", f"{FOUND} (found 5)."),
        (b"a: \xff", "is not UTF-8 text (line 1)."),
        ("a: 1\nowner: Ren\u00e9".encode("latin-1"), "is not UTF-8 text (line 2)."),
        ("a: [1", "is not YAML: expected ',' or ']', but got '<stream end>' (line 1, column 6)."),
        ("a: b: c", "is not YAML: mapping values are not allowed here (line 1, column 5)."),
        ("a: 1\n\tb: 2", "is not YAML: found character '\\t' that cannot start any token "
         "(line 2, column 1)."),
        ("a: \0", "is not YAML: it has a character that YAML does not allow (line 1)."),
        ("é: 1\n\nb: \x07\n", "is not YAML: it has a character that YAML does not allow (line 3)."),
        ("a: 1\nb: 'me\nc: 2\nd: 3\n", "is not YAML: found unexpected end of stream (line 5, "
         "column 1), while reading what begins in line 2."),
        ("a: [1,\n  2\nb: 3", "is not YAML: expected ',' or ']', but got ':' (line 3, column 2), "
         "while reading what begins in line 1."),
        ("a: 1\n---\nb: 2", "is not YAML: found another document (line 2, column 1)."),
        ("? [1]\n: 2", "is not YAML: found unhashable key (line 1, column 3)."),
        ("a: !!int one", "is not YAML: found a value that its type does not allow "
         "(line 1, column 4)."),
        ("a: !!int ''", "is not YAML: found a value that its type does not allow "
         "(line 1, column 4)."),
        ("a: !!bool s3cret", "is not YAML: found a value that its type does not allow "
         "(line 1, column 4)."),
        (b"#" * (MAX_BYTES + 1), "must have at most 16,777,216 bytes (found more)."),
        ("a: " + "9" * 5000, "is not YAML: found a value that its type does not allow "
         "(line 1, column 4)."),
        ("a: !!binary aGVsbG8=", "is not YAML: could not determine a constructor for the tag (line "
         "1, column 4)."),
        ("a: !!set {x, y}", "is not YAML: could not determine a constructor for the tag (line 1, "
         "column 4)."),
        ("a: !!python/object:os.system x", "is not YAML: could not determine a constructor for the "
         "tag (line 1, column 4)."),
        ("a: " + "[" * 5000, "is nested too deep."),
    ],
    ids=case,
)  # fmt: skip
def test_a_file_that_is_not_a_configuration_is_refused(
    text: str | bytes, sentence: str, tmp_path: Path
) -> None:
    assert told(tmp_path / "search.yaml", text) == [
        f"the configuration HERE/search.yaml {sentence}"
    ]


@pytest.mark.parametrize("half", [r'"\ud83d"', r'"\ude00\ud83d"', r'{"\ude00": x}'])
def test_half_of_a_surrogate_pair_is_refused_with_its_line(half: str, tmp_path: Path) -> None:
    assert placed(tmp_path / "search.yaml", f"a: 1\nb: {half}") == [
        "the configuration has half of a surrogate pair, such as \\ud83d, which is not text "
        "(HERE/search.yaml, line 2)."
    ]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.yaml"
    with pytest.raises(ConfigurationError) as refused:
        load(path, {})
    assert str(refused.value) == (
        f"the configuration {path} cannot be read: No such file or directory."
    )


def test_a_folder_is_refused(tmp_path: Path) -> None:
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
         f"{ARMS} must be a list of 2 to 1000 entries (found a mapping of 1)."),
        ("STREAMDUEL_SOURCE", "clicks.jsonl", "source must be a mapping (found text)."),
        ("STREAMDUEL_SOURCE", "{connector: files",
         "source must be a mapping (found text that is not valid YAML)."),
        ("STREAMDUEL_SNAPSHOTS", "{path: a, path: b}",
         "snapshots must be a mapping (found text that is not valid YAML)."),
        ("STREAMDUEL_DEDUPE", "[", "dedupe must be a mapping (found '[')."),
        ("STREAMDUEL_DEDUPE", "{window_ms: 1, window_ms: 2}",
         "dedupe must be a mapping (found '{window_ms: 1, window_ms: 2}')."),
        ("STREAMDUEL_SOURCE__PTH", "x",
         f"unknown key 'source.pth'; did you mean 'path'? Allowed there: {SOURCE}."),
        ("STREAMDUEL_SOURCE__CONNECTOR", "fils",
         f"source.connector must be {CONNECTORS} (found 'fils'); did you mean 'files'?"),
        ("STREAMDUEL_SOURCE__CONNECTOR__NAME", "files",
         f"source.connector must be {CONNECTORS} (found a mapping of 1)."),
        ("STREAMDUEL_SORCE__PATH", "x",
         "unknown key 'sorce' in the environment variable STREAMDUEL_SORCE__PATH; "
         "did you mean 'source'?"),
        ("STREAMDUEL_EXPERIMENTS__SERCH__SEED", "1",
         "experiments.serch.arms is missing: the rankers' names, 2 to 1000 of them; did you mean "
         "'search'?"),
        ("STREAMDUEL_EXPERIMENTS__ADS__SEED", "1",
         "experiments.ads.arms is missing: the rankers' names, 2 to 1000 of them."),
        ("STREAMDUEL_EXPERIMENTS__SERCH", "{arms: [bm25, bm25]}",
         "experiments.serch.arms has 'bm25' twice."),
        ("STREAMDUEL_COMMIT__INTERVAL_MS", "!!int [1]",
         "commit.interval_ms must be an integer from 1 to 60000 (found '!!int [1]')."),
        ("STREAMDUEL_COMMIT__INTERVAL_MS", "0500",
         "commit.interval_ms must be an integer from 1 to 60000 (found '0500')."),
        ("STREAMDUEL_QQQ__X", "x",
         "unknown key 'qqq' in the environment variable STREAMDUEL_QQQ__X."),
    ],
    ids=case,
)  # fmt: skip
def test_a_mistake_in_a_variable_names_the_variable(
    variable: str, value: str, sentence: str, tmp_path: Path
) -> None:
    document = written(changed({"monitoring": {}}))
    [shown] = placed(tmp_path / "search.yaml", document, {variable: value})
    assert without_place(shown) == sentence
    assert f"environment variable {variable}" in shown


PLACES = """\
source: {connector: files, path: clicks.jsonl}
sink:
  connector: files
  path: out/
snapshots:
  connector: files
  path: state/
monitoring: null
experiments:
  search: &usual
    arms:
    - bm25
    - ltr-v1
    policy: {name: rucb}
  ads:
    <<: *usual
    ties: half
"""
"""Each line of the file, from 1, is the place of some mistake below."""


@pytest.mark.parametrize(
    ("before", "after", "key", "line"),
    [
        ("path: clicks.jsonl", "path: 5", "source.path", 1),
        ("  path: out/\n", "", "sink.path is missing", 2),
        ("path: out/", "pth: out/", "unknown key 'sink.pth'", 4),
        ("  path: state/\n", "", "snapshots.path is missing", 5),
        ("path: state/", "path: state/\n  depth: 1", "unknown key 'snapshots.depth'", 8),
        ("monitoring: null", "monitoring: {port: -1}", "monitoring.port", 8),
        ("- bm25", "- 5", "experiments.search.arms[0]", 12),
        ("- bm25", "- ltr-v1", "experiments.search.arms has 'ltr-v1' twice", 11),
        ("{name: rucb}", "{name: rucb,\n      alpha: 0}", "experiments.search.policy.alpha", 15),
        ("name: rucb", "name: rubc", "experiments.search.policy.name must be", 14),
        ("{name: rucb}", "rucb", "experiments.search.policy must", 14),
        ("ties: half", "ties: hlaf", "experiments.ads.ties", 17),
        ("ties: half", "guardrails:\n      min_share: 0.1", "experiments.ads.guardrails.contr", 17),
        ("ties: half", "join_window_ms: 3600001", "experiments.ads.join_window_ms", 17),
        ("ties: half", "1: half", "experiments.ads has the key 1", 17),
        ("  ads:\n", "  no:\n", "experiments has the key false", 15),
        ("  ads:\n", "  0x10:\n", "experiments has the key 16", 15),
        ("  ads:\n", "  1.50:\n", "experiments has the key 1.5", 15),
        ("  ads:\n", "  null:\n", "experiments has the key null", 15),
        ("monitoring: null", "on: 1", "the configuration has the key true", 8),
        ("connector: files\n  path: st", "connector: kafka\n  path: st", "snapshots.connector", 6),
        ("files, path: c", "files, format: {name: ubi,\n  sides: x}, path: c", "source.format", 2),
        ("files, path: c", "files, format: uib, path: c", "source.format must", 1),
    ],
)  # fmt: skip
def test_a_mistake_names_its_line(
    before: str, after: str, key: str, line: int, tmp_path: Path
) -> None:
    assert before in PLACES
    sentence = placed(tmp_path / "search.yaml", PLACES.replace(before, after))[0]
    assert sentence.startswith(key)
    assert f"HERE/search.yaml, line {line})" in sentence


def test_a_mistake_in_a_section_from_the_environment_names_the_variable(tmp_path: Path) -> None:
    environment = {"STREAMDUEL_DEDUPE": "{window_ms: -1}", "STREAMDUEL_SINK__PATH": "x"}
    [sentence] = placed(tmp_path / "search.yaml", PLACES, environment)
    assert sentence.startswith("dedupe.window_ms must be")
    assert sentence.endswith("; environment variable STREAMDUEL_DEDUPE).")


@pytest.mark.parametrize(
    ("variables", "key", "place"),
    [
        ({"CREDIT__PROPENSITIES": "[1]"}, "credit",
         "(HERE/search.yaml, line 14; environment variable {}CREDIT__PROPENSITIES)."),
        ({"CREDIT": "{eta: 1}"}, "credit", "(environment variable {}CREDIT)."),
        ({"CREDIT__ETA": "1", "CREDIT__NAME": "any_click", "SEED": "1"}, "credit",
         "; environment variables {0}CREDIT__ETA, {0}CREDIT__NAME)."),
        ({"POLICY__NAME": "ccb", "POLICY__ALPHA": "0"}, "policy.alpha",
         " (environment variable {}POLICY__ALPHA)."),
        ({"PRIOR__WINS__bm25": "{x: 1}", "POLICY__NAME": "top_two"}, "prior.wins",
         "; environment variable {}PRIOR__WINS__bm25)."),
    ],
)  # fmt: skip
def test_a_mistake_in_a_mapping_names_the_variables_of_its_keys(
    variables: dict[str, str], key: str, place: str, tmp_path: Path
) -> None:
    prefix = "STREAMDUEL_EXPERIMENTS__SEARCH__"
    text = PLACES.replace("    policy:", "    credit: {name: click_count}\n    policy:")
    environment = {prefix + name: value for name, value in variables.items()}
    [sentence] = placed(tmp_path / "search.yaml", text, environment)
    assert sentence.startswith(f"experiments.search.{key}")
    assert sentence.endswith(place.format(prefix))


def test_a_variable_changes_no_other_key_of_an_alias(tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(PLACES.replace("  ads:\n    <<: *usual\n    ties: half", "  ads: *usual"))
    loaded = load(path, {"STREAMDUEL_EXPERIMENTS__SEARCH__SEED": "9"}).config.experiments
    assert (loaded["search"].seed, loaded["ads"].seed) == (9, 0)


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
        *({section: f"connector=kafka sasl_plain_password={SECRET}"}
          for section in ("source", "sink", "snapshots")),
        *({f"source.sasl_plain_password{sign}{SECRET}": None} for sign in (":", "=")),
        {f"sasl_plain_password={SECRET}": None},
    ],
)  # fmt: skip
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
def test_invalid_yaml_is_not_repeated_because_it_may_be_a_secret(
    value: str, tmp_path: Path
) -> None:
    sentences = told(tmp_path / "kafka.yaml", f"source:\n  sasl_plain_password: {value}\n")
    assert SECRET not in "\n".join(sentences)


@pytest.mark.parametrize(
    "value",
    [
        f"{{connector: kafka, sasl_plain_password: {SECRET}",
        f"{{connector: kafka, sasl_plain_password:{SECRET}}}",
        f"{{sasl_plain_password: x, sasl_plain_password: {SECRET}}}",
        f"sasl_plain_password={SECRET}",
    ],
)
def test_no_sentence_shows_a_secret_of_a_section_in_a_variable(value: str, tmp_path: Path) -> None:
    sentences = told(tmp_path / "kafka.yaml", written(KAFKA), {"STREAMDUEL_SOURCE": value})
    assert SECRET not in "\n".join(sentences)


def test_a_file_of_variables_is_not_repeated_because_it_may_hold_a_secret(tmp_path: Path) -> None:
    variables = f"STREAMDUEL_SOURCE__SASL_PLAIN_PASSWORD={SECRET}\n"
    assert SECRET not in "\n".join(told(tmp_path / "kafka.yaml", variables))


def streamduel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    """The exit status of a command and its error output."""
    monkeypatch.setattr("sys.argv", ["streamduel", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, without_place(capsys.readouterr().err)


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
