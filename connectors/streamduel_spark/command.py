"""`streamduel-spark run CONFIG`: the command line of the Spark job."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from streamduel import __version__
from streamduel.config import LoadedConfig, load
from streamduel.errors import ConfigurationError, ConnectorError, StreamduelError
from streamduel.logging import hide, redact
from streamduel_spark.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NEEDED: Final = {"pyspark": "pyspark", "pandas": "pandas", "pyarrow": "pyarrow",
                 "google.protobuf": "protobuf", "kafka": "kafka-python"}  # fmt: skip
"""Packages of the extra `spark`, by the module that they contain."""

SIGNS: Final = {
    "java.lang.ArithmeticException: long overflow": (
        "a record of spark.topic has a timestamp that Spark cannot read; let the broker set the"
        " timestamps of that topic (docs/scale.md, 'A topic that others write')."
    ),
    "Some data may have been lost because they are not available in Kafka": (
        "spark.topic does not have the records that follow spark.checkpoint: it is another topic,"
        " was created again, or kept its records for too short. Use a new spark.checkpoint; the job"
        " then counts the topic from its beginning."
    ),
    "ProducerFencedError": (
        "another job with the same source.group was started, which ends this one; run only one of"
        " them. If there is no other, start this one again."
    ),
    "Multiple streaming queries are concurrently using": (
        "another job uses the same spark.checkpoint; run only one of them. If it has ended, too,"
        " start one again."
    ),
}
"""Sentences about failures of Spark, by a text that it has."""

JAVA_ENDED: Final = (
    "Spark's Java process has ended. If the system killed it for its memory, give the machine or"
    " the container more, or less to spark.driver.memory (--conf)."
)

POLL_SECONDS: Final = 0.5
"""The time between two checks of the query; a signal takes effect immediately."""

out, err = Console(emoji=False), Console(stderr=True, emoji=False)
app = typer.Typer(
    name="streamduel-spark",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"streamduel-spark {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _set_up(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Count duels in Spark, for experiments that outgrow a core."""


@app.command()
def run(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG",
            help="The configuration of streamduel, with a section `spark`.",
            show_default=False,
        ),
    ],
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the present end of the raw topic.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            help="Where Spark runs, such as `local[4]` or `spark://host:7077`; by default all cores"
            " of this machine. Not with `spark-submit`, which has an option of its own.",
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A setting of Spark, such as `spark.driver.memory=4g`.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print only errors, lost records and Spark's own lines."
        ),
    ] = False,
) -> None:
    """Count the raw records of `spark.topic`, and write `duels` records into `source.topic`.

    `streamduel run CONFIG` reads them there, with the same configuration. The job drops duplicates,
    joins clicks to impressions, and credits as streamduel does; each pair of arms gets one record
    per slice of time (`spark.slice_ms`).

        source: {connector: kafka, bootstrap_servers: …, topic: duels, group: streamduel}
        spark:  {topic: raw-clicks, checkpoint: checkpoint/}

    SIGTERM or Ctrl-C stops the job with status 0. After any end the next start continues from the
    checkpoint, and nothing is written twice. Install it with `pip install 'streamduel[spark]'`; it
    needs Java 17 or later. docs/scale.md has the details.
    """
    settings = dict(_settings(conf or []))
    loaded = _load(config)
    plan = _plan(loaded)
    _require_spark()
    _run(loaded, plan, master, settings, until_end=until_end, quiet=quiet)


def _settings(conf: list[str]) -> Iterator[tuple[str, str]]:
    for text in conf:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise ConfigurationError(
                f"--conf must be NAME=VALUE with a name that begins with 'spark.' (found '{text}')."
            )
        yield name, value


def _load(path: Path) -> LoadedConfig:
    loaded = load(path)
    hide(loaded.source, loaded.sink, loaded.snapshots)
    return loaded


def _plan(loaded: LoadedConfig) -> Plan:
    """The plan of a configuration.

    Raises:
        ConfigurationError: it has no section `spark`; `load` has checked one that it has.
    """
    config, spark = loaded.config, loaded.config.spark
    if spark is None:
        raise ConfigurationError(
            f"spark is missing in {loaded.path}: it names the topic of the raw records and a "
            "checkpoint, as in 'spark: {topic: raw-clicks, checkpoint: checkpoint/}'."
        )
    sink: Any = loaded.sink
    return Plan.of(config, spark, sink.dead_letters)


def _require_spark() -> None:
    missing = [package for module, package in NEEDED.items() if not _is_installed(module)]
    if missing:
        raise ConnectorError(
            f"the Spark job needs {', '.join(missing)}: pip install 'streamduel[spark]'."
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent is not
        return False


def _run(
    loaded: LoadedConfig,
    plan: Plan,
    master: str | None,
    settings: Mapping[str, str],
    *,
    until_end: bool,
    quiet: bool,
) -> None:
    from streamduel_spark.job import start  # noqa: PLC0415 - needs pyspark
    from streamduel_spark.kafka_options import kafka_options  # noqa: PLC0415
    from streamduel_spark.sink import Sink  # noqa: PLC0415 - needs kafka-python

    source: Any = loaded.source
    options = kafka_options(source, plan.spark.topic)
    sink = Sink(source.client_settings, source.topic, f"{source.group}-spark")
    with closing(sink):
        sink.open(plan.spark.topic, plan.dead_letters)
        stop = _stopping()  # until here, a signal ends the process at once
        with _ended_by(stop):
            session = _session(plan, master, settings)
            report = Report(quiet=quiet)
            try:
                query = start(
                    session, plan, options, sink, report.batch,
                    checkpoint=_checkpoint(loaded.path, plan.spark.checkpoint), until_end=until_end,
                )  # fmt: skip
                _wait(query, report, stop)
            finally:
                with suppress(Exception):
                    session.stop()


def _session(plan: Plan, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    from streamduel_spark.job import create_session  # noqa: PLC0415 - needs pyspark

    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        master = "local[*]"
    try:
        return create_session(plan.spark.partitions, master, settings)
    except Exception as error:  # py4j has an exception for each of Java's
        reason = _first_line(error)
        if "JAVA_GATEWAY_EXITED" in reason:  # the reason is on standard error
            reason = (
                "Java is missing or has ended, as the lines above say. It needs Java 17 or later, "
                "in JAVA_HOME or on the PATH, and a --master and --conf that Spark knows."
            )
        elif _is_java_gone(error):
            reason = JAVA_ENDED
        raise ConnectorError(f"Spark does not start: {reason}") from error


def _stopping() -> threading.Event:
    """An event that SIGTERM and Ctrl-C set; afterwards, threads of PySpark print no tracebacks."""
    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        sys.stderr = io.StringIO()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return stop


@contextmanager
def _ended_by(stop: threading.Event) -> Iterator[None]:
    """After a signal, an exception is the expected end.

    A service manager sends SIGTERM to all processes of the job, and Java may end first.
    """
    try:
        yield
    except Exception as error:
        if not stop.is_set():
            raise _failure(error) from error


def _checkpoint(config: Path, checkpoint: str) -> str:
    """The address of the checkpoint; a folder is relative to the configuration."""
    if re.match(r"[a-z][a-z0-9+.-]*:", checkpoint, re.IGNORECASE):
        return checkpoint
    return f"file://{(config.parent / checkpoint).resolve()}"  # Hadoop decodes no %20


def _wait(query: StreamingQuery, report: Report, stop: threading.Event) -> None:
    while query.isActive and not stop.wait(POLL_SECONDS):
        report.progress(query)
    if stop.is_set():
        query.stop()
        return
    query.awaitTermination()
    report.progress(query)


def _failure(error: Exception) -> StreamduelError:
    """The error for a query that failed: streamduel's own sentence, if there is one in it."""
    if isinstance(error, StreamduelError):
        return error
    text = str(error)
    for sign, sentence in SIGNS.items():
        if sign in text:
            return ConnectorError(sentence)
    for kind in (ConfigurationError, ConnectorError):
        if found := re.search(rf"streamduel\.errors\.{kind.__name__}: (.+)", text):
            return kind(found[1])
    if _is_java_gone(error):
        return ConnectorError(JAVA_ENDED)
    # Of an error in a call, Py4J puts ": " before Java's exception.
    causes = re.findall(
        r"^(?:: )?((?:Caused by: )?[\w.]+(?:Error|Exception): .+)$", text, re.MULTILINE
    )
    return ConnectorError(f"the Spark query failed: {causes[-1] if causes else _first_line(error)}")


def _is_java_gone(error: Exception) -> bool:
    """Whether a call found no Java process: an error that Java has raised has further lines."""
    from py4j.protocol import Py4JNetworkError  # noqa: PLC0415 - comes with pyspark

    unanswered = re.fullmatch(r"An error occurred while calling \S+", str(error))
    return isinstance(error, (ConnectionError, Py4JNetworkError)) or unanswered is not None


def _first_line(error: Exception) -> str:
    return next(filter(None, (line.strip() for line in str(error).splitlines())), repr(error))


class Report:
    """Prints a line for each batch, and one when records come too late.

    Args:
        quiet: print only the latter.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = -1

    def batch(self, number: int, tally: Mapping[str, int]) -> None:
        """Report a batch that was written."""
        counts = ", ".join(
            f"{count:,} {outcome}" for outcome, count in sorted(tally.items()) if count
        )
        if counts and not self._quiet:
            err.print(f"batch {number}: {counts}", highlight=False, soft_wrap=True)

    def progress(self, query: StreamingQuery) -> None:
        """Report rows that were dropped because they are behind the watermark."""
        progress = query.lastProgress
        if progress is None or progress["batchId"] == self._last:
            return
        self._last = progress["batchId"]
        dropped = sum(it["numRowsDroppedByWatermark"] for it in progress["stateOperators"])
        if dropped:
            err.print(
                f"batch {self._last}: {dropped} chunks of records came later than "
                "spark.lateness_ms allows and were dropped",
                highlight=False,
                soft_wrap=True,
            )


def main() -> None:
    """Run the command line; an error is one sentence on standard error, never a traceback."""
    try:
        app()
    except StreamduelError as error:
        sentence = redact(f"streamduel-spark: {error}")
        err.print(sentence, markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigurationError) else 1)
