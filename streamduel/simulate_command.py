"""The command `streamduel simulate`: from its options to tables, files and pictures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamduel import simulate_options as options
from streamduel.errors import ConfigurationError, PolicyError, PreferenceError

if TYPE_CHECKING:
    from streamduel.simulation.results import Results
    from streamduel.simulation.settings import Settings

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells have it."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the preferences come from: a file, or a name."""

    matrix: str | None
    environment: str | None
    arms: str | None
    gap: float | None

    @property
    def title(self) -> str:
        return Path(self.matrix).name if self.matrix else str(self.environment)


@dataclass(frozen=True, slots=True)
class _Outputs:
    """What is to be made of the results."""

    json: Path | None
    journal: Path | None
    plots: list[Path]
    scale: str
    band: str


def simulate(
    policy: options.PolicyNames,
    matrix: options.Matrix = None,
    environment: options.Environment = None,
    arms: options.Arms = None,
    gap: options.Gap = None,
    change: options.Change = None,
    param: options.Params = None,
    horizon: options.Horizon = "10000",
    runs: options.Runs = "10",
    seed: options.Seed = "0",
    regret: options.Regret = "condorcet",
    ties: options.Ties = 0.0,
    delay: options.DelayText = None,
    slate: options.Slate = "1",
    checkpoints: options.Checkpoints = "10",
    jobs: options.Jobs = None,
    json: options.JsonPath = None,
    journal: options.JournalPath = None,
    plot: options.PlotPaths = None,
    scale: options.Scale = "linear",
    band: options.Band = "error",
    no_compile: options.NoCompile = False,
) -> None:
    """Measure the regret of policies on known preferences.

    Each run shuffles the arms, the same way for every policy. The results depend on what is
    simulated and on nothing else: not on --jobs, nor on the other policies. Ctrl-C shows what is
    finished and exits with status 130; with --json, the same command then goes on from there.

    For example, two policies, then one of them with two values of a parameter:

        streamduel simulate --matrix p.txt --policy rucb --policy ccb --plot regret.png

        streamduel simulate --matrix p.txt --policy rucb --policy rucb:alpha=0.8
    """
    source = _Source(matrix, environment, arms, gap)
    if journal is None and json is not None and (json.is_file() or not json.exists()):
        journal = json.with_name(f"{json.name}.journal")
    outputs = _Outputs(json, journal, plot or [], scale, band)
    numbers = {
        "horizon": whole("horizon", horizon),
        "runs": whole("runs", runs),
        "seed": whole("seed", seed),
        "regret": regret,
        "ties": ties,
        "slate": whole("slate", slate),
        "per_decade": whole("checkpoints", checkpoints),
        "compiled": not no_compile,
    }
    try:
        settings = _settings(source, numbers, policy, param or [], change or [], delay)
    except (PolicyError, PreferenceError) as error:
        raise ConfigurationError(str(error)) from error
    _check_outputs(outputs)
    _run(settings, source, outputs, _cores() if jobs is None else whole("jobs", jobs))


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS does not say


def whole(option: str, text: str) -> int:
    """An integer as people write it, `1e6` included; its range is checked where it is used.

    >>> whole("horizon", "1e6")
    1000000
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
        if number.is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise ConfigurationError(f"--{option} must be an integer such as 1000 or 1e6 (found {text!r}).")


def _settings(
    source: _Source,
    numbers: dict[str, Any],
    wanted: list[str],
    params: list[str],
    changes: list[str],
    delay: str | None,
) -> Settings:
    """What is simulated."""
    from streamduel.preference.matrix import read  # noqa: PLC0415 - quick to start without
    from streamduel.simulation.delay import read_delay  # noqa: PLC0415
    from streamduel.simulation.entries import read_entries  # noqa: PLC0415
    from streamduel.simulation.settings import Settings  # noqa: PLC0415

    entries = read_entries(wanted, params)
    preferences = _preferences(source, numbers["seed"])
    later = {}
    for text in changes:
        time, _, path = text.partition(":")
        if not path:
            raise ConfigurationError(f"--change must be written as T:FILE (found {text!r}).")
        later[whole("change", time)] = read(path)
    return Settings(
        preferences,
        entries,
        delay=None if delay is None else read_delay(delay),
        changes=later,
        **numbers,
    )


def _preferences(source: _Source, seed: int) -> Any:
    """The preference matrix, from its file or drawn."""
    if (source.matrix is None) == (source.environment is None):
        raise ConfigurationError("a simulation needs either --matrix FILE or --environment NAME.")
    if source.matrix is not None:
        if source.arms is not None or source.gap is not None:
            raise ConfigurationError("--arms and --gap go with --environment, not with --matrix.")
        from streamduel.preference.matrix import read  # noqa: PLC0415

        return read(source.matrix)
    from streamduel.simulation import worlds  # noqa: PLC0415
    from streamduel.simulation.seeds import world_generator  # noqa: PLC0415

    name = str(source.environment)
    if source.arms is None:
        raise ConfigurationError(f"--environment {name} needs --arms K.")
    gap = worlds.LEAST_GAP if source.gap is None else source.gap
    n_arms = whole("arms", source.arms)
    return worlds.world(name, n_arms, world_generator(seed, name), gap)


def _check_outputs(outputs: _Outputs) -> None:
    """Refuse what could not be written, before anything is computed."""
    paths = {"json": outputs.json, "journal": outputs.journal}
    named = [(option, path) for option, path in paths.items() if path is not None]
    for option, path in [*named, *(("plot", path) for path in outputs.plots)]:
        if path.is_dir():
            raise ConfigurationError(f"--{option} must be a file (found the directory '{path}').")
        if not path.parent.is_dir():
            raise ConfigurationError(
                f"--{option} must be in a directory that exists (found '{path}')."
            )
    if outputs.plots:
        from streamduel.simulation.plot import check_plot  # noqa: PLC0415

        for path in outputs.plots:
            check_plot(path, outputs.scale, outputs.band)


def _run(settings: Settings, source: _Source, outputs: _Outputs, jobs: int) -> None:
    """Simulate, and show and write what was found."""
    from streamduel.progress import counting_progress  # noqa: PLC0415
    from streamduel.simulation.results import Results, write_json  # noqa: PLC0415
    from streamduel.simulation.run import simulate as play_all  # noqa: PLC0415

    results, err = Results(settings), Console(stderr=True)
    try:
        with counting_progress(err, "simulating") as progress:
            play_all(
                settings, jobs=jobs, journal=outputs.journal, progress=progress, results=results
            )
    except KeyboardInterrupt:
        _print_table(results, source)
        _print_farewell(err, results, outputs)
        raise typer.Exit(INTERRUPTED) from None
    _print_table(results, source)
    if outputs.json is not None:
        write_json(outputs.json, _report(results, source))
    if outputs.plots:
        from streamduel.simulation.plot import draw  # noqa: PLC0415

        for path in outputs.plots:
            draw(results, path, title=source.title, scale=outputs.scale, band=outputs.band)
    if outputs.journal is not None:
        outputs.journal.unlink(missing_ok=True)


def _report(results: Results, source: _Source) -> dict[str, Any]:
    """The results as JSON has them; a drawn matrix has no file."""
    report = results.report(source.matrix)
    if source.environment is not None:
        report["environment"] = {"name": source.environment, "gap": source.gap}
    return report


def _print_table(results: Results, source: _Source) -> None:
    """Each policy's regret at the end, the least first."""
    from streamduel.simulation.labels import labels  # noqa: PLC0415

    settings = results.settings
    table = Table(
        title=f"{settings.regret} regret after {settings.horizon:,} duels on"
        f" {escape(source.title)}, {settings.n_arms} arms, seed {settings.seed}",
        title_justify="left",
    )
    for heading in ("policy", "regret", "± s.e.", "accuracy", "runs", "s/run"):
        is_name = heading == "policy"
        table.add_column(heading, justify="left" if is_name else "right", no_wrap=not is_name)
    names = labels(settings.contestants)
    rows = [
        (result, names[settings.contestants.index((result.name, result.params))])
        for result in results.policies()
    ]
    for result, name in sorted(rows, key=lambda row: row[0].mean[-1]):
        table.add_row(
            escape(name),
            f"{result.mean[-1]:,.1f}",
            f"{result.std_error[-1]:,.1f}",
            f"{result.champion_accuracy[-1]:.0%}",
            f"{result.runs:,}",
            f"{result.seconds_per_run:.2g}",
        )
    Console().print(table)


def _print_farewell(err: Console, results: Results, outputs: _Outputs) -> None:
    """Say after Ctrl-C what is there, and how to go on."""
    missing = len(results.missing())
    total = results.settings.runs * len(results.settings.contestants)
    text = f"Interrupted with {total - missing:,} of {total:,} runs finished"
    if outputs.journal is None:
        text += "; with --json or --journal, finished runs would be kept."
    else:
        text += f", kept in {outputs.journal}; the same command goes on from there."
    err.print(text, markup=False, highlight=False, soft_wrap=True)
