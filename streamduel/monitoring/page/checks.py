"""Whether an experiment's figures can be trusted: checks, with a sentence for who is on call."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from streamduel.monitoring.figures import MAX_SILENT_SECONDS, Figures
from streamduel.monitoring.page.wording import at_least, count, legible, percent, span
from streamduel.monitoring.views import MAX_ARMS_ON_DEMAND, ExperimentView
from streamduel.preference.evidence import unfairness
from streamduel.stream.trust import EVEN

UNFAIR: Final = 0.99
"""From here on, services are said to be unfair, as by the alert: of a hundred fair experiments one
comes this far in its whole life."""

TOLERABLE: Final = 0.01
"""The share of records that may go astray: one in a hundred moves no result that is worth acting
on, and a mistake in a service hits far more."""

Outcome = Literal["fine", "look", "open"]


class Check(NamedTuple):
    """One check.

    Attributes:
        what: what is to be so.
        outcome: it is (`fine`), somebody should look (`look`), or nothing can be said (`open`).
        sentence: what was found, and what to do.
    """

    what: str
    outcome: Outcome
    sentence: str


def checks(view: ExperimentView, figures: Figures, partition: int) -> list[Check]:
    """All checks of an experiment.

    Args:
        view: the experiment.
        figures: what is known of everything.
        partition: where the experiment lives.
    """
    made = [
        _folded(figures, partition),
        _fed(view, figures),
        _fair(view),
        _followed(view),
        _joined(view),
        _usable(view),
    ]
    if view.seeks == "condorcet" and len(view.arms) <= MAX_ARMS_ON_DEMAND:
        made.append(_winner_possible(view))
    return made


def _folded(figures: Figures, partition: int) -> Check:
    what = "Records are folded as they come"
    lag = figures.lags.get(partition)
    age = figures.now - figures.partitions[partition].saved_at
    if lag is None:
        return Check(what, "open", f"How many records of partition {partition} wait is not known.")
    if lag > 0 and age > MAX_SILENT_SECONDS:
        return Check(
            what,
            "look",
            f"{count(lag)} records of partition {partition} wait, and the last snapshot is "
            f"{span(age)} old: the partition has stopped. See the log of the process.",
        )
    return Check(what, "fine", f"{count(lag)} records of partition {partition} wait.")


def _fed(view: ExperimentView, figures: Figures) -> Check:
    what, idle = "Records keep coming", figures.now - view.last_record_at
    if view.fallback is not None and idle > view.fallback[1]:
        arm, allowed = view.fallback
        return Check(
            what,
            "look",
            f"None for {span(idle)}, where {span(allowed)} are allowed; ranker services are told "
            f"to serve {legible(arm)} alone. See whether they still log.",
        )
    if not view.active:  # and perhaps none before
        return Check(what, "open", f"None since the process took over, {span(idle)} ago.")
    return Check(what, "fine", f"The last one came {span(idle)} ago.")


def _fair(view: ExperimentView) -> Check:
    what, shown = "Services interleave fairly", view.impressions.shown
    if not shown:
        return Check(what, "open", "No interleaved impression so far; credited duels do not tell.")
    if view.team_mismatch > UNFAIR:
        return Check(
            what,
            "look",
            f"{_favoured(view)} than coins would give it (sure to {at_least(view.team_mismatch)}). "
            f"Do not trust the champion before the service that interleaves is mended.",
        )
    return Check(what, "fine", f"Nothing speaks against it in {count(shown)} impressions.")


def _favoured(view: ExperimentView) -> str:
    """Who has too much, or too little, and of what: the coin that is least like one."""
    coins = view.impressions.coins
    at = max(range(len(coins)), key=lambda each: unfairness([coins[each]]))
    who, what = divmod(at, len(EVEN))
    own, others = coins[at]
    name = f"The ranker {legible(view.arms[who - 1])}" if who else "Side a"
    return f"{name} has {'more' if own > others else 'fewer'} {EVEN[what]}"


def _followed(view: ExperimentView) -> Check:
    what, (shown, astray) = (
        "Services follow assignments",
        (view.impressions.shown, view.impressions.unassigned),
    )
    if not shown:
        return Check(what, "open", "No interleaved impression so far.")
    found = (
        f"{count(astray)} of {count(shown)} impressions ({percent(astray / shown)}) showed a pair"
    )
    if astray > TOLERABLE * shown:
        return Check(
            what,
            "look",
            f"{found} that nobody had asked for. Such duels count, but exploring costs more. See "
            f"whether the services read the assignments.",
        )
    return Check(what, "fine", f"{found} that nobody had asked for.")


def _joined(view: ExperimentView) -> Check:
    what = "Clicks find their impressions"
    late, unjoined = view.tallies["late"], view.tallies["unjoined"]
    lost, known = late + unjoined, view.tallies["accepted"]
    found = f"{count(late)} came too late, {count(unjoined)} have no impression"
    if lost > TOLERABLE * (known + lost):
        return Check(
            what,
            "look",
            f"{found}. See whether impressions are logged, and whether attribution waits long "
            f"enough.",
        )
    return Check(what, "fine", f"{found}.")


def _usable(view: ExperimentView) -> Check:
    what, letters = "Records can be used", view.tallies["dead_letter"]
    whole = letters + view.tallies["accepted"]
    found = f"{count(letters)} of {count(whole)} became dead letters"
    if letters > TOLERABLE * whole:
        return Check(what, "look", f"{found}. Each says why; the newest are below.")
    return Check(what, "fine", f"{found}.")


def _winner_possible(view: ExperimentView) -> Check:
    what = "There may be a ranker that beats all others"
    if view.condorcet_winner_possible:
        return Check(what, "fine", "At least one ranker has not surely lost to any other one.")
    return Check(
        what,
        "look",
        f"Each ranker has lost to some other one, with 95 % confidence, and {view.policy} looks "
        f"for one that beats all: it would explore for ever. Choose a policy that seeks a "
        f"Copeland winner.",
    )
