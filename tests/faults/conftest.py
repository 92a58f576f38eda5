"""Which scenarios run, and the figures that they report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.fixture import FULL
from tests.faults.figures import Figures, save, table

PROPERTY = "figures"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what `make faults` alone runs; there, begin with what takes longest."""
    if FULL:
        items.sort(key=lambda item: "nemesis" not in item.nodeid)
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def report(record_property: Callable[[str, Any], None]) -> Callable[[Figures], None]:
    """A function that reports the figures of a scenario, and fails if a record was miscounted."""

    def add(figures: Figures) -> None:
        record_property(PROPERTY, figures._asdict())
        print(figures.line())
        assert (figures.lost, figures.doubled) == (0, 0), figures.line()

    return add


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Write the table, and a line for each scenario."""
    measured: dict[str, Figures] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY and getattr(report, "when", "") == "call":
                    measured[report.nodeid] = Figures(**value)
    if not measured:
        return
    terminalreporter.section("faults")
    for test, figures in measured.items():
        terminalreporter.line(f"{test.partition('::')[2]}: {figures.line()}")
    if FULL:
        save(measured)
        terminalreporter.line("")
        terminalreporter.write(table(measured))
