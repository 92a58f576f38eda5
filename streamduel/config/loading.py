"""Loading a configuration: one YAML file, checked as a whole before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from streamduel.config.document import read_document, read_value
from streamduel.config.messages import sentences
from streamduel.config.model import Config
from streamduel.config.shape import Shape, is_text, one_of
from streamduel.connector import Connector, connector_names, load_connector
from streamduel.errors import ConfigurationError, PolicyError, nearest, shown

ENVIRONMENT_PREFIX = "STREAMDUEL_"
SECTIONS = ("source", "sink", "snapshots")


class LoadedConfig(BaseModel):
    """A configuration whose every part was checked, with its connectors."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    path: Path
    config: Config
    source_connector: Connector
    outlet_connector: Connector
    source: BaseModel
    sink: BaseModel
    snapshots: BaseModel


def load(path: Path, environment: Mapping[str, str] | None = None) -> LoadedConfig:
    """Read a configuration file, apply the environment's overrides and check all of it.

    Args:
        path: the YAML file.
        environment: variables like `STREAMDUEL_SOURCE__TOPIC=clicks`; the process's own if None.

    Raises:
        ConfigurationError: one sentence per mistake, a line each.
    """
    document = read_document(path)
    _override(document, os.environ if environment is None else environment)
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError("\n".join(sentences(error, Config))) from None
    mistakes = [*_experiment_mistakes(config), *_connector_mistakes(config)]
    try:
        _ = config.log_format
    except ConfigurationError as error:
        mistakes.append(str(error))
    if mistakes:
        raise ConfigurationError("\n".join(mistakes))
    return _connect(path, config)


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Lay variables like `STREAMDUEL_SOURCE__TOPIC` over the document."""
    # The connectors first: they say which of a section's values are text.
    for variable in sorted(environment, key=lambda name: (not name.endswith("CONNECTOR"), name)):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        first, *rest = variable.removeprefix(ENVIRONMENT_PREFIX).split("__")
        if first.lower() not in Config.model_fields:
            if not rest:
                continue  # other programs' variables, such as those of the tests
            hint = nearest(first.lower(), Config.model_fields) or "."
            raise ConfigurationError(
                f"unknown key '{first.lower()}' in the environment variable {variable}{hint}"
            )
        where: dict[str, Any] = document
        location: list[str] = []
        for step in [first, *rest]:
            if location:
                if not isinstance(where.get(location[-1]), dict):
                    where[location[-1]] = {}
                where = where[location[-1]]
            location.append(_existing(where, step))
        text = environment[variable]
        where[location[-1]] = text if _wants_text(document, location) else read_value(text)


def _existing(mapping: dict[str, Any], name: str) -> str:
    """The key that a variable's part means: variables are upper case, keys may be mixed."""
    for key in mapping:
        if isinstance(key, str) and key.lower() == name.lower():
            return key
    return name.lower()


def _wants_text(document: dict[str, Any], location: list[str]) -> bool:
    """Whether a value is text even if it looks like a number, as a password may."""
    section, *rest = location
    if section not in SECTIONS or not rest:
        return is_text(Shape(Config).at(location))
    if rest == ["connector"]:
        return True
    name = document[section].get("connector")
    if name not in connector_names():
        return False
    return is_text(Shape(settings_model(section, load_connector(name))).at(rest))


def _experiment_mistakes(config: Config) -> Iterator[str]:
    for name, experiment in config.experiments.items():
        try:
            experiment.create_policy()
        except PolicyError as error:
            joint = "." if str(error).startswith("policy.") else ": "
            yield f"experiments.{name}{joint}{error}"
        for mistake in experiment.guardrails.mistakes(experiment.arms):
            yield f"experiments.{name}.guardrails.{mistake}"
        if (experiment.join_window_ms or 0) > config.dedupe.window_ms:
            yield (
                f"experiments.{name}.join_window_ms must be at most dedupe.window_ms,"
                f" {config.dedupe.window_ms} (found {experiment.join_window_ms}): an impression is"
                f" remembered while it waits for clicks."
            )


def _connector_mistakes(config: Config) -> Iterator[str]:
    names = connector_names()
    for section in SECTIONS:
        name = getattr(config, section).get("connector")
        if name not in names:
            hint = nearest(name, names) if isinstance(name, str) else ""
            yield f"{section}.connector must be {one_of(names)} (found {shown(name)}){hint or '.'}"


def _connect(path: Path, config: Config) -> LoadedConfig:
    outlet = config.sink["connector"]
    if outlet != config.snapshots["connector"]:
        raise ConfigurationError(
            f"snapshots.connector must be '{outlet}' as sink.connector is "
            f"(found '{config.snapshots['connector']}'): they become visible in one commit."
        )
    connectors = {
        section: load_connector(getattr(config, section)["connector"]) for section in SECTIONS
    }
    settings: dict[str, BaseModel] = {}
    mistakes: list[str] = []
    for section, connector in connectors.items():
        raw = dict(getattr(config, section))
        if section == "source":
            raw.pop("format", None)  # how it is written is no concern of who brings it
        if section != "source" and raw["connector"] == config.source["connector"]:
            mistakes += _share(section, raw, config.source, connector.shared_settings)
        model = settings_model(section, connector)
        try:
            settings[section] = model.model_validate(raw, context={"directory": path.parent})
        except ValidationError as error:
            # What a section has taken from the source is the source's mistake.
            found = sentences(error, model, prefix=(section,))
            mistakes += [it for it in found if it.replace(section, "source", 1) not in mistakes]
    if mistakes:
        raise ConfigurationError("\n".join(mistakes))
    return LoadedConfig(
        path=path,
        config=config,
        source_connector=connectors["source"],
        outlet_connector=connectors["sink"],
        **settings,
    )


def settings_model(section: str, connector: Connector) -> type[BaseModel]:
    """The model by which a connector checks one of the three `SECTIONS`."""
    models = {
        "source": connector.source_settings,
        "sink": connector.sink_settings,
        "snapshots": connector.snapshot_settings,
    }
    return models[section]


def _share(
    section: str, raw: dict[str, Any], source: Mapping[str, Any], shared: frozenset[str]
) -> Iterator[str]:
    """Let a section take from the source what both must agree on."""
    for key in sorted(shared & source.keys()):
        if raw.setdefault(key, source[key]) != source[key]:
            yield (
                f"{section}.{key} must be the same as source.{key}, or be left out: input, "
                f"outputs and snapshots share one commit."
            )
