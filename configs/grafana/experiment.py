"""The dashboard of one experiment: for who wants to know which ranker is best, at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from configs.grafana import ranker_services
from configs.grafana.panels import (
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

OURS: Final = 'experiment="$experiment"'
ARMS: Final = 'experiment="$experiment", arm=~"$arm"'
KIND: Final = 'experiment="$experiment", kind="$kind"'


def variables() -> Sequence[Builder[models.VariableModel]]:
    """What is chosen at the top."""
    ours = "streamduel_champion{" + OURS + "}"
    regret = "streamduel_regret{" + OURS + "}"
    return [
        data_source(),
        variable("experiment", "Experiment", "label_values(streamduel_champion, experiment)"),
        variable("arm", "Rankers", f"label_values({ours}, arm)", many=True),
        variable("kind", "Regret", f"label_values({regret}, kind)"),
    ]


def sections() -> Mapping[str, Sequence[Panel]]:
    """The panels, by the heading of their row."""
    return {
        "At a glance": _glance(),
        "Who leads": _lead(),
        "What it costs": _cost(),
        "What is decided": _decisions(),
        "What ranker services log": ranker_services.panels(OURS),
    }


def _glance() -> list[Panel]:
    return [
        name(
            "Champion",
            About(
                "The ranker that is best by what is known so far.",
                "one name, the same for hours once there have been some thousand duels.",
                "see `Champion over time` for how often it changes.",
                "StreamduelChampionFlapping",
            ),
            f"max by (arm) (streamduel_champion{{{OURS}}}) == 1",
            "{{arm}}",
        ),
        name(
            "Status",
            About(
                "Whether the experiment explores (`running`), serves its champion alone because "
                "somebody said so (`paused`), or because it is over (`finished`).",
                "`running`, until somebody or a stop rule ends it.",
                "the service's log has a line for each change, with the reason.",
            ),
            f"max by (status) (streamduel_experiment_status{{{OURS}}}) == 1",
            "{{status}}",
        ),
        figure(
            "Confidence in the champion",
            About(
                "How sure it is, at least, that the champion is the best ranker. It may be looked "
                "at as often as one likes, and be acted upon at any time.",
                "near 0 for long, then up to 1 within a few thousand duels.",
                "from 95 % on, the experiment may be ended; below, wait.",
                "StreamduelConfidenceReached",
            ),
            f"max(streamduel_champion_confidence{{{OURS}}})",
            unit="percentunit",
            steps=[(0, "blue"), (0.95, "green")],
        ),
        name(
            "Policy",
            About(
                "The policy that is configured, the algorithm that is at work at present, and "
                "which winner it looks for: a ranker that beats all others (`condorcet`), or one "
                "that beats the most (`copeland`).",
                "as configured; `auto` changes its algorithm by itself, once or twice.",
                "compare with the configuration; docs/policies.md says which one suits.",
            ),
            f"max by (policy, stage, seeks) (streamduel_experiment_info{{{OURS}}})",
            "{{policy}} ({{stage}}), {{seeks}}",
        ),
        figure(
            "Duels",
            About(
                "How many comparisons of two rankers by users the policy has learned from.",
                "grows as long as users search.",
                "if it stands still, no records come, or none that can be used.",
                "StreamduelNoRecords",
            ),
            f"max(streamduel_duels_total{{{OURS}}})",
            unit="short",
        ),
        figure(
            "One that beats all?",
            About(
                "Whether some ranker may still turn out to beat all others.",
                "`possible`.",
                "once it is `ruled out`, a policy that looks for such a ranker explores for ever: "
                "choose one that does not.",
                "StreamduelNoCondorcetWinner",
            ),
            f"min(streamduel_condorcet_winner_possible{{{OURS}}})",
            unit="short",
            words={"1": ("possible", "green"), "0": ("ruled out", "orange")},
        ),
    ]


def _lead() -> list[Panel]:
    return [
        timeline(
            "Champion over time",
            About(
                "One bar for each ranker, green while it is the champion.",
                "it changes hands often in the first hours, then hardly ever.",
                "if two rankers take turns for days they are equally good: choose one by other "
                "reasons, and end the experiment.",
                "StreamduelChampionFlapping",
            ),
            {"{{arm}}": f"max by (arm) (streamduel_champion{{{ARMS}}})"},
            {"1": ("champion", "green"), "0": ("not the champion", "transparent")},
            width=HALF,
        ),
        chart(
            "Confidence over time",
            About(
                "How sure it is, at least, that the champion is the best ranker.",
                "near 0 for long, then up to 1; back to 0 when a new ranker joins.",
                "if it stays near 0 for weeks, the best rankers differ too little to tell.",
                "StreamduelConfidenceReached",
            ),
            {"confidence": f"max(streamduel_champion_confidence{{{OURS}}})"},
            unit="percentunit",
            steps=[(0.95, "blue")],
            most=1,
            width=HALF,
        ),
        chart(
            "Share of the others that a ranker beats",
            About(
                "For each ranker the share of the other rankers against which it has won more than "
                "half of the duels (its Copeland score).",
                "the champion's line is at the top, and lines cross seldom.",
                "if none reaches 1, no ranker beats all others, so far.",
                "StreamduelNoCondorcetWinner",
            ),
            {"{{arm}}": f"max by (arm) (streamduel_arm_copeland_score{{{ARMS}}})"},
            unit="percentunit",
            most=1,
        ),
        chart(
            "Duels per second, by ranker",
            About(
                "How often each ranker is shown to users against another one.",
                "poor rankers come down to almost nothing, the better ones share the rest.",
                "if a ranker that is long beaten is still shown often, look at guardrails and at "
                "`Impressions that nobody asked for`.",
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
                "How many rankers the policy has not ruled out.",
                "falls, step by step, to 1; some policies stay at a few for long.",
                "at 0 every ranker has lost to some other one: there is none that beats all.",
                "StreamduelNoCondorcetWinner",
            ),
            {"candidates": f"max(streamduel_candidates{{{OURS}}})"},
            unit="short",
        ),
    ]


def _cost() -> list[Panel]:
    duels = f"(sum(rate(streamduel_duels_total{{{OURS}}}[1h])) > 0)"  # of none there is no price
    estimate = f'streamduel_regret{{{KIND}, bound="estimate"}}'
    slope = f"sum by (kind) (deriv({estimate}[1h]))"
    return [
        chart(
            "Regret so far",
            About(
                "What showing other rankers than the best has cost since the beginning. 100 means "
                "as much as 100 impressions lost for sure. The estimate is the best guess; the "
                "upper bound is what it is at most, with 95 % confidence.",
                "rises fast at first, then flattens. The bound is far above the estimate for long.",
                "if the estimate goes on rising as fast as at first, the rankers are hard to tell "
                "apart, or the policy does not suit: docs/policies.md.",
            ),
            {"{{bound}}": f"max by (bound) (streamduel_regret{{{KIND}}})"},
            unit="short",
        ),
        chart(
            "Regret per 1,000 duels, at present",
            About(
                "What a thousand duels cost, by the last hour.",
                "falls towards 0 as bad rankers disappear. It may dip below 0: old duels are "
                "judged anew when more is known.",
                "if it rises again, a ranker has changed, or users have: docs/policies.md#drift.",
            ),
            {"{{kind}}": f"1000 * {slope} / on () group_left () {duels}"},
            unit="short",
            least=None,
        ),
        chart(
            "Taken by guardrails",
            About(
                "The share of the impressions that guardrails (a hold-out, a cap, a frozen pair) "
                "take from what the policy wants. Nothing is shown without guardrails.",
                "the configured hold-out, and a little more while a cap is at work.",
                "near 1 a pair is frozen: nothing is learned of the other rankers.",
            ),
            {"share": f"max(streamduel_guardrail_share{{{OURS}}})"},
            unit="percentunit",
            most=1,
        ),
        chart(
            "Regret of guardrails",
            About(
                "The part of the regret that comes from impressions which guardrails wanted. "
                "Nothing is shown without guardrails.",
                "a straight line: a hold-out costs the same every day.",
                "if it is more than the hold-out is worth, make its share smaller in the next "
                "experiment.",
            ),
            {"{{kind}}": f"max by (kind) (streamduel_guardrail_regret{{{KIND}}})"},
            unit="short",
            width=HALF,
        ),
        chart(
            "Ties in proportion to duels",
            About(
                "How many impressions were won by neither ranker, mostly because nobody clicked, "
                "for each duel. With `ties: drop` they are no duels, and it may be above 100 %.",
                "steady, whatever its height: it is a habit of your users.",
                "a sudden change comes from logging more often than from users: look at the "
                "newest release of the front end.",
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
                "The number of the assignment in force: it grows by one whenever streamduel tells "
                "ranker services to serve something else.",
                "grows often at first, later seldom.",
                "if it stands still while records come, see `Status`; ranker services go on with "
                "what they were told last.",
            ),
            {"epoch": f"max(streamduel_assignment_epoch{{{OURS}}})"},
            unit="none",
            width=QUARTER,
        ),
        chart(
            "Assignments per hour",
            About(
                "How often ranker services were told to serve something else, by the last hour.",
                "some hundred an hour at first, then fewer.",
                "thousands an hour: a larger `decide_every` would do.",
            ),
            {"assignments": f"sum(increase(streamduel_assignments_total{{{OURS}}}[1h]))"},
            unit="short",
            width=QUARTER,
        ),
        chart(
            "Duels that the open batch lacks",
            About(
                "How many duels are still missing until the batch is over and the next one is "
                "planned. Only of policies that work in batches.",
                "falls steadily, and jumps up when a batch begins.",
                "a flat line means that a pair which is wanted is not served.",
                "StreamduelBatchStuck",
            ),
            {"duels": f"max(streamduel_batch_remaining{{{OURS}}})"},
            unit="short",
            width=QUARTER,
        ),
        chart(
            "Batch",
            About(
                "The number of the open batch. Only of policies that work in batches.",
                "grows by one every now and then; later batches are longer.",
                "if it stands still for long, see `Duels that the open batch lacks`.",
                "StreamduelBatchStuck",
            ),
            {"batch": f"max(streamduel_batch_round{{{OURS}}})"},
            unit="none",
            width=QUARTER,
        ),
    ]
