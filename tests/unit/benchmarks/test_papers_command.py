from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import matrices, page, store
from benchmarks.papers.__main__ import CHEAPEST_FIRST, EXPERIMENTS, arguments, main
from benchmarks.papers.copeland_table_1 import agreements
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.subsets import condorcet_share, ordered_subsets
from streamduel.preference.winners import condorcet_winner, copeland_winners
from streamduel.simulation.settings import Settings
from tests.unit.preference.matrices import is_total_order


@pytest.fixture(autouse=True)
def no_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(matrices.FOLDER, raising=False)


def tournament(n_arms: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    random = np.random.default_rng(seed)
    upper = np.triu(random.choice([-0.2, 0.3], size=(n_arms, n_arms)), k=1)
    return np.asarray(0.5 + upper - upper.T, dtype=np.float64)


def test_the_command_writes_a_page_with_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--quick", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    main([*given, "--only", "copeland_figure_2", "copeland_gap"])
    said = capsys.readouterr().err
    assert "copeland_gap: not run, MSLR_Informational_PMat.npz is missing" in said
    assert "nightingal3/duelling-bandits" in said
    text = (tmp_path / "out" / "papers.md").read_text(encoding="utf-8")
    assert "## Copeland, Figure 2\n" in text
    assert "**Verdict: not reproduced.**" in text
    assert "needs matrices | not run |" in text
    assert "A quick run" in text
    picture = tmp_path / "out" / "images" / "papers" / "copeland_figure_2.png"
    assert 1000 < picture.stat().st_size < 80_000
    runs = list((tmp_path / "cache" / "quick").glob("copeland_figure_2-*.jsonl"))
    before = {path: path.read_bytes() for path in runs}
    assert len(runs) == 2
    main([*given, "--only", "copeland_figure_2"])
    assert {path: path.read_bytes() for path in runs} == before
    records = store.load(tmp_path / "out" / "outcomes.json")
    assert records["copeland_figure_2"].processor_seconds > 0
    assert sorted(path.name for path in picture.parent.iterdir()) == [picture.name]


def test_interrupted_simulations_resume(tmp_path: Path) -> None:
    p = matrices.six_rankers()

    def simulated(runs: int, jobs: int, cache: Path) -> list[list[float]]:
        settings = Settings(p, [("rucb", {})], horizon=500, runs=runs, seed=1)
        laboratory = Laboratory(cache, tmp_path, jobs=jobs)
        return laboratory.simulate({"six": settings})["six"].regrets(0)

    first = simulated(2, 1, tmp_path / "a")
    assert simulated(4, 1, tmp_path / "a")[:2] == first
    assert simulated(4, 2, tmp_path / "b") == simulated(4, 1, tmp_path / "a")
    (journal,) = (tmp_path / "a" / "thorough").glob("six-*.jsonl")
    assert len(journal.read_text().splitlines()) == 5


def test_every_figure_can_be_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(CHEAPEST_FIRST) == sorted(each.name for each in EXPERIMENTS)
    assert arguments([]).out == Path("docs")
    assert arguments(["--quick"]).out == Path("run/papers")
    monkeypatch.setenv(matrices.FOLDER, str(tmp_path))
    assert arguments([]).matrices == tmp_path
    with pytest.raises(SystemExit):
        arguments(["--jobs", "0"])


def test_only_a_thorough_run_for_the_page_changes_the_committed_outcomes() -> None:
    assert store.state_file(arguments([]).out, quick=False) == store.COMMITTED
    for given in (["--quick"], ["--quick", "--out", "docs"], ["--out", "elsewhere"]):
        found = arguments(given)
        expected = found.out / "outcomes.json"
        assert store.state_file(found.out, quick=found.quick) == expected


def test_the_committed_outcomes_make_a_page() -> None:
    records = store.load(store.COMMITTED)
    assert records
    assert set(records) <= set(CHEAPEST_FIRST)
    assert not any(record.quick for record in records.values())
    text = page.page(EXPERIMENTS, records)
    assert all(f"`--only {name}`" in text for name in records)
    assert "`benchmarks/papers/outcomes.json`" in text


def test_a_page_without_results() -> None:
    text = page.page(EXPERIMENTS, {})
    assert text.count("not run |") == len(EXPERIMENTS)
    assert text.startswith("# ")
    assert "What is not promised" in text


def test_subsets_are_counted_as_one_by_one() -> None:
    p = tournament(7, seed=1)
    for size in range(1, 8):
        having = [
            condorcet_winner(matrices.of_arms(p, list(arms))) is not None
            for arms in combinations(range(7), size)
        ]
        assert condorcet_share(p, size) == pytest.approx(np.mean(having))
    for size in (2, 3, 4):
        random = np.random.default_rng([9, size])
        drawn = [matrices.random_arms(7, size, random) for _ in range(300)]
        expected = sum(is_total_order(matrices.of_arms(p, arms)) for arms in drawn)
        assert ordered_subsets(p, size, 300, seed=9) == expected


def test_random_subsets_have_a_winner_and_do_not_depend_on_their_number() -> None:
    p = tournament(12, seed=3)
    some = matrices.condorcet_subsets(p, 5, 3, seed=1)
    more = matrices.condorcet_subsets(p, 5, 6, seed=1)
    assert all(condorcet_winner(each) is not None for each in more)
    assert all((one == other).all() for one, other in zip(some, more, strict=False))


def test_three_in_a_cycle() -> None:
    p = matrices.three_in_a_cycle(np.full((9, 9), 0.4))
    beaten = (p > 0.5).sum(axis=1).tolist()
    assert beaten == [7, 7, 7, 5, 4, 3, 2, 1, 0]
    assert copeland_winners(p).tolist() == [0, 1, 2]
    assert (p + p.T == 1).all()


def test_all_notions_agree_on_an_order() -> None:
    p = matrices.six_rankers()
    assert len(agreements(p)) == 7


def test_records_are_kept(tmp_path: Path) -> None:
    spent = store.Spent(tmp_path / "cache" / "figure.seconds")
    assert spent.add(1.5) == 1.5
    assert spent.add(2.0) == 3.5
    assert store.load(tmp_path / "none.json") == {}
