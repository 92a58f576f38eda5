"""Plots: valid files, equal for equal results, with every policy's name."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from streamduel.errors import ConfigurationError
from streamduel.simulation import plot
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.plot import check_plot, draw
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings
from streamduel.simulation.simulate import simulate


def simulated(runs: int = 3, **changes: Any) -> Results:
    entries = [("rucb", {}), ("rucb", {"alpha": 0.8}), ("uniform", {})]
    given = {"policies": entries, "horizon": 300, "runs": runs, "seed": 7, **changes}
    return simulate(Settings(ARXIV, **given))


@pytest.fixture(scope="module")
def results() -> Results:
    return simulated()


def pixels(path: Path) -> tuple[int, int, bytes]:
    """Width, height and decompressed rows of a PNG, whose checksums must hold."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, compressed, size = 8, b"", (0, 0)
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        compressed += body if kind == b"IDAT" else b""
        place += 12 + length
    return size[0], size[1], zlib.decompress(compressed)


def test_a_png_is_written(results: Results, tmp_path: Path) -> None:
    draw(results, tmp_path / "x.png", title="arxiv")
    width, height, rows = pixels(tmp_path / "x.png")
    assert width > 900
    assert height > 700
    assert len(set(rows)) > 50  # not blank


@pytest.mark.parametrize("scale", plot.SCALES)
@pytest.mark.parametrize("band", plot.BANDS)
def test_an_svg_has_title_axes_and_names(
    results: Results, tmp_path: Path, scale: str, band: str
) -> None:
    draw(results, tmp_path / "x.svg", title="arxiv", scale=scale, band=band)
    root = ET.fromstring((tmp_path / "x.svg").read_text())
    assert root.tag.endswith("svg")
    words = " ".join("".join(each.itertext()) for each in root.iter() if each.tag.endswith("text"))
    for expected in (
        "arxiv", "rucb (alpha=0.51)", "rucb (alpha=0.8)", "uniform",
        "cumulative condorcet regret", "champion accuracy", "of 3 runs",
        "standard error" if band == "error" else "10 % to 90 %",
    ):  # fmt: skip
        assert expected in words


def test_with_answers_there_is_a_panel_of_them(tmp_path: Path) -> None:
    clear = [[0.5, 0.8], [0.2, 0.5]]
    found = simulate(
        Settings(clear, [("top_two", {}), ("rucb", {})], 100, 3, seed=7, until_sure=0.95)
    )
    assert {answer.verdict for place in (0, 1) for answer in found.answers(place)} == {
        "champion", None,
    }  # fmt: skip
    draw(found, tmp_path / "x.svg")
    assert "share 95 % sure" in (tmp_path / "x.svg").read_text()
    panel = Figure().subplots()
    for place in (0, 1):
        plot._add_answers(panel, found, place)
    answered, unanswered = panel.lines
    times = sorted(answer.duels for answer in found.answers(0))
    shares = np.array([[1, *times, 100], [0, 1 / 3, 2 / 3, 1, 1]])
    assert pytest.approx(shares) == np.asarray(answered.get_xydata()).T
    assert np.asarray(unanswered.get_xydata()).tolist() == [[1, 0], [100, 0]]


@pytest.mark.parametrize(
    ("finals", "bottom"),
    [((30.0, 100.0), 1.0), ((0.3, 100.0), 0.1), ((0.0, 30.0), 1.0), ((0.0,), None)],
)
def test_a_log_scale_begins_at_one_or_below_the_least_regret(
    finals: tuple[float, ...], bottom: float | None
) -> None:
    panel = Figure().subplots()
    panel.plot([1, 2], [0.0, 100.0])
    plot._scale_regret(panel, "log", {str(place): it for place, it in enumerate(finals)})
    assert panel.get_yscale() == ("linear" if bottom is None else "log")
    assert panel.get_ylim()[0] == pytest.approx(bottom or 0.0)


@pytest.mark.parametrize(("policies", "beside"), [(3, False), (12, False), (13, True)])
def test_the_legend_begins_with_the_highest_regret(policies: int, beside: bool) -> None:
    figure = Figure()
    panel = figure.subplots()
    finals = {str(place): float(7 * place % policies) for place in range(policies)}
    for name in finals:
        panel.plot([1, 2], [0, 1], label=name)
    plot._add_legend(figure, panel, finals)
    legend = figure.legends[0] if beside else panel.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == sorted(finals, key=finals.__getitem__, reverse=True)


def test_a_pdf_is_written(results: Results, tmp_path: Path) -> None:
    draw(results, tmp_path / "x.PDF")
    assert (tmp_path / "x.PDF").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["x.png", "x.svg", "x.pdf"])
def test_equal_results_make_equal_pictures(results: Results, tmp_path: Path, name: str) -> None:
    first, second = tmp_path / f"1{name}", tmp_path / f"2{name}"
    draw(results, first)
    draw(simulated(), second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("scale", plot.SCALES)
def test_a_single_run_and_no_regret_at_all_can_be_drawn(tmp_path: Path, scale: str) -> None:
    even = [[0.5, 0.5], [0.5, 0.5]]
    nothing = simulate(
        Settings(even, [("uniform", {})], horizon=1, runs=1, seed=0, regret="copeland")
    )
    draw(nothing, tmp_path / "x.svg", scale=scale)
    assert (tmp_path / "x.svg").stat().st_size


def test_many_policies_are_named_beside_the_picture(tmp_path: Path) -> None:
    many = simulated(policies=[("rucb", {"alpha": 0.51 + k / 10}) for k in range(15)], runs=1)
    draw(many, tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text().count("rucb (alpha=") == 15


def test_no_two_of_forty_policies_look_the_same() -> None:
    looks = {
        (
            plot._COLOURS[place % len(plot._COLOURS)],
            str(plot._DASHES[place % len(plot._DASHES)]),
            plot._MARKERS[place % len(plot._MARKERS)],
        )
        for place in range(40)
    }
    assert len(looks) == 40


@pytest.mark.parametrize(
    ("path", "scale", "band", "sentence"),
    [
        ("x.gif", "linear", "error", r"must be a file named .png, .svg or .pdf \(found 'x.gif'\)"),
        ("x", "linear", "error", r"must be a file named .png"),
        ("x.png", "logg", "error", r"the scale of the plot must be linear or log \(found 'logg';"),
        ("x.png", "log", "quantile", r"must be error or quantiles .* did you mean 'quantiles'\?"),
    ],
)
def test_mistakes_are_named(path: str, scale: str, band: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        check_plot(Path(path), scale, band)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'streamduel\[sim\]'"):
        check_plot(Path("x.png"))
