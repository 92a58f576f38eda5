"""`streamduel validate`."""

from __future__ import annotations

from streamduel.cli.app import out
from streamduel.cli.arguments import ConfigPath, load_config


def validate(config: ConfigPath) -> None:
    """Check a configuration without starting anything."""
    loaded = load_config(config)
    count = len(loaded.config.experiments)
    out.print(
        f"{config} is valid: {count} experiment{'s' if count > 1 else ''}, "
        f"{loaded.config.source['connector']} to {loaded.config.sink['connector']}.",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
