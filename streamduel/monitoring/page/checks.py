"""Checks of an experiment's data, each with a sentence for the engineer on call."""

from __future__ import annotations

from typing import Literal, NamedTuple

from streamduel import policies
from streamduel.errors import counted, legible
from streamduel.monitoring.figures import MAX_SILENT_SECONDS, Figures
from streamduel.monitoring.page.wording import at_least, count, percent, span
from streamduel.monitoring.views import MAX_ARMS_ON_DEMAND, ExperimentView
from streamduel.preference.evidence import unfairness
from streamduel.stream.alarms import TOLERATED, UNFAIR
from streamduel.stream.client_cap import DOMINATED
from streamduel.stream.client_sketch import DEPENDENT
from streamduel.stream.conformance import EVEN

Result = Literal["ok", "problem", "unknown"]


class Check(NamedTuple):
    """One check.

    Attributes:
        title: the desired state.
        result: whether it is met.
        sentence: what was found, and what to do.
    """

    title: str
    result: Result
    sentence: str


def checks(view: ExperimentView, figures: Figures, partition: int) -> list[Check]:
    """All checks of an experiment.

    Args:
        view: the experiment.
        figures: the present figures of the process.
        partition: the experiment's partition.
    """
    results = [
        _lag(figures, partition),
        _records_arrive(view, figures),
        _fair_interleaving(view),
        _assignments_followed(view),
        _clicks_joined(view),
        _records_valid(view, figures),
        _clients_capped(view),
        _clients_independent(view),
        _clocks_agree(figures, partition),
    ]
    if view.seeks == "condorcet" and len(view.arms) <= MAX_ARMS_ON_DEMAND:
        results.append(_winner_possible(view))
    return results


def _judged(title: str, found: str, *, problem: bool, advice: str) -> Check:
    """The check with its advice, if there is a problem."""
    return Check(title, "problem", found + advice) if problem else Check(title, "ok", found + ".")


def _lag(figures: Figures, partition: int) -> Check:
    title = "Records are folded"
    lag = figures.lags.get(partition)
    age = figures.now - figures.partitions[partition].saved_at
    if lag is None:
        return Check(title, "unknown", f"The lag of partition {partition} is unknown.")
    if not figures.connected:  # the lag was measured before the connection was lost
        sentence = f"The lag of partition {partition} is unknown without a connection."
        return Check(title, "unknown", sentence)
    held = figures.stable_offset_lags.get(partition, 0)
    if held and held >= lag:
        return _judged(
            title,
            f"Partition {partition} has a lag of {count(lag)} records, all of them behind an open "
            f"transaction of a producer",
            problem=age > MAX_SILENT_SECONDS,
            advice=f", and nothing was read for {span(age)}. Restart that producer, or abort its "
            f"transaction: kafka-transactions.sh find-hanging.",
        )
    return _judged(
        title,
        f"Partition {partition} has a lag of {count(lag)} records",
        problem=lag > 0 and age > MAX_SILENT_SECONDS,
        advice=f", and its last snapshot is {span(age)} old: the partition has stopped. See the "
        f"application log.",
    )


def _records_arrive(view: ExperimentView, figures: Figures) -> Check:
    title, idle = "Records arrive", figures.now - view.last_record_at
    if view.fallback is not None and idle > view.fallback[1]:
        arm, allowed = view.fallback
        return Check(
            title,
            "problem",
            f"None for {span(idle)}, where {span(allowed)} are allowed; ranker services are told "
            f"to serve {legible(arm)} alone. Check whether they still log.",
        )
    if not view.active:  # there may have been some before the restart
        return Check(title, "unknown", f"None since the process started, {span(idle)} ago.")
    return Check(title, "ok", f"The last one arrived {span(idle)} ago.")


def _fair_interleaving(view: ExperimentView) -> Check:
    title, judged = "Services interleave fairly", view.impressions.judged
    if not judged:
        return Check(
            title,
            "unknown",
            "No impressions with the side of each rank, so this cannot be checked.",
        )
    if view.team_mismatch > UNFAIR:
        return Check(
            title,
            "problem",
            f"{_most_uneven(view)} than fair coins would give it, with "
            f"{at_least(view.team_mismatch)} confidence. Do not trust the champion until the "
            f"service that interleaves is fixed.",
        )
    return Check(title, "ok", f"{counted(judged, 'impression')}: no sign of unfairness.")


def _most_uneven(view: ExperimentView) -> str:
    """Which side or ranker has too much or too little of what, by the most uneven coin."""
    coins = view.impressions.coins
    at = max(range(len(coins)), key=lambda each: unfairness([coins[each]]))
    arm, what = divmod(at, len(EVEN))
    own, others = coins[at]
    name = f"The ranker {legible(view.arms[arm - 1])}" if arm else "Side a"
    return f"{name} has {'more' if own > others else 'fewer'} {EVEN[what]}"


def _assignments_followed(view: ExperimentView) -> Check:
    title = "Services follow assignments"
    shown, unassigned = view.impressions.shown, view.impressions.unassigned
    if not shown:
        return Check(title, "unknown", "No interleaved impressions.")
    share = percent(unassigned / shown)
    return _judged(
        title,
        f"{count(unassigned)} of {count(shown)} impressions ({share}) show an unassigned pair",
        problem=unassigned > TOLERATED * shown,
        advice=". Such duels count, but exploring costs more. Check whether the services read the "
        "assignments.",
    )


def _clicks_joined(view: ExperimentView) -> Check:
    late, unjoined = view.tallies["late"], view.tallies["unjoined"]
    lost, accepted = late + unjoined, view.tallies["accepted"]
    return _judged(
        "Clicks are joined to impressions",
        f"{count(late)} clicks are late, {count(unjoined)} are unjoined",
        problem=lost > TOLERATED * (accepted + lost),
        advice=". Check whether impressions are logged, and whether the join window is long "
        "enough.",
    )


def _records_valid(view: ExperimentView, figures: Figures) -> Check:
    dead_letters = view.tallies["dead_letter"]
    total = dead_letters + view.tallies["accepted"]
    check = _judged(
        "Records are valid",
        f"{count(dead_letters)} of {count(total)} became dead letters",
        problem=dead_letters > TOLERATED * total,
        advice=". Each has its reason; the newest are below.",
    )
    of_all = sum(sum(each.dead_letters.values()) for each in figures.partitions.values())
    rest = of_all - sum(each.tallies["dead_letter"] for each in figures.experiments())
    if not rest:
        return check
    more = f" Dead letters of this process that count for none of its experiments: {count(rest)}."
    return check._replace(sentence=check.sentence + more)


def _clients_capped(view: ExperimentView) -> Check:
    title, capped = "Many clients are counted", view.tallies["capped"]
    if view.settings is not None and view.settings.max_per_client is None:
        return Check(title, "unknown", "The configuration has no limit, `max_per_client`.")
    total = capped + view.tallies["accepted"]
    return _judged(
        title,
        f"{count(capped)} of {count(total)} records were beyond the limit of duels per client",
        problem=capped > DOMINATED * total,
        advice=". They do not count. Look for a crawler, a script, or a `client` that is not a "
        "user.",
    )


def _clients_independent(view: ExperimentView) -> Check:
    title, found = "Impressions come from many clients", view.impressions
    if not found.named:
        return Check(title, "unknown", "No impression or duel names a client.")
    return _judged(
        title,
        f"Of {count(found.named)} impressions with a client, the client of one has about "
        f"{found.per_client:.1f}, on average",
        problem=found.per_client > DEPENDENT,
        advice=". Duels of one client are not independent, so confidence may be too high, here and "
        "for the stop rule. `streamduel analyze` takes clients as the unit; `max_per_client` "
        "limits them.",
    )


def _clocks_agree(figures: Figures, partition: int) -> Check:
    view = figures.partitions[partition]
    outliers = view.time_outliers
    return _judged(
        "Clocks agree",
        f"{count(outliers)} records of partition {partition} had timestamps too far ahead of the "
        f"others",
        problem=outliers > TOLERATED * sum(each.records for each in view.experiments.values()),
        advice=". Stream time did not follow them. The application log names the newest; correct "
        "the clock of its producer.",
    )


def _winner_possible(view: ExperimentView) -> Check:
    title = "A Condorcet winner is possible"
    if view.condorcet_winner_possible:
        return Check(title, "ok", "At least one ranker may still beat all others.")
    lost = "Each ranker has lost to another one with 95 % confidence"
    if view.status == "finished":
        found = f"{lost}: none beats all others."
    elif policies.get(view.policy).settles_for_copeland:
        looks_for = f"{view.policy} looks for the ranker that beats the most."
        found = f"{lost}: none beats all others. {looks_for}"
    else:
        ends = "horizon" in view.wanted.parameters
        explores = "may explore until its horizon" if ends else "explores permanently"
        found = (
            f"{lost}, and {view.policy} seeks a Condorcet winner: it {explores}. Choose a policy "
            f"that seeks a Copeland winner."
        )
    return Check(title, "problem", found)
