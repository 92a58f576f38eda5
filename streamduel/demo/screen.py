"""The live screen of the demo: the rankers' shares, a recent list, and the confidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamduel.demo.display import Progress
from streamduel.demo.rankers import LENGTH
from streamduel.demo.search import Visit
from streamduel.demo.users import QUERIES, RECIPES

SIDES: Final = {"a": ("A", "cyan"), "b": ("B", "magenta")}
"""Letter and colour of the two rankers of a list."""

FRAME_SECONDS: Final = 0.1
"""Between two frames."""

HOLD_SECONDS: Final = 3.0
"""How long one list is shown: the time to read it."""

LIST_LINES: Final = LENGTH + 3
OTHER_LINES: Final = 7
"""Lines of the frame apart from the list and the rankers' rows."""
MIN_ROWS: Final = 3
"""In a small terminal, the list is left out before the table has fewer rows."""

BAR_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


class LiveScreen:
    """The progress of the demo on a terminal."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock = console, clock
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._shown_at = self._held_since = -HOLD_SECONDS + clock()
        self._visit: Visit | None = None

    def show(self, progress: Progress) -> None:
        """Show a frame every `FRAME_SECONDS` seconds."""
        now = self._clock()
        if now - self._shown_at < FRAME_SECONDS:
            return
        self._shown_at = now
        if self._visit is None or now - self._held_since >= HOLD_SECONDS:
            self._visit, self._held_since = progress.visit, now
        size = self._console.size
        self._live.update(frame(progress, self._visit, size.width, size.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def frame(progress: Progress, visit: Visit | None, width: int, height: int) -> RenderableType:
    """One frame; in too few lines, the rankers with the smallest shares are left out."""
    arms = len(progress.view.arms)
    with_list = height >= OTHER_LINES + LIST_LINES + min(arms, MIN_ROWS + 1)
    rows = height - OTHER_LINES - (LIST_LINES if with_list else 0)
    parts: list[RenderableType] = [_headline(progress), Text(), _rankers(progress, width, rows)]
    if with_list:
        parts += [Text(), _clicked_list(visit)]
    return Group(*parts, Text(), _confidence(progress, width), *_footer(progress))


def _headline(progress: Progress) -> Text:
    """The title line."""
    return _line(
        ("streamduel demo", "bold"),
        f": which of {len(progress.view.arms)} rankers is best? ",
        (progress.policy, "bold"),
        " learns from clicks",
    )


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _rankers(progress: Progress, width: int, rows: int) -> Table:
    """The table of rankers, with at most so many rows below the heading."""
    view, shares = progress.view, progress.shares
    every = range(len(view.arms))
    shown = list(every)
    if len(shown) > rows:
        by_share = sorted(every, key=lambda arm: (arm != view.champion, -shares[arm], arm))
        shown = sorted(by_share[: max(1, rows - 1)])
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column(width=max(len(arm) for arm in view.arms), no_wrap=True)
    bar = max(5, min(60, width - 1 - max(len(arm) for arm in view.arms) - 5 - 8 - 8 - 8 - 6))
    table.add_column(width=bar, no_wrap=True)
    for heading_width in (5, 8, 8, 8):
        table.add_column(width=heading_width, justify="right", no_wrap=True)
    table.add_row(
        "", *(Text(it, "dim") for it in ("ranker", "share of the latest lists", "", "duels")),
        *(Text(it, "dim") for it in ("wins", "beats")),
    )  # fmt: skip
    for arm in shown:
        is_champion = arm == view.champion and progress.impressions > 0
        style = "bold green" if is_champion else ""
        table.add_row(
            Text("★" if is_champion else "", style),
            Text(view.arms[arm], style),
            Text(bar_of(shares[arm], bar), style or "blue"),
            Text(f"{shares[arm]:.0%}", style),
            f"{view.arm_duels[arm]:,}",
            f"{view.wins[arm].sum():,.0f}",
            f"{view.copeland[arm] * (len(view.arms) - 1):.0f} of {len(view.arms) - 1}",
        )
    if len(shown) < len(view.arms):
        rest = sum(shares) - sum(shares[arm] for arm in shown)
        table.add_row("", Text("…", "dim"), Text(f"{len(view.arms) - len(shown)} more", "dim"),
                      Text(f"{rest:.0%}", "dim"))  # fmt: skip
    return table


def bar_of(share: float, width: int) -> str:
    """A bar, to an eighth of a column.

    >>> bar_of(0.25, 10)
    '██▌'
    """
    eighths = round(share * width * 8)
    return BAR_BLOCKS[-1] * (eighths // 8) + BAR_BLOCKS[eighths % 8].strip()


def _clicked_list(visit: Visit | None) -> Group:
    """An interleaved list, the ranker of each document, and the clicks."""
    if visit is None:
        return Group(*[Text()] * (LIST_LINES - 1))
    a, b = visit.draw.a, visit.draw.b
    sides = [("A " + a, SIDES["a"][1]), " and ", ("B " + b, SIDES["b"][1])]
    gets = [f"the results of {a} alone"] if visit.draw.alone else ["one list of ", *sides]
    head = _line((f"A user looks for “{QUERIES[visit.query]}”", "bold"), " and gets ", *gets)
    lines = []
    for rank, (doc, team) in enumerate(zip(visit.page.docs, visit.page.teams, strict=True)):
        letter, style = SIDES[team] if team else (" ", "")
        click = "◀ click" if rank in visit.clicks else ""
        listed = f" {rank + 1}  {letter}  {RECIPES[doc]!s:24}"
        lines.append(_line((listed, style), (click, "bold yellow")))
    return Group(head, *lines, _outcome(visit))


def _outcome(visit: Visit) -> Text:
    """The outcome of the duel."""
    if visit.draw.alone:
        return Text(" no duel: nothing is left to be tried out here", "dim")
    ours, theirs = visit.clicks_on("a"), visit.clicks_on("b")
    if ours == theirs:
        return Text(f" clicks {ours} to {theirs}: a tie", "dim")
    winner, side = (visit.draw.a, "a") if ours > theirs else (visit.draw.b, "b")
    return Text(f" clicks {ours} to {theirs}: {winner} wins the duel", SIDES[side][1])


def _confidence(progress: Progress, width: int) -> Text:
    """The champion's confidence, and the regret."""
    view = progress.view
    bar = max(10, min(30, width - 54))
    filled = int(view.confidence * bar)
    style = "green" if view.confidence >= 0.95 else "yellow"
    return _line(
        "confidence ",
        ("█" * filled, style),
        ("░" * (bar - filled), "dim"),
        (f" {view.confidence:.3f}", style),
        f"   regret so far: about {view.regret['condorcet']:,.0f}",
    )


def _footer(progress: Progress) -> list[Text]:
    """The numbers, the status page, and how to end the demo."""
    numbers = (
        f"{progress.impressions_text}, {progress.speed:,.0f} a second, "
        f"epoch {progress.view.epoch:,}, {progress.seconds_text}"
    )
    end = "Ctrl-C ends", "dim"
    if not progress.url:
        return [_line(numbers), _line(end)]
    page = _line("status page and metrics ", (progress.url, "underline"), "   ", end)
    return [_line(numbers), page]
