"""A Prometheus process for tests, with its own port, configuration and data."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.broker.local_kafka import free_port
from tests.prometheus.programs import program

SCRAPE: Final = "2s"
"""Scrape interval, evaluation interval and scrape timeout: short enough for a test of some seconds,
long enough for a loaded machine."""

START_SECONDS: Final = 120.0
"""Prometheus starts within a second; a loaded machine takes far longer."""

ANSWER_SECONDS: Final = 60.0
"""Timeout of a query."""

LOOK_SECONDS: Final = 0.2
"""Between two checks while waiting: shorter than the scrape interval."""


class Series(NamedTuple):
    """One series of an answer: its labels, and its values, the oldest first."""

    labels: Mapping[str, str]
    values: tuple[float, ...]


class Prometheus:
    """A running Prometheus; `serving` starts it.

    Args:
        folder: where its log is.
        port: where it answers.
        process: its own.
    """

    def __init__(self, folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self._folder, self._port, self._process = folder, port, process

    def wait_until_ready(self) -> None:
        """Wait until it answers."""
        self.until(self._is_ready, START_SECONDS)

    def query(self, expression: str) -> list[Series]:
        """The present value of an expression."""
        result = self._ask("query", query=expression)["result"]
        return [Series(each["metric"], (float(each["value"][1]),)) for each in result]

    def query_range(self, expression: str, seconds: float) -> list[Series]:
        """The values of an expression in the last seconds, as of each scrape."""
        now = time.time()
        result = self._ask(
            "query_range", query=expression, start=now - seconds, end=now, step=SCRAPE
        )["result"]
        return [
            Series(each["metric"], tuple(float(value) for _, value in each["values"]))
            for each in result
        ]

    def values(self, label: str, selector: str) -> list[str]:
        """The values of a label of some series, as queried by a dashboard's variable."""
        found = self._ask(f"label/{label}/values", **{"match[]": selector})
        return [str(value) for value in found]

    def until(self, it_is_so: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition.

        Raises:
            AssertionError: it did not come in time, or Prometheus has ended.
        """
        deadline = time.monotonic() + seconds
        while not it_is_so():
            assert self._process.poll() is None, f"Prometheus has ended:\n{self._log()}"
            assert time.monotonic() < deadline, f"not so within {seconds:.0f} s\n{self._log()}"
            time.sleep(LOOK_SECONDS)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=ANSWER_SECONDS):
                return True
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return False
        except OSError:
            return False

    def _ask(self, what: str, **parameters: object) -> Any:
        asked = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"{self._url}/api/v1/{what}?{asked}", timeout=ANSWER_SECONDS
            ) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise AssertionError(f"{parameters}: {refusal.read().decode()}") from None

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}"


@contextmanager
def serving(folder: Path, targets: Mapping[str, int], rules: str = "") -> Iterator[Prometheus]:
    """Prometheus as Debian packages it, on a free port of this machine.

    Args:
        folder: an empty one, for its configuration, its data and its log.
        targets: what to scrape, by the name that becomes the label `instance`.
        rules: the text of a file of rules; none if left out.
    """
    _configure(folder, targets, rules)
    port = free_port()
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        started = Prometheus(folder, port, process)
        started.wait_until_ready()
        yield started
    finally:
        process.kill()
        process.wait()


def _configure(folder: Path, targets: Mapping[str, int], rules: str) -> None:
    jobs = [{"job_name": "streamduel", "static_configs": [_static(*it) for it in targets.items()]}]
    document = {
        "global": {
            "scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": SCRAPE,
        },
        "rule_files": ["rules.yml"] if rules else [],
        "scrape_configs": jobs,
    }  # fmt: skip
    (folder / "rules.yml").write_text(rules)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))


def _static(instance: str, port: int) -> dict[str, Any]:
    return {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": instance}}
