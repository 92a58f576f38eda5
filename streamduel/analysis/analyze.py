"""The analysis of a click log, from its files to its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from streamduel.analysis import crediting, events, joining
from streamduel.analysis.changes import judge_quarters
from streamduel.analysis.checks import Facts, checks
from streamduel.analysis.counting import (
    ALL_RULES,
    DEFAULT_RULES,
    Counts,
    Part,
    Rules,
    count,
    make_views,
    that_count,
)
from streamduel.analysis.days import days, most_met
from streamduel.analysis.engine import MEMORY, Engine, Progress, quoted, silent
from streamduel.analysis.examples import examples
from streamduel.analysis.fields import Chosen
from streamduel.analysis.findings import Judged
from streamduel.analysis.inputs import find
from streamduel.analysis.kinds import Source, check_clicks, source, with_list_ids
from streamduel.analysis.no_duels import why_no_duels
from streamduel.analysis.report import (
    Analysis,
    Clients,
    ExperimentAnalysis,
    Sensitivity,
)
from streamduel.analysis.segments import (
    disagreements_of,
    find_segments,
    findings_of,
    judge_segments,
)
from streamduel.analysis.service_rules import refused_field
from streamduel.analysis.tables import query_table, rejects, tables
from streamduel.analysis.timeline import timelines
from streamduel.analysis.translating import translate
from streamduel.config.experiment import JOIN_WINDOW_MS, MAX_EXAMPLES
from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.formats import FORMATS
from streamduel.section import MAX_ARMS

UNNAMED: Final = "experiment"
"""The name of an experiment in a log that names none."""

MAX_EXPERIMENTS: Final = 1000
"""With more experiments, or more arms than one can have, a column was mistaken for another."""


@dataclass(frozen=True)
class Request:
    """What to analyze.

    Attributes:
        logs: files, folders, patterns and addresses.
        sql: a query whose rows are part of the log.
        experiment: the only experiment that counts; None: all.
        columns: the columns that the user names, FIELD=COLUMN.
        credit: the credit function that decides.
        weights: of actions, for the credit function `weighted`.
        rules: how ties and lists without clicks count.
        join_window_ms: the join window.
        memory: DuckDB's limit.
        examples: the most lists of the leading pair to show.
    """

    logs: Sequence[str]
    sql: str | None = None
    experiment: str | None = None
    columns: Sequence[str] = ()
    credit: str = "click_count"
    weights: Mapping[str, float] = field(default_factory=dict)
    rules: Rules = DEFAULT_RULES
    join_window_ms: int = JOIN_WINDOW_MS
    memory: str = MEMORY
    examples: int = MAX_EXAMPLES


def analyze(request: Request, progress: Progress = silent) -> Analysis:
    """Analyze a click log.

    Args:
        request: the log and the settings.
        progress: called with the progress.

    Raises:
        ConfigurationError: a setting is wrong, or nothing in the log is recognised.
        StreamduelError: the log cannot be read.
    """
    if not request.logs and request.sql is None:
        raise ConfigurationError("analyze needs a LOG or --sql QUERY (found neither).")
    chosen = Chosen(request.columns)
    functions = crediting.functions(request.credit, request.weights)
    with Engine(request.memory, progress) as engine:
        ignored, empty = _load(engine, request, chosen)
        joining.join(engine, request.experiment, request.join_window_ms)
        arms = _arms(engine, request.experiment, ignored)
        functions = crediting.fit(engine, functions, request.credit)
        crediting.credit(engine, functions)
        crediting.check_weights(engine, request.weights)
        found = _findings(engine, request, arms, list(functions), ignored)
        return msgspec.structs.replace(found, empty_files=empty)


def _load(engine: Engine, request: Request, chosen: Chosen) -> tuple[Counter[str], list[str]]:
    """Load all rows into `events`; ignored rows of other programs by reason, and empty files."""
    engine.rows(events.SCHEMA)
    engine.define("refused_field", refused_field)
    files, empty = find(request.logs, engine.folder)
    found = tables(engine, files)
    if request.sql is not None:
        found.append(query_table(engine, request.sql))
    sources = []
    for table in found:
        with _naming(table.where):
            sources.append(source(engine, table, chosen, alone=len(found) == 1))
    _check_chosen(sources, chosen)
    sources = with_list_ids(engine, sources)
    check_clicks(engine, sources)
    ignored: Counter[str] = Counter()
    for kind in FORMATS:
        exports = [each for each in sources if each.kind == kind]
        if exports:
            translated, without_duel = translate(engine, exports, chosen, request.weights)
            sources = [*(each for each in sources if each.kind != kind), translated]
            ignored += without_duel
    for each in sources:
        with _naming(each.table.where):
            ignored += events.load(engine, each, request.experiment or UNNAMED)
    return ignored, empty


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Name the file in an error of DuckDB that does not, such as one about damaged Parquet."""
    try:
        yield
    except ConfigurationError:
        raise
    except StreamduelError as error:
        if where in str(error):
            raise
        raise StreamduelError(f"{error} (in '{where}')") from error


def _check_chosen(sources: Sequence[Source], chosen: Chosen) -> None:
    columns = {column for each in sources for column in each.table.columns}
    columns.update(column for each in sources for row in each.sample for column in row)
    chosen.check(columns)


def _findings(
    engine: Engine,
    request: Request,
    arms: dict[str, list[str]],
    names: list[str],
    ignored: Counter[str],
) -> Analysis:
    make_views(engine, names)
    counted = count(engine, {name: len(each) for name, each in arms.items()}, names, ALL_RULES)
    segments = find_segments(engine)
    judged = judge_segments(engine, arms, request.credit, request.rules, segments)
    quarters = judge_quarters(engine, arms, request.credit, request.rules)
    tallies, unread = _tallies(engine, arms)
    unread.update(rejects(engine))
    found = {
        name: _experiment(
            engine, request, name, arms[name],
            # Of those that met only a retired arm, none has a duel.
            counted.get(Part(name)) or dict.fromkeys(names, Counts.none(len(arms[name]))),
            tallies[name],
            judged.get(name, {}), quarters.get(name, {}),
        )
        for name in arms
    }  # fmt: skip
    shown = examples(engine, found, request.credit, request.examples)
    moments = timelines(engine)
    found = {
        name: msgspec.structs.replace(
            each, examples=shown.get(name, []), timeline=moments.get(name, [])
        )
        for name, each in found.items()
    }
    rare = engine.rows("SELECT experiment FROM rare_experiments ORDER BY 1")
    return Analysis(found, unread, dict(ignored.most_common()), [name for (name,) in rare])


def _arms(engine: Engine, wanted: str | None, ignored: Counter[str]) -> dict[str, list[str]]:
    """The arms of each experiment, those with the most records first."""
    arms: dict[str, list[str]] = {}
    for experiment, arm in engine.rows("SELECT experiment, arm FROM arms ORDER BY experiment, i"):
        arms.setdefault(experiment, []).append(arm)
    if not arms:
        raise StreamduelError(why_no_duels(engine, wanted, ignored))
    if len(arms) > MAX_EXPERIMENTS:
        raise ConfigurationError(
            f"the log has {len(arms):,} experiments, more than {MAX_EXPERIMENTS:,}; name"
            " one with --experiment."
        )
    for name, each in arms.items():
        if len(each) > MAX_ARMS:
            raise ConfigurationError(
                f"experiment '{name[:80]}' has {len(each):,} rankers, more than {MAX_ARMS:,}; name"
                " their columns with --map a=COLUMN --map b=COLUMN."
            )
    return {name: each for name, each in arms.items() if len(each) > 1} or _refuse(arms)


def _refuse(arms: Mapping[str, Sequence[str]]) -> Any:
    name, only = next(iter(arms.items()))
    raise ConfigurationError(
        f"experiment '{name[:80]}' has one ranker only, '{only[0][:80]}'; a comparison needs two."
    )


def _tallies(
    engine: Engine, arms: Mapping[str, Sequence[str]]
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Records by experiment and outcome, and those of no experiment by problem."""
    tallies = {name: dict.fromkeys((*joining.OUTCOMES, "capped"), 0) for name in arms}
    unread: dict[str, int] = {}
    for experiment, outcome, problem, records in engine.rows("SELECT * FROM outcomes ORDER BY ALL"):
        if experiment in tallies:
            tallies[experiment][outcome] += records
        else:
            homeless = "clicks without a list" if experiment is None else "another experiment"
            why = problem or homeless
            unread[why] = unread.get(why, 0) + records
    return tallies, unread


def _experiment(
    engine: Engine,
    request: Request,
    name: str,
    arms: list[str],
    counted: Mapping[str, Counts],
    tallies: dict[str, int],
    segments: Mapping[str, Mapping[str, Judged]],
    quarters: Mapping[str, Judged],
) -> ExperimentAnalysis:
    """Everything about one experiment."""
    counts = counted[request.credit]
    judged = Judged(counts, request.rules)
    finding, clients = judged.finding(arms), _clients(engine, name, judged, request)
    leader = judged.verdict.champion
    opponent = most_met(judged.verdict.wins, leader)
    # Functions whose outcomes are equal have the same counts.
    distinct = {each: _sensitivity(each, arms, request.rules) for each in set(counted.values())}
    by_credit = {credit: distinct[each] for credit, each in counted.items()}
    return ExperimentAnalysis(
        **msgspec.structs.asdict(finding),
        seeks=judged.seeks,
        no_winner=judged.verdict.no_winner and judged.clients is None,
        credit=request.credit,
        arms=arms,
        wins=judged.verdict.wins.tolist(),
        alone=counts.alone,
        pairs=judged.pairs(arms),
        credits=by_credit,
        segments=findings_of(segments, arms),
        disagreements=disagreements_of(segments, arms),
        checks=checks(
            engine,
            Facts(
                name,
                arms,
                request.credit,
                tallies,
                finding,
                by_credit,
                clients,
                quarters,
                _options(request),
            ),
        ),
        tallies=tallies,
        clients=clients,
        most_met=None if finding.leader is None else arms[opponent],
        days=days(engine, name, (leader, opponent), request.credit, request.rules),
    )


def _options(request: Request) -> dict[str, str]:
    """The options that decide how duels count, by the setting of the service."""
    return {
        "credit": f"--credit {request.credit}",
        "no_click": f"--no-click {request.rules.no_click}",
        "ties": f"--ties {request.rules.ties}",
    }


def _sensitivity(counts: Counts, arms: list[str], rules: Rules) -> Sensitivity:
    """What one credit function says, under each rule."""
    others = {each.title: Judged(counts, each).finding(arms) for each in ALL_RULES}
    return Sensitivity(**msgspec.structs.asdict(others[rules.title]), rules=others)


def _clients(engine: Engine, name: str, judged: Judged, request: Request) -> Clients:
    engine.rows(
        "CREATE OR REPLACE VIEW duels_of_clients AS SELECT sum(n) AS n FROM scored"
        f" WHERE experiment = {quoted(name)} AND client IS NOT NULL AND i <> j"
        f" AND {that_count(request.credit, request.rules)} GROUP BY client"
    )
    clients, duels, busiest = engine.rows(
        "SELECT count(*), coalesce(sum(n), 0), coalesce(max(n), 0) FROM duels_of_clients"
    )[0]
    sums = judged.clients
    return Clients(
        unit="duel" if sums is None else "client",
        clients=int(clients),
        duels=int(duels),
        unnamed=judged.duels - judged.counts.alone - int(duels),
        busiest=int(busiest),
        most=1.0 if sums is None else sums.most,
        confidence_of_duels=judged.confidence_of_duels,
    )
