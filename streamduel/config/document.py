"""The YAML file: parsed strictly, with the line of every key; errors quote no part of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from streamduel.errors import ConfigurationError, shown

Location = tuple[str | int, ...]
"""The place of a value: keys, and indices of list entries."""


MAX_BYTES: Final = 2**24
"""Of a configuration: a thousand experiments with a hundred arms each have a tenth of it."""

TEXT: Final = yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG


class Document:
    """The contents of a configuration file, and where each key is written.

    Attributes:
        values: the file's mapping.
        variables: environment variables by the location of the key that each overrides.

    Raises:
        ConfigurationError: the file cannot be read, is not YAML, or has a key twice.
    """

    def __init__(self, path: Path) -> None:
        self.values: dict[str, Any]
        self.variables: dict[Location, str] = {}
        self._path = path
        try:
            with path.open("rb") as file:
                text = file.read(MAX_BYTES + 1)
            if len(text) > MAX_BYTES:
                raise ConfigurationError(
                    f"the configuration {path} must have at most {MAX_BYTES:,} bytes (found more)."
                )
            values, self._root = _parse(text.decode(), str(path))
        except OSError as error:
            raise ConfigurationError(
                f"the configuration {path} cannot be read: {error.strerror}."
            ) from error
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise ConfigurationError(
                f"the configuration {path} is not UTF-8 text (line {line})."
            ) from None
        except yaml.YAMLError as error:
            raise ConfigurationError(
                f"the configuration {path} is not YAML: {_problem(error, text.decode())}."
            ) from None
        except RecursionError:
            raise ConfigurationError(f"the configuration {path} is nested too deep.") from None
        if not isinstance(values, dict):
            raise ConfigurationError(
                f"the configuration {path} must be a mapping with source, sink, snapshots and "
                f"experiments (found {kind_shown(values)})."
            )
        self.values = values

    def place(self, location: Sequence[str | int]) -> str:
        """Where a value comes from: an environment variable, or a line of the file.

        For a value that does not exist, it is the place of the innermost mapping that exists. For a
        mapping, variables of its keys are named, too: keys may contradict one another.
        """
        place = tuple(location)
        parents = [place[:length] for length in range(len(place), 0, -1)]
        above = [self.variables[key] for key in parents if key in self.variables][:1]
        below = [it for key, it in self.variables.items() if place and key[: len(place)] == place]
        places = [] if above else [self._line(place)]
        if names := dict.fromkeys(above + below):
            places.append(f"environment variable{'s' * (len(names) > 1)} {', '.join(names)}")
        return "; ".join(places)

    def _line(self, location: Location) -> str:
        node, line = self._root, None
        for step in location:
            below = _below(node, step)
            if below is None:
                break
            line, node = below
        return str(self._path) if line is None else f"{self._path}, line {line}"


def _below(node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
    """The line and the node of a key's value or of a list's entry."""
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # what a merge key brings comes first
            if isinstance(key, yaml.ScalarNode) and _name(key) == str(step):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark.line + 1, node.value[step]
    return None


def _name(key: yaml.ScalarNode) -> str:
    """A key as pydantic names it in a location, such as 0 for `no`."""
    # A loader for each of thousands of keys would take seconds.
    value = key.value if key.tag == TEXT else _StrictLoader("").construct_object(key)
    return str(int(value) if isinstance(value, bool) else value)


def kind_shown(value: object) -> str:
    """A found value in whose text there may be a password, so that no text is repeated.

    >>> kind_shown("{sasl_plain_password: s3cret"), kind_shown("sasl_plain_password=s3cret")
    ('text that is not valid YAML', 'text')
    >>> kind_shown(None), kind_shown([1, 2])
    ('nothing', 'a list of 2')
    """
    if not isinstance(value, str):
        return shown(value)
    return "text" if _is_yaml(value) else "text that is not valid YAML"


def parse_value(text: str) -> Any:
    """The value of an environment variable: a YAML value, or the text itself."""
    value = _parse(text, "")[0] if _is_yaml(text) else text
    return value if isinstance(value, bool | int | float | list | dict | None) else text


def _is_yaml(text: str) -> bool:
    try:
        _parse(text, "")
    except (yaml.YAMLError, ConfigurationError, RecursionError):
        return False
    return True


def _parse(text: str, name: str) -> tuple[Any, yaml.Node | None]:
    loader = _StrictLoader(text)
    loader.name = name
    try:
        root = loader.get_single_node()
        return None if root is None else loader.construct_document(root), root
    finally:
        loader.dispose()


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, sets, bytes, 017 and 1:30; dates stay text.

    No setting is a date, and an arm may be named after one. The order of a set differs from process
    to process. Bytes would be taken for text, 017 for 15, and 1:30 for 90. A character above U+FFFF
    may be written as in JSON, as a surrogate pair.
    """

    yaml_constructors = {  # noqa: RUF012 - PyYAML's own way
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if tag not in ("tag:yaml.org,2002:set", "tag:yaml.org,2002:binary")
    }

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise ConfigurationError(
                        f"the configuration has the key '{key.value}' twice "
                        f"({self.name}, line {key.start_mark.line + 1})."
                    )
                keys.add(key.value)
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        try:
            node.value = node.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise ConfigurationError(
                "the configuration has half of a surrogate pair, such as \\ud83d, which is not text"
                f" ({self.name}, line {node.start_mark.line + 1})."
            ) from None
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, AttributeError, LookupError):  # `!!int x`, `!!bool x`, 5000 digits
            raise yaml.constructor.ConstructorError(
                None, None, "found a value that its type does not allow", node.start_mark
            ) from None


def _integer(loader: _StrictLoader, node: yaml.ScalarNode) -> int:
    if _NOT_DECIMAL.fullmatch(loader.construct_scalar(node)):
        raise ConfigurationError(
            "the configuration has an integer with a leading zero or a colon, which YAML does not "
            "read as decimal; write it without, or quote the value if it is text "
            f"({loader.name}, line {node.start_mark.line + 1})."
        )
    return loader.construct_yaml_int(node)


_NOT_DECIMAL: Final = re.compile("[-+]?0[0-9_]+|.*:.*")
"""YAML 1.1 reads 0500 as octal, and 1:30 in base 60."""

_StrictLoader.add_constructor("tag:yaml.org,2002:int", _integer)


def _float(loader: _StrictLoader, node: yaml.ScalarNode) -> float:
    if ":" in loader.construct_scalar(node):
        raise ConfigurationError(
            "the configuration has a number with a colon, which YAML does not read as decimal; "
            "write it without, or quote the value if it is text "
            f"({loader.name}, line {node.start_mark.line + 1})."
        )
    return loader.construct_yaml_float(node)


_StrictLoader.add_constructor("tag:yaml.org,2002:float", _float)

_NAMES: Final = re.compile(r"(alias|anchor|tag|tag handle) '[^']*'")
"""Names that PyYAML repeats in errors; an unquoted password may look like one."""


def _problem(error: yaml.YAMLError, text: str) -> str:
    """What is wrong and where, without the text around it, which may contain a password."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f"it has a character that YAML does not allow (line {line})"
    assert isinstance(error, yaml.MarkedYAMLError)
    mark, begin = error.problem_mark, error.context_mark
    assert mark is not None
    problem = _NAMES.sub(r"\1", error.problem or "it cannot be read").removeprefix("but ")
    place = f"{problem} (line {mark.line + 1}, column {mark.column + 1})"
    # What is unfinished, such as a quoted text, may begin far above.
    if begin is None or begin.line == mark.line or not (error.context or "").startswith("while "):
        return place
    return f"{place}, while reading what begins in line {begin.line + 1}"
