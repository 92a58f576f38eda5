"""The demo in a terminal: who is shown, a list that was just clicked on, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamduel.demo.picture import Picture
from streamduel.demo.recipes import QUERIES, RECIPES
from streamduel.demo.search import Visit
from streamduel.demo.world import LENGTH

SIDES: Final = {"a": ("A", "cyan"), "b": ("B", "magenta")}
"""How the two rankers of a list are told apart: by letter and by colour."""

FRAME_SECONDS: Final = 0.1
"""Between two frames: what comes faster cannot be seen."""

HOLD_SECONDS: Final = 3.0
"""For so long one list is shown: it takes as long to be read."""

LIST_LINES: Final = LENGTH + 3
OTHER_LINES: Final = 7
"""Lines of the frame apart from the list and the rankers' rows."""
FEWEST_ROWS: Final = 3
"""A table of fewer rankers would tell nothing: before that, the list goes."""

BAR_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


class LiveScreen:
    """The demo as a picture that moves.

    Args:
        console: a terminal.
        clock: seconds that only grow.
    """

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock = console, clock
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._shown_at = self._held_since = -HOLD_SECONDS + clock()
        self._visit: Visit | None = None

    def show(self, picture: Picture) -> None:
        """The next frame, if it is time for one."""
        now = self._clock()
        if now - self._shown_at < FRAME_SECONDS:
            return
        self._shown_at = now
        if self._visit is None or now - self._held_since >= HOLD_SECONDS:
            self._visit, self._held_since = picture.visit, now
        size = self._console.size
        self._live.update(frame(picture, self._visit, size.width, size.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()


def frame(picture: Picture, visit: Visit | None, width: int, height: int) -> RenderableType:
    """One frame.

    Args:
        picture: the demo at one moment.
        visit: the list that is shown at present.
        width: of the terminal, in columns.
        height: in lines. Where they do not do, the rankers who are shown least go first.
    """
    arms = len(picture.view.arms)
    with_list = height >= OTHER_LINES + LIST_LINES + min(arms, FEWEST_ROWS + 1)
    rows = height - OTHER_LINES - (LIST_LINES if with_list else 0)
    parts: list[RenderableType] = [_headline(picture), Text(), _rankers(picture, width, rows)]
    if with_list:
        parts += [Text(), _clicked_list(visit)]
    return Group(*parts, Text(), _certainty(picture, width), *_footer(picture))


def _headline(picture: Picture) -> Text:
    """What happens here."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("streamduel demo", "bold")
    text.append(f": which of {len(picture.view.arms)} rankers is best? ")
    text.append(picture.policy, "bold")
    text.append(" learns from clicks")
    return text


def _rankers(picture: Picture, width: int, rows: int) -> Table:
    """Who is shown how much, and wins how much; at most so many rows below the heading."""
    view, shares = picture.view, picture.shares
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
        is_champion = arm == view.champion and picture.impressions > 0
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
    """A bar of so many columns at most, to an eighth of one.

    >>> bar_of(0.25, 10)
    '██▌'
    """
    eighths = round(share * width * 8)
    return BAR_BLOCKS[-1] * (eighths // 8) + BAR_BLOCKS[eighths % 8].strip()


def _clicked_list(visit: Visit | None) -> Group:
    """A list of two rankers, whose each document is, and what its user clicked on."""
    if visit is None:
        return Group(*[Text()] * (LIST_LINES - 1))
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(f"A user looks for “{QUERIES[visit.query]}”", "bold")
    if visit.draw.alone:
        head.append(f" and gets the results of {visit.draw.a} alone")
    else:
        head.append(" and gets one list of ")
        head.append(f"A {visit.draw.a}", SIDES["a"][1])
        head.append(" and ")
        head.append(f"B {visit.draw.b}", SIDES["b"][1])
    lines = []
    for rank, (doc, team) in enumerate(zip(visit.page.docs, visit.page.teams, strict=True)):
        letter, style = SIDES[team] if team else (" ", "")
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f" {rank + 1}  {letter}  {RECIPES[doc]!s:24}", style)
        if rank in visit.clicks:
            line.append("◀ click", "bold yellow")
        lines.append(line)
    return Group(head, *lines, _verdict(visit))


def _verdict(visit: Visit) -> Text:
    """Who has won the list."""
    if visit.draw.alone:
        return Text(" no duel: nothing is left to be tried out here", "dim")
    ours, theirs = visit.clicks_on("a"), visit.clicks_on("b")
    if ours == theirs:
        return Text(f" clicks {ours} to {theirs}: a tie", "dim")
    winner, side = (visit.draw.a, "a") if ours > theirs else (visit.draw.b, "b")
    return Text(f" clicks {ours} to {theirs}: {winner} wins the duel", SIDES[side][1])


def _certainty(picture: Picture, width: int) -> Text:
    """How sure the champion is, and what it has cost."""
    view = picture.view
    bar = max(10, min(30, width - 54))
    filled = int(view.confidence * bar)
    style = "green" if view.confidence >= 0.95 else "yellow"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("confidence ")
    text.append("█" * filled, style)
    text.append("░" * (bar - filled), "dim")
    text.append(f" {view.confidence:.3f}", style)
    text.append(f"   regret so far: about {view.regret['condorcet']:,.0f}")
    return text


def _footer(picture: Picture) -> list[Text]:
    """Numbers, the status page, and how to end it."""
    numbers = (
        f"{picture.counted}, {picture.speed:,.0f} a second, epoch {picture.view.epoch:,}, "
        f"{picture.lasted}"
    )
    page = Text(no_wrap=True, overflow="ellipsis")
    if picture.url:
        page.append("status page and metrics ")
        page.append(picture.url, "underline")
        page.append("   ")
    page.append("Ctrl-C ends", "dim")
    return [Text(numbers, no_wrap=True, overflow="ellipsis"), page]
