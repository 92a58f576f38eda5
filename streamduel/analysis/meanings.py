"""What words and numbers of other programs mean as winners and teams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.fields import plain
from streamduel.analysis.kinds import Source
from streamduel.analysis.names import OPPONENTS
from streamduel.analysis.tables import RARE
from streamduel.errors import ConfigurationError, enumerated

WINNERS: Final = (
    {1.0: "a", 0.0: "t", 2.0: "b"},
    {1.0: "a", 2.0: "b"},
    {1.0: "a", 0.0: "t", -1.0: "b"},
    {1.0: "a", -1.0: "b"},
    {1.0: "a", 0.5: "t", 0.0: "b"},
)
"""What numbers may mean as winners; the last is the outcome of side a."""

OUTCOMES: Final = {
    **dict.fromkeys(("win", "wins", "won", "winner", "w", "victory"), "a"),
    **dict.fromkeys(("loss", "losses", "lost", "lose", "loses", "loser", "l", "defeat"), "b"),
}
"""The outcome of side a, in words."""

CHALLENGERS: Final = frozenset({"treatment", "candidate", "challenger", "variant"})
"""Columns of side b whose tests mostly tell the outcome of that side."""

DRAWS: Final = {"d": "t"}
"""Beside other outcomes."""

OF_ONE: Final = frozenset({"won", "outcome", "result"})
"""Columns of what a row is about, and not of the name of a winner."""

FLAGS: Final = {"true": "a", "false": "b", "1": "a", "0": "b", "10": "a", "00": "b"}
"""Whether a ranker has beaten its opponent; 1.0 without its point is 10."""

MAX_WORDS: Final = 20
"""Different teams that are no rankers: more are not the numbers of sides."""

SHARE_OF_MIRRORED: Final = 0.9
"""Share of the comparisons of a log that has each of them from both sides."""

MANY: Final = 200_000
"""Rows from which on one in 64 ids is looked at."""


def is_perspective(source: Source) -> bool:
    """Whether each row is about a ranker and its opponent, so that its outcome is the ranker's."""
    return plain(source.columns.fields.get("b", "")) in OPPONENTS


def winner_by_side(
    engine: Engine, source: Source, winner: str, sides: Mapping[str, str], values: str
) -> str:
    """The winner where it is no name of a ranker, but a number, an outcome, or a column's name.

    Args:
        engine: with the log.
        source: the rows.
        winner: its text, in SQL.
        sides: the two rankers of a row, in SQL.
        values: the table of the different winners `x`, with the rankers `a` and `b` of their rows,
            and how many rows have them.
    """
    columns = source.columns.fields
    cases = "".join(
        f" WHEN side_word({winner}) = {quoted(plain(columns[side]))} THEN {sides[side]}"
        for side in ("a", "b") if plain(columns.get(side, ""))
    )  # fmt: skip
    names = {side: f"number_name({winner}) = number_name({sides[side]})" for side in ("a", "b")}
    engine.rows(f"ALTER TABLE {values} ADD COLUMN is_name BOOLEAN")
    is_name = "number_name(x) IN (number_name(a), number_name(b))"
    engine.rows(f"UPDATE {values} SET is_name = coalesce({is_name}, false)")
    if _are_flags(engine, source, values):
        names = {}  # also where a ranker has the name 1
        engine.rows(f"UPDATE {values} SET is_name = false")
    found = _numbers(engine, source, values)
    words = _outcomes(engine, source, values)
    numbers = {} if words else _sides_of_numbers(source, found)
    if numbers or words:
        _check_outcomes(source, [*numbers, *words])
        _tell(engine, source, {**numbers, **words})
    for number, side in numbers.items():
        cases += f" WHEN try_cast({winner} AS DOUBLE) = {number} THEN {sides[side]}"
    for word, side in words.items():
        cases += f" WHEN plain({winner}) = {quoted(word)} THEN {sides[side]}"
    of_names = "".join(f" WHEN {same} THEN {sides[side]}" for side, same in names.items())
    return f"CASE{of_names}{cases} WHEN true THEN {winner} END"


def _are_flags(engine: Engine, source: Source, values: str) -> bool:
    """Whether all winners tell whether a ranker has beaten its opponent, by the column's name."""
    if not is_perspective(source) or plain(source.columns.fields["winner"]) not in OF_ONE:
        return False
    return not engine.rows(f"SELECT 1 FROM {values} WHERE NOT is_flag(x) LIMIT 1")


def _check_outcomes(source: Source, values: Sequence[str]) -> None:
    """Refuse outcomes that may be those of either side.

    Raises:
        ConfigurationError: they may be.
    """
    columns = source.columns.fields
    if "2" not in values and plain(columns.get("b", "")) in CHALLENGERS:
        raise _two_ways(source, columns["winner"], f"outcomes {' and '.join(values)}")


def _tell(engine: Engine, source: Source, meanings: Mapping[str, str]) -> None:
    """Let the checks say what the values are taken for."""
    columns, meant = source.columns.fields, {side: value for value, side in meanings.items()}
    first, second = (columns.get(side, side)[:80] for side in ("a", "b"))
    tie = f", and {meant['t']} a tie" if "t" in meant else ""
    parts = [
        f"{meant[side]} {'is taken as a victory ' if number == 0 else ''}of '{name}'"
        for number, (side, name) in enumerate(
            (side, name) for side, name in (("a", first), ("b", second)) if side in meant
        )
    ]
    engine.rows(
        "INSERT INTO readings VALUES ('winner', 'fine', ?)",
        [f"In '{columns['winner'][:80]}', {', '.join(parts)}{tie}."],
    )


def _numbers(engine: Engine, source: Source, values: str) -> set[float]:
    """The numbers in `winner` that are no names of rankers.

    Args:
        engine: with the log.
        source: with a column of winners.
        values: the table of different winners, whether each is the name of a ranker, and how many
            rows have it.

    Raises:
        ConfigurationError: in other rows, such numbers are names of rankers.
    """
    column = source.columns.fields["winner"]
    rows = engine.rows(
        "WITH numbers AS (SELECT try_cast(x AS DOUBLE) AS number, is_name, n,"
        f" number IN (-1, 0, 0.5, 1, 2) AS is_usual FROM {values} WHERE NOT is_nothing(x))"
        ", others AS (SELECT * FROM numbers WHERE NOT is_usual AND NOT is_name)"
        " SELECT DISTINCT number, is_name FROM (FROM numbers WHERE is_usual UNION ALL FROM others"
        f" WHERE (SELECT sum(n) FROM others) > {RARE} * (SELECT sum(n) FROM numbers))"
        " ORDER BY number LIMIT 10"
    )
    found = {float(x) for x, is_name in rows if not is_name}
    if found and any(is_name for _, is_name in rows):  # 1 may be a ranker and a side
        listed = _listed(x for x, _ in rows)
        raise _two_ways(source, column, f"winners {listed}, some of them names of rankers")
    return found


def _listed(numbers: Iterable[float]) -> str:
    """Different numbers in a sentence, such as 0, 1 and 2."""
    return enumerated([f"{number:g}" for number in sorted(set(numbers))])


def _sides_of_numbers(source: Source, found: set[float]) -> dict[str, str]:
    """What numbers in `winner` mean: a, b or t for a tie; empty if there are none.

    Raises:
        ConfigurationError: the numbers can be read in two ways.
    """
    column = source.columns.fields["winner"]
    if -1.0 in found and plain(column).startswith("prefer"):
        raise _two_ways(source, column, "preferences 1 and -1")
    for meaning in WINNERS:
        if found == meaning.keys():
            return {f"{x:g}": side for x, side in meaning.items()}
    if found and found <= {0.0, 1.0}:
        raise _two_ways(source, column, f"winners {_listed(found)}")
    return {}


def _two_ways(source: Source, column: str, values: str) -> ConfigurationError:
    return ConfigurationError(
        f"'{column[:80]}' of '{source.table.where}' has the {values}, which can be read in two"
        " ways; write 'a' and 'b' instead, in the file or with --sql."
    )


def _outcomes(engine: Engine, source: Source, values: str) -> dict[str, str]:
    """The words in `winner` that are outcomes of side a, or of a tie; empty if there are none.

    `L` alone is the left side, if there is one, and beside `W` it is a defeat.

    Raises:
        ConfigurationError: it may be both.
    """
    known = OUTCOMES | FLAGS | DRAWS
    rows = engine.rows(  # all known words, and whether there are others
        f"SELECT DISTINCT plain(x) AS word FROM {values} WHERE NOT is_name AND"
        " winner_of(x, NULL, NULL, false) IS DISTINCT FROM 't'"
        f" ORDER BY word NOT IN ({', '.join(map(quoted, known))}), word LIMIT {len(known) + 1}"
    )
    found = {str(word) for (word,) in rows}
    if is_perspective(source) and found and found <= known.keys():
        return {word: known[word] for word in sorted(found)}
    if found <= {"l", *DRAWS} and found != {"l"} and "l" in found:
        raise _two_ways(source, source.columns.fields["winner"], "winners d and l")
    outcomes = found & OUTCOMES.keys()
    if outcomes <= {"l"}:
        return {}
    return {word: (OUTCOMES | DRAWS)[word] for word in sorted(outcomes | found & DRAWS.keys())}


def check_ties_are_told(
    engine: Engine, source: Source, texts: Mapping[str, str], field: str, flag: str
) -> None:
    """Refuse a column of victories whose false may be a defeat or a tie.

    Args:
        engine: with the log.
        source: the rows.
        texts: of each field.
        field: of the column; a user who names it knows that there are no ties.
        flag: its text, in SQL.

    Raises:
        ConfigurationError: it is the only sign of the winner, and nothing in it is a tie.
    """
    if field in source.chosen or "ties" in texts:
        return
    query = f"SELECT 1 FROM {source.table.relation} WHERE flag({flag}) IS NULL LIMIT 1"
    if not engine.rows(query):
        column = source.columns.fields[field][:80]
        raise ConfigurationError(
            f"'{column}' of '{source.table.where}' is true or false in every row, so that ties may"
            f" be among its defeats. Leave it empty for ties, name a column for them (--map"
            f" ties=COLUMN), or say that there are none: --map {field}={column}."
        )


def numbers_of_teams(engine: Engine, source: Source, texts: Mapping[str, str], values: str) -> str:
    """The teams, in SQL, with the names of the sides where they are 1 and 2.

    A ranker 2 may be 2.0 in one of the columns.

    Args:
        engine: with the log.
        source: the rows.
        texts: of each field.
        values: the table of the different teams `x`, with the rankers `a` and `b` of their rows.

    Raises:
        ConfigurationError: they are 0 and 1.
    """
    teams, entry, number = texts["teams"], "number_name(x)", "number_name"
    rows = engine.rows(
        f"WITH entries AS (SELECT unnest(entries(x)) AS x, a, b, n FROM {values}),"
        f" words AS (SELECT {entry} AS word, {entry} IN ({number}(a), {number}(b)) AS is_name, n"
        " FROM entries WHERE x NOT IN (a, b))"
        " SELECT word, is_name FROM words GROUP BY word, is_name"
        f" HAVING sum(n) > {RARE} * (SELECT sum(n) FROM words) LIMIT {MAX_WORDS}"
    )
    if any(is_name for _, is_name in rows):
        names = "".join(
            f" WHEN {entry} = {number}({texts[side]}) THEN {texts[side]}" for side in ("a", "b")
        )
        return f"to_json([CASE{names} ELSE x END for x in entries({teams})])::VARCHAR"
    found = {str(x) for x, _ in rows} - {"null", "None", "-1", ""}
    if found == {"0", "1"}:
        raise _two_ways(source, source.columns.fields["teams"], "teams 0 and 1")
    if found != {"1", "2"}:
        return teams
    sides = f"[CASE x WHEN '1' THEN 'a' WHEN '2' THEN 'b' ELSE x END for x in entries({teams})]"
    return f"to_json({sides})::VARCHAR"


def check_names_of_sides(engine: Engine, source: Source, field: str, values: str) -> None:
    """Refuse winners and teams that may be a side, and the name of the ranker on the other one.

    Args:
        engine: with the log.
        source: the rows.
        field: winner or teams.
        values: the table of its different values `x`, with the rankers `a` and `b` of their rows.

    Raises:
        ConfigurationError: there are such values.
    """
    column = source.columns.fields[field]
    each = "unnest(entries(x))" if field == "teams" else "x"
    rows = engine.rows(
        f"WITH words AS (SELECT {each} AS x, a, b, n FROM {values}) SELECT x, a, b FROM words"
        " WHERE x NOT IN (a, b) AND lower(a) <> lower(b) AND CASE lower(x)"
        " WHEN lower(a) THEN is_side_b(x) WHEN lower(b) THEN is_side_a(x) END"
        f" QUALIFY sum(n) OVER () > {RARE} * (SELECT sum(n) FROM words) ORDER BY x, a, b LIMIT 1"
    )
    for x, a, b in rows:
        raise ConfigurationError(
            f"'{column[:80]}' of '{source.table.where}' has '{x[:80]}', which may be a side, or the"
            f" ranker on the other side; write '{a[:80]}' and '{b[:80]}', or 'left' and 'right', in"
            " the file or with --sql."
        )


def check_names(source: Source, field: str, names: Sequence[str]) -> None:
    """Refuse words that are no names of rankers.

    Raises:
        ConfigurationError: all are outcomes or the numbers of sides.
    """
    numbers = {"-1", "0", "1", "2", "0.0", "1.0", "2.0"}
    are_numbers = set(names) <= numbers and field not in source.chosen
    if are_numbers or {plain(each) for each in names} <= OUTCOMES.keys():
        column = source.columns.fields[field]
        raise ConfigurationError(
            f"'{column[:80]}' of '{source.table.where}' says {' and '.join(names)}, but not of"
            " which ranker; name the columns of the two in each row: --map a=COLUMN --map b=COLUMN."
        )


def is_mirrored(engine: Engine, source: Source, texts: Mapping[str, str]) -> bool:
    """Whether the log has each comparison twice: once from the side of each ranker.

    Both rows have the same id. If the rows are about a ranker and its opponent, they may have ids
    of their own; then each outcome is there equally often from both sides.
    """
    fields = source.columns.fields
    if not {"a", "b"} <= fields.keys() or "winner" not in texts:
        return False
    key = source.table.text(fields["id"]) if "id" in fields else "NULL"
    rows = (
        f"(SELECT {texts['a']} AS a, {texts['b']} AS b, {key} AS key,"
        f" winner_of({texts['winner']}, {texts['a']}, {texts['b']}, false) AS winner"
        f" FROM {source.table.relation})"
    )
    pairs = f"(SELECT a, b, count(*) AS n FROM {rows} WHERE a <> b GROUP BY a, b)"
    total, both = engine.rows(
        f"SELECT sum(l.n), coalesce(sum(least(l.n, m.n)), 0) FROM {pairs} AS l LEFT JOIN {pairs}"
        " AS m ON l.a = m.b AND l.b = m.a"
    )[0]
    if not total or both < SHARE_OF_MIRRORED * total:
        return False
    few = "key IS NOT NULL" + (" AND hash(key) % 64 = 0" if total > MANY else "")
    if _share_mirrored(engine, f"(SELECT * FROM {rows} WHERE {few})") >= SHARE_OF_MIRRORED:
        return True
    if not is_perspective(source):
        return False
    return _share_mirrored(engine, f"(SELECT a, b, winner, 0 AS key FROM {rows})") == 1.0


def _share_mirrored(engine: Engine, rows: str) -> float:
    """The share of the rows that are there equally often from the other side."""
    grouped = f"(SELECT key, a, b, winner, count(*) AS n FROM {rows} WHERE a <> b GROUP BY ALL)"
    (share,) = engine.rows(
        f"SELECT sum(l.n) FILTER (l.n = m.n) / sum(l.n) FROM {grouped} AS l LEFT JOIN {grouped} AS"
        " m ON l.key = m.key AND l.a = m.b AND l.b = m.a AND m.winner IS NOT DISTINCT FROM"
        " CASE l.winner WHEN 'a' THEN 'b' WHEN 'b' THEN 'a' ELSE l.winner END"
    )[0]
    return float(share or 0.0)
