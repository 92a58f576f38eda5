"""Alarms: problems with the data of an experiment, for its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamduel.preference.evidence import unfairness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamduel.stream.experiment import Experiment

UNFAIR: Final = 0.99
"""From this confidence on, interleaving is reported as unfair, as by the alert: one in a hundred
fair experiments ever reaches it."""

TOLERATED: Final = 0.01
"""The share of records that may be lost: one in a hundred changes no result that is worth acting
on, and a defect of a service affects far more."""

FEW: Final = 20
"""Fewer lost records than this are no alarm: most experiments begin with a test."""


def alarms(experiment: Experiment) -> Iterator[str]:
    """The present problems, as texts that stay the same as long as the problem lasts."""
    outcomes, conformance = experiment.outcomes, experiment.impressions.conformance
    lost, accepted = outcomes.late + outcomes.unjoined, outcomes.accepted
    if conformance.judged and unfairness(conformance.coins(experiment.roster.arms)) > UNFAIR:
        yield "services do not interleave fairly"
    if _many(conformance.unassigned, conformance.impressions):
        yield "impressions of pairs that are not assigned"
    if _many(lost, accepted + lost):
        yield "clicks that are late or unjoined"
    if _many(outcomes.dead_letter, accepted + outcomes.dead_letter):
        yield "dead letters"


def _many(records: int, of: int) -> bool:
    return records >= FEW and records > TOLERATED * of
