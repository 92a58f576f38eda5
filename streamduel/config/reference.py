"""Writes the reference of the configuration, as a page and as a file with every key.

python -m streamduel.config.reference docs/configuration.md configs/reference.yaml

Both are made from the models that check a configuration, so they cannot differ from it.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pydantic import BaseModel

from streamduel.config.document import Location
from streamduel.config.model import SECTIONS, Config, settings_model
from streamduel.config.shape import Schema, Shape, allowed
from streamduel.connector import connector_names, load_connector
from streamduel.formats import FORMATS

MADE_BY: Final = (
    "python -m streamduel.config.reference docs/configuration.md configs/reference.yaml"
)
COMMAND: Final = f"Made by `{MADE_BY}`; do not edit."

NAME: Final = "search"
"""Of the experiment that stands for all."""

SHOWN_FIRST: Final = "files"
"""The connector that reference.yaml runs with; the others stand there as comments."""

EXAMPLES: Final[dict[str, Any]] = {
    "source.path": "clicks.jsonl",
    "sink.path": "out/",
    "snapshots.path": "state/",
    "source.bootstrap_servers": ["localhost:9092"],
    "source.topic": "clicks",
    "source.group": "streamduel",
    "sink.assignments": "assignments",
    "sink.dead_letters": "dead-letters",
    "snapshots.topic": "streamduel-snapshots",
    "experiments.search.arms": ["bm25", "ltr-v1", "ltr-v2", "ltr-v3"],
}
"""Values of the keys that have no default."""

WIDTH: Final = 100


class Key(NamedTuple):
    """One key of the configuration.

    Attributes:
        where: its place.
        schema: what it may hold.
        required: whether it must be given.
    """

    where: tuple[str, ...]
    schema: Schema
    required: bool

    @property
    def name(self) -> str:
        """Its place as people write it."""
        return ".".join(self.where)

    @property
    def meaning(self) -> str:
        """Its description, as one line."""
        text = self.schema.get("description", "").partition("\n\n")[0]
        return _upper(" ".join(text.split()))

    @property
    def default(self) -> str:
        """What holds when it is left out, in YAML."""
        return "required" if self.required else in_yaml(self.schema.get("default"))


_PLAIN: Final = re.compile(r"[\w./-]+")


def in_yaml(value: Any) -> str:
    """A value as one writes it: JSON is YAML, and plain text needs no quotes.

    >>> in_yaml(["bm25", "5", "no", True, None])
    '[bm25, "5", "no", true, null]'
    """
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def keys_of(shape: Shape, prefix: tuple[str, ...] = (), below: Location = ()) -> Iterator[Key]:
    """Every key of a model and of the models in it, each after the one that it is part of."""
    for name, schema, required in shape.keys(below):
        where = (*prefix, name)
        yield Key(where, schema, required)
        entry: Location = (*below, name)
        if isinstance(schema.get("additionalProperties"), dict):
            where, entry = (*where, NAME), (*entry, NAME)
        if "properties" in (shape.at(entry) or {}):
            yield from keys_of(shape, where, entry)


def section_keys(section: str, connector: str) -> list[Key]:
    """The keys of a connector's section; what it takes from the source is the source's."""
    plugin = load_connector(connector)
    model: type[BaseModel] = settings_model(section, plugin)
    taken = frozenset() if section == "source" else plugin.shared_settings
    keys = keys_of(Shape(model), (section,))
    return [key for key in keys if key.where[1] != "connector" and key.where[1] not in taken]


def core_keys() -> list[Key]:
    """The keys that no connector has a say in."""
    keys = keys_of(Shape(Config))
    return [key for key in keys if key.where[0] not in SECTIONS]


# The page.

_BEGINNING: Final = f"""\
<!-- {COMMAND} -->

# Configuration

With this page you can write a configuration for your rankers, check it before anything starts, and
override it where it runs. A whole one, for a click log in a file:

```yaml
source:      {{connector: files, path: clicks.jsonl}}
sink:        {{connector: files, path: out/}}
snapshots:   {{connector: files, path: state/}}
experiments:
  search:
    arms: [bm25, ltr-v1, ltr-v2, ltr-v3]
```

```console
$ streamduel validate search.yaml
search.yaml is valid: 1 experiment, files to files.
```

Everything is checked before anything starts. A mistake is one sentence that names the key, the
value found, what is allowed and the line, and the exit status is 2:

```console
$ streamduel validate search.yaml
streamduel: experiments.search.arms has 'bm25' twice (search.yaml, line 6).
$ STREAMDUEL_COMMIT__INTERVAL_MS=0 streamduel validate search.yaml
streamduel: commit.interval_ms must be an integer from 1 to 60000 (found 0; environment variable
STREAMDUEL_COMMIT__INTERVAL_MS).
```

- Relative paths are relative to the configuration file.
- Numbers are numbers and text is text: `port: "9400"` is refused, and so is an arm called `5`
  without quotes. A key given twice is refused, too.
- [`configs/reference.yaml`](../configs/reference.yaml) holds every key with its default.
  [`configs/local.yaml`](../configs/local.yaml) and [`configs/kafka.yaml`](../configs/kafka.yaml)
  are to start from.
- [`docs/schemas/configuration.json`](schemas/configuration.json) is the JSON Schema, with which
  an editor completes and checks while you type. With the YAML language server, begin the file with
  `# yaml-language-server: $schema=…/configuration.json`.

## Environment variables

A variable overrides one key: `STREAMDUEL_`, then the key's place with two underscores for each dot,
in upper or lower case.

```sh
STREAMDUEL_SOURCE__PATH=/data/clicks.jsonl
STREAMDUEL_EXPERIMENTS__SEARCH__SEED=9
STREAMDUEL_EXPERIMENTS__SEARCH__ARMS='[bm25, ltr-v1]'
STREAMDUEL_MONITORING=null
```

Where a key holds text, the value is taken as it stands, so that a password of digits stays one.
Any other value is read as YAML. A password belongs into the environment or into a file of its own,
never into the configuration; no message ever shows one.

`STREAMDUEL_LOG_FORMAT` is no key: it says whether [the log](logging.md) is text or JSON.

"""

_POLICY: Final = """\
Besides `name`, `policy` holds the parameters of that policy, such as `alpha` of `rucb`:
`streamduel policies` lists them all, with their defaults and ranges.

Nothing below `experiments.NAME` may change while the experiment runs, for its state would then
follow from no log: streamduel refuses to start, names the key and both values, and says what to do.
Arms to be compared anew are a new experiment, under a new name.

"""

_END: Final = """\
## What is not promised

- A configuration is read once, at the start. A change takes effect with the next one.
- `validate` looks at the configuration only. Whether a path can be written to, or a broker
  reached, is known when the service starts.
- New keys with defaults may come with a new version; none is renamed or dropped.
"""


def page() -> str:
    """The text of docs/configuration.md."""
    return "".join([_BEGINNING, *_connectors(), *_formats(), *_core(), _END])


def _connectors() -> Iterator[str]:
    for connector in connector_names():
        yield f"## Connector `{connector}`\n\n"
        for section in SECTIONS:
            plugin = load_connector(connector)
            yield f"`{section}: {{connector: {connector}, …}}`: "
            yield f"{_first_line(settings_model(section, plugin))}\n\n"
            yield _table(section_keys(section, connector))
            if section == "source" and plugin.shared_settings:
                yield (
                    "The sections `sink` and `snapshots` take these from the source, and may not "
                    "differ in them:\n" + _wrapped_names(sorted(plugin.shared_settings)) + ".\n\n"
                )


def _formats() -> Iterator[str]:
    yield "## Logs in other formats\n\n"
    yield (
        "`source.format`, with any connector, says that the log is not made of streamduel's own\n"
        "records: [Formats](formats.md). The name alone, as in `format: ubi`, takes all"
        " defaults.\n\n"
    )
    for name, model in FORMATS.items():
        meaning = (model.__doc__ or "").partition("\n")[0]
        yield f"`format: {{name: {name}, …}}`. {meaning}\n\n"
        keys = keys_of(Shape(model), ("source", "format"))
        yield _table([it for it in keys if it.where[2] != "name" and "properties" not in it.schema])


def _first_line(model: type[BaseModel]) -> str:
    text = (model.__doc__ or "").strip().partition("\n")[0]
    return f"{text[:1].lower()}{text[1:]}"


def _wrapped_names(names: list[str]) -> str:
    return textwrap.fill(", ".join(f"`{name}`" for name in names), WIDTH, break_long_words=False)


def _core() -> Iterator[str]:
    keys = core_keys()
    for top in dict.fromkeys(key.where[0] for key in keys):
        own, *within = (key for key in keys if key.where[0] == top)
        null = " `null` serves nothing." if own.schema.get("nullable") else ""
        yield f"## `{top}`\n\n{own.meaning}{null}\n\n"
        yield _table([key for key in within if "properties" not in key.schema])
        if top == "experiments":
            yield _POLICY


def _table(keys: list[Key]) -> str:
    rows = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    for key in keys:
        name = ".".join("NAME" if step == NAME else step for step in key.where)
        default = key.default if key.required else f"`{key.default}`"
        wanted = allowed(key.schema).replace("|", "\\|")
        rows.append(f"| `{name}` | {default} | {wanted} | {key.meaning} |")
    return "\n".join(rows) + "\n\n"


# The file.

_HEADER: Final = f"""\
# Every key there is, with its default, or with an example where it has none.
# {COMMAND}
#
# A configuration needs source, sink, snapshots and experiments; see docs/configuration.md.
"""


def reference() -> str:
    """The text of configs/reference.yaml."""
    parts = [_HEADER]
    for section in SECTIONS:
        meaning = next(key.meaning for key in keys_of(Shape(Config)) if key.name == section)
        parts.append(f"\n# {meaning}\n{_section(section, SHOWN_FIRST)}")
        parts += [
            f"#\n# or:\n{textwrap.indent(_section(section, connector), '# ')}"
            for connector in connector_names()
            if connector != SHOWN_FIRST
        ]
    parts += ["\n" * (len(key.where) == 1) + _entry(key) for key in core_keys()]
    return "".join(parts)


def _section(section: str, connector: str) -> str:
    entries = "".join(_entry(key) for key in section_keys(section, connector))
    return f"{section}:\n  connector: {connector}\n{entries}"


def _entry(key: Key) -> str:
    """A key with its value, under a comment of what it means and what it may be."""
    schema, indent = key.schema, "  " * (len(key.where) - 1)
    comment, line = key.meaning, f"{key.where[-1]}:"
    if key.required and isinstance(schema.get("additionalProperties"), dict):
        line += f"\n{indent}  {NAME}:"
    elif "properties" not in schema:
        wanted = allowed(schema) + ("; required" if key.required else "")
        comment = f"{comment.rstrip('.')} ({wanted})." if comment else f"{_upper(wanted)}."
        line += f" {in_yaml(EXAMPLES[key.name]) if key.required else key.default}"
    elif schema.get("nullable"):
        comment += " Or null: nothing is served."
    margin = f"{indent}# "
    comment = textwrap.fill(comment, WIDTH, initial_indent=margin, subsequent_indent=margin)
    return f"{comment}\n{indent}{line}\n"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def main(page_path: str, reference_path: str) -> None:
    """Write both."""
    Path(page_path).write_text(page(), encoding="utf-8")
    Path(reference_path).write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
