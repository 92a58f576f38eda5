"""docs/logging.md lists every log event with its level, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from streamduel.monitoring.experiment_events import STATUS_EVENTS

ROOT = Path(__file__).parents[3]
LEVELS = {"exception": "error"}
"""Methods of loggers with another name than their level."""


def modules() -> Iterator[ast.Module]:
    """Modules that log through structlog; the client does not."""
    for folder in ("streamduel", "connectors"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if "structlog.stdlib.get_logger" in text:
                yield ast.parse(text)


def logged() -> Iterator[tuple[str, str]]:
    """The events in the code, with their levels."""
    for module in modules():
        for node in ast.walk(module):
            match node:
                case ast.Call(
                    ast.Attribute(ast.Name("log"), method), [ast.Constant(str(event)), *_]
                ):
                    yield event, LEVELS.get(method, method)
    yield "dead letters", "warning"  # logged with a variable level
    for event in [*STATUS_EVENTS.values(), *changes()]:
        yield event, "info"


def changes() -> Iterator[str]:
    """Events of `_changes` in experiment_events.py."""
    tree = ast.parse((ROOT / "streamduel/monitoring/experiment_events.py").read_text())
    for node in ast.walk(tree):
        match node:
            case ast.Yield(ast.Tuple([ast.Constant(str(event)), _])):
                yield event
            case ast.Yield(ast.Tuple([ast.IfExp(_, ast.Constant(one), ast.Constant(other)), _])):
                yield from (str(one), str(other))


def described() -> Iterator[tuple[str, str]]:
    """The events on the page, with their levels."""
    page = (ROOT / "docs/logging.md").read_text()
    table = page.partition("## Events")[2].partition("\n\nRepeated")[0]
    for events, level in re.findall(r"^\| (`.*?`) \| (\w+) \|", table, re.MULTILINE):
        for event in re.findall("`(.*?)`", events):
            yield event, level


def test_the_page_names_every_event_with_its_level() -> None:
    assert sorted(described()) == sorted(set(logged()))
    assert len(list(described())) > 25
