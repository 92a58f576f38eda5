"""docs/papers.md: the claims of the papers, and the outcomes."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from benchmarks.papers.experiment import Experiment, Table
from benchmarks.papers.matrices import HOW_TO_GET
from benchmarks.papers.store import Record
from streamduel import __version__

IMAGES: Final = "images/papers"
"""The folder of the pictures, from the page."""

PACKAGES: Final = ("numpy", "numba", "scipy")

HEAD: Final = """\
# The papers' figures, computed again

After this page you know which published results streamduel's policies reproduce and which they do
not, and can compute all of them again:

```console
$ python -m benchmarks.papers --matrices FOLDER --jobs 2
```

An interrupted command resumes. `--only NAME …` computes some figures; `--quick` is a test run of a
minute. Without a folder of published matrices only the figures that need none are computed. The
matrices are data of Zoghi, Karnin, Whiteson and de Rijke, not part of this project: download
`MSLR_Navigational_PMat.npz` and `MSLR_Informational_PMat.npz` from
[nightingal3/duelling-bandits](https://github.com/nightingal3/duelling-bandits) (MIT) and name their
folder with `--matrices` or `PUBLISHED_MATRICES`.

Each claim is divided into statements with bounds that were fixed in code before the measurement.
"Below" and "above" hold if the number keeps the bound by two standard errors, and are undecided if
it is nearer. A range holds if the number is in it, and is undecided if the number is less than two
standard errors outside. "At most" is the range from 0 to its bound. A figure is *reproduced* if all
its statements hold, *not reproduced* if none does, else *partly*. Nothing was tuned: parameters are
the papers', and if a paper does not specify something, the section says what was chosen. The
results are in `benchmarks/papers/outcomes.json`, from which this page is generated.
"""

TAIL: Final = """\
## What is not promised

- **The papers' data.** If they are not public, other data replace them, and the section says so.
  Such a verdict is on the claim, not on the paper's curve.
- **Other matrices, gaps or horizons.** A verdict is on a claim at one horizon.
- **The papers' curves.** Pictures cannot be read to a digit; the texts are compared.
- **These times.** Processor times of other machines differ; regrets do not.
"""


def page(experiments: Sequence[Experiment], records: Mapping[str, Record]) -> str:
    """The whole page.

    Args:
        experiments: in the order of the page.
        records: of the experiments that have been run.
    """
    parts = [HEAD]
    if any(record.quick for record in records.values()):
        parts.append("**A quick run**: too few duels and runs; its figures are not reliable.\n")
    parts.append(_summary(experiments, records))
    done = [each for each in experiments if each.name in records]
    parts += [section(each, records[each.name]) for each in done]
    parts.append(TAIL)
    if done:
        parts.append(_facts([records[each.name] for each in done]))
    return "\n".join(parts)


def _summary(experiments: Sequence[Experiment], records: Mapping[str, Record]) -> str:
    rows = []
    for each in experiments:
        title = f"[{each.title}](#{_anchor(each.title)})"
        if each.name not in records:
            why = "needs matrices" if each.matrices else "not asked for"
            rows.append([each.title, each.claim, why, "not run"])
            continue
        outcome = records[each.name].outcome
        rows.append([title, each.claim, outcome.measured, f"**{outcome.verdict}**"])
    lines = _markdown(Table(["figure", "claim", "measured", "verdict"], rows), numbers=False)
    missing = [each for each in experiments if each.name not in records and each.matrices]
    if missing:
        lines.append(f"\nNot run, because data are missing: {HOW_TO_GET}.")
    return "\n".join(lines) + "\n"


def section(experiment: Experiment, record: Record) -> str:
    """One figure."""
    outcome = record.outcome
    lines = [
        f"## {experiment.title}",
        "",
        f"**Claim.** {experiment.claim} ({experiment.source}.)",
        "",
        f"**Computed.** {outcome.method}",
        "",
    ]
    for table in outcome.tables:
        lines += [*_markdown(table), ""]
    for picture in outcome.pictures:
        lines += [f"![{picture.shows}]({IMAGES}/{picture.file})", ""]
    lines += [f"**Verdict: {outcome.verdict}.**", ""]
    rows = [[check.claim, check.found, check.standing] for check in outcome.checks]
    lines += [*_markdown(Table(["statement", "measured", ""], rows), numbers=False), ""]
    for note in outcome.notes:
        lines += [note, ""]
    lines += [
        f"`--only {experiment.name}`, {_minutes(record.processor_seconds)} of processor time.",
        "",
    ]
    return "\n".join(lines)


def _markdown(table: Table, *, numbers: bool = True) -> list[str]:
    rule = ["---", *("---:" if numbers else "---" for _ in table.columns[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (table.columns, rule, *table.rows)]


def _anchor(title: str) -> str:
    """As GitHub makes them of headings."""
    kept = "".join(char for char in title.lower() if char.isalnum() or char in " -_")
    return kept.replace(" ", "-")


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _facts(records: Sequence[Record]) -> str:
    total = _minutes(sum(record.processor_seconds for record in records))
    facts = "; ".join(dict.fromkeys(record.facts for record in records))
    return (
        f"{facts}; {total} of processor time for all sections, by"
        " the clock half as long with two processes on two idle cores.\n"
    )


def facts() -> str:
    """The machine and the versions."""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    python = platform.python_version()
    return f"{_processor()}, Python {python}, streamduel {__version__}, {versions}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
