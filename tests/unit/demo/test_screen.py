"""The screen, the lines and the report of the demo, as text."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console, RenderableType

from streamduel.client import Draw, Merged
from streamduel.demo.display import LINE_SECONDS, Progress, ProgressLines
from streamduel.demo.report import plot_regret, print_report, sentence
from streamduel.demo.run import Result
from streamduel.demo.screen import HOLD_SECONDS, LiveScreen, bar_of, frame
from streamduel.demo.search import Visit
from tests.unit.demo.bed import Clock, played

URL = "http://127.0.0.1:65535/"
VISIT = Visit(
    query=1,
    draw=Draw("bm25", "dense-v1", 3),
    page=Merged([1, 5, 25, 49, 2, 20], ["a", "b", "b", "a", None, "a"]),
    clicks=[0, 3, 1],
)


class Demo(NamedTuple):
    played: Result
    progress: Progress


def shown(seed: int, arms: int, folder: Path) -> Demo:
    done = played(folder, seed=seed, arms=arms, impressions=600)
    assert done.progress is not None
    changes = {"visit": VISIT, "url": URL, "speed": 49.6, "seconds": 12.4}
    return Demo(done, Progress(**{**vars(done.progress), **changes}))


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return shown(0, 6, tmp_path_factory.mktemp("six"))


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return shown(0, 20, tmp_path_factory.mktemp("twenty"))


def text(renderable: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("arms", ["six", "twenty"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 20), (80, 12)])
def test_a_frame_fits_the_terminal(
    request: pytest.FixtureRequest, arms: str, width: int, height: int
) -> None:
    progress = request.getfixturevalue(arms).progress
    lines = text(frame(progress, VISIT, width, height), width).splitlines()
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "status page and metrics " + URL in "\n".join(lines)
    assert progress.view.arms[progress.view.champion] in "\n".join(lines)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_a_frame_shows_shares_and_confidence(six: Demo, width: int, height: int) -> None:
    view = six.progress.view
    said = text(frame(six.progress, VISIT, width, height), width)
    assert "which of 6 rankers is best? top_two learns from clicks" in said
    for arm, name in enumerate(view.arms):
        row = next(line for line in said.splitlines() if line[2:].startswith(name))
        assert row.startswith("★" if arm == view.champion else " ")
        assert f"{six.progress.shares[arm]:.0%}" in row
        assert f" {view.arm_duels[arm]:,} " in row
        assert f" {view.wins[arm].sum():,.0f} " in row
        assert row.rstrip().endswith(f"{5 * view.copeland[arm]:.0f} of 5")
    assert f" {view.confidence:.3f}" in said
    assert f"regret so far: about {view.regret['condorcet']:,.0f}" in said
    assert f"600 of 600 impressions, 50 a second, epoch {view.epoch}, 12 s" in said


def test_a_list_shows_teams_and_clicks(six: Demo) -> None:
    said = text(frame(six.progress, VISIT, 80, 24), 80).splitlines()
    first = next(i for i, line in enumerate(said) if line.startswith("A user looks for"))
    assert [line.rstrip() for line in said[first : first + 8]] == [
        "A user looks for “apple pie” and gets one list of A bm25 and B dense-v1",
        " 1  A  classic apple pie       ◀ click",
        " 2  B  classic carrot pie      ◀ click",
        " 3  B  quick apple pie",
        " 4  A  vegan apple pie         ◀ click",
        " 5     classic apple soup",
        " 6  A  classic pumpkin cake",
        " clicks 2 to 1: bm25 wins the duel",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clicks": [1, 2, 0]}, "clicks 1 to 2: dense-v1 wins the duel"),
        ({"clicks": []}, "clicks 0 to 0: a tie"),
        ({"clicks": [4]}, "clicks 0 to 0: a tie"),
        (
            {"draw": Draw("bm25", "bm25"), "page": Merged([1, 2], [None, None])},
            "no duel: nothing is left to be tried out here",
        ),
        (
            {"draw": Draw("bm25", "bm25"), "page": Merged([1, 2], [None, None])},
            "gets the results of bm25 alone",
        ),
    ],
)
def test_a_list_shows_the_winner(six: Demo, changes: dict[str, Any], words: str) -> None:
    assert words in text(frame(six.progress, VISIT._replace(**changes), 80, 24), 80)


def test_before_the_first_impression_there_is_no_champion_and_no_list(six: Demo) -> None:
    nothing = {"impressions": 0, "visit": None, "url": None}
    said = text(frame(Progress(**{**vars(six.progress), **nothing}), None, 80, 24), 80)
    assert "★" not in said
    assert "A user looks" not in said
    assert "status page" not in said
    assert "Ctrl-C ends" in said


def test_of_many_rankers_those_with_the_smallest_shares_are_left_out(twenty: Demo) -> None:
    shares = [0.0] * 20
    shares[3], shares[9], shares[19] = 0.5, 0.3, 0.2
    progress = Progress(**{**vars(twenty.progress), "shares": shares})
    names = [progress.view.arms[arm] for arm in (3, 9, 19)]
    said = text(frame(progress, VISIT, 80, 24), 80)
    assert all(f" {name} " in said for name in names)
    assert re.search(r"… +13 more", said)
    assert "more" not in text(frame(progress, VISIT, 120, 40), 120).replace("more ", "")


@pytest.mark.parametrize(
    ("share", "bar"), [(0, ""), (1, "████"), (0.5, "██"), (1 / 32, "▏"), (0.34, "█▍")]
)
def test_the_length_of_bars_is_proportional_to_shares(share: float, bar: str) -> None:
    assert bar_of(share, 4) == bar


class Frames(Console):
    """A terminal that remembers what was shown last."""

    def __init__(self) -> None:
        super().__init__(
            file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None,
            _environ={},
        )  # fmt: skip

    def take(self) -> str:
        assert isinstance(self.file, io.StringIO)
        said = self.file.getvalue()
        self.file.truncate(0)
        self.file.seek(0)
        return said


def test_a_list_is_shown_for_some_seconds(six: Demo) -> None:
    clock, console = Clock(), Frames()
    other = Progress(**{**vars(six.progress), "visit": VISIT._replace(query=5)})
    with LiveScreen(console, clock) as screen:
        screen.show(six.progress)
        assert "“apple pie”" in console.take()
        clock.sleep(HOLD_SECONDS / 2)
        screen.show(other)
        assert "“apple pie”" in console.take()
        clock.sleep(HOLD_SECONDS / 2)
        screen.show(other)
        assert "“carrot pie”" in console.take()


def test_the_frame_rate_is_limited(six: Demo) -> None:
    clock, console = Clock(), Frames()
    with LiveScreen(console, clock) as screen:
        screen.show(six.progress)
        assert console.take()
        clock.sleep(0.05)
        screen.show(six.progress)
        assert not console.take()


def test_the_screen_is_restored(six: Demo) -> None:
    clock, console = Clock(), Frames()
    with contextlib.suppress(KeyboardInterrupt), LiveScreen(console, clock) as screen:
        screen.show(six.progress)
        assert "\x1b[?1049h" in console.take()
        raise KeyboardInterrupt
    said = console.take()
    assert "\x1b[?1049l" in said
    assert "\x1b[?25h" in said  # the cursor


def test_without_a_terminal_a_line_is_printed_every_five_seconds(six: Demo) -> None:
    clock, out = Clock(), io.StringIO()
    view = six.progress.view
    with ProgressLines(Console(file=out, width=40), clock) as lines:
        lines.show(Progress(**{**vars(six.progress), "impressions": 0}))
        for _ in range(4):
            clock.sleep(LINE_SECONDS / 2)
            lines.show(six.progress)
    later = (
        f"    600 of 600 impressions, epoch {view.epoch}: champion "
        f"{view.arms[view.champion]}, confidence {view.confidence:.3f}"
    )
    assert out.getvalue().splitlines() == [
        f"status page and metrics: {URL}",
        f"      0 of 600 impressions, epoch {view.epoch}: champion not known yet, confidence "
        f"{view.confidence:.3f}",
        later,
        later,
    ]


def test_a_demo_with_a_time_limit_counts_seconds(
    six: Demo,
) -> None:
    out = io.StringIO()
    progress = Progress(
        **{**vars(six.progress), "limit": 1_000_000, "seconds": 5.2, "time_limit": 7.0}
    )
    with ProgressLines(Console(file=out, width=40), Clock()) as lines:
        lines.show(progress)
    assert out.getvalue().startswith("    600 impressions, 5 of 7 s, epoch ")
    said = text(frame(progress, VISIT, 80, 24), 80)
    assert f"600 impressions, 50 a second, epoch {progress.view.epoch}, 5 of 7 s" in said
    assert "1,000,000" not in said


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_plot_has_both_curves_and_fits(width: int) -> None:
    curve = [(n, 100.0 * (1 - 0.5 ** (n / 300))) for n in range(0, 3001, 10)]
    plot = plot_regret(curve, 500.0, "rucb:alpha=0.8", width)
    lines = plot.plain.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 18
    for words in ("regret over impressions", "rucb:alpha=0.8", "all pairs equally", "500", "3,000"):
        assert words in plot.plain
    assert "·····" in plot.plain  # the line
    assert "⠤⠤⠤" in plot.plain or "⠒⠒⠒" in plot.plain or "⣀⣀⣀" in plot.plain  # the curve


def test_the_report_shows_the_truth_beside_the_observations(six: Demo) -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=80), six.played)
    said = out.getvalue()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", said)
    world = six.played.rankers
    rows = [line for line in said.splitlines() if line.startswith("│ ")]
    assert world.arms[world.best] in rows[0]
    assert "is the best" in rows[0]
    beaten = [float(found[1]) for row in rows[1:6] if (found := re.search(r"([\d.]+)%", row))]
    assert beaten == sorted(beaten)
    assert len(beaten) == 5
    view = six.progress.view
    for row in rows:
        name, shown, duels, wins = re.split(r"[ ★]*│ *", row.strip("│ "))[:4]
        arm = view.arms.index(name)
        assert int(shown) == six.progress.shown[arm]
        assert int(duels) == view.arm_duels[arm] == view.wins[arm].sum() + view.wins[:, arm].sum()
        assert float(wins) == round(view.wins[arm].sum())
    assert said.endswith(sentence(world, six.played.statistics, six.progress) + "\n")


def test_a_wrong_champion_is_reported(six: Demo) -> None:
    world, ledger, _ = six.played
    wrong = world.worse_half[0]
    view = vars(six.progress.view) | {"champion": wrong}
    view = {name: value for name, value in view.items() if name in six.progress.view.__match_args__}
    progress = Progress(**{**vars(six.progress), "view": type(six.progress.view)(**view)})
    lead = world.preferences[world.best, wrong]
    assert (
        f"says that {world.arms[wrong]} is the best, but {world.arms[world.best]} is, which beats "
        f"it {lead:.1%} of the time (confidence 0.000: not sure yet, that takes more impressions)."
    ) in sentence(world, ledger, progress)


def test_no_impressions_give_no_result(six: Demo) -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=80), six.played._replace(progress=None))
    assert out.getvalue() == "Ended before the first impression: nothing is known yet.\n"
