"""A Prometheus of the tests' own: one process, its port, its configuration and its data."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import yaml

from tests.broker.local_kafka import free_port
from tests.prometheus.programs import program

SCRAPE: Final = "500ms"
"""Between two scrapes, and two looks at the rules: thirty times as often as in configs/prometheus,
so that a test has enough samples after some seconds."""

START_SECONDS: Final = 30.0
"""Prometheus starts within a second; a loaded machine takes far longer."""

ANSWER_SECONDS: Final = 10.0
"""For one question; the answers are small."""

LOOK_SECONDS: Final = 0.2
"""Between two looks for what is awaited: shorter than a scrape."""


class Series(NamedTuple):
    """One series of an answer: its labels, and its values, the oldest first."""

    labels: Mapping[str, str]
    values: tuple[float, ...]


class Prometheus:
    """Prometheus as Debian packages it, on a free port of this machine.

    Args:
        folder: an empty one, for its configuration, its data and its log.
        targets: what to scrape, by the name that becomes the label `instance`.
        rules: the text of a file of rules; none if left out.
    """

    def __init__(self, folder: Path, targets: Mapping[str, int], rules: str = "") -> None:
        self._folder = folder
        self._port = free_port()
        (folder / "rules.yml").write_text(rules)
        jobs = [
            {"job_name": "streamduel", "static_configs": [_static(*it) for it in targets.items()]}
        ]
        document = {
            "global": {
                "scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": SCRAPE,
            },
            "rule_files": ["rules.yml"] if rules else [],
            "scrape_configs": jobs,
        }  # fmt: skip
        (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self.until(self._is_ready, START_SECONDS)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def query(self, expression: str) -> list[Series]:
        """What an expression is at this moment."""
        result = self._ask("query", query=expression)["result"]
        return [Series(each["metric"], (float(each["value"][1]),)) for each in result]

    def query_range(self, expression: str, seconds: float) -> list[Series]:
        """What an expression was during the last seconds, twice a second."""
        now = time.time()
        result = self._ask(
            "query_range", query=expression, start=now - seconds, end=now, step=SCRAPE
        )["result"]
        return [
            Series(each["metric"], tuple(float(value) for _, value in each["values"]))
            for each in result
        ]

    def values(self, label: str, selector: str) -> list[str]:
        """Which values a label of some series has, as a dashboard's variable asks it."""
        found = self._ask(f"label/{label}/values", **{"match[]": selector})
        return [str(value) for value in found]

    def until(self, it_is_so: Callable[[], bool], seconds: float) -> None:
        """Wait for something.

        Raises:
            AssertionError: it did not come in time, or Prometheus has ended.
        """
        deadline = time.monotonic() + seconds
        while not it_is_so():
            assert self._process is not None
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


def _static(instance: str, port: int) -> dict[str, Any]:
    return {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": instance}}
