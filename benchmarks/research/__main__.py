"""Measure top-two sampling, and write the tables and pictures of docs/research/top-two.md.

    python -m benchmarks.research [--quick] [--only SECTION …] [--matrices FOLDER] [--out docs]

The results of each section are kept in benchmarks/research/results.json, from which the page can be
written again: `--only` without sections measures nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.measure import tell
from benchmarks.research import ablation, comparison, cost, delay, page
from benchmarks.research.comparison import CONTESTANTS, Results, Scale

RESULTS: Final = Path(__file__).parent / "results.json"

FULL: Final = Scale(20, (1_000, 10_000, 100_000), 1_000_000, 500)
SECTIONS: Final = ("cost", "ablation", "delay", "far", "comparison")

QUICK: Final = Scale(2, (100, 1_000), 3_000, 6)


def sections(
    scale: Scale, given: argparse.Namespace, results: Results
) -> dict[str, Callable[[], Results]]:
    """What is measured, by name."""
    runs, quick = scale.runs, given.quick
    return {
        "cost": lambda: cost.measure(20 if quick else 2_000, 1 if quick else 5, scale.most_arms),
        "ablation": lambda: ablation.measure(runs, 200 if quick else 60_000, quick),
        "delay": lambda: delay.measure(runs, 50 if quick else 1_000, scale.patience, quick),
        "far": lambda: comparison.far(scale, 10 * scale.patience),
        "comparison": lambda: comparison.measure(
            scale, given.matrices, given.policies, results.get("comparison")
        ),
    }


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.research", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="few arms, runs and duels, as a trial")
    parser.add_argument("--runs", type=int, help=f"of each matrix; default: {FULL.runs}")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, help="the sections to measure")
    labels = [each.label for each in CONTESTANTS]
    parser.add_argument("--policies", nargs="+", choices=labels, default=labels, metavar="LABEL",
        help="those measured in the comparison; the results of the others are kept")  # fmt: skip
    parser.add_argument("--matrices", type=Path, help="a folder of further matrices, *.txt")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="the folder of the pages")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Measure, and write after each section."""
    found = arguments(given)
    scale = QUICK if found.quick else FULL
    if found.runs:
        scale = scale._replace(runs=found.runs)
    results = json.loads(found.results.read_text()) if found.results.exists() else {}
    for name, measure in sections(scale, found, results).items():
        if found.only is None or name in found.only:
            began = time.process_time()
            results[name] = measure()
            results[name]["seconds"] = round(time.process_time() - began)
            found.results.write_text(json.dumps(results) + "\n", encoding="utf-8")
            tell(f"{name}: {results[name]['seconds']} s of processor time")
    page.write(results, found.out)


if __name__ == "__main__":
    main()
