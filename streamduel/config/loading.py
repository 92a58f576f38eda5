"""Loading a configuration: one YAML file, checked as a whole before anything starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from streamduel import formats
from streamduel.config import environment as variables
from streamduel.config.changes import problems
from streamduel.config.document import Document
from streamduel.config.messages import Mistake, dotted, mistakes
from streamduel.config.model import SECTIONS, Config, SparkSettings, settings_model
from streamduel.config.shape import one_of
from streamduel.connector import (
    Archive,
    Connector,
    Source,
    SourceOptions,
    connector_names,
    load_connector,
)  # fmt: skip
from streamduel.errors import ConfigurationError, nearest, shown
from streamduel.section import FROM_FILE

TOPICS: Final = (
    ("source", "topic"),
    ("source", "control_topic"),
    ("sink", "assignments"),
    ("sink", "dead_letters"),
    ("snapshots", "topic"),
)
"""The keys that name topics of the service, where a connector has them."""

SPARK_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""What `source.sasl_mechanism` may be for the Spark job."""


class LoadedConfig(BaseModel):
    """A checked configuration with its connectors and their settings."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    path: Path
    config: Config
    source_connector: Connector
    outlet_connector: Connector
    source: BaseModel
    sink: BaseModel
    snapshots: BaseModel

    def open_controls(self) -> Source:
        """Open the control topic, which the configuration names, as a click log.

        Raises:
            ConnectorError: it cannot be read.
        """
        return self.open_log(topic=self.config.control_topic, control_topic=None)

    def open_log(self, **changed: str | None) -> Source:
        """Open the click log up to its end at the time of `seek`, without joining a group.

        Args:
            **changed: other values of keys of `source`.

        Raises:
            ConnectorError: it cannot be read.
        """
        options = SourceOptions(True, self.config.limits.max_batch_bytes)
        return self.source_connector.open_log(self.source.model_copy(update=changed), options)

    @property
    def read_once(self) -> bool:
        """Whether the click log can be read only once, such as standard input."""
        return self.source_connector.read_once(self.source)

    def open_archive(self) -> Archive:
        """Open what was committed.

        Raises:
            ConnectorError: it cannot be read.
        """
        return self.outlet_connector.open_archive(self.sink, self.snapshots)


def load(path: Path, environment: Mapping[str, str] | None = None) -> LoadedConfig:
    """Read a configuration file, apply environment variables and check all of it.

    Args:
        path: the YAML file.
        environment: variables such as `STREAMDUEL_SOURCE__TOPIC=clicks`; by default, the process's.

    Raises:
        ConfigurationError: one sentence per mistake, a line each.
    """
    document = Document(path)
    variables.override(document, os.environ if environment is None else environment)
    try:
        config = Config.model_validate(document.values, context=FROM_FILE)
    except ValidationError as error:
        found = [_with_hint(document, it) for it in mistakes(error, Config)]
        raise _refusal(document, found) from None
    found = [
        *_experiment_mistakes(config),
        *_connector_mistakes(config),
        *_format_mistakes(config),
    ]
    if found:
        raise _refusal(document, found)
    connectors = {
        section: load_connector(getattr(config, section)["connector"]) for section in SECTIONS
    }
    settings, found = _settings(path.parent, config, connectors)
    if found:
        raise _refusal(document, found)
    source, sink = connectors["source"], connectors["sink"]
    found = [
        Mistake((it.section, it.key), f"{it.section}.{it.key} {it.predicate}")
        for it in sink.contradictions(
            settings["source"] if source is sink else None, settings["sink"], settings["snapshots"]
        )
    ]
    found += _spark_mistakes(config, settings)
    if found:
        raise _refusal(document, found)
    return LoadedConfig(
        path=path, config=config, source_connector=source, outlet_connector=sink, **settings
    )


def _refusal(document: Document, found: Iterable[Mistake]) -> ConfigurationError:
    return ConfigurationError("\n".join(it.at(document.place(it.location)) for it in found))


def _with_hint(document: Document, mistake: Mistake) -> Mistake:
    """The mistake; if only a variable has its experiment, the name may be a misspelling."""
    location, experiments = mistake.location, document.values.get("experiments")
    made = [key for key in document.variables if len(key) == 2]
    if location[2:] != ("arms",) or location[:2] not in made or not isinstance(experiments, dict):
        return mistake
    found = experiments.get(location[1])
    if isinstance(found, dict) and "arms" in found:  # it is invalid, not missing
        return mistake
    others = [name for name in experiments if ("experiments", name) not in made]
    hint = nearest(str(location[1]), map(str, others)) or "."
    return mistake._replace(sentence=f"{mistake.sentence.removesuffix('.')}{hint}")


def _experiment_mistakes(config: Config) -> Iterator[Mistake]:
    for name, experiment in config.experiments.items():
        location = ("experiments", name)
        for problem in problems(experiment, experiment.arms):
            keys = (problem.key or "policy").split(".")
            yield Mistake((*location, *keys), problem.below(dotted(location)))
        if (experiment.join_window_ms or 0) > config.dedupe.window_ms:
            key = (*location, "join_window_ms")
            yield Mistake(
                key,
                f"{dotted(key)} must be at most dedupe.window_ms, {config.dedupe.window_ms} (found"
                f" {experiment.join_window_ms}): the dedupe window bounds the join window.",
            )


def _connector_mistakes(config: Config) -> Iterator[Mistake]:
    names = connector_names()
    known = True
    for section in SECTIONS:
        name = getattr(config, section).get("connector")
        if name not in names:
            known = False
            yield Mistake((section, "connector"), _not_one_of(f"{section}.connector", name, names))
    sink, snapshots = config.sink.get("connector"), config.snapshots.get("connector")
    if known and sink != snapshots:
        yield Mistake(
            ("snapshots", "connector"),
            f"snapshots.connector must be '{sink}' as sink.connector is (found '{snapshots}'): "
            f"outputs and snapshots become visible in one commit.",
        )


def _format_mistakes(config: Config) -> Iterator[Mistake]:
    location = ("source", "format")
    section = config.source.get("format")
    name = section.get("name") if isinstance(section, dict) else section
    if section is None:
        return
    if not isinstance(name, str) or name not in formats.FORMATS:
        hint = "a mapping with one of these as 'name'"
        yield Mistake(location, _not_one_of("source.format", name, formats.FORMATS, hint))
        return
    try:
        form = config.log_format
    except ValidationError as error:
        yield from mistakes(error, formats.FORMATS[name], location)
        return
    if form is not None and form.experiment not in (None, *config.experiments):
        key = ("source", "format", "experiment")
        yield Mistake(key, _not_one_of(dotted(key), form.experiment, config.experiments))


def _spark_mistakes(config: Config, settings: Mapping[str, BaseModel]) -> Iterator[Mistake]:
    """What the Spark job cannot do, although the service can."""
    if config.spark is None:
        return
    yield from _raw_topic_mistakes(config.spark, settings)
    yield from _spark_connector_mistakes(config, settings["source"])
    for name, experiment in config.experiments.items():
        if experiment.max_per_client is not None:
            key = ("experiments", name, "max_per_client")
            yield Mistake(
                key,
                f"{dotted(key)} must be null for streamduel-spark (found "
                f"{experiment.max_per_client}): counts of duels have no client.",
            )


def _spark_connector_mistakes(config: Config, source: BaseModel) -> Iterator[Mistake]:
    for section in ("source", "sink"):
        name = getattr(config, section)["connector"]
        if name != "kafka":
            yield Mistake(
                (section, "connector"),
                f"{section}.connector must be 'kafka' for streamduel-spark (found '{name}').",
            )
    if config.log_format is not None:
        yield Mistake(
            ("source", "format"),
            "source.format must be left out for streamduel-spark: it reads and writes streamduel's "
            "own records.",
        )
    mechanism = getattr(source, "sasl_mechanism", None)
    if mechanism not in (None, *SPARK_MECHANISMS):
        yield Mistake(
            ("source", "sasl_mechanism"),
            f"source.sasl_mechanism must be {one_of(SPARK_MECHANISMS)} for streamduel-spark (found "
            f"'{mechanism}').",
        )
    for name in ("ssl_crlfile", "ssl_ciphers"):
        if getattr(source, name, None) is not None:
            yield Mistake(
                ("source", name),
                f"source.{name} must be left out for streamduel-spark: Spark's Kafka client has no "
                "equivalent.",
            )


def _raw_topic_mistakes(
    spark: SparkSettings, settings: Mapping[str, BaseModel]
) -> Iterator[Mistake]:
    """Topics with two uses: the job would read what it or the service writes, without end."""
    for section, key in TOPICS:
        if getattr(settings[section], key, None) == spark.topic:
            yield Mistake(
                ("spark", "topic"),
                f"spark.topic must be another topic than {section}.{key} (found '{spark.topic}').",
            )


def _not_one_of(key: str, found: object, names: Iterable[str], alternative: str = "") -> str:
    hint = nearest(found, names) if isinstance(found, str) else ""
    wanted = f"{one_of(names)}, or {alternative}" if alternative else one_of(names)
    return f"{key} must be {wanted} (found {shown(found)}){hint or '.'}"


def _settings(
    directory: Path, config: Config, connectors: Mapping[str, Connector]
) -> tuple[dict[str, BaseModel], list[Mistake]]:
    """The connectors' settings by section, and the mistakes in them."""
    settings: dict[str, BaseModel] = {}
    found: list[Mistake] = []
    for section, connector in connectors.items():
        raw = dict(getattr(config, section))
        shared = frozenset[str]()
        if section == "source":
            raw.pop("format", None)  # the connector does not use it
        elif raw["connector"] == config.source["connector"]:
            shared = connector.shared_settings
            found += _share(section, raw, config.source, shared)
        model = settings_model(section, connector)
        try:
            settings[section] = model.model_validate(raw, context={"directory": directory})
        except ValidationError as error:
            others = ["format"] if section == "source" else []
            own = mistakes(error, model, (section,), others)
            # A value that the section takes from the source is the source's mistake.
            of_source = mistakes(error, model, ("source",), others)
            for it, same in zip(own, of_source, strict=True):
                key = it.location[1] if len(it.location) > 1 else None
                lacking = key in shared and key not in raw  # in the source, too, which says so
                found += [it] if not lacking and same not in found else []
    return settings, found


def _share(
    section: str, raw: dict[str, Any], source: Mapping[str, Any], shared: frozenset[str]
) -> Iterator[Mistake]:
    """Let a section take from the source the keys on which both must agree."""
    for key in sorted(shared & source.keys()):
        given = raw.setdefault(key, source[key])
        if given is not source[key] and given != source[key]:  # NaN differs from itself
            yield Mistake(
                (section, key),
                f"{section}.{key} must be the same as source.{key}, or be left out: input, outputs "
                f"and snapshots share one commit.",
            )
