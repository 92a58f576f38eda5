"""`streamduel policies`."""

from __future__ import annotations

import json
from typing import Any, Final

import typer
from rich.markup import escape

from streamduel.cli.app import out
from streamduel.cli.arguments import AsJson
from streamduel.policies import DEFAULT, get, names

CHOICE: Final = """\
Which policy?
  least regret, and a sure answer soon         top_two, the default
  near ties, and no end planned                top_two, aim: earn
  fast decisions: one ranker surely beats all  rmed1
  only a few decisions can be rolled out       batched_top_two
  rankers or users change                      top_two, aim: earn, with a window
  hundreds of rankers                          top_two, double_thompson
docs/policies.md has measured regrets and more advice."""


def policies(as_json: AsJson = False) -> None:
    """List every policy with its parameters, their defaults, and its paper."""
    if as_json:
        typer.echo(json.dumps([_described(name) for name in names()], indent=2))
        return
    out.print(CHOICE, highlight=False)
    for name in names():
        _print(name)


def _print(name: str) -> None:
    policy = get(name)
    lines = [
        f"\n[bold]{name}[/]{' (default)' * (name == DEFAULT)}: {escape(policy.summary)}",
        f"    [green]{'; '.join(policy.traits())}[/]",
    ]
    for parameter in policy.declared.values():
        default = "required" if parameter.required else f"default {parameter.default_text}"
        lines.append(
            f"    [cyan]{parameter.name}[/] ({parameter.symbol}): {escape(parameter.meaning)}; "
            f"{escape(parameter.allowed)}, {default}"
        )
    lines.append(f"    [dim]{escape(policy.paper)}[/]")
    for line in lines:
        out.print(line, highlight=False)


def _described(name: str) -> dict[str, Any]:
    policy = get(name)
    return {
        "name": name,
        "default": name == DEFAULT,
        "summary": policy.summary,
        "paper": policy.paper,
        "seeks": policy.seeks,
        "horizon": "horizon" in policy.declared,
        "parameters": {
            parameter.name: {
                "symbol": parameter.symbol,
                "default": parameter.derived[0] if parameter.derived else parameter.default,
                "required": parameter.required,
                "allowed": parameter.allowed,
                "meaning": parameter.meaning,
            }
            for parameter in policy.declared.values()
        },
    }
