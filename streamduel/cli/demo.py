"""`streamduel demo`: simulated users, rankers and streamduel in one process."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from streamduel import policies
from streamduel.demo.display import is_interactive, wait_for_enter
from streamduel.demo.loop import Limit
from streamduel.demo.rankers import MAX_ARMS, MIN_ARMS
from streamduel.demo.report import print_report
from streamduel.demo.run import CONFIGURATION, Clock, Result, Settings, run_demo
from streamduel.errors import ConfigurationError, PolicyError
from streamduel.service import StopSignal
from streamduel.simulation.policy_arguments import read_policies

ARMS: Final = 6
SPEED: Final = 20.0
MIN_SPEED: Final = 1.0
"""A turn then takes ten seconds; `/healthz` fails after sixty seconds without one."""
MAX_SPEED: Final = 10_000.0
"""Faster than any machine commits turns of ten impressions to its disk."""
IMPRESSIONS: Final = 1000
"""Fifty seconds at `SPEED`."""
MAX_IMPRESSIONS: Final = 1_000_000
"""About 250 MB of click log, and fourteen hours at `SPEED`."""
MAX_SECONDS: Final = 86_400
"""One day."""
MIN_HORIZON: Final = 2
"""Smallest horizon that every policy accepts; some need as many duels as arms."""
MAX_SEED: Final = 2**64 - 1
MAX_PORT: Final = 65_535

PolicyName = Annotated[
    str,
    typer.Option(
        metavar="NAME[:k=v,…]",
        help="The policy, one of `streamduel policies`, with its parameters.",
    ),
]
Arms = Annotated[int, typer.Option(metavar="K", help=f"Rankers, from {MIN_ARMS} to {MAX_ARMS}.")]
Impressions = Annotated[
    int | None,
    typer.Option(
        metavar="N", help=f"End after N impressions.  [default: {IMPRESSIONS}, without --seconds]"
    ),
]
Seconds = Annotated[
    float | None, typer.Option(metavar="S", help="End after S seconds at the latest.")
]
Speed = Annotated[
    float, typer.Option(metavar="R", help="Impressions per second; 0 for as fast as possible.")
]
Seed = Annotated[
    int, typer.Option(metavar="S", help="Equal seeds give equal rankers, users and results.")
]
Port = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        help="Port of the status page; 0 takes a free one.  [default: 9400, or a free one]",
    ),
]
NoPage = Annotated[bool, typer.Option("--no-page", help="Serve no status page and no metrics.")]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY",
        help="Keep the configuration, the click log and the results in this empty or new "
        "directory, for inspect and replay.",
    ),
]


def demo(
    policy: PolicyName = policies.DEFAULT,
    arms: Arms = ARMS,
    impressions: Impressions = None,
    seconds: Seconds = None,
    speed: Speed = SPEED,
    seed: Seed = 0,
    port: Port = None,
    no_page: NoPage = False,
    keep: Keep = None,
) -> None:
    """Watch streamduel find the best of six rankers in about a minute.

    Simulated users search for recipes. A simulated search service shows each user one list with the
    results of two rankers and logs the clicks; streamduel reads the click log and says which two
    rankers to interleave next. Everything runs in this process on files, without Kafka. At the end
    the demo names the ranker that really is the best, and the regret of showing all pairs equally.

    Ctrl-C ends the demo with the result so far and exit status 0. At the end of the demo, the
    status page is served until you press Enter. Without a terminal, the demo prints a line every
    five seconds.

    For example, another policy with more rankers, then a demo whose files are kept for a replay:

        streamduel demo --policy double_thompson --arms 10

        streamduel demo --keep demo/ && streamduel replay demo/streamduel.yaml
    """
    _check(arms, impressions, seconds, speed, seed, port)
    if impressions is None:
        impressions = IMPRESSIONS if seconds is None else MAX_IMPRESSIONS
    longest = impressions if not (seconds and speed) else max(1, round(speed * seconds))
    name, parameters = _policy(policy, arms, seed, min(impressions, longest))
    settings = Settings(
        policy=name,
        parameters=parameters,
        title=policy,
        arms=arms,
        seed=seed,
        limit=Limit(impressions, math.inf if seconds is None else seconds),
        speed=speed or math.inf,
        page=not no_page,
        port=port,
    )
    stop = StopSignal()
    stop.listen(signal.SIGHUP)  # a closed terminal must not leave the temporary folder behind
    if keep is None:
        with TemporaryDirectory(prefix="streamduel-demo-") as folder:
            _play(settings, Path(folder), stop)
    else:
        _play(settings, _created(keep), stop)
        path = keep / CONFIGURATION
        typer.echo(f"Kept in {keep}: streamduel inspect {path}; streamduel replay {path}")


def _check(
    arms: int,
    impressions: int | None,
    seconds: float | None,
    speed: float,
    seed: int,
    port: int | None,
) -> None:
    """Refuse numbers that are out of range."""
    ranges: tuple[tuple[str, float | None, float, float], ...] = (
        ("arms", arms, MIN_ARMS, MAX_ARMS),
        ("impressions", impressions, 1, MAX_IMPRESSIONS),
        ("seconds", seconds, 1, MAX_SECONDS),
        ("seed", seed, 0, MAX_SEED),
        ("port", port, 0, MAX_PORT),
    )
    for option, value, least, most in ranges:
        if value is not None and not least <= value <= most:
            raise ConfigurationError(f"--{option} must be from {least} to {most} (found {value}).")
    if speed != 0 and not MIN_SPEED <= speed <= MAX_SPEED:
        raise ConfigurationError(
            f"--speed must be from {MIN_SPEED:g} to {MAX_SPEED:g}, or 0 for as fast as "
            f"possible (found {speed:g})."
        )


def _policy(text: str, arms: int, seed: int, horizon: int) -> tuple[str, dict[str, Any]]:
    """The policy's name and its parameters; a required horizon is that of the demo."""
    try:
        [(name, parameters)] = read_policies([text], [])
        if "horizon" in policies.get(name).declared:
            # A demo may be shorter than the smallest horizon that the policy accepts.
            parameters.setdefault("horizon", max(MIN_HORIZON, arms, horizon))
        policies.create(name, arms, seed, **parameters)
    except PolicyError as error:
        raise ConfigurationError(str(error)) from error
    return name, parameters


def _created(folder: Path) -> Path:
    """The empty folder of `--keep`, created if needed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = next(folder.iterdir(), None)
    except OSError as error:
        raise ConfigurationError(
            f"--keep must be a directory that can be written to (found '{folder}': "
            f"{error.strerror})."
        ) from error
    if occupied is not None:
        raise ConfigurationError(
            f"--keep must be an empty directory, or one that does not exist (found "
            f"'{occupied.name}' in '{folder}')."
        )
    return folder


def _play(settings: Settings, folder: Path, stop: Callable[[], bool]) -> None:
    """Play the demo and print its verdict; on a terminal, serve the page until Enter is pressed."""
    out = Console()

    def ended(result: Result, url: str | None, stop_page: Callable[[], bool]) -> None:
        print_report(out, result)
        if url and is_interactive() and not stop_page():
            wait_for_enter(out, url, stop_page)

    clock = Clock(time.time, time.monotonic, time.sleep)
    run_demo(settings, folder, out, stop, clock, ended)
