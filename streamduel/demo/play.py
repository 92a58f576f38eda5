"""The demo put together: configuration, rankers, users, streamduel, and what shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from rich.console import Console

from streamduel.config import LoadedConfig, MonitoringSettings, load
from streamduel.demo.ledger import Ledger
from streamduel.demo.lines import ProgressLines
from streamduel.demo.loop import TURN, Bound, Loop
from streamduel.demo.pace import Pace
from streamduel.demo.picture import Picture
from streamduel.demo.screen import LiveScreen
from streamduel.demo.search import EXPERIMENT, RecipeSearch
from streamduel.demo.users import Users
from streamduel.demo.world import World, make_world
from streamduel.errors import ConfigurationError
from streamduel.monitoring import Monitoring
from streamduel.monitoring.metrics import Metrics
from streamduel.service import serve
from streamduel.stream.observer import Observer

CONFIGURATION: Final = "streamduel.yaml"
CLICKS: Final = "clicks.jsonl"
OUTPUTS: Final = "out"

PORT: Final = 9400
"""As of `streamduel run`."""

COMMIT_MS: Final = 1
"""As soon as possible: the users wait for it."""

GAP_MS: Final = 10
"""Stream time between two impressions, however fast they really come: what depends on it, such as
when a batch is published again, must not depend on the machine."""


@dataclass(frozen=True)
class Settings:
    """What the demo is to be.

    Attributes:
        policy: its name.
        parameters: of the policy.
        title: the policy as it was typed.
        arms: how many rankers.
        seed: of everything.
        bound: when it is over.
        speed: impressions a second; infinite for as fast as it goes.
        page: whether there is a status page.
        port: of the status page; 0 for a free one, None for the usual one or a free one.
    """

    policy: str
    arms: int
    seed: int
    bound: Bound
    speed: float
    title: str
    parameters: dict[str, Any] = field(default_factory=dict)
    page: bool = True
    port: int | None = None


class Clockwork(NamedTuple):
    """What tells the demo's time.

    Attributes:
        now: seconds since 1970.
        clock: seconds that only grow.
        sleep: waits for so many of them.
    """

    now: Callable[[], float]
    clock: Callable[[], float]
    sleep: Callable[[float], None]


class Played(NamedTuple):
    """What has come of it.

    Attributes:
        world: the rankers, with the truth about them.
        ledger: what the impressions have cost.
        picture: the demo at its end; None if it ended before it began.
    """

    world: World
    ledger: Ledger
    picture: Picture | None


def play(
    settings: Settings,
    folder: Path,
    console: Console,
    stop: Callable[[], bool],
    time: Clockwork,
    ended: Callable[[Played, str | None], None] = lambda _played, _url: None,
) -> Played:
    """Play the demo to its end.

    Args:
        settings: what it is to be.
        folder: for all files; an empty one.
        console: where to show it.
        stop: whether somebody wants it to be over.
        time: what tells the time.
        ended: is told what has come of it, while the status page, whose address it gets, is still
            served.

    Raises:
        StreamduelError: the folder cannot be written to, or the page cannot be served.
    """
    world = make_world(settings.arms, settings.seed)
    ledger = Ledger(world)
    loaded = configure(settings, world, folder)
    began = int(1000 * time.now())
    with ExitStack() as stack:
        metrics, watchers, url = _monitor(settings, loaded, stack)
        search = stack.enter_context(
            RecipeSearch(
                world, folder / OUTPUTS / "assignments.jsonl", folder / CLICKS,
                lambda number: began + number * GAP_MS,
            )
        )  # fmt: skip
        moves = console.is_terminal and console.file.isatty() and not console.is_dumb_terminal
        display: LiveScreen | ProgressLines = (
            LiveScreen(console, time.clock) if moves else ProgressLines(console, time.clock)
        )
        loop = Loop(
            Users(world, settings.seed), search, ledger, metrics,
            Pace(settings.speed, time.clock, time.sleep, stop),
            settings.bound, stop, display, settings.title, url,
        )  # fmt: skip
        with display:
            serve(loaded, loop, observers=[*watchers, loop])
        played = Played(world, ledger, loop.picture() if ledger.impressions else None)
        ended(played, url)
        return played


def configure(settings: Settings, world: World, folder: Path) -> LoadedConfig:
    """Write the configuration, as a user would, and read it.

    Args:
        settings: what the demo is to be.
        world: the rankers.
        folder: where to.

    Raises:
        ConfigurationError: it is none, or the folder cannot be written to.
    """
    document = {
        "source": {"connector": "files", "path": CLICKS},
        "sink": {"connector": "files", "path": OUTPUTS},
        "snapshots": {"connector": "files", "path": "state"},
        "commit": {"interval_ms": COMMIT_MS},
        "monitoring": None,  # served by the demo itself
        "experiments": {
            EXPERIMENT: {
                "arms": list(world.arms),
                "policy": {"name": settings.policy, **settings.parameters},
                "seed": settings.seed,
                "decide_every": TURN,
                "slate": TURN,
            }
        },
    }
    path = folder / CONFIGURATION
    try:
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from error
    return load(path, environment={})


def _monitor(
    settings: Settings, loaded: LoadedConfig, stack: ExitStack
) -> tuple[Metrics, Sequence[Observer], str | None]:
    """What the picture is made of, what observes the fold, and the page's address, if wanted."""
    if not settings.page:
        metrics = Metrics(loaded.config.source["connector"])
        return metrics, [metrics], None
    for port in (PORT, 0) if settings.port is None else (settings.port,):
        monitoring = Monitoring(MonitoringSettings(port=port), loaded)
        try:
            host, found = monitoring.start()
        except ConfigurationError as error:
            if port == 0 or settings.port is not None:
                sentence = str(error).replace("monitoring.port", "--port")
                raise ConfigurationError(sentence) from error
            continue
        stack.callback(monitoring.stop)
        return monitoring.observer, monitoring.observers, f"http://{host}:{found}/"
    raise AssertionError("port 0 is served, or refused")
