"""The page on top-two sampling: what is measured, and that the command writes it."""

from __future__ import annotations

import shutil
from math import inf
from pathlib import Path

import numpy as np
import pytest

from benchmarks.research import __main__ as command
from benchmarks.research.ablation import VARIANTS, Product, Variant, play
from benchmarks.research.worlds import FAMILIES, draw, ideal, worlds
from streamduel.policies.top_two import TopTwo
from streamduel.preference import elimination, evidence
from streamduel.preference.elimination import CASH, Elimination
from streamduel.preference.evidence import RHO
from streamduel.preference.matrix import check

DOCS = Path(__file__).parents[3] / "docs"
SECTIONS = (
    "families", "gates", "regret", "many arms", "champions", "answers", "far", "ablation", "delay",
    "cost",
)  # fmt: skip


@pytest.mark.slow  # it compiles six kernels
def test_the_command_writes_page_pictures_and_results(tmp_path: Path) -> None:
    page = tmp_path / "research" / "top-two.md"
    page.parent.mkdir()
    shutil.copy(DOCS / "research" / "top-two.md", page)
    given = ["--quick", "--out", str(tmp_path), "--results", str(tmp_path / "results.json")]
    command.main(given)
    text = page.read_text(encoding="utf-8")
    for name in SECTIONS:
        _, _, rest = text.partition(f"<!-- measured {name}: begin -->")
        table, found, _ = rest.partition(f"<!-- measured {name}: end -->")
        assert found
        assert table.count("\n|") >= 2
        assert "nan" not in table.lower()
    for picture in ("regret.png", "answers.png"):
        assert (tmp_path / "images" / "research" / picture).stat().st_size > 5_000
    page.write_text((DOCS / "research" / "top-two.md").read_text(encoding="utf-8"), "utf-8")
    command.main([*given, "--only"])  # measures nothing, and writes the same page
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("half", ["tuned", "held out"])
def test_a_family_has_the_winner_that_it_promises(family: str, half: str) -> None:
    for n_arms in FAMILIES[family].sizes[:2]:
        world = draw(family, n_arms, half)
        check(world.preferences)
        without = family in {"random, no winner", "cycle", "many Copeland winners"}
        assert (world.winner is None) == without
        assert world.name == f"{family}, K = {n_arms}, {half}"


def test_the_halves_differ() -> None:
    seen = [world.preferences.tobytes() for world in worlds(24) if world.family != "near tie"]
    assert len(set(seen)) == len(seen)


def test_the_ideal_counts_the_best_rival_of_each_loser() -> None:
    p = np.array([[0.5, 0.6, 0.6], [0.4, 0.5, 0.9], [0.4, 0.1, 0.5]])
    d = [x * np.log(2 * x) + (1 - x) * np.log(2 * (1 - x)) for x in (0.6, 0.9)]
    assert ideal(p, 0.05) == pytest.approx(np.log(20) * (1 / d[0] + 1 / d[1]))
    p[1, 2] = p[2, 1] = p[0, 2] = p[2, 0] = 0.5
    assert ideal(p, 0.05) == inf


def test_a_folder_adds_its_matrices(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "pair.txt", np.array([[0.5, 0.7], [0.3, 0.5]]))
    assert worlds(6, tmp_path)[-1].name == "pair, K = 2, published"


def test_the_unchanged_variant_is_the_policy_itself() -> None:
    arxiv = worlds(6)[-1]
    with VARIANTS[0].constants():
        assert play(arxiv, VARIANTS[0].policy, 0, 500) == play(arxiv, TopTwo, 0, 500)


@pytest.mark.parametrize("variant", VARIANTS[1:], ids=lambda each: each.what)
def test_each_variant_changes_the_run(variant: Variant) -> None:
    world = draw("many Copeland winners", 9, "tuned")
    base = play(world, TopTwo, 1, 1_500)
    with variant.constants():
        assert play(world, variant.policy, 1, 1_500) != base
    assert (elimination.CASH, evidence.RHO) == (CASH, RHO)


def test_one_sum_alone_has_the_whole_wealth() -> None:
    wins = np.zeros((3, 3))
    wins[0, 1] = 40
    both, product = Elimination(wins), Product(wins)
    wins[0, 2] = wins[1, 2] = 30
    for each in (both, product):
        each.refresh(0, 2)
        each.refresh(1, 2)
    assert product.against[2] == pytest.approx(both.against[2] + np.log(2))
    assert product.against.tolist() == Product(wins).against.tolist()
