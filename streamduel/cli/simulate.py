"""`streamduel simulate`: regret of policies, as a table, JSON and plots."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from streamduel.cli import simulate_options as options
from streamduel.cli.app import INTERRUPTED, err, exit_at_signals, out, say
from streamduel.cli.outputs import check_places, check_writable
from streamduel.cli.progress import counting_progress
from streamduel.cli.simulate_tables import print_results
from streamduel.errors import ConfigurationError, PolicyError, PreferenceError, StreamduelError
from streamduel.files import identity, kind, reason, write_json
from streamduel.policies import DEFAULT
from streamduel.preference.matrix import read
from streamduel.simulation import matrices
from streamduel.simulation.delay import read_delay
from streamduel.simulation.plot import check_plot, draw
from streamduel.simulation.policy_arguments import read_policies
from streamduel.simulation.results import Results
from streamduel.simulation.seeds import matrix_generator
from streamduel.simulation.settings import Settings, check_seed
from streamduel.simulation.simulate import simulate as simulate_runs


@dataclass(frozen=True, slots=True)
class _Source:
    """The preference matrix: a file or the name of an environment, and the files of later ones."""

    matrix: str | None
    environment: str | None
    arms: str | None
    gap: float | None
    changes: dict[int, str]

    @property
    def title(self) -> str:
        return _in_utf8(Path(self.matrix).name) if self.matrix else str(self.environment)

    @property
    def least_gap(self) -> float:
        return matrices.MIN_GAP if self.gap is None else self.gap


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The files to write, and the style of the plots."""

    json: Path | None
    journal: Path | None
    plots: list[Path]
    scale: str
    band: str

    def files(self) -> list[tuple[str, Path]]:
        """All files to write, each with its option."""
        named = [("--json", self.json), ("--journal", self.journal)]
        return [
            *((option, path) for option, path in named if path is not None),
            *(("--plot", path) for path in self.plots),
        ]


def simulate(
    policy: options.PolicyNames = None,
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
    until_sure: options.UntilSure = None,
    jobs: options.Jobs = None,
    json: options.JsonPath = None,
    journal: options.JournalPath = None,
    plot: options.PlotPaths = None,
    scale: options.Scale = None,
    band: options.Band = None,
    no_compile: options.NoCompile = False,
) -> None:
    """Measure the regret of policies on known preferences.

    Each run shuffles the arms, in the same order for every policy. The results of a policy depend
    neither on --jobs nor on the other policies. Ctrl-C shows the finished runs and exits with
    status 130; with --json, the same command then continues from there.

    With --until-sure, a second table shows after how many duels the service would have reported
    an answer with that confidence: the time an experiment takes.

    For example, two policies, one policy with two values of a parameter, and the time to an answer:

        streamduel simulate --matrix p.txt --policy rucb --policy ccb --plot regret.png

        streamduel simulate --matrix p.txt --policy rucb --policy rucb:alpha=0.8

        streamduel simulate --matrix p.txt --policy top_two --until-sure 0.95
    """
    source = _Source(matrix, environment, arms, gap, _changes(change or []))
    outputs = _outputs(json, journal, plot or [], scale, band)
    try:
        settings = Settings(
            horizon=whole("horizon", horizon),
            runs=whole("runs", runs),
            seed=whole("seed", seed),
            regret=regret,
            ties=ties,
            slate=whole("slate", slate),
            per_decade=whole("checkpoints", checkpoints),
            until_sure=until_sure,
            compiled=not no_compile,
            policies=read_policies(policy or [DEFAULT], param or []),
            preferences=_preferences(source, whole("seed", seed)),
            delay=None if delay is None else read_delay(delay),
            changes={t: read(path) for t, path in source.changes.items()},
        )
    except (PolicyError, PreferenceError) as error:
        raise ConfigurationError(str(error)) from error
    _check_outputs(source, outputs)
    _run(settings, source, outputs, _cores() if jobs is None else whole("jobs", jobs))


def _cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS has no affinity


def whole(option: str, text: str) -> int:
    """An integer option, which may be written as `1e6`; its range is checked where it is used.

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


def _changes(texts: list[str]) -> dict[int, str]:
    """The files of later preference matrices by the number of duels after which they hold."""
    found: dict[int, str] = {}
    for text in texts:
        time, _, path = text.partition(":")
        if not path:
            raise ConfigurationError(f"--change must be written as T:FILE (found {text!r}).")
        t = whole("change", time)
        if t in found:
            raise ConfigurationError(
                f"--change must be given once for each T (found {t} for '{found[t]}' and '{path}')."
            )
        found[t] = path
    return found


def _outputs(
    json: Path | None, journal: Path | None, plots: list[Path], scale: str | None, band: str | None
) -> _Outputs:
    """The outputs, with defaults for what is left out."""
    for option, value in (("scale", scale), ("band", band)):
        if value is not None and not plots:
            raise ConfigurationError(f"--{option} goes with --plot FILE (found no --plot).")
    # A journal cannot be put beside a device or a pipe.
    if journal is None and json is not None and kind(json) in {"a file", "nothing"}:
        is_link = os.path.islink(json)  # noqa: PTH114 - Path's fails without permission
        place = identity(json) if is_link else json  # not in /dev, for /dev/stdout
        journal = place.with_name(f"{place.name}.journal")
    scale = "linear" if scale is None else scale
    return _Outputs(json, journal, plots, scale, "error" if band is None else band)


def _preferences(source: _Source, seed: int) -> Any:
    """The preference matrix, from its file or drawn from the seed."""
    if (source.matrix is None) == (source.environment is None):
        both = "" if source.matrix is None else ", not both"
        raise ConfigurationError(
            f"a simulation needs either --matrix FILE or --environment NAME{both}."
        )
    if source.matrix is not None:
        if source.arms is not None or source.gap is not None:
            raise ConfigurationError("--arms and --gap go with --environment, not with --matrix.")
        return read(source.matrix)
    name = str(source.environment)
    if source.arms is None:
        raise ConfigurationError(f"--environment {name} needs --arms K.")
    if source.gap is not None and name in matrices.KINDS and name not in matrices.WITH_GAP:
        raise ConfigurationError(
            f"--gap goes with --environment {' or '.join(matrices.WITH_GAP)} (found {name!r})."
        )
    n_arms = whole("arms", source.arms)
    check_seed(seed)
    return matrices.generate(name, n_arms, matrix_generator(seed, name), source.least_gap)


def _check_outputs(source: _Source, outputs: _Outputs) -> None:
    """Refuse files that cannot be written, before anything is computed."""
    matrix = [] if source.matrix is None else [("--matrix", source.matrix)]
    inputs = [*matrix, *(("--change", path) for path in source.changes.values())]
    check_places(outputs.files(), {identity(Path(path)): option for option, path in inputs})
    for path in outputs.plots:
        check_plot(path, outputs.scale, outputs.band)
    # Opening the journal checks it.
    check_writable(file for file in outputs.files() if file[0] != "--journal")


def _run(settings: Settings, source: _Source, outputs: _Outputs, jobs: int) -> None:
    """Simulate, write the files and print the table."""
    results = Results(settings)
    with exit_at_signals():
        try:
            with counting_progress(err, "simulating") as progress:
                simulate_runs(
                    settings, jobs=jobs, journal=outputs.journal, progress=progress, results=results
                )
        except (KeyboardInterrupt, SystemExit) as end:
            print_results(out, results, source.title)
            _print_interruption(results, outputs)
            if isinstance(end, SystemExit):
                raise
            raise typer.Exit(INTERRUPTED) from None
        except StreamduelError:  # such as a full disk: show the finished runs
            if results.policies():
                print_results(out, results, source.title)
            raise
    try:
        _write(results, source, outputs)
        if outputs.journal is not None:
            _remove(outputs.journal)
    finally:
        print_results(out, results, source.title)  # last: its reader may end early, as `head` does


def _remove(journal: Path) -> None:
    try:
        journal.unlink(missing_ok=True)
    except OSError as error:
        raise StreamduelError(
            f"the journal '{journal}' cannot be removed ({reason(error)}); it is no longer needed."
        ) from error


def _write(results: Results, source: _Source, outputs: _Outputs) -> None:
    """Write all files; an error in one does not stop the others."""
    failures = []
    for option, path in outputs.files():
        try:
            if option == "--json":
                write_json(path, _report(results, source))
            elif option == "--plot":
                draw(results, path, title=source.title, scale=outputs.scale, band=outputs.band)
        except StreamduelError as error:
            failures.append(str(error).rstrip("."))
    if failures and outputs.journal is not None:
        failures.append(
            f"the finished runs are kept in '{outputs.journal}', and the same command tries again"
        )
    if failures:
        raise StreamduelError(f"{'; '.join(failures)}.")


def _report(results: Results, source: _Source) -> dict[str, Any]:
    """The results for `--json`; a drawn matrix has no file."""
    matrix = None if source.matrix is None else _in_utf8(source.matrix)
    changes = {t: _in_utf8(path) for t, path in source.changes.items()}
    report = results.report(matrix, changes)
    if source.environment is not None:
        gap = source.least_gap if source.environment in matrices.WITH_GAP else None
        report["environment"] = {"name": source.environment, "gap": gap}
    return report


def _in_utf8(path: str) -> str:
    """A path, with bytes that are not UTF-8 escaped: neither JSON nor pictures have them."""
    return path.encode(errors="backslashreplace").decode()


def _print_interruption(results: Results, outputs: _Outputs) -> None:
    """Say after Ctrl-C or a signal how many runs are finished, and how to continue."""
    missing = len(results.missing())
    total = results.settings.runs * len(results.settings.specs)
    text = f"Interrupted with {total - missing:,} of {total:,} runs finished"
    if outputs.journal is None:
        text += "; with --json or --journal, finished runs would be kept."
    elif missing == total:
        text += "."
    else:
        text += f", kept in {outputs.journal}; the same command continues from there."
    say(err, text)
