"""The bars of long commands on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streamduel.cli.progress import FoldProgress, counting_progress


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, _environ={})


def test_the_records_to_fold_are_those_folded_and_the_lag() -> None:
    screen = console(terminal=True)
    with FoldProgress(screen) as bar:
        [task] = bar._progress.tasks

        def shown() -> tuple[float, float | None]:
            return task.completed, task.total

        assert shown() == (0, None)
        bar.polled(10)
        bar.lagging({0: 60, 1: 30})
        bar.polled(15)
        assert shown() == (25, 100)
        bar.lagging({0: 95})
        assert shown() == (25, 120)
        bar.lagging({})
        assert shown() == (25, 120)
    assert isinstance(screen.file, io.StringIO)
    _, shown_at_last, after = screen.file.getvalue().rpartition("25/120")
    assert shown_at_last
    assert "\x1b[2K" in after, "the line is erased"
    assert "\x1b[?25h" in after, "the cursor is back"


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_done_is_shown_on_a_terminal_alone(terminal: bool) -> None:
    screen = console(terminal=terminal)
    with counting_progress(screen, "replaying") as progress:
        progress(30, 100)
    assert isinstance(screen.file, io.StringIO)
    said = screen.file.getvalue()
    assert ("replaying" in said, "30/100" in said) == (terminal, terminal)
    assert terminal or not said
