"""The tables and pictures of docs/research/top-two.md, from the results."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.papers import picture
from benchmarks.papers.picture import Curve
from benchmarks.policy_regret import put_in
from benchmarks.research.comparison import CONTESTANTS
from benchmarks.research.figures import (
    HALVES,
    REFERENCE,
    Cell,
    above_ideal,
    answers,
    families,
    gates,
    mean_relative,
    relative,
    tail,
)
from benchmarks.research.worlds import FAMILIES

PAGE: Final = Path("research") / "top-two.md"
IMAGES: Final = Path("images") / "research"

Results = dict[str, Any]
Rows = Sequence[Sequence[str]]


def write(results: Results, out: Path) -> None:
    """Put the tables of the measured sections into the page, and draw the pictures."""
    page = out / PAGE
    if "comparison" in results:
        found = results["comparison"]
        put_in(page, "gates", gate_table(found))
        put_in(page, "regret", regret_table(found["cells"]))
        put_in(page, "many arms", many_arms_table(found["cells"]))
        put_in(page, "champions", champion_table(found))
        put_in(page, "answers", answer_table(found))
        put_in(page, "families", family_list())
        draw_regret(found["cells"], out / IMAGES / "regret.png")
        draw_answers(found, out / IMAGES / "answers.png")
    for name, table in (
        ("ablation", ablation_table),
        ("delay", delay_table),
        ("far", far_table),
        ("cost", cost_table),
    ):
        if name in results:
            put_in(page, name, table(results[name]))


def grid(heads: Sequence[str], rows: Rows, texts: int = 1) -> list[str]:
    """A Markdown table; the first columns are text, the others are figures."""
    rule = ["---"] * texts + ["--:"] * (len(heads) - texts)
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]


def number(value: float, digits: int = 2) -> str:
    """A figure, or nothing."""
    return "" if isnan(value) else f"{value:,.{digits}f}"


def family_list() -> list[str]:
    """What the families are."""
    rows = [[name, ", ".join(map(str, each.sizes)), each.what] for name, each in FAMILIES.items()]
    return grid(["family", "K", "preferences"], rows, 3)


def gate_table(found: Results) -> list[str]:
    """The gates, a row for each half."""
    rows = []
    for half in HALVES[:2]:
        for goal in gates(found, half):
            met = "met" if goal.met else "**missed**"
            rows.append([goal.what, half, f"{goal.found:.2f}", goal.bound, met])
    return grid(["gate", "half", "found", "goal", ""], rows, 2)


def regret_table(cells: Sequence[Cell]) -> list[str]:
    """Regret as a multiple of the reference's, by family and half."""
    labels = [each.label for each in CONTESTANTS if each.label != REFERENCE]
    tails = ["top_two", "top_two, earn", REFERENCE]
    heads = ["family", "half", *(f"`{label}`" for label in labels)]
    heads += [f"99 %: `{label}`" for label in tails]
    rows = []
    for half in HALVES:
        groups = families(cells, half)
        everything = [cell for group in groups.values() for cell in group]
        for name, group in [*groups.items(), ("**all**", everything)]:
            if name == half or all(isnan(relative(cell, "top_two")) for cell in group):
                continue
            row = [name, half]
            row += [number(mean_relative(group, label)) for label in labels]
            rows.append(row + [number(tail(group, label)) for label in tails])
    return grid(heads, rows, 2)


def many_arms_table(cells: Sequence[Cell]) -> list[str]:
    """Mean regret where there are many arms."""
    labels = [each.label for each in CONTESTANTS]
    rows = []
    for cell in cells:
        if cell["n_arms"] >= 64:
            found = cell["policies"]
            means = [number(np.mean(found[x]["final"]), 0) if x in found else "" for x in labels]
            rows.append([f"{cell['n_arms']}", cell["half"], *means])
    return grid(["K", "half", *(f"`{label}`" for label in labels)], rows)


def champion_table(found: Results) -> list[str]:
    """The share of runs whose champion is right at each time."""
    labels = [each.label for each in CONTESTANTS[:4]]
    times = found["times"]
    heads = ["family", *(f"`{label}`" for label in labels)]
    rows = []
    for name in [*FAMILIES, "arXiv"]:
        group = [
            cell for cell in found["cells"]
            if cell["family"] == name and len(cell["policies"]) == len(CONTESTANTS)
        ]  # fmt: skip
        if group:
            shares = [
                np.mean([cell["policies"][label]["right"] for cell in group], axis=0)
                for label in labels
            ]
            rows.append([name, *(" / ".join(f"{x:.2f}" for x in share) for share in shares)])
    marks = " / ".join(f"{t:,}" for t in times)
    return [f"At {marks} duels:", "", *grid(heads, rows)]


def answer_table(found: Results) -> list[str]:
    """Duels to the answer, a row for each matrix."""
    heads = ["matrix", "half", "ideal", "A", "B", "B, 90 %", "B, 95 %", "95 % ÷ B", "never",
             "wrong", "A ÷ ideal", "B ÷ ideal"]  # fmt: skip
    rows = []
    for cell in found["cells"]:
        one = answers(cell, found["patience"])
        ratios = (above_ideal(cell, found["patience"], alone=alone) for alone in (True, False))
        figures = [one.alone, one.half, one.most, one.nearly_all]
        known = cell["ideal"] < 1e300
        rows.append(
            [f"{cell['family']}, K = {cell['n_arms']}", cell["half"]]
            + [f"{cell['ideal']:,.0f}" if known else "", *(f"{each:,.0f}" for each in figures)]
            + [f"{one.nearly_all / one.half:.2f}", f"{one.never} of {one.runs}", f"{one.wrong}"]
            + [number(ratio, 1) for ratio in ratios]
        )
    return grid(heads, rows, 2)


def ablation_table(found: Results) -> list[str]:
    """A row for each variant, a column for each matrix."""
    rows = []
    for row in found["rows"]:
        cells = []
        for one in row["cells"]:
            never = f" ({one['never']} never)" if one["never"] else ""
            cells.append(f"{one['median']:,.0f}{never}; {one['regret']:,.0f}, {one['worst']:,.0f}")
        rows.append([row["what"], *cells])
    head = (
        f"Duels to the answer, median of {found['runs']} runs; mean and largest regret until then."
        f" A run without an answer counts with {found['limit']:,} duels."
    )
    return [head, "", *grid(["variant", *found["worlds"]], rows)]


def delay_table(found: Results) -> list[str]:
    """Delay and ties."""
    late = f"{found['in_flight']:,} in flight"
    heads = ["matrix", "undelayed", late, "÷", "5 % ties", "÷", "30 % ties", "÷"]
    rows = []
    for row in found["rows"]:
        base = row["ties 0"]
        cells = [row["name"], f"{base:,.0f}"]
        for key in ("delayed", "ties 0.05", "ties 0.3"):
            cells += [f"{row[key]:,.0f}", f"{row[key] / base:.2f}"]
        rows.append(cells)
    head = f"Duels to the answer, median of {found['runs']} runs."
    return [head, "", *grid(heads, rows)]


def far_table(found: Results) -> list[str]:
    """Runs of up to very many duels."""
    rows = [
        [row["name"], f"{row['never']} of {row['runs']}", f"{row['median'] or 0:,.0f}",
         f"{row['longest'] or 0:,.0f}", f"{row['wrong']}"]
        for row in found["rows"]
    ]  # fmt: skip
    heads = ["matrix", f"no answer after {found['horizon']:,}", "median", "longest", "wrong"]
    return grid(heads, rows)


def cost_table(found: Results) -> list[str]:
    """µs of a decision, and of a compiled step."""
    names, others = list(found["rows"][0]["cost"]), ("rmed1", "double_thompson")
    rows = [
        [f"{row['n_arms']}", *(f"{row['cost'][name]:,.1f}" for name in names)]
        + [f"{row['ratio'][name]:.2f}" for name in others]
        for row in found["rows"]
    ]
    heads = ["K", *(f"`{name}`, µs" for name in names), *(f"÷ `{name}`" for name in others)]
    goals = {6: 1.0, 16: 1.0, 64: 2.0}
    lines = []
    for row in found["rows"]:
        if row["n_arms"] in goals:
            ratio, goal = row["ratio"]["rmed1"], goals[row["n_arms"]]
            met = "met" if ratio <= goal else "**missed**"
            earning = row["ratio"]["rmed1"] / row["ratio"]["top_two, earn"]
            lines.append(
                f"- K = {row['n_arms']}: {ratio:.2f} times `rmed1`, {earning:.2f} with `aim: earn`;"
                f" goal: at most {goal:g}; {met}."
            )
        else:
            micro = row["cost"]["top_two"]
            met = "met" if micro <= 100 else "**missed**"
            lines.append(f"- K = {row['n_arms']}: {micro:.0f} µs; goal: at most 100; {met}.")
    step = found["compiled"]
    met = "met" if step <= 0.5 else "**missed**"
    lines.append(f"- A compiled step, K = 16: {step:.2f} µs; goal: at most 0.5; {met}.")
    return [*grid(heads, rows), "", *lines]


def draw_regret(cells: Sequence[Cell], path: Path) -> None:
    """Relative regret of each matrix, a panel for each aim."""
    figure, panels = picture.panels(1, 2, 7.2, 3.4)
    labels = ("top_two", "top_two, earn")
    for panel, label in zip(panels.flat, labels, strict=True):
        curves = []
        for place, half in enumerate(HALVES):
            points = [
                (cell["n_arms"] * 1.04 ** (place - 1), relative(cell, label))
                for cell in cells
                if cell["half"] == half and not isnan(relative(cell, label))
            ]
            if points:
                x, y = zip(*points, strict=True)
                curves.append(Curve(half, place, x, y, apart=True))
        picture.add(panel, curves)
        for line in panel.get_lines():
            line.set_linestyle("none")
        panel.axhline(1, color="#000000", linewidth=0.8)
        picture.finish(panel, label, "K", "regret ÷ D-TS")
        panel.set_yscale("log")
        panel.set_yticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
        panel.minorticks_off()
    panels.flat[0].legend(fontsize=8, frameon=False)
    picture.save(figure, path)


def draw_answers(found: Results, path: Path) -> None:
    """Median duels to the answer of each matrix with a winner, against the ideal."""
    figure, panels = picture.panels(1, 1, 5.2, 3.6)
    panel = panels.flat[0]
    cells = [cell for cell in found["cells"] if cell["winner"] and cell["ideal"] < 1e300]
    ideals = [cell["ideal"] for cell in cells]
    times = [answers(cell, found["patience"]) for cell in cells]
    picture.add(
        panel,
        [
            Curve("A: one arm is left", 0, ideals, [one.alone for one in times], apart=True),
            Curve("B: it beats all others", 1, ideals, [one.half for one in times], apart=True),
        ],
    )
    for line in panel.get_lines():
        line.set_linestyle("none")
    ends = [min(ideals), max(ideals)]
    panel.plot(ends, ends, color="#000000", linewidth=0.8)
    picture.finish(panel, "matrices with a winner", "ideal, duels", "median duels")
    panel.set_yscale("log")
    panel.legend(fontsize=8, frameon=False)
    picture.save(figure, path)
