"""The dashboard of one experiment: which ranker is best, and at which cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from configs.grafana.panel_kinds import (
    HALF,
    QUARTER,
    About,
    Panel,
    chart,
    data_source,
    figure,
    name,
    timeline,
    variable,
)
from configs.grafana.panels import ranker_services

OURS: Final = 'job="$job", experiment="$experiment"'
ARMS: Final = f'{OURS}, arm=~"$arm"'
KIND: Final = f'{OURS}, kind="$kind"'


def variables() -> Sequence[Builder[models.VariableModel]]:
    """The choices at the top."""
    in_job = 'streamduel_champion{job="$job"}'
    ours = "streamduel_champion{" + OURS + "}"
    regret = "streamduel_regret{" + OURS + "}"
    return [
        data_source(),
        variable("job", "Job", "label_values(streamduel_champion, job)"),
        variable("experiment", "Experiment", f"label_values({in_job}, experiment)"),
        variable("arm", "Rankers", f"label_values({ours}, arm)", many=True),
        variable("kind", "Regret", f"label_values({regret}, kind)"),
    ]


def sections() -> Mapping[str, Sequence[Panel]]:
    """The panels, by the heading of their row."""
    return {
        "Overview": _overview(),
        "Rankers": _rankers(),
        "Cost": _cost(),
        "Decisions": _decisions(),
        "Ranker services": ranker_services.panels(OURS),
    }


def _overview() -> list[Panel]:
    return [
        name(
            "Champion",
            About(
                "The ranker that would be served if exploration ended now; undecided while there "
                "is no evidence for any.",
                "one name, the same for hours once there have been some thousand duels.",
                "check in `Champion over time` how often it changes.",
                "StreamduelChampionFlapping",
            ),
            f"max by (arm) (streamduel_champion{{{OURS}}}) == 1 "
            f"and on () max(streamduel_champion_progress{{{OURS}}}) > 0",
            "{{arm}}",
            none="undecided",
        ),
        name(
            "Status",
            About(
                "Whether the experiment explores (`running`), or serves its champion alone because "
                "it was paused (`paused`) or has ended (`finished`).",
                "`running`, until the policy, the stop rule or an operator ends it.",
                "the application log has a line for each change.",
            ),
            f"max by (status) (streamduel_experiment_status{{{OURS}}}) == 1",
            "{{status}}",
        ),
        figure(
            "Confidence in the champion",
            About(
                "Lower bound of the probability that the champion is the winner, valid at any "
                "time, however often you look.",
                "near 0 at first, then up to 1 within a few thousand duels.",
                "from 95 % on, the experiment may be stopped; below, wait.",
                "StreamduelConfidenceReached",
            ),
            f"max(streamduel_champion_confidence{{{OURS}}})",
            unit="percentunit",
            steps=[(0, "blue"), (0.95, "green")],
        ),
        name(
            "Policy",
            About(
                "The configured policy, the algorithm in use, and the winner that it seeks: a "
                "ranker that beats all others (`condorcet`), or one that beats the most "
                "(`copeland`).",
                "as configured; `auto` changes its algorithm automatically, once or twice.",
                "compare it with the configuration; docs/policies.md helps to choose.",
            ),
            f"max by (policy, stage, seeks) (streamduel_experiment_info{{{OURS}}})",
            "{{policy}} ({{stage}}), {{seeks}}",
        ),
        figure(
            "Duels",
            About(
                "Duels that the policy has observed.",
                "grows as long as users search.",
                "if it stays the same, no valid records arrive.",
                "StreamduelNoRecords",
            ),
            f"max(streamduel_duels_total{{{OURS}}})",
            unit="short",
        ),
        figure(
            "Condorcet winner exists?",
            About(
                "Whether some ranker may still beat all others.",
                "`possible`.",
                "once it is `ruled out`, a policy that seeks a Condorcet winner explores "
                "until its horizon, or permanently if it has none; except `top_two` and "
                "`batched_top_two`. Choose one that seeks a Copeland winner.",
                "StreamduelNoCondorcetWinner",
            ),
            f"min(streamduel_condorcet_winner_possible{{{OURS}}})",
            unit="short",
            words={"1": ("possible", "green"), "0": ("ruled out", "orange")},
        ),
    ]


def _rankers() -> list[Panel]:
    return [
        timeline(
            "Champion over time",
            About(
                "One bar for each ranker, green while it is the champion.",
                "it changes often in the first hours, then rarely.",
                "if two rankers alternate for days they are equally good: choose one by other "
                "criteria, and stop the experiment.",
                "StreamduelChampionFlapping",
            ),
            {"{{arm}}": f"max by (arm) (streamduel_champion{{{ARMS}}})"},
            {"1": ("champion", "green"), "0": ("not the champion", "transparent")},
            width=HALF,
        ),
        chart(
            "Confidence over time",
            About(
                "Lower bound of the probability that the champion is the winner, and its progress: "
                "how much of the evidence for a confidence of 95 % there is.",
                "progress rises first, then confidence, up to 1; both fall when a ranker is added.",
                "if progress stays the same for weeks, the best rankers differ too little.",
                "StreamduelConfidenceReached",
            ),
            {
                "confidence": f"max(streamduel_champion_confidence{{{OURS}}})",
                "progress": f"max(streamduel_champion_progress{{{OURS}}})",
            },
            unit="percentunit",
            steps=[(0.95, "blue")],
            most=1,
            width=QUARTER,
        ),
        chart(
            "Time until sure",
            About(
                "Time until there is a sure answer, at the traffic of the last day: the median of "
                "simulations that begin at the present counts.",
                "uncertain at first, then falls by a day every day, to 0.",
                "without a line it cannot be said: no traffic, few duels, or no end in sight; the "
                "status page says why.",
            ),
            # NaN is not at least 0.
            {"time": f"max(streamduel_forecast_seconds{{{OURS}}} >= 0)"},
            unit="s",
            width=QUARTER,
        ),
        chart(
            "Copeland score",
            About(
                "For each ranker, the share of the other rankers against which it has won more "
                "than half of the duels.",
                "the champion's line is at the top, and lines rarely cross.",
                "if none reaches 1, no ranker beats all others so far.",
                "StreamduelNoCondorcetWinner",
            ),
            {"{{arm}}": f"max by (arm) (streamduel_arm_copeland_score{{{ARMS}}})"},
            unit="percentunit",
            most=1,
        ),
        chart(
            "Duels per second, by ranker",
            About(
                "Duels of each ranker with another one, per second.",
                "poor rankers fall to almost 0, the better ones share the rest.",
                "if a beaten ranker is still shown often, check guardrails and "
                "`Unassigned impressions`.",
                "StreamduelUnassignedImpressions",
            ),
            {
                "{{arm}}": "sum by (arm) "
                f"(rate(streamduel_arm_duels_total{{{ARMS}}}[$__rate_interval]))"
            },
            unit="ops",
        ),
        chart(
            "Candidates",
            About(
                "Rankers that the policy has not ruled out.",
                "falls to 1 in steps; some policies stay at a few for long.",
                "at 0 every ranker has lost to another one: there is no Condorcet winner.",
                "StreamduelNoCondorcetWinner",
            ),
            {"candidates": f"max(streamduel_candidates{{{OURS}}})"},
            unit="short",
        ),
    ]


def _cost() -> list[Panel]:
    # deriv, because rate divides by the whole hour, also where there are fewer samples.
    duels = f"(sum(deriv(streamduel_duels_total{{{OURS}}}[1h])) > 0)"  # no duels, no cost
    estimate = f'streamduel_regret{{{KIND}, bound="estimate"}}'
    slope = f"sum by (kind) (deriv({estimate}[1h]))"
    return [
        chart(
            "Cumulative regret",
            About(
                "The cost of showing other rankers than the best since the beginning. 100 means as "
                "much as 100 impressions lost. `upper` is an upper bound with 95 % confidence.",
                "rises fast at first, then flattens; the bound is far above the estimate for long.",
                "if the estimate continues to rise as fast as at first, the rankers differ little, "
                "or the policy does not suit: docs/policies.md.",
            ),
            {"{{bound}}": f"max by (bound) (streamduel_regret{{{KIND}}})"},
            unit="short",
        ),
        chart(
            "Regret per 1,000 duels",
            About(
                "The cost of a thousand duels, in the last hour.",
                "falls towards 0 as poor rankers disappear. It may fall below 0: new duels change "
                "the estimate for old ones, and `retire-arm` takes the regret of a ranker away. "
                "Within an hour of `reset` it says nothing.",
                "if it rises again, a ranker or the users have changed: docs/policies.md#drift.",
            ),
            {"{{kind}}": f"1000 * {slope} / on () group_left () {duels}"},
            unit="short",
            least=None,
        ),
        chart(
            "Share of guardrails",
            About(
                "The share of impressions that guardrails (a hold-out, a cap, a frozen pair) take "
                "from the policy. Empty without guardrails.",
                "the configured hold-out, and a little more while a cap applies.",
                "near 1 a pair is frozen: the other rankers are not compared.",
            ),
            {"share": f"max(streamduel_guardrail_share{{{OURS}}})"},
            unit="percentunit",
            most=1,
        ),
        chart(
            "Regret of guardrails",
            About(
                "The part of the regret from duels that guardrails requested. Empty without "
                "guardrails.",
                "a straight line: a hold-out costs the same every day.",
                "if it exceeds the value of the hold-out, reduce its share in the next experiment.",
            ),
            {"{{kind}}": f"max by (kind) (streamduel_guardrail_regret{{{KIND}}})"},
            unit="short",
            width=HALF,
        ),
        chart(
            "Ties per duel",
            About(
                "Impressions without a winner, mostly without clicks, per duel. With `ties: drop` "
                "ties are not duels, and it may exceed 100 %.",
                "constant, at any height.",
                "a sudden change is more often a change in logging than in users: check the newest "
                "release of the front end.",
            ),
            {
                "ties": f"sum(rate(streamduel_ties_total{{{OURS}}}[$__rate_interval])) "
                f"/ sum(rate(streamduel_duels_total{{{OURS}}}[$__rate_interval]))"
            },
            unit="percentunit",
            width=HALF,
        ),
    ]


def _decisions() -> list[Panel]:
    return [
        chart(
            "Epoch of the assignment",
            About(
                "The number of the assignment in force: it grows by one with every published "
                "assignment.",
                "grows often at first, later rarely.",
                "if it stays the same while records arrive, check `Status`; ranker services keep "
                "the last assignment.",
            ),
            {"epoch": f"max(streamduel_assignment_epoch{{{OURS}}})"},
            unit="none",
            width=QUARTER,
        ),
        chart(
            "Assignments per hour",
            About(
                "Assignments published in the last hour.",
                "some hundred per hour at first, then fewer.",
                "at thousands per hour, increase `decide_every`.",
            ),
            # The increase of each process would count twice what another one did in between.
            {"assignments": f"increase(max(streamduel_assignments_total{{{OURS}}})[1h:])"},
            unit="short",
            width=QUARTER,
        ),
        chart(
            "Remaining duels of the batch",
            About(
                "Duels until the batch is complete and the next one is planned. Only for batched "
                "policies.",
                "falls steadily, and jumps when a batch begins.",
                "if it stays the same, a wanted pair is not served.",
                "StreamduelBatchStuck",
            ),
            {"duels": f"max(streamduel_batch_remaining{{{OURS}}})"},
            unit="short",
            width=QUARTER,
        ),
        chart(
            "Batch",
            About(
                "The number of the open batch. Only for batched policies.",
                "grows by one from time to time; later batches are longer.",
                "if it stays the same for long, check `Remaining duels of the batch`.",
                "StreamduelBatchStuck",
            ),
            {"batch": f"max(streamduel_batch_round{{{OURS}}})"},
            unit="none",
            width=QUARTER,
        ),
    ]
