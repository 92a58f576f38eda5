"""Independent implementations of the policies, plain and slow, from the papers.

They share no code with streamduel. `python -m tests.statistics.textbook` measures their regret;
the regret of streamduel's policies must match its result, `tests/statistics/bands.json`.
"""

from __future__ import annotations

from functools import partial

from tests.statistics.textbook import (
    auto,
    beat_the_mean,
    c2b,
    ccb,
    double_thompson,
    interleaved_filter,
    merging,
    relative_confidence_sampling,
    rmed,
    rounds,
    rucb,
    savage,
    scb,
    top_two,
    uniform,
)
from tests.statistics.textbook.history import Run

POLICIES: dict[str, Run] = {
    "auto": auto.run,
    "beat_the_mean": beat_the_mean.run,
    "beat_the_mean_tight": beat_the_mean.run_tight,
    "c2b": c2b.run,
    "c2b_hoeffding": partial(c2b.run, elimination="hoeffding"),
    "c2b_kl_anytime": partial(c2b.run, elimination="kl_anytime"),
    "ccb": ccb.run,
    "condorcet_savage": savage.run,
    "copeland_pbr": rounds.run_racing,
    "copeland_savage": savage.run_copeland,
    "double_thompson": double_thompson.run,
    "double_thompson_plus": double_thompson.run_plus,
    "interleaved_filter_1": interleaved_filter.run_1,
    "interleaved_filter_2": interleaved_filter.run_2,
    "interleaved_filter_2_scale_4": partial(interleaved_filter.run_2, confidence_scale=4.0),
    "merge_dts": merging.run_dts,
    "merge_dts_as_measured": merging.run_dts_as_measured,
    "merge_rucb": merging.run,
    "pcomp": rounds.run_pcomp,
    "pcomp_accumulate": partial(rounds.run_pcomp, accumulate=True),
    "relative_confidence_sampling": relative_confidence_sampling.run,
    "rmed1": rmed.run_1,
    "rmed2": rmed.run_2,
    "rmed2fh": rmed.run_2fh,
    "rucb": rucb.run,
    "rucb_champion_set": partial(rucb.run, champion_set=True),
    "scb": scb.run,
    "top_two": top_two.run,
    "top_two_earn": top_two.run_earning,
    "uniform": uniform.run,
}
