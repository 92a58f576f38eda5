"""DuckDB with bounded memory: what does not fit goes to a temporary folder."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from streamduel.errors import ConfigurationError, StreamduelError, shortened

MEMORY: Final = "2GB"
"""Enough for some ten million rows without spilling, and available on any laptop."""

POLL_SECONDS: Final = 0.1
"""How often the progress of a running query is shown."""

MAX_ERROR: Final = 300
"""Characters of an error of DuckDB that are shown; it may quote a whole line of the log."""

_Result = TypeVar("_Result")

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, from 0 to 1."""


def silent(_what: str, _share: float) -> None:
    """Show no progress."""


class Engine:
    """A temporary database, deleted at the end.

    Args:
        memory: DuckDB's limit of memory, such as `2GB`.
        progress: called with the progress of a long query.

    Raises:
        ConfigurationError: DuckDB is not installed, or the limit is no amount of memory.
        StreamduelError: the limit is too small to start with.
    """

    def __init__(self, memory: str = MEMORY, progress: Progress = silent) -> None:
        try:
            import duckdb  # noqa: PLC0415 - an extra
        except ImportError:
            raise ConfigurationError(
                "analyze needs DuckDB: pip install 'streamduel[analyze]'."
            ) from None
        self._duckdb = duckdb
        self._progress = progress
        self.folder = Path(tempfile.mkdtemp(prefix="streamduel-analyze-"))
        try:
            self.connection = duckdb.connect(self.folder / "log.duckdb")
            self._configure(memory)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _configure(self, memory: str) -> None:
        try:
            if memory.lstrip().startswith("-"):  # no limit for DuckDB
                raise ValueError
            self.rows("SET memory_limit = ?", [memory])
        except (StreamduelError, ValueError):
            raise ConfigurationError(
                f"--memory must be an amount such as 2GB or 500MB (found {memory!r})."
            ) from None
        self.rows("SET temp_directory = ?", [str(self.folder / "spill")])
        self.rows("SET TimeZone = 'UTC'")
        self.rows("SET enable_progress_bar = true")
        self.rows("SET enable_progress_bar_print = false")
        macros = resources.files("streamduel.analysis") / "macros.sql"
        self.rows(macros.read_text("utf-8"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.connection.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query or another statement, without showing its progress.

        Raises:
            StreamduelError: DuckDB cannot run it.
        """
        try:
            return self._waited(
                self.connection, lambda: self.connection.execute(sql, values).fetchall()
            )
        except self._duckdb.Error as error:
            raise self._readable(error) from error

    def batches(self, sql: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query, some at a time; other queries may run in between.

        Raises:
            StreamduelError: DuckDB cannot run it.
        """
        with self.connection.cursor() as cursor:
            try:
                self._waited(cursor, lambda: cursor.execute(sql))
                while batch := self._waited(cursor, lambda: cursor.fetchmany(size)):
                    yield batch
            except self._duckdb.Error as error:
                raise self._readable(error) from error

    def run(self, what: str, sql: str) -> None:
        """Run a statement that may take long, and show its progress.

        Args:
            what: what it does, such as "joining clicks".
            sql: the statement.

        Raises:
            StreamduelError: DuckDB cannot run it.
        """
        try:
            self._waited(self.connection, lambda: self.connection.execute(sql), what)
        except self._duckdb.Error as error:
            raise self._readable(error) from error

    def _waited(self, connection: Any, work: Callable[[], _Result], what: str = "") -> _Result:
        """The result of work in another thread, while this one shows progress, if it is named.

        In the main thread DuckDB would notice signals late, and replace their exceptions.
        """
        results: list[_Result] = []
        failure: list[BaseException] = []
        # An event, because Ctrl-C in `Thread.join` makes Python take the thread for finished.
        finished = threading.Event()

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:
                failure.append(error)
            finally:
                finished.set()

        if what:
            self._progress(what, 0.0)
        thread = threading.Thread(target=run, name="duckdb", daemon=True)
        try:
            thread.start()
            while not finished.wait(POLL_SECONDS):
                if what:
                    self._progress(what, max(0.0, connection.query_progress()) / 100)
        except BaseException:  # Ctrl-C, or another signal
            while thread.is_alive():  # again, if its query had not begun
                connection.interrupt()
                finished.wait(POLL_SECONDS)
            raise
        if failure:
            raise failure[0]
        return results[0]

    def keep(self, what: str, query: str) -> str:
        """Write the rows of a query, which are read several times, to a table; its name.

        Args:
            what: what this does, such as "grouping log.csv by list".
            query: the query.

        Raises:
            StreamduelError: DuckDB cannot run it.
        """
        (tables,) = self.rows("SELECT count(*) FROM duckdb_tables()")[0]
        self.run(what, f"CREATE TABLE kept_{tables} AS {query}")
        return f"kept_{tables}"

    def define(self, name: str, function: Callable[[str | None], str | None]) -> None:
        """Make a function of Python known to SQL; a row takes it some microseconds."""
        from duckdb.func import SPECIAL  # noqa: PLC0415 - an extra

        self.connection.create_function(
            name, function, ["VARCHAR"], "VARCHAR", null_handling=SPECIAL
        )

    def statements(self, sql: str) -> list[str]:
        """The statements of a text of SQL, without the semicolons and comments behind them.

        Raises:
            StreamduelError: it is no SQL.
        """
        try:
            parts = self.connection.extract_statements(sql)
            return [self._without_end(part.query) for part in parts]
        except self._duckdb.Error as error:
            raise self._readable(error) from error

    def _without_end(self, statement: str) -> str:
        text = statement.encode()
        for start, kind in reversed(self._duckdb.tokenize(statement)):
            if kind != self._duckdb.token_type.comment and text[start : start + 1] != b";":
                break
            text = text[:start]
        return text.decode()

    def done(self, what: str, share: float) -> None:
        """Show the progress of work outside of DuckDB."""
        self._progress(what, share)

    def _readable(self, error: Exception) -> StreamduelError:
        """DuckDB's message without the query; of an error in a line, not the line but the error."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = lines[0] if lines else "unknown error"
        if text.startswith("Invalid Input Error: CSV Error on Line"):
            told = (line for line in lines[1:] if not line.startswith("Original Line"))
            text = f"{text.removeprefix('Invalid Input Error: ')}: {next(told, 'unknown error')}"
        elif text.startswith("An error occurred while trying to automatically install"):
            text = next((line for line in lines[1:] if line.startswith("Failed")), text)
            text += "; addresses need it, files do not"
        elif "maximum_object_size" in text:
            text += "; write each record as a line of its own, such as with jq -c '.data[]'"
        elif text.startswith("Out of Memory Error") and "bad allocation" in text:
            text += "; the operating system gives no more (ulimit -v, or a limit of the container)"
        elif text.startswith("Out of Memory Error"):
            text += "; a larger --memory may help"
        return StreamduelError(f"DuckDB cannot do this: {shortened(text, MAX_ERROR)}")


def quoted(text: str) -> str:
    """A string as a literal of SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    """A column's name in SQL.

    >>> name('left"ranker')
    '"left""ranker"'
    """
    return '"' + text.replace('"', '""') + '"'
