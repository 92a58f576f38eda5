"""Reading the configuration's YAML: strictly, and without repeating what may be a password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from streamduel.errors import ConfigurationError, shown


def read_document(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        ConfigurationError: it cannot be read, is no YAML, or has a key twice.
    """
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
        problem = _yaml_problem(error)
        raise ConfigurationError(f"the configuration {path} is not YAML: {problem}.") from None
    except RecursionError:
        raise ConfigurationError(f"the configuration {path} is nested too deep.") from None
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"the configuration {path} must be a mapping with source, sink, snapshots and "
            f"experiments (found {shown(document)})."
        )
    return document


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice instead of silently taking the last.

    Dates stay text: no setting is one, and an arm may be named after one.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ConfigurationError(
                        f"the configuration has the key '{key.value}' twice "
                        f"(line {key.start_mark.line + 1})."
                    )
                seen.add(key.value)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, AttributeError):  # `!!int x`, or an integer of 5000 digits
            raise yaml.constructor.ConstructorError(
                None, None, "found a value that its type does not allow", node.start_mark
            ) from None


_NAMES = re.compile(r"(alias|anchor|tag|tag handle) '[^']*'")
"""What YAML takes for these may have been meant as a password, so it is not repeated."""


def _yaml_problem(error: yaml.YAMLError) -> str:
    """What is wrong and where, without the text around it: that may hold a password."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "it has a character that YAML does not allow"
    mark = error.problem_mark
    problem = _NAMES.sub(r"\1", error.problem or "it cannot be read").removeprefix("but ")
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})"


def read_value(text: str) -> Any:
    """What an environment variable means: a YAML value, or the text itself."""
    try:
        value = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader, stricter
    except (yaml.YAMLError, ConfigurationError, RecursionError):
        return text
    return value if isinstance(value, (bool, int, float, list, dict, type(None))) else text
