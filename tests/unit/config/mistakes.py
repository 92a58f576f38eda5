"""Changes that make one mistake each, with its sentence."""

from __future__ import annotations

from typing import Any

from streamduel import policies
from streamduel.config import experiment, model
from streamduel.config.shape import one_of
from streamduel.connector import connector_names
from streamduel.interleaving.credit import CREDITS
from streamduel_files.settings import FileSinkSettings, FileSnapshotSettings, FileSourceSettings
from tests.unit.config.configurations import GONE
from tests.unit.config.sentences import keys

TOP = keys(model.Config)
EXPERIMENT = keys(experiment.ExperimentSettings)
SOURCE = keys(FileSourceSettings, "format")
ARMS = "experiments.search.arms"
POLICY = "experiments.search.policy"
CREDIT = "experiments.search.credit"
GUARDRAILS = "experiments.search.guardrails"
QUOTES = "; quotes make it a string"
NAME = "a string of 1 to 256 characters"

CONNECTORS = one_of(connector_names())

MISTAKES: list[tuple[str, Any, str]] = [
    # Unknown keys, at every level.
    ("sorce", {}, f"unknown key 'sorce'; did you mean 'source'? Allowed there: {TOP}."),
    ("qqq", 1, f"unknown key 'qqq'. Allowed there: {TOP}."),
    ("source.pth", "x",
     f"unknown key 'source.pth'; did you mean 'path'? Allowed there: {SOURCE}."),
    ("source.fromat", "ubi",
     f"unknown key 'source.fromat'; did you mean 'format'? Allowed there: {SOURCE}."),
    ("sink.bath", "x",
     "unknown key 'sink.bath'; did you mean 'path'? "
     f"Allowed there: {keys(FileSinkSettings)}."),
    ("snapshots.topic", "x",
     f"unknown key 'snapshots.topic'. Allowed there: {keys(FileSnapshotSettings)}."),
    ("dedupe.window_record", 5,
     "unknown key 'dedupe.window_record'; did you mean 'window_records'? "
     f"Allowed there: {keys(model.DedupeSettings)}."),
    ("limits.max_bytes", 5,
     "unknown key 'limits.max_bytes'; did you mean 'max_open_bytes'? "
     f"Allowed there: {keys(model.LimitSettings)}."),
    ("commit.interval", 5,
     "unknown key 'commit.interval'; did you mean 'interval_ms'? "
     f"Allowed there: {keys(model.CommitSettings)}."),
    ("monitoring", {"prot": 9400},
     "unknown key 'monitoring.prot'; did you mean 'port'? "
     f"Allowed there: {keys(model.MonitoringSettings)}."),
    ("experiments.search.arm", [],
     f"unknown key 'experiments.search.arm'; did you mean 'arms'? Allowed there: {EXPERIMENT}."),
    ("experiments.search.decide_evry", 5,
     f"unknown key 'experiments.search.decide_evry'; did you mean 'decide_every'? "
     f"Allowed there: {EXPERIMENT}."),
    ("experiments", {"a\nb": {"arms": ["x", "y"], "slat": 3}},
     f"unknown key 'experiments.a\\nb.slat'; did you mean 'slate'? Allowed there: {EXPERIMENT}."),
    ("experiments", {"a\nb": {"arms": ["x", "y"], "policy": {"name": "rucb", "alpa": 1}}},
     "experiments.a\\nb: policy 'rucb' has no parameter 'alpa'; did you mean 'alpha'? It has "
     "'alpha', 'champion_set', 'window'."),
    ("experiments.search.credit", {"nam": "click_count"},
     "unknown key 'experiments.search.credit.nam'; did you mean 'name'? "
     f"Allowed there: {keys(experiment.CreditSettings)}."),
    # Segments.
    (f"{ARMS[:-5]}.segments", {"class": []},
     "experiments.search.segments.class must be a list of 1 to 32 entries (found an empty list)."),
    (f"{ARMS[:-5]}.segments", {f"kind-{number}": ["x"] for number in range(9)},
     "experiments.search.segments must be a mapping of at most 8 entries (found a mapping of 9)."),
    (f"{ARMS[:-5]}.segments", {"class": ["x", "y", "x"]},
     "experiments.search.segments has 'x' twice in 'class'."),
    (f"{ARMS[:-5]}.segments", {"class": [f"s-{number}" for number in range(33)]},
     "experiments.search.segments.class must be a list of 1 to 32 entries (found a list of 33)."),
    (f"{ARMS[:-5]}.segments", {"class": [f"{number}" for number in range(32)], "device": ["x"]},
     "experiments.search.segments must have at most 32 names in all (found 33)."),
    # What is missing.
    ("source", GONE, "source is missing: where the click log is read."),
    ("sink", GONE, "sink is missing: where assignments and dead letters are written."),
    ("snapshots", GONE, "snapshots is missing: where snapshots are stored."),
    ("experiments", GONE,
     "experiments is missing: each experiment by its name, which its records carry."),
    (ARMS, GONE, f"{ARMS} is missing: the rankers' names, 2 to 1000 of them."),
    ("source.path", GONE,
     "source.path is missing: the file: plain, gzipped (.gz), or '-' for standard input, which "
     "must repeat the log from its first line at a restart."),
    ("source.connector", GONE, f"source.connector must be {CONNECTORS} (found nothing)."),
    # Wrong types.
    ("source", None, "source must be a mapping (found nothing)."),
    ("sink", "out/", "sink must be a mapping (found text)."),
    ("snapshots", [], "snapshots must be a mapping (found an empty list)."),
    ("dedupe", 5, "dedupe must be a mapping (found 5)."),
    ("limits", 5, "limits must be a mapping (found 5)."),
    ("commit", True, "commit must be a mapping (found true)."),
    ("monitoring", 9400, "monitoring must be a mapping, or null (found 9400)."),
    ("experiments", ["search"],
     "experiments must be a mapping of at least 1 entry (found a list of 1)."),
    ("experiments", {},
     "experiments must be a mapping of at least 1 entry (found an empty mapping)."),
    ("experiments.search", None, "experiments.search must be a mapping (found nothing)."),
    ("experiments.search.credit", "click_count",
     "experiments.search.credit must be a mapping (found 'click_count')."),
    ("source.path", 5, f"source.path must be a path (found 5){QUOTES}."),
    ("source.path", None, "source.path must be a path (found nothing)."),
    ("source.path", "", "source.path must be a path (found '')."),
    ("source.path", "a\0b", "source.path must be a path (found 'a\\x00b')."),
    ("sink.path", "x" * 300,
     "sink.path must have file names of at most 255 bytes (found one of 300)."),
    ("sink.path", "-", "sink.path must be a directory (found '-'); only source.path may be a "
     "standard stream."),
    ("sink.path", ["out"], "sink.path must be a path (found a list of 1)."),
    ("snapshots.path", "~nobody-here/state", "snapshots.path must be in a home directory that "
     "exists (found '~nobody-here/state')."),
    ("monitoring", {"host": ""},
     "monitoring.host must be a string of at least 1 character (found '')."),
    # Numbers.
    ("experiments.search.smallest_difference", "1e-2",
     "experiments.search.smallest_difference must be a number at least 0 and below 0.5, or null "
     "(found '1e-2'); in YAML, an exponent needs a point and a sign, as in 1.0e-2."),
    ("experiments.search.join_window_ms", "1e5",
     "experiments.search.join_window_ms must be an integer from 0 to 2^53, or null (found '1e5'); "
     "in YAML, a number with an exponent is no integer; write its digits."),
    ("monitoring", {"port": 65536},
     "monitoring.port must be an integer from 0 to 65535 (found 65536)."),
    ("monitoring", {"port": -1}, "monitoring.port must be an integer from 0 to 65535 (found -1)."),
    ("monitoring", {"port": "9400"},
     "monitoring.port must be an integer from 0 to 65535 (found '9400')."),
    ("monitoring", {"port": True},
     "monitoring.port must be an integer from 0 to 65535 (found true)."),
    ("experiments.search.decide_every", 0,
     "experiments.search.decide_every must be an integer from 1 to 1000000000 (found 0)."),
    ("experiments.search.decide_every", 1.5,
     "experiments.search.decide_every must be an integer from 1 to 1000000000 (found 1.5)."),
    ("experiments.search.slate", 10_001,
     "experiments.search.slate must be an integer from 1 to 10000 (found 10001)."),
    ("experiments.search.seed", -1,
     "experiments.search.seed must be an integer from 0 to 2^64 - 1 (found -1)."),
    ("experiments.search.seed", 2**64,
     "experiments.search.seed must be an integer from 0 to 2^64 - 1 (found 18446744073709551616)."),
    ("experiments.search.seed", "seven",
     "experiments.search.seed must be an integer from 0 to 2^64 - 1 (found 'seven')."),
    ("experiments.search.seed", None,
     "experiments.search.seed must be an integer from 0 to 2^64 - 1 (found nothing)."),
    ("dedupe.window_records", 0,
     "dedupe.window_records must be an integer from 1 to 1000000000 (found 0)."),
    ("dedupe.window_ms", -1, "dedupe.window_ms must be an integer from 0 to 2^53 (found -1)."),
    ("time.max_advance_ms", -1,
     "time.max_advance_ms must be an integer from 0 to 2^53 (found -1)."),
    ("time", [], "time must be a mapping (found an empty list)."),
    ("limits.max_record_bytes", 2**24 + 1,
     "limits.max_record_bytes must be an integer from 1 to 16777216 (found 16777217)."),
    ("commit.interval_ms", 0,
     "commit.interval_ms must be an integer from 1 to 60000 (found 0)."),
    ("commit.max_outputs", 0,
     "commit.max_outputs must be an integer from 1 to 1000000000 (found 0)."),
    # Arms.
    (ARMS, ["bm25", "bm25"], f"{ARMS} has 'bm25' twice."),
    (ARMS, ["bm25", "ltr", "bm25"], f"{ARMS} has 'bm25' twice."),
    (ARMS, ["bm25"], f"{ARMS} must be a list of 2 to 1000 entries (found a list of 1)."),
    (ARMS, [], f"{ARMS} must be a list of 2 to 1000 entries (found an empty list)."),
    (ARMS, "bm25", f"{ARMS} must be a list of 2 to 1000 entries (found 'bm25')."),
    (ARMS, {"bm25": 1}, f"{ARMS} must be a list of 2 to 1000 entries (found a mapping of 1)."),
    (ARMS, [str(i) for i in range(1001)],
     f"{ARMS} must be a list of 2 to 1000 entries (found a list of 1001)."),
    (ARMS, ["bm25", 5], f"{ARMS}[1] must be {NAME} (found 5){QUOTES}."),
    (ARMS, [True, "bm25"], f"{ARMS}[0] must be {NAME} (found true){QUOTES}."),
    (ARMS, ["", "bm25"], f"{ARMS}[0] must be {NAME} (found '')."),
    (ARMS, ["bm25", None], f"{ARMS}[1] must be {NAME} (found nothing)."),
    (ARMS, ["bm25", "x" * 257], f"{ARMS}[1] must be {NAME} (found '{'x' * 78}…)."),
    # Names of experiments.
    ("experiments.", {"arms": ["a", "b"]}, f"experiments has the key ''; a key must be {NAME}."),
    ("experiments", {5: {"arms": ["a", "b"]}},
     f"experiments has the key 5; a key must be {NAME}{QUOTES}."),
    ("experiments", {None: {"arms": ["a", "b"]}},
     f"experiments has the key null; a key must be {NAME}{QUOTES}."),
    ("experiments", {"x" * 257: {"arms": ["a", "b"]}},
     f"experiments has the key '{'x' * 78}…; a key must be {NAME}."),
    # Choices.
    # Logs in other formats.
    ("source.format", "ubj",
     "source.format must be 'ubi' or 'solr', or a mapping with one of these as 'name' (found "
     "'ubj'); did you mean 'ubi'?"),
    ("source.format", {"sides": "query"},
     "source.format must be 'ubi' or 'solr', or a mapping with one of these as 'name' (found "
     "nothing)."),
    ("source.format", {"name": "ubi", "experiment": "serch"},
     "source.format.experiment must be 'search' (found 'serch'); did you mean 'search'?"),
    ("source.format", {"name": "ubi", "sides": "quory"},
     "source.format.sides must be 'query' or 'events' (found 'quory'); did you mean 'query'?"),
    # Guardrails that contradict the arms or themselves.
    (GUARDRAILS, {"max_shares": 0.5},
     f"unknown key '{GUARDRAILS}.max_shares'; did you mean 'max_share'? "
     f"Allowed there: {keys(experiment.GuardrailSettings)}."),
    (GUARDRAILS, {"control_arm": "bm52", "min_share": 0.1},
     f"{GUARDRAILS}.control_arm must be one of the arms, bm25, ltr-v1, ltr-v2 (found 'bm52'); did "
     "you mean 'bm25'?"),
    (GUARDRAILS, {"freeze_pair": ["bm25", "x"]},
     f"{GUARDRAILS}.freeze_pair must be one of the arms, bm25, ltr-v1, ltr-v2 (found 'x')."),
    (GUARDRAILS, {"freeze_pair": ["bm25", "bm25"]},
     f"{GUARDRAILS}.freeze_pair must be two arms (found 'bm25' twice)."),
    (GUARDRAILS, {"fallback": {"arm": "x"}},
     f"{GUARDRAILS}.fallback.arm must be one of the arms, bm25, ltr-v1, ltr-v2 (found 'x')."),
    (GUARDRAILS, {"fallback": {"arm": "bm25", "idle_ms": 10}},
     f"{GUARDRAILS}.fallback.idle_ms must be an integer from 1000 to 2^53 (found 10)."),
    (GUARDRAILS, {"control_arm": "bm25"},
     f"{GUARDRAILS}.min_share must be given, too: control_arm has no effect without it."),
    (GUARDRAILS, {"min_share": 0},
     f"{GUARDRAILS}.control_arm must be given, too: min_share has no effect without it."),
    (GUARDRAILS, {"min_share": 0.2},
     f"{GUARDRAILS}.control_arm must be given, too: min_share has no effect without it."),
    (GUARDRAILS, {"control_arm": "bm25", "min_share": 1.0},
     f"{GUARDRAILS}.min_share must be a number at least 0 and below 1, or null (found 1.0)."),
    (GUARDRAILS, {"max_share": 0},
     f"{GUARDRAILS}.max_share must be a number above 0 and at most 1, or null (found 0)."),
    (GUARDRAILS, {"control_arm": "bm25", "min_share": 0.5, "max_share": 0.4},
     f"{GUARDRAILS}.min_share must be at most max_share, 0.4 (found 0.5), because the control arm "
     "need not be the champion."),
    ("experiments.search.ties", "hlaf",
     "experiments.search.ties must be 'half' or 'drop' (found 'hlaf'); did you mean 'half'?"),
    ("experiments.search.ties", "win",
     "experiments.search.ties must be 'half' or 'drop' (found 'win')."),
    ("experiments.search.ties", False,
     "experiments.search.ties must be 'half' or 'drop' (found false)."),
    # Aim.
    ("experiments.search.aim", "identfy",
     "experiments.search.aim must be 'identify' or 'earn' (found 'identfy'); did you mean "
     "'identify'?"),
    ("experiments.search", {"arms": ["bm25", "ltr"], "aim": "earn", "stop": {"confidence": 0.9}},
     "experiments.search.aim must be 'identify' if stop.confidence is given (found 'earn' and "
     "0.9): an experiment that earns never ends."),
    ("experiments.search",
     {"arms": ["bm25", "ltr"], "policy": {"aim": "earn"}, "stop": {"confidence": 0.9}},
     "experiments.search.aim must be 'identify' if stop.confidence is given (found 'earn' and "
     "0.9): an experiment that earns never ends."),
    ("experiments.search",
     {"arms": ["bm25", "ltr"], "policy": {"name": "c2b", "horizon": 1000}, "aim": "earn"},
     "experiments.search.aim must be 'identify' with policy 'c2b': it has a horizon."),
    ("experiments.search",
     {"arms": [f"{number:012}" for number in range(430)],
      "policy": {"name": "batched_top_two", "horizon": 10**6}},
     "experiments.search.arms must be fewer with policy 'batched_top_two': its plan lists all pairs"
     " of arms, and may take at most 16777216 bytes (found 430 arms, which take about 21398520)."),
    ("experiments.search.smallest_difference", 0.5,
     "experiments.search.smallest_difference must be a number at least 0 and below 0.5, or null "
     "(found 0.5)."),
    ("experiments.search.smallest_difference", False,
     "experiments.search.smallest_difference must be a number at least 0 and below 0.5, or null "
     "(found false)."),
    ("experiments.search",
     {"arms": ["bm25", "ltr"], "policy": {"name": "rucb"}, "smallest_difference": 0.01},
     "experiments.search.smallest_difference must be left out with policy 'rucb'; policies that "
     "use one: top_two."),
    # Credit.
    (CREDIT, {"name": "click_cuont"},
     f"{CREDIT}.name must be {one_of(CREDITS)} (found 'click_cuont'); did you mean 'click_count'?"),
    (CREDIT, {"eta": 1},
     f"{CREDIT}: credit function 'click_count' has no parameter 'eta'; it has none."),
    (CREDIT, {"name": "weighted", "weights": {"cart": 3}, "propensities": [1]},
     f"{CREDIT}: credit function 'weighted' has no parameter 'propensities'; it has 'weights'."),
    (CREDIT, {"name": "weighted", "wieghts": {"cart": 3}},
     f"unknown key '{CREDIT}.wieghts'; did you mean 'weights'? "
     f"Allowed there: {keys(experiment.CreditSettings)}."),
    (CREDIT, {"name": "weighted"}, f"{CREDIT}: credit function 'weighted' needs 'weights'."),
    (CREDIT, {"name": "weighted", "weights": {}},
     f"{CREDIT}.weights must be a mapping of 1 to 1000 entries, or null (found an empty mapping)."),
    (CREDIT, {"name": "weighted", "weights": {"cart": 3, "click": "one"}},
     f"{CREDIT}.weights.click must be a number at least -1000 and at most 1000 (found 'one')."),
    (CREDIT, {"name": "weighted", "weights": {"cart": float("nan")}},
     f"{CREDIT}.weights.cart must be a number at least -1000 and at most 1000 (found nan)."),
    (CREDIT, {"name": "weighted", "weights": {5: 5}},
     f"{CREDIT}.weights has the key 5; a key must be a string of 1 to 64 characters{QUOTES}."),
    (CREDIT, {"name": "position_debiased"},
     f"{CREDIT}: 'position_debiased' needs either 'propensities' or 'eta' (found neither)."),
    (CREDIT, {"name": "position_debiased", "propensities": [1, 0.5], "eta": 1},
     f"{CREDIT}: 'position_debiased' needs either 'propensities' or 'eta' (found both)."),
    (CREDIT, {"name": "position_debiased", "propensities": [1, 0]},
     f"{CREDIT}.propensities[1] must be a number above 0 and at most 1 (found 0)."),
    (CREDIT, {"name": "position_debiased", "propensities": [1] * 101},
     f"{CREDIT}.propensities must be a list of 1 to 100 entries, or null (found a list of 101)."),
    (CREDIT, {"name": "position_debiased", "eta": "1"},
     f"{CREDIT}.eta must be a number at least 0 and at most 10, or null (found '1')."),
    # Policies.
    (POLICY, {"name": "rubc"},
     f"{POLICY}.name must be {one_of(policies.names())} (found 'rubc'); did you mean 'rucb'?"),
    (POLICY, {"name": "zzz"},
     f"{POLICY}.name must be {one_of(policies.names())} (found 'zzz')."),
    (POLICY, "rucb", f"{POLICY} must be a mapping (found 'rucb')."),
    (POLICY, {"name": 5}, f"{POLICY}.name must be a string (found 5){QUOTES}."),
    (POLICY, {"name": "rucb", "alpha": 0.3},
     f"{POLICY}.alpha must be greater than 0.5 (found 0.3); the regret bounds of RUCB hold only "
     f"above it."),
    (POLICY, {"name": "rucb", "alpha": "wide"},
     f"{POLICY}.alpha must be a finite number (found 'wide')."),
    (POLICY, {"name": "rucb", "alpha": float("nan")},
     f"{POLICY}.alpha must be a finite number (found nan)."),
    (POLICY, {"name": "rucb", "alpha": True},
     f"{POLICY}.alpha must be a finite number (found true)."),
    (POLICY, {"name": "rucb", "alpha": None},
     f"{POLICY}.alpha must be a finite number (found nothing)."),
    (POLICY, {"name": "rucb", "alfa": 0.6},
     "experiments.search: policy 'rucb' has no parameter 'alfa'; did you mean 'alpha'? "
     "It has 'alpha', 'champion_set', 'window'."),
    *((POLICY, {"name": "rucb", taken: 5},
       f"experiments.search: policy 'rucb' has no parameter '{taken}'; it has 'alpha', "
       f"'champion_set', 'window'.") for taken in ("seed", "n_arms", "self")),
    (POLICY, {"name": "rucb", 5: 5}, f"{POLICY} has the key 5; a key must be a string{QUOTES}."),
    ("spark", {"topic": "raw"},
     "spark.checkpoint is missing: where Spark keeps its state: a directory, or an address such as"
     " `s3a://bucket/path` that all its executors reach."),
    ("spark", {"topic": "raw", "checkpoint": "c", "slice_ms": 10},
     "spark.slice_ms must be an integer from 100 to 86400000 (found 10)."),

    # Connectors.
    ("source.path", "out/assignments.jsonl",
     "source.path must not be the assignments.jsonl of sink.path, which the service writes."),
    ("source.path", "out/../out/dead_letters.jsonl",
     "source.path must not be the dead_letters.jsonl of sink.path, which the service writes."),
    ("source.control_topic", "control",
     "source: control_topic needs the connector kafka; in a file, control records come in the click"
     " log."),
    ("source.client", "confluent",
     "source: client needs the connector kafka; a file is read without one."),
    ("limits.control_records", "no", "limits.control_records must be true or false (found 'no')."),
    ("source.connector", "fils",
     f"source.connector must be {CONNECTORS} (found 'fils'); did you mean 'files'?"),
    ("sink.connector", "unknown", f"sink.connector must be {CONNECTORS} (found 'unknown')."),
    ("snapshots.connector", 5, f"snapshots.connector must be {CONNECTORS} (found 5)."),
    ("snapshots", {"connector": "kafka", "topic": "s"},
     "snapshots.connector must be 'files' as sink.connector is (found 'kafka'): outputs and "
     "snapshots become visible in one commit."),
    ("sink", {"connector": "kafka", "assignments": "a", "dead_letters": "d"},
     "snapshots.connector must be 'kafka' as sink.connector is (found 'files'): outputs and "
     "snapshots become visible in one commit."),
]  # fmt: skip
