"""Numbers, times and names as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from streamduel.errors import readable
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.outlook import SURE, WHY_NOT, Outlook
from streamduel.monitoring.views import ExperimentView
from streamduel.preference import verdict

THIN: Final = "\N{NARROW NO-BREAK SPACE}"
"""Between a number and its unit, so that no line breaks there."""

MAX_BRIEF: Final = 15
"""Characters of a name beside the matrix, for which its style sheet has room."""

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SCALES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(number: float) -> str:
    """A count; ties count one half.

    >>> count(65513), count(610.5), count(4.0)
    ('65,513', '610.5', '4')
    """
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


def amount(number: float) -> str:
    """A quantity other than a count: three digits, or all before the point.

    >>> amount(0.0), amount(0.0123), amount(12.345), amount(1234.5)
    ('0', '0.0123', '12.3', '1,234')
    """
    if number == 0:
        return "0"
    return f"{number:.3g}" if abs(number) < 100 else f"{number:,.0f}"


def brief(name: str) -> str:
    """A name beside the matrix, with its beginning and its end.

    >>> brief("ltr-v1"), brief("learning-to-rank-model-v1")
    ('ltr-v1', 'learnin…odel-v1')
    """
    return readable(name, MAX_BRIEF)


def short(number: float) -> str:
    """A number on an axis.

    >>> short(0), short(0.5), short(950), short(12500), short(3e6)
    ('0', '0.5', '950', '12.5k', '3M')
    """
    for scale, letter in _SCALES:
        if abs(number) >= scale:
            return f"{number / scale:.4g}{letter}"
    return f"{number:.4g}"


def percent(share: float) -> str:
    """A share in per cent with one digit."""
    return verdict.percent(share).replace(" ", THIN)


def percents(shares: Sequence[float]) -> list[str]:
    """Shares of a whole in per cent with one digit; those of all parts add up to 100.0.

    The largest remainders are rounded up.

    >>> [text.replace(THIN, " ") for text in percents([1 / 3, 1 / 3, 1 / 3])]
    ['33.4 %', '33.3 %', '33.3 %']
    """
    tenths = [math.floor(round(1000 * share, 6)) for share in shares]
    short = round(1000 * sum(shares)) - sum(tenths)
    order = sorted(range(len(shares)), key=lambda part: tenths[part] - 1000 * shares[part])
    for part in order[:short]:
        tenths[part] += 1
    return [f"{each / 10:.1f}{THIN}%" for each in tenths]


def at_least(share: float) -> str:
    """A lower bound of a confidence: rounded down, and never 100 %."""
    return verdict.at_least(share).replace(" ", THIN)


def moment(seconds: float) -> str:
    """A time of day with its date, in UTC.

    >>> moment(1_790_000_000)
    '2026-09-21 14:13:20 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a record may have any timestamp
        return f"second {seconds:.0f}"


def span(seconds: float, digits: int = 0) -> str:
    """A duration in its largest unit, rounded down; below 10, with so many digits after the point.

    >>> [span(seconds).replace(THIN, " ") for seconds in (0.2, 59.9, 150, 7200, 200_000)]
    ['0 s', '59 s', '2 min', '2 h', '2 d']
    >>> [span(seconds, 1).replace(THIN, " ") for seconds in (0.2, 59.9, 150, 7200, 200_000)]
    ['0 s', '59 s', '2.5 min', '2 h', '2.3 d']
    """
    for length, unit in _UNITS:
        if seconds >= length:
            scale = 10**digits if seconds < 10 * length and length > 1 else 1
            return f"{math.floor(seconds / length * scale) / scale:.10g}{THIN}{unit}"
    return f"0{THIN}s"


def outlook(found: Outlook) -> str:
    """When an experiment will be sure, in a sentence.

    >>> outlook(Outlook(181_440.0, 103_680.0, 388_800.0)).replace(THIN, " ")
    "Sure in 2.1 d at today's traffic (80 %: 1.2 d to 4.5 d)."
    >>> outlook(Outlook.unknown("no_traffic"))
    'There is no traffic to estimate a time from.'
    """
    if found.why_not is not None:
        return WHY_NOT[found.why_not]
    if found == SURE:
        return ""
    high = "long after" if math.isnan(found.high) else span(found.high, 1)
    spread = f"(80{THIN}%: {span(found.low, 1)} to {high})"
    return f"Sure in {span(found.median, 1)} at today's traffic {spread}."


def wait(found: Outlook) -> str:
    """When an experiment will be sure, in a cell of a table.

    >>> wait(Outlook(181_440.0, 103_680.0, 388_800.0)).replace(THIN, " ")
    '2.1 d'
    >>> wait(SURE), wait(Outlook.unknown("no_end"))
    ('sure', '–')
    """
    if found == SURE:
        return "sure"
    return "–" if math.isnan(found.median) else span(found.median, 1)


def last_record(view: ExperimentView, figures: Figures) -> str:
    """The time since the last record of an experiment, as far as this process has seen one."""
    if not any(view.tallies.values()):
        return "none yet"
    if not view.active:
        return "none since the restart"
    return f"{span(max(0.0, figures.now - view.last_record_at))} ago"


def address(name: str) -> str:
    """The address of an experiment's page.

    Browsers resolve `.` and `..` in a path, even percent-encoded.

    >>> address("search"), address("a/b"), address("..")
    ('/experiments/search', '/experiments/a%2Fb', '/experiments/?name=..')
    """
    if name in {".", ".."}:
        return f"/experiments/?name={name}"
    return f"/experiments/{path(name)}"


def path(name: str) -> str:
    """A name as one segment of an address.

    >>> path("a/b?")
    'a%2Fb%3F'
    """
    return quote(name, safe="")
