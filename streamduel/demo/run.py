"""One run of the demo: configuration, rankers, users, streamduel and the display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from rich.console import Console

from streamduel.config import LoadedConfig, MonitoringSettings, load
from streamduel.demo.display import Progress, ProgressLines
from streamduel.demo.loop import TURN, Limit, Loop, Pace
from streamduel.demo.rankers import Rankers, make_rankers
from streamduel.demo.screen import LiveScreen
from streamduel.demo.search import EXPERIMENT, RecipeSearch
from streamduel.demo.statistics import Statistics
from streamduel.demo.users import Users
from streamduel.errors import ConfigurationError
from streamduel.monitoring import Monitoring
from streamduel.monitoring.collector import Metrics
from streamduel.service import serve
from streamduel.stream.observer import Observer

CONFIGURATION: Final = "streamduel.yaml"
CLICKS: Final = "clicks.jsonl"
OUTPUTS: Final = "out"

PORT: Final = 9400
"""The default port of `streamduel run`."""

COMMIT_MS: Final = 1
"""As soon as possible, because the users wait for each commit."""

GAP_MS: Final = 10
"""Stream time between two impressions, at any speed: what depends on stream time, such as when a
batch is published again, must not depend on the machine."""


@dataclass(frozen=True)
class Settings:
    """The settings of the demo.

    Attributes:
        title: the policy as typed.
        speed: impressions a second; infinite for no limit.
        port: of the status page; 0 for a free port, None for the default port or a free one.
    """

    policy: str
    arms: int
    seed: int
    limit: Limit
    speed: float
    title: str
    parameters: dict[str, Any] = field(default_factory=dict)
    page: bool = True
    port: int | None = None


class Clock(NamedTuple):
    """The functions of time that the demo uses, as in the module `time`; `now` is `time.time`."""

    now: Callable[[], float]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]


class Result(NamedTuple):
    """The result of the demo; `progress` is None if there was no impression."""

    rankers: Rankers
    statistics: Statistics
    progress: Progress | None


def run_demo(
    settings: Settings,
    folder: Path,
    console: Console,
    stop: Callable[[], bool],
    clock: Clock,
    ended: Callable[[Result, str | None, Callable[[], bool]], None] = lambda *_: None,
) -> Result:
    """Run the demo to its end, in an empty folder.

    `ended` is called with the result, the address of the status page, which is still served, and a
    `stop` to call all the time: the page says when the process has not answered for some seconds.

    Raises:
        StreamduelError: the folder cannot be written to, or the status page cannot be served.
    """
    rankers = make_rankers(settings.arms, settings.seed)
    statistics = Statistics(rankers)
    loaded = configure(settings, rankers, folder)
    began = int(1000 * clock.now())
    with ExitStack() as stack:
        metrics, observers, url = _monitor(settings, loaded, stack)
        search = stack.enter_context(
            RecipeSearch(
                rankers, folder / OUTPUTS / "assignments.jsonl", folder / CLICKS,
                lambda number: began + number * GAP_MS,
            )
        )  # fmt: skip
        is_terminal = console.is_terminal and console.file.isatty() and not console.is_dumb_terminal
        display = (LiveScreen if is_terminal else ProgressLines)(console, clock.monotonic)
        loop = Loop(
            Users(rankers.grades, settings.seed), search, statistics, metrics,
            Pace(settings.speed, clock.monotonic, clock.sleep, stop),
            settings.limit, stop, display.show, settings.title, url,
        )  # fmt: skip
        with display:
            serve(loaded, loop, observers=[*observers, loop])
        result = Result(rankers, statistics, loop.progress() if statistics.impressions else None)

        def stop_page() -> bool:
            for observer in observers:
                observer.turned()  # every record is folded: nothing has stalled
            return stop()

        ended(result, url, stop_page)
        return result


def configure(settings: Settings, rankers: Rankers, folder: Path) -> LoadedConfig:
    """Write the configuration into the folder as a user would, and load it.

    Raises:
        ConfigurationError: the configuration is invalid, or the folder cannot be written to.
    """
    document = {
        "source": {"connector": "files", "path": CLICKS},
        "sink": {"connector": "files", "path": OUTPUTS},
        "snapshots": {"connector": "files", "path": "state"},
        "commit": {"interval_ms": COMMIT_MS},
        "monitoring": None,  # served by the demo itself
        "experiments": {
            EXPERIMENT: {
                "arms": list(rankers.arms),
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
        with suppress(OSError):  # a part of the file would keep the next demo from the folder
            path.unlink()
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from error
    return load(path, environment={})


def _monitor(
    settings: Settings, loaded: LoadedConfig, stack: ExitStack
) -> tuple[Metrics, Sequence[Observer], str | None]:
    """The metrics to display, the observers of the stream, and the address of the status page."""
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
    raise AssertionError("port 0 is either served or refused")
