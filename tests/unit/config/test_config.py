"""Valid configurations, and the generated reference."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from streamduel.config import Config, load, schemas
from streamduel.config import reference as config_reference
from streamduel.config.experiment import ExperimentSettings
from streamduel.config.model import settings_model
from streamduel.connector import load_connector, own_connector_names
from streamduel.formats import UbiSettings
from streamduel.interleaving.credit import Click, Shown
from streamduel.policies import DEFAULT, create
from streamduel.preference.counts import MAX_DUELS
from tests.unit.config.configurations import GOOD, changed, written

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "configuration.md"
ARM = GOOD["experiments"]["search"]["arms"][0]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "search.yaml"
    path.write_text(written(GOOD))
    return path


def fields(settings: BaseModel) -> Any:
    """A connector's settings, whose class is not known here."""
    return settings


def test_missing_keys_have_defaults(config: Path) -> None:
    loaded = load(config, {}).config
    search = loaded.experiments["search"]
    assert (search.policy.name, search.policy.parameters) == (DEFAULT, {})
    assert (search.seed, search.ties, search.decide_every, search.slate) == (0, "half", 1, 1)
    assert search.credit.name == "click_count"
    assert (loaded.dedupe.window_records, loaded.dedupe.window_ms) == (1_000_000, 3_600_000)
    assert loaded.limits.max_record_bytes == 2**20
    assert (loaded.commit.interval_ms, loaded.commit.max_outputs) == (500, 10_000)


def test_a_character_may_be_a_surrogate_pair_as_json_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "search.json"
    path.write_text(json.dumps(changed({"experiments.😀": {"arms": ["😀", "b"]}})))
    assert "\\ud83d\\ude00" in path.read_text()
    assert load(path, {}).config.experiments["😀"].arms == ["😀", "b"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("join_window_ms", 3_600_000),
        ("guardrails", {"control_arm": ARM, "min_share": 0.25, "max_share": 0.25}),
    ],
)
def test_a_number_may_be_as_large_as_the_one_that_bounds_it(
    tmp_path: Path, key: str, value: Any
) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({f"experiments.search.{key}": value}, GOOD)))
    assert key in load(path, {}).config.experiments["search"].model_fields_set


def test_monitoring_is_served_unless_it_is_null(tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    document = dict(GOOD)
    path.write_text(written(document))
    assert load(path, {}).config.monitoring is None
    del document["monitoring"]
    path.write_text(written(document))
    monitoring = load(path, {}).config.monitoring
    assert monitoring is not None
    assert (monitoring.host, monitoring.port) == ("127.0.0.1", 9400)


@pytest.mark.parametrize("key", ["dedupe", "time", "limits", "commit", "spark"])
def test_a_section_without_content_is_absent(key: str, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({key: None})))
    assert load(path, {}).config == Config(**GOOD)


@pytest.mark.parametrize(
    "key",
    [
        "policy", "credit", "segments", "stop", "guardrails", "guardrails.fallback", "prior",
        "links", "notes",
    ],
)  # fmt: skip
def test_a_section_of_an_experiment_without_content_is_absent(key: str, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({f"experiments.search.{key}": None})))
    assert load(path, {}).config == Config(**GOOD)


@pytest.mark.parametrize("key", ["arms", "clicks", "shown", "fields"])
def test_a_section_of_a_format_without_content_is_absent(key: str, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({"source.format": {"name": "ubi", key: None}})))
    assert load(path, {}).config.log_format == UbiSettings()


def test_policy_parameters_reach_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    policy = {"name": "rucb", "alpha": 0.7, "champion_set": True}
    path.write_text(written(changed({"experiments.search.policy": policy})))
    made = load(path, {}).config.experiments["search"].create_policy()
    assert made.parameters == {"alpha": 0.7, "champion_set": True}
    assert made.n_arms == 3


@pytest.mark.parametrize(
    ("settings", "parameters"),
    [
        ({}, {"aim": "identify", "confidence": 0.95, "min_duels": 0}),
        ({"aim": "earn"}, {"aim": "earn"}),
        ({"stop": {"confidence": 0.9, "min_duels": 50}}, {"confidence": 0.9, "min_duels": 50}),
        ({"stop": {"min_duels": 2**53}}, {"min_duels": MAX_DUELS}),
        ({"stop": {"confidence": 0.9}, "policy": {"confidence": 0.8}}, {"confidence": 0.8}),
        ({"aim": "earn", "policy": {"name": "top_two", "aim": "identify"}}, {"aim": "identify"}),
    ],
)
def test_aim_and_stop_rule_reach_the_policy(
    settings: dict[str, Any], parameters: dict[str, Any]
) -> None:
    made = ExperimentSettings(arms=["bm25", "ltr"], **settings).create_policy()
    assert parameters.items() <= made.parameters.items()


def test_policies_that_lack_them_do_not_get_aim_and_stop_rule() -> None:
    settings = {"aim": "earn", "stop": {"min_duels": 50}, "policy": {"name": "rucb"}}
    made = ExperimentSettings(arms=["bm25", "ltr"], **settings).create_policy()
    assert made.parameters == create("rucb", 2).parameters


@pytest.mark.parametrize(
    "credit",
    [
        {"name": "weighted", "weights": {"cart": 3, "hide": -0.5}},
        {"name": "position_debiased", "propensities": [1, 0.6, 1e-3], "eta": None},
        {"name": "position_debiased", "eta": 0},
        *({"name": name} for name in ("any_click", "first_click", "last_click", "probabilistic")),
    ],
)
def test_credit_parameters_reach_the_credit_function(credit: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(changed({"experiments.search.credit": credit})))
    settings = load(path, {}).config.experiments["search"].credit
    assert settings.model_dump(exclude_none=True) == {
        name: value for name, value in credit.items() if value is not None
    }
    assert settings.create()(Shown(["b"]), [Click(0, "cart")]) == 0.0


def test_relative_paths_are_relative_to_the_file(
    config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    loaded = load(config, {})
    assert fields(loaded.source).path == config.parent / "clicks.jsonl"
    assert fields(loaded.sink).path == config.parent / "out"
    assert fields(loaded.snapshots).path == config.parent / "state"


@pytest.mark.parametrize("path", ["/data/clicks.jsonl", "-"])
def test_absolute_paths_and_standard_input_are_kept(config: Path, path: str) -> None:
    loaded = load(config, {"STREAMDUEL_SOURCE__PATH": path})
    assert fields(loaded.source).path == Path(path)


def test_yaml_may_use_anchors_and_merge_keys(tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(
        """
        source: {connector: files, path: clicks.jsonl}
        sink: &folder {connector: files, path: out/}
        snapshots: {<<: *folder, path: state/}
        experiments:
          search: &usual {arms: [a, b], seed: 3}
          ads: {<<: *usual, seed: 4}
          shop: *usual
        """
    )
    loaded = load(path, {})
    assert fields(loaded.snapshots).path == tmp_path / "state"
    seeds = {name: it.seed for name, it in loaded.config.experiments.items()}
    assert seeds == {"search": 3, "ads": 4, "shop": 3}


@pytest.mark.parametrize("name", ["local.yaml", "kafka.yaml", "reference.yaml"])
def test_the_shipped_configurations_are_valid(name: str) -> None:
    assert load(ROOT / "configs" / name, {}).config.experiments


@pytest.mark.parametrize("name", ["local.yaml", "kafka.yaml", "kubernetes/configmap.yaml"])
def test_the_shipped_experiments_drop_lists_without_clicks(name: str) -> None:
    """As `plan` takes them; ties would take about 1/S times the impressions."""
    found = yaml.safe_load((ROOT / "configs" / name).read_text())
    found = found if "experiments" in found else yaml.safe_load(found["data"]["config.yaml"])
    assert [each.get("no_click") for each in found["experiments"].values()] == ["drop"]


EXAMPLES = sorted((ROOT / "configs" / "policies").glob("*.yaml"))


def test_there_are_examples_of_the_policies_to_choose_from() -> None:
    assert [path.stem for path in EXAMPLES] == ["c2b", "ccb", "rucb"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_the_policy_of_its_name(path: Path) -> None:
    policy = load(path, {}).config.experiments["search"].create_policy()
    assert policy.name == path.stem


# Files generated from the models.


@pytest.mark.parametrize("name", schemas.files())
def test_the_schemas_are_up_to_date(name: str) -> None:
    kept = (ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8")
    assert kept == schemas.files()[name], "run python -m streamduel.config.schemas docs/schemas"


def test_there_is_no_other_schema() -> None:
    kept = {path.name for path in (ROOT / "docs" / "schemas").iterdir()}
    assert kept == schemas.files().keys()


def test_the_reference_is_up_to_date(tmp_path: Path) -> None:
    page, reference = tmp_path / "page.md", tmp_path / "reference.yaml"
    shutil.copy(PAGE, page)
    config_reference.main(str(page), str(reference))
    advice = f"run {config_reference.COMMAND}"
    assert page.read_text() == PAGE.read_text(), advice
    assert reference.read_text() == (ROOT / "configs" / "reference.yaml").read_text(), advice


def test_the_schemas_are_written(tmp_path: Path) -> None:
    schemas.main(str(tmp_path))
    assert len(list(tmp_path.glob("*.json"))) == len(schemas.files())


def test_the_reference_holds_the_defaults() -> None:
    loaded = load(ROOT / "configs" / "reference.yaml", {}).config.model_dump()
    given: dict[str, Any] = {"source": {}, "sink": {}, "snapshots": {}}
    arms = ["bm25", "ltr-v1", "ltr-v2", "ltr-v3"]
    bare = Config.model_validate({**given, "experiments": {"search": {"arms": arms}}}).model_dump()
    assert {key: loaded[key] for key in loaded if key not in given} == {
        key: bare[key] for key in bare if key not in given
    }


@pytest.mark.parametrize("connector", own_connector_names())
@pytest.mark.parametrize("section", ["source", "sink", "snapshots"])
def test_the_reference_has_every_key_of_every_connector(section: str, connector: str) -> None:
    text = (ROOT / "configs" / "reference.yaml").read_text()
    shared = load_connector(connector).shared_settings if section != "source" else frozenset()
    for name in settings_model(section, load_connector(connector)).model_fields:
        assert re.search(rf"^[# ]+{name}:", text, re.MULTILINE) or name in shared


@pytest.mark.parametrize("other", [name for name in own_connector_names() if name != "files"])
def test_the_commented_connectors_of_the_reference_are_valid(other: str, tmp_path: Path) -> None:
    """Also the connectors that it does not run with."""
    document: dict[str, Any] = {"experiments": GOOD["experiments"]}
    for section in ("source", "sink", "snapshots"):
        document |= yaml.safe_load(config_reference._section(section, other))
    path = tmp_path / "other.yaml"
    path.write_text(written(document))
    assert load(path, {}).config.source["connector"] == other


def test_the_pages_example_is_valid(tmp_path: Path) -> None:
    example = PAGE.read_text().split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "search.yaml"
    path.write_text(example)
    assert load(path, {}).config.experiments["search"].arms[0] == "bm25"


def test_a_configuration_can_be_moved_with_its_files(config: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    copied = shutil.copy(config, moved)
    assert fields(load(Path(copied), {}).sink).path == moved / "out"
