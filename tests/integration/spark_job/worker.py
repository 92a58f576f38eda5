"""The Spark job in a process of its own, killed at a step of its first batch with duels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from streamduel_spark.command import app
from streamduel_spark.sink import Message, Sink
from tests.faults.processes import die

SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "768m",
    # Two cores are shared with the tests: less compilation.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
}


def run_job(config: Path, kill: str = "") -> None:
    """Run to the present end of the raw topic; or to `before` or `after` a batch's commit."""
    if kill:
        _kill(kill)
    conf = [f"--conf={name}={value}" for name, value in SPARK.items()]
    app(["run", str(config), "--until-end", "--master=local[2]", *conf], standalone_mode=False)


def _kill(when: str) -> None:
    write = Sink.write

    def killed(self: Sink, checkpoint: str, number: int, messages: Iterable[Message]) -> bool:
        messages = list(messages)
        if not any(b'"duels"' in message.value and not message.topic for message in messages):
            return write(self, checkpoint, number, messages)
        if when == "before":
            self._producer.commit_transaction = die
        written = write(self, checkpoint, number, messages)
        die()
        return written

    Sink.write = killed  # type: ignore[method-assign]
