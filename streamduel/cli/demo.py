"""The command `streamduel demo`: the closed loop in one process, to be watched."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from streamduel.errors import ConfigurationError, PolicyError

if TYPE_CHECKING:
    from streamduel.demo.play import Settings

POLICY: Final = "rucb:alpha=0.8"
"""RUCB goes on looking at what it has dropped until there is no doubt, as far as its α says: with
0.8 confidence reaches 0.95 in half a minute. Thompson sampling loses a fifth as much, and leaves
off before the evidence would convince anybody who only looks at it."""

ARMS: Final = 6
FEWEST_ARMS: Final = 2
MOST_ARMS: Final = 20
"""As many as have names; a table of more would not fit a screen."""
SPEED: Final = 50.0
LEAST_SPEED: Final = 1.0
"""A turn then takes ten seconds; after sixty without one a service counts as dead."""
MOST_SPEED: Final = 10_000.0
"""More than machines do in turns of ten, each with a commit to the disk."""
IMPRESSIONS: Final = 3000
"""A minute at `SPEED`."""
MOST_IMPRESSIONS: Final = 1_000_000
"""Some 250 MB of click log, and five hours and a half at `SPEED`."""
LONGEST_SECONDS: Final = 86_400
"""A day: longer than `MOST_IMPRESSIONS` take at any speed worth watching."""
LEAST_HORIZON: Final = 2
"""Of every policy that must know it; some want as many as there are arms."""
LARGEST_SEED: Final = 2**64 - 1
LARGEST_PORT: Final = 65_535

PolicyName = Annotated[
    str,
    typer.Option(
        "--policy", metavar="NAME[:k=v,…]",
        help="Who finds it out: one of those that `streamduel policies` lists.",
    ),
]  # fmt: skip
Arms = Annotated[int, typer.Option(metavar="K", help="Rankers, from 2 to 20.")]
Impressions = Annotated[
    int | None,
    typer.Option(
        metavar="N", help=f"End after so many.  [{IMPRESSIONS}, without --seconds]",
        show_default=False,
    ),
]  # fmt: skip
Seconds = Annotated[
    float | None,
    typer.Option(metavar="S", help="End after so many, if not before.", show_default=False),
]
Speed = Annotated[
    float,
    typer.Option(metavar="R", help="Impressions a second; 0 for as fast as this machine can."),
]
Seed = Annotated[
    int, typer.Option(metavar="S", help="Equal seeds give equal rankers, users and results.")
]
Port = Annotated[
    int | None,
    typer.Option(
        metavar="PORT", help="Of the status page; 0 for a free one.  [9400, or a free one]",
        show_default=False,
    ),
]  # fmt: skip
NoPage = Annotated[bool, typer.Option("--no-page", help="Serve no status page and no metrics.")]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep", metavar="FOLDER",
        help="Keep configuration, click log and results there, for inspect and replay.",
        show_default=False,
    ),
]  # fmt: skip


def demo(
    policy: PolicyName = POLICY,
    arms: Arms = ARMS,
    impressions: Impressions = None,
    seconds: Seconds = None,
    speed: Speed = SPEED,
    seed: Seed = 0,
    port: Port = None,
    no_page: NoPage = False,
    keep: Keep = None,
) -> None:
    """Watch it find the best of six rankers in about a minute.

    Simulated users look for recipes. A simulated search service shows each of them one list of two
    rankers' results and logs the clicks; streamduel reads the log and says which two to compare
    next. All of it runs in this process on files, without Kafka. In the end you are told which
    ranker truly is the best, and what showing all pairs equally would have cost.

    Ctrl-C ends it at any time, with the result so far and exit status 0. When it ends by
    itself, the status page stays until you press Enter. Without a terminal it prints a line every
    five seconds.

    For example, another policy among more rankers, then a look into what is left of it:

        streamduel demo --policy double_thompson --arms 10

        streamduel demo --keep demo/ && streamduel replay demo/streamduel.yaml
    """
    _check(arms, impressions, seconds, speed, seed, port)
    if impressions is None:
        impressions = IMPRESSIONS if seconds is None else MOST_IMPRESSIONS
    longest = impressions if not (seconds and speed) else max(1, round(speed * seconds))
    name, parameters = _policy(policy, arms, seed, min(impressions, longest))
    from streamduel.demo.loop import Bound  # noqa: PLC0415 - quick to start without
    from streamduel.demo.play import Settings  # noqa: PLC0415
    from streamduel.service import StopSignal  # noqa: PLC0415

    settings = Settings(
        policy=name,
        parameters=parameters,
        title=policy,
        arms=arms,
        seed=seed,
        bound=Bound(impressions, math.inf if seconds is None else seconds),
        speed=speed or math.inf,
        page=not no_page,
        port=port,
    )
    stop = StopSignal()
    stop.listen(signal.SIGHUP)  # when the terminal is closed: the temporary folder must go
    if keep is None:
        with TemporaryDirectory(prefix="streamduel-demo-") as folder:
            _play(settings, Path(folder), stop)
    else:
        _play(settings, _made(keep), stop)
        _say_where(keep)


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
        ("arms", arms, FEWEST_ARMS, MOST_ARMS),
        ("impressions", impressions, 1, MOST_IMPRESSIONS),
        ("seconds", seconds, 1, LONGEST_SECONDS),
        ("seed", seed, 0, LARGEST_SEED),
        ("port", port, 0, LARGEST_PORT),
    )
    for option, value, least, most in ranges:
        if value is not None and not least <= value <= most:
            raise ConfigurationError(f"--{option} must be from {least} to {most} (found {value}).")
    if speed != 0 and not LEAST_SPEED <= speed <= MOST_SPEED:
        raise ConfigurationError(
            f"--speed must be from {LEAST_SPEED:g} to {MOST_SPEED:g}, or 0 for as fast as this "
            f"machine can (found {speed:g})."
        )


def _policy(text: str, arms: int, seed: int, horizon: int) -> tuple[str, dict[str, Any]]:
    """The policy's name and its parameters; one that must know the horizon is told the demo's."""
    from streamduel import policies  # noqa: PLC0415 - quick to start without
    from streamduel.simulation.entries import read_entries  # noqa: PLC0415

    try:
        [(name, parameters)] = read_entries([text], [])
        if "horizon" in policies.get(name).declared:
            # None of them takes less; that a demo is shorter is no mistake of who watches it.
            parameters.setdefault("horizon", max(LEAST_HORIZON, arms, horizon))
        policies.create(name, arms, seed, **parameters)
    except PolicyError as error:
        raise ConfigurationError(str(error)) from error
    return name, parameters


def _made(folder: Path) -> Path:
    """The folder to keep, made if it is not there, and empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = next(folder.iterdir(), None)
    except OSError as error:
        raise ConfigurationError(
            f"--keep must be a folder that can be written to (found '{folder}': {error.strerror})."
        ) from error
    if occupied is not None:
        raise ConfigurationError(
            f"--keep must be an empty folder, or one that is not there yet (found '{occupied.name}'"
            f" in '{folder}')."
        )
    return folder


def _play(settings: Settings, folder: Path, stop: Callable[[], bool]) -> None:
    """Play the demo, and say what has come of it; the page stays for whoever reads it."""
    from streamduel.demo.play import Clockwork, Played, play  # noqa: PLC0415 - quick to start without
    from streamduel.demo.stay import somebody_watches, stay_until_enter  # noqa: PLC0415
    from streamduel.demo.verdict import print_verdict  # noqa: PLC0415

    out = Console()

    def ended(played: Played, url: str | None) -> None:
        print_verdict(out, played)
        if url and somebody_watches() and not stop():
            stay_until_enter(out, url, stop)

    clockwork = Clockwork(time.time, time.monotonic, time.sleep)
    play(settings, folder, out, stop, clockwork, ended)


def _say_where(folder: Path) -> None:
    """Where everything is kept, and what can be done with it."""
    from streamduel.demo.play import CONFIGURATION  # noqa: PLC0415 - quick to start without

    path = folder / CONFIGURATION
    typer.echo(f"Kept in {folder}: streamduel inspect {path}; streamduel replay {path}")
