"""The engine shows progress, can be interrupted, and leaves nothing behind."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

from streamduel.analysis.engine import Engine
from streamduel.errors import StreamduelError

ENDLESS = "CREATE TABLE x AS SELECT count(*) FROM range(1000000000000) AS t(i) WHERE hash(i) = 8"


def test_ctrl_c_ends_a_query_and_removes_the_temporary_folder() -> None:
    calls = []

    def progress(what: str, share: float) -> None:
        calls.append((what, share))
        if len(calls) == 3:
            raise KeyboardInterrupt

    engine = Engine(progress=progress)
    with pytest.raises(KeyboardInterrupt), engine:
        engine.run("counting", ENDLESS)

    assert calls[0] == ("counting", 0.0)
    assert not engine.folder.exists()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises an exception also where the tests are a shell's job in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    "call",
    [Engine.rows, lambda engine, sql: list(engine.batches(sql, 10_000))],
    ids=["rows", "batches"],
)
def test_a_signal_ends_a_query_whose_progress_is_not_shown(
    call: Callable[[Engine, str], object],
) -> None:
    def interrupt(text: str | None) -> str | None:
        if text == "0":
            signal.raise_signal(signal.SIGINT)
        return text

    with Engine() as engine:
        engine.rows("SET threads = 1")  # no thread of DuckDB's own, only the one that waits
        engine.define("interrupt", interrupt)
        with pytest.raises(KeyboardInterrupt):
            call(engine, "SELECT interrupt(i::VARCHAR) FROM range(100000) AS t(i)")


def test_an_error_of_duckdb_is_one_short_sentence() -> None:
    with Engine() as engine, pytest.raises(StreamduelError, match="DuckDB cannot do this") as found:
        engine.run("reading", "SELECT " + "x" * 10_000)
    assert len(str(found.value)) < 400


def test_queries_of_batches_and_others_may_be_mixed() -> None:
    with Engine() as engine:
        batches = []
        for batch in engine.batches("SELECT * FROM range(2500)", 1000):
            batches.append(len(batch))
            assert engine.rows("SELECT 1") == [(1,)]
        assert sum(batches) == 2500


def test_an_error_at_the_start_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As with very little memory, which DuckDB notices at the first or a later statement."""
    (tmp_path / "macros.sql").write_text("SELECT error('no memory')")
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    with pytest.raises(StreamduelError, match=r"DuckDB cannot do this: .*no memory"):
        Engine("1MB")


def test_more_memory_for_duckdb_is_advised_only_where_that_helps() -> None:
    with Engine() as engine:
        engine.rows("SET memory_limit = '1MB'")
        with pytest.raises(StreamduelError, match=r"; a larger --memory may help$"):
            engine.run("sorting", "CREATE TABLE x AS SELECT hash(i) FROM range(1000000) AS t(i)")
        # DuckDB's error where `malloc` fails, which a test cannot bring about in its own process.
        text = "Out of Memory Error: Failed to allocate block of 9 bytes (bad allocation)"
        assert "the operating system gives no more" in str(engine._readable(RuntimeError(text)))
