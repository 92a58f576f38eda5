"""Environment variables that override keys of the configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from streamduel.config import LoadedConfig, load
from streamduel.errors import ConfigurationError
from tests.unit.config.configurations import GOOD, KAFKA, changed, written


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "search.yaml"
    path.write_text(written(GOOD))
    return path


def kafka(tmp_path: Path, environment: dict[str, str], **changes: Any) -> LoadedConfig:
    path = tmp_path / "kafka.yaml"
    path.write_text(written(changed(changes, KAFKA)))
    return load(path, environment)


def fields(settings: BaseModel) -> Any:
    """A connector's settings, whose class is not known here."""
    return settings


@pytest.mark.parametrize(
    ("variable", "value", "where", "found"),
    [
        ("STREAMDUEL_EXPERIMENTS__SEARCH__SEED", "9", "experiments.search.seed", 9),
        ("STREAMDUEL_Experiments__search__Seed", "9", "experiments.search.seed", 9),
        ("STREAMDUEL_experiments__search__seed", "0x10", "experiments.search.seed", 16),
        ("STREAMDUEL_EXPERIMENTS__SEARCH__TIES", "drop", "experiments.search.ties", "drop"),
        ("STREAMDUEL_EXPERIMENTS__SEARCH__ARMS", "[a, b]", "experiments.search.arms", ["a", "b"]),
        ("STREAMDUEL_EXPERIMENTS__SEARCH__ARMS", "[2026-01-01, b]", "experiments.search.arms",
         ["2026-01-01", "b"]),
        ("STREAMDUEL_EXPERIMENTS__ADS__ARMS", "[a, b]", "experiments.ads.arms", ["a", "b"]),
        ("STREAMDUEL_EXPERIMENTS__Ads__ARMS", "[a, b]", "experiments.Ads.arms", ["a", "b"]),
        ("STREAMDUEL_EXPERIMENTS__ADS", "{arms: [a, b]}", "experiments.ads.arms", ["a", "b"]),
        ("STREAMDUEL_DEDUPE__WINDOW_MS", "5", "dedupe.window_ms", 5),
        ("STREAMDUEL_DEDUPE", "{window_ms: 5}", "dedupe.window_ms", 5),
        ("STREAMDUEL_MONITORING__PORT", "0", "monitoring.port", 0),
        ("STREAMDUEL_MONITORING__HOST", "0", "monitoring.host", "0"),
    ],
)  # fmt: skip
def test_a_variable_overrides_a_key(
    config: Path, variable: str, value: str, where: str, found: object
) -> None:
    part: Any = load(config, {variable: value}).config.model_dump()
    for step in where.split("."):
        part = part[step]
    assert part == found


@pytest.mark.parametrize(
    ("names", "variable", "changed_name"),
    [
        (["WebSearch"], "WEBSEARCH", "WebSearch"),
        (["WebSearch"], "webSearch", "WebSearch"),
        (["Search", "search"], "search", "search"),
        (["search", "Search"], "Search", "Search"),
    ],
)
def test_a_variable_finds_an_experiment_in_any_case_and_first_in_its_own(
    names: list[str], variable: str, changed_name: str, tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(
        written({**GOOD, "experiments": {name: {"arms": ["a", "b"]} for name in names}})
    )
    loaded = load(path, {f"STREAMDUEL_EXPERIMENTS__{variable}__SEED": "9"}).config
    seeds = {name: 9 if name == changed_name else 0 for name in names}
    assert {name: it.seed for name, it in loaded.experiments.items()} == seeds


@pytest.mark.parametrize(
    ("variable", "value", "changes", "where", "found"),
    [
        ("CREDIT__WEIGHTS__addToCart", "3",
         {"credit": {"name": "weighted", "weights": {"view": 1}}},
         "credit.weights", {"view": 1, "addToCart": 3}),
        ("CREDIT__WEIGHTS__BUY", "3", {"credit": {"name": "weighted"}},
         "credit.weights", {"buy": 3}),
        ("SEGMENTS__Device", "[Phone]", {}, "segments", {"Device": ["Phone"]}),
        ("PRIOR__SCORES__Bm25", "0.5", {"arms": ["Bm25", "b"]}, "prior.scores", {"Bm25": 0.5}),
        ("PRIOR__WINS__A__b", "2", {"arms": ["A", "b"], "prior": {"wins": {"A": {}}}},
         "prior.wins", {"A": {"b": 2}}),
        ("Policy__Confidence", "0.7", {}, "policy.confidence", 0.7),
    ],
)  # fmt: skip
def test_a_new_name_keeps_its_case_where_names_are_chosen(
    variable: str, value: str, changes: dict[str, Any], where: str, found: object, tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({f"experiments.search.{k}": it for k, it in changes.items()})))
    loaded = load(path, {f"STREAMDUEL_EXPERIMENTS__SEARCH__{variable}": value}).config
    part: Any = loaded.experiments["search"].model_dump()
    for step in where.split("."):
        part = part[step]
    assert part == found


def test_a_policys_parameter_can_be_overridden(config: Path) -> None:
    variable = "STREAMDUEL_EXPERIMENTS__SEARCH__POLICY__CONFIDENCE"
    loaded = load(config, {variable: "0.7"}).config
    assert loaded.experiments["search"].policy.parameters == {"confidence": 0.7}


def test_monitoring_can_be_switched_off_and_moved(config: Path) -> None:
    assert load(config, {"STREAMDUEL_MONITORING": "null"}).config.monitoring is None
    moved = load(config, {"STREAMDUEL_MONITORING__PORT": "8080"}).config.monitoring
    assert moved is not None
    assert moved.port == 8080


@pytest.mark.parametrize("name", ["MONITORING__HOST", "monitoring__port"])
def test_a_section_that_a_variable_turns_off_stays_off(config: Path, name: str) -> None:
    environment = {"STREAMDUEL_MONITORING": "null", f"STREAMDUEL_{name}": "0"}
    assert load(config, environment).config.monitoring is None
    del environment["STREAMDUEL_MONITORING"]  # the file's null does not count
    assert load(config, environment).config.monitoring is not None


def test_a_section_can_be_emptied_before_its_keys_are_set(tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({"experiments.search.policy": {"name": "rucb", "alpha": 1}})))
    policy = "STREAMDUEL_EXPERIMENTS__SEARCH__POLICY"
    loaded = load(path, {policy: "null", f"{policy}__NAME": "ccb"}).config
    assert loaded.experiments["search"].policy.model_dump() == {"name": "ccb"}


def test_variables_of_other_programs_are_ignored(config: Path) -> None:
    others = {"STREAMDUEL_TEST_KAFKA": "x", "STREAMDUEL": "x", "SOURCE__PATH": "x", "HOME": "/"}
    assert load(config, others).config == load(config, {}).config


def test_the_processs_own_environment_is_the_default(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMDUEL_EXPERIMENTS__SEARCH__SEED", "9")
    assert load(config).config.experiments["search"].seed == 9


@pytest.mark.parametrize(
    "password", ["007", "1e5", "yes", "null", "~", "[a]", "{a: b}", "a: b", "a #b", "0x1F", "*a"]
)
def test_a_password_from_the_environment_is_taken_literally(tmp_path: Path, password: str) -> None:
    loaded = kafka(tmp_path, {"STREAMDUEL_SOURCE__SASL_PLAIN_PASSWORD": password})
    for section in (loaded.source, loaded.sink, loaded.snapshots):
        assert fields(section).sasl_plain_password.get_secret_value() == password


LATIN = os.fsdecode(b"caf\xe9")
"""A value that is not UTF-8, as Python has it in `os.environ`."""


@pytest.mark.parametrize(
    "key", ["source.sasl_plain_password", "source.sasl_plain_username", "source.group",
            "experiments.search.owner", "experiments.search.arms", "commit"],
)  # fmt: skip
def test_a_variable_that_is_not_utf_8_is_refused_and_not_shown(key: str, tmp_path: Path) -> None:
    variable = f"STREAMDUEL_{key.replace('.', '__').upper()}"
    with pytest.raises(ConfigurationError) as refused:
        kafka(tmp_path, {variable: LATIN})
    assert str(refused.value) == f"{key} must be UTF-8 text (environment variable {variable})."


def test_only_the_name_of_a_click_log_must_be_utf_8(config: Path) -> None:
    """Snapshots contain it; directories may have any name."""
    folders = {"STREAMDUEL_SINK__PATH": LATIN, "STREAMDUEL_SOURCE__PATH": f"{LATIN}/clicks.jsonl"}
    assert fields(load(config, folders).sink).path == config.parent / LATIN
    with pytest.raises(ConfigurationError) as refused:
        load(config, {"STREAMDUEL_SOURCE__PATH": f"clicks/{LATIN}"})
    assert str(refused.value) == (
        r"source.path must have a file name in UTF-8 (found 'caf\udce9'; environment variable "
        "STREAMDUEL_SOURCE__PATH)."
    )


def test_a_section_can_come_from_the_environment_alone(tmp_path: Path) -> None:
    environment = {
        "STREAMDUEL_SOURCE__TOPIC": "123",
        "STREAMDUEL_SOURCE__CONNECTOR": "kafka",
        "STREAMDUEL_SOURCE__GROUP": "g",
        "STREAMDUEL_SOURCE__BOOTSTRAP_SERVERS": "one:9092,two:9092",
    }
    loaded = kafka(tmp_path, environment, source={}, snapshots={"connector": "kafka", "topic": "s"})
    assert fields(loaded.source).topic == "123"
    assert fields(loaded.source).bootstrap_servers == ["one:9092", "two:9092"]
    assert fields(loaded.sink).bootstrap_servers == ["one:9092", "two:9092"]


@pytest.mark.parametrize(
    ("form", "variables", "found"),
    [
        ("ubi", {"EXPERIMENT": "search"}, {"name": "ubi", "experiment": "search"}),
        ("ubi", {"NAME": "solr"}, {"name": "solr"}),
        ({"name": "ubi"}, {"EXPERIMENT": "123"}, {"name": "ubi", "experiment": "123"}),
        ({"name": "ubi"}, {"EXPERIMENT": "on"}, {"name": "ubi", "experiment": "on"}),
        ({"name": "ubi"}, {"ARMS__Model1": "no"}, {"name": "ubi", "arms": {"Model1": "no"}}),
        ({"name": "ubi"}, {"FIRST_ORDINAL": "1"}, {"name": "ubi", "first_ordinal": 1}),
        (None, {"EXPERIMENT": "123", "NAME": "ubi"}, {"name": "ubi", "experiment": "123"}),
    ],
)
def test_keys_of_a_format_can_be_overridden(
    form: object, variables: dict[str, str], found: object, tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    others = {f"experiments.{name}": {"arms": ["a", "b"]} for name in ("123", "on")}
    path.write_text(written(changed({"source.format": form, **others})))
    environment = {f"STREAMDUEL_SOURCE__FORMAT__{name}": it for name, it in variables.items()}
    assert load(path, environment).config.source["format"] == found


def test_a_variable_of_a_key_overrides_one_of_its_section(config: Path) -> None:
    environment = {
        "STREAMDUEL_SOURCE": "{connector: kafka, path: clicks.jsonl}",
        "STREAMDUEL_SOURCE__CONNECTOR": "files",
    }
    assert load(config, environment).config.source["connector"] == "files"
