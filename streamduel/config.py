"""The configuration: one YAML file, checked whole before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from streamduel import policies
from streamduel.config_mistakes import sentences
from streamduel.connector import Connector, load_connector
from streamduel.errors import ConfigurationError, PolicyError, nearest
from streamduel.interleaving.credit import CREDITS

ENVIRONMENT_PREFIX = "STREAMDUEL_"
SECTIONS = ("source", "sink", "snapshots")

Name = Annotated[str, Field(min_length=1, max_length=256, strict=True)]
PositiveInt = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A part of the configuration: unknown keys are mistakes, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicySettings(Section):
    """The dueling-bandit policy of an experiment; every further key is its parameter."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field("rucb", description="One of those that `streamduel policies` lists.")

    @property
    def parameters(self) -> dict[str, Any]:
        """The policy's own parameters, those not given left out."""
        return dict(self.model_extra or {})


class CreditSettings(Section):
    """How the clicks of an interleaved impression are credited to a side."""

    name: str = Field("click_count", description="The credit function.")

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in CREDITS:
            known = ", ".join(f"'{credit}'" for credit in CREDITS)
            raise ValueError(f"must be one of {known} (found '{name}'){nearest(name, CREDITS)}")
        return name


class ExperimentSettings(Section):
    """One experiment: which rankers compete, and how the winner is sought.

    All of it enters the fold, so none of it may change while the experiment runs.
    """

    arms: Annotated[list[Name], Field(min_length=2, max_length=1000)] = Field(
        description="The rankers' names, 2 to 1000 of them."
    )
    policy: PolicySettings = PolicySettings(name="rucb")
    seed: Annotated[int, Field(ge=0, lt=2**64)] = Field(
        0, description="Of the policy's random generator."
    )
    ties: Literal["half", "drop"] = Field(
        "half", description="A tie is a duel and half a win each way, or no duel at all."
    )
    credit: CreditSettings = CreditSettings(name="click_count")
    decide_every: Annotated[int, Field(ge=1, le=10**9)] = Field(
        1, description="Duels between two decisions."
    )
    slate: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1,
        description="Duels proposed per decision; an assignment's shares are their frequencies.",
    )

    @field_validator("arms")
    @classmethod
    def _distinct(cls, arms: list[str]) -> list[str]:
        for index, arm in enumerate(arms):
            if arm in arms[:index]:
                raise ValueError(f"has '{arm}' twice")
        return arms

    def create_policy(self) -> policies.Policy:
        """The policy, fresh.

        Raises:
            PolicyError: its name or a parameter is not allowed.
        """
        return policies.create(
            self.policy.name, len(self.arms), seed=self.seed, **self.policy.parameters
        )


class DedupeSettings(Section):
    """How long a record's id is remembered, so that its second delivery is not counted."""

    window_records: Annotated[int, Field(ge=1, le=10**9)] = Field(
        1_000_000, description="Valid records per partition; 1 million take about 110 MB."
    )
    window_ms: Annotated[int, Field(ge=0)] = Field(
        3_600_000, description="Stream time, in milliseconds."
    )


class LimitSettings(Section):
    """Bounds on what comes from outside."""

    max_record_bytes: Annotated[int, Field(ge=1, le=2**24)] = Field(
        2**20, description="A larger record is a dead letter; Kafka's own default limit."
    )


class CommitSettings(Section):
    """How often work becomes visible; see docs/delivery.md for what it costs."""

    interval_ms: Annotated[int, Field(ge=1, le=60_000)] = Field(
        500, description="At most this long after a record is read; less is faster and dearer."
    )
    max_outputs: PositiveInt = Field(
        10_000, description="Commit earlier when this many outputs wait: bounds memory."
    )


class MonitoringSettings(Section):
    """Where metrics and health are served."""

    host: str = Field("127.0.0.1", description="The address to listen on; 0.0.0.0 for everyone.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(9400, description="0 takes a free port.")


class Config(Section):
    """The whole configuration; `Config.load` reads and checks one."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    source: dict[str, Any] = Field(description="Where the click log comes from.")
    sink: dict[str, Any] = Field(description="Where assignments and dead letters go.")
    snapshots: dict[str, Any] = Field(description="Where the state is kept.")
    dedupe: DedupeSettings = DedupeSettings()
    limits: LimitSettings = LimitSettings()
    commit: CommitSettings = CommitSettings()
    monitoring: MonitoringSettings | None = MonitoringSettings()
    experiments: Annotated[dict[Name, ExperimentSettings], Field(min_length=1)]


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
    document = _read(path)
    _override(document, os.environ if environment is None else environment)
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        raise ConfigurationError("\n".join(sentences(error, Config, document))) from None
    for name, experiment in config.experiments.items():
        _check_policy(name, experiment)
    return _connect(path, config)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the configuration {path} cannot be read: {error.strerror}."
        ) from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"the configuration {path} is not UTF-8 text.") from None
    try:
        document = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader, stricter
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ConfigurationError(f"the configuration {path} is not YAML: {problem}.") from None
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"the configuration {path} must be a mapping with source, sink, snapshots and "
            f"experiments (found {type(document).__name__})."
        )
    return document


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice instead of silently taking the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise ConfigurationError(
                    f"the configuration has the key '{key}' twice "
                    f"(line {key_node.start_mark.line + 1})."
                )
            seen.add(key if isinstance(key, str) else repr(key))
        return super().construct_mapping(node, deep=deep)


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Lay variables like `STREAMDUEL_SOURCE__TOPIC` over the document, values read as YAML."""
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        first, *rest = variable.removeprefix(ENVIRONMENT_PREFIX).split("__")
        if first.lower() not in Config.model_fields:
            continue  # other programs' variables, such as those of the tests
        where = document
        for step in [first, *rest][:-1]:
            key = _existing(where, step)
            if not isinstance(where.get(key), dict):
                where[key] = {}
            where = where[key]
        last = _existing(where, [first, *rest][-1])
        where[last] = _environment_value(environment[variable])


def _existing(mapping: dict[str, Any], name: str) -> str:
    """The key that a variable's part means: variables are upper case, keys may be mixed."""
    for key in mapping:
        if isinstance(key, str) and key.lower() == name.lower():
            return key
    return name.lower()


def _environment_value(text: str) -> Any:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, (bool, int, float, list, dict, type(None))) else text


def _check_policy(name: str, experiment: ExperimentSettings) -> None:
    try:
        experiment.create_policy()
    except PolicyError as error:
        raise ConfigurationError(f"experiments.{name}: {error}") from None


def _connect(path: Path, config: Config) -> LoadedConfig:
    connectors = {section: _connector(section, getattr(config, section)) for section in SECTIONS}
    if config.sink["connector"] != config.snapshots["connector"]:
        raise ConfigurationError(
            f"snapshots.connector must be '{config.sink['connector']}' as sink.connector is "
            f"(found '{config.snapshots['connector']}'): they become visible in one commit."
        )
    settings = {}
    for section in SECTIONS:
        connector = connectors[section]
        raw = dict(getattr(config, section))
        if section != "source" and raw["connector"] == config.source["connector"]:
            _share(section, raw, config.source, connector.shared_settings)
        model: type[BaseModel] = getattr(connector, f"{section.removesuffix('s')}_settings")
        try:
            settings[section] = model.model_validate(raw, context={"directory": path.parent})
        except ValidationError as error:
            found = sentences(error, model, raw, prefix=section)
            raise ConfigurationError("\n".join(found)) from None
    return LoadedConfig(
        path=path,
        config=config,
        source_connector=connectors["source"],
        outlet_connector=connectors["sink"],
        **settings,
    )


def _connector(section: str, raw: Mapping[str, Any]) -> Connector:
    name = raw.get("connector")
    if not isinstance(name, str):
        found = "nothing" if name is None else repr(name)
        raise ConfigurationError(f"{section}.connector must name a connector (found {found}).")
    try:
        return load_connector(name)
    except ConfigurationError as error:
        raise ConfigurationError(f"{section}.connector: {error}") from None


def _share(
    section: str, raw: dict[str, Any], source: Mapping[str, Any], shared: frozenset[str]
) -> None:
    """Let a section take from the source what both must agree on."""
    for key in sorted(shared & source.keys()):
        if raw.setdefault(key, source[key]) != source[key]:
            raise ConfigurationError(
                f"{section}.{key} must be as source.{key} or be left out: input, outputs and "
                f"snapshots share one commit."
            )
