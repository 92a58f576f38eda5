"""Apache Kafka on this machine's Java: one node, broker and controller in one process (KRaft).

Settings, data and log of a broker are in a temporary directory.
"""

import base64
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.broker.classes import class_sharing
from tests.broker.jars import (
    LOG_TAIL_LINES,
    BrokerUnavailableError,
    cached_jars,
    program,
    run_program,
)
from tests.broker.properties import broker_properties

FORMAT_SECONDS = 180.0  # one second on an idle machine; a loaded one starts its JVM far later
START_SECONDS = 240.0  # two to three seconds on two idle cores; the rest is for a loaded machine
STOP_SECONDS = 120.0  # a third of a second when idle; under load it flushes its logs first
POLL_SECONDS = 0.05  # a fiftieth of a start: short enough not to lengthen it
CONNECT_SECONDS = 2.0  # for one attempt; a broker within reach answers it in milliseconds

# Below the ephemeral ports of Linux and macOS: while the broker is down, a client that reconnects
# could otherwise get the broker's port for its own end and connect to itself. Each process that
# runs tests has a tenth of them, and takes each once: a broker that is down needs its port again.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9")[2:])
PORTS = list(range(20_000 + WORKER % 10, 30_000, 10))

API_VERSIONS = 18  # the request that every broker answers, before anything else
CORRELATION = 1  # repeated in the answer

LOGGING = """\
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""

# Kills the broker ($1) and removes its directory ($2) after any end of this process: the other end
# of the standard input is then closed.
WATCHDOG = 'cat > /dev/null; kill -KILL "$1" 2> /dev/null; rm -rf -- "$2"'


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    for port in random.Random().sample(PORTS, k=100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            PORTS.remove(port)
            return port
    raise BrokerUnavailableError("no free port in 20000..29999")


def new_cluster_id() -> str:
    """Return a cluster id that no other cluster has."""
    # Without a minus, which at the front would be taken for an option.
    return base64.b64encode(uuid.uuid4().bytes, b"__").decode().rstrip("=")


def wait_for_broker(bootstrap_servers: str, seconds: float) -> str:
    """Return the id of the cluster as soon as a broker answers there.

    Raises:
        BrokerUnavailableError: no broker answered in time.
    """
    deadline = time.monotonic() + seconds
    host, _, port = bootstrap_servers.rpartition(":")
    while not _speaks_kafka(host, int(port)):
        if time.monotonic() > deadline:
            raise BrokerUnavailableError(f"no Kafka answers on {bootstrap_servers}")
        time.sleep(POLL_SECONDS)
    while True:
        try:
            return _cluster_id(bootstrap_servers, max(1.0, deadline - time.monotonic()))
        except (KafkaError, OSError) as error:
            # Another node, which the broker names, may not listen yet.
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"Kafka on {bootstrap_servers} does not describe its cluster: {error!r}"
                ) from error
        time.sleep(POLL_SECONDS)


def _cluster_id(bootstrap_servers: str, seconds: float) -> str:
    milliseconds = int(1000 * seconds)
    with KafkaAdminClient(
        bootstrap_servers=bootstrap_servers,
        bootstrap_timeout_ms=milliseconds,
        request_timeout_ms=milliseconds,
    ) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def _speaks_kafka(host: str, port: int) -> bool:
    """Ask for the API versions: a proxy may accept connections before its broker does."""
    request = struct.pack(">ihhih", 10, API_VERSIONS, 0, CORRELATION, -1)
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS) as connection:
            connection.sendall(request)
            answer = connection.recv(8, socket.MSG_WAITALL)
    except OSError:
        return False
    return answer[4:] == struct.pack(">i", CORRELATION)


class LocalKafka:
    """One broker of Apache Kafka; its ports and data exist until `close`.

    Args:
        overrides: properties that replace those of `broker_properties`.
        port: the port for clients; a free one if None.
        cluster_id: from `new_cluster_id`, the same for all nodes of a cluster; a new one if None.
        heap_mb: size of the Java heap.
        classes: Java's option for the archive of classes; it reads that of `class_sharing` if None.
    """

    can_restart: ClassVar[bool] = True

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        port: int | None = None,
        cluster_id: str | None = None,
        heap_mb: int = 512,
        classes: str | None = None,
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="streamduel-kafka-"))
        self._port, self._controller_port = port or free_port(), free_port()
        self._overrides = dict(overrides or {})
        self._cluster_id = cluster_id or new_cluster_id()
        self._heap_mb = heap_mb
        self._classes = classes
        self._formatted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, the same after every restart."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """The broker's process id; None while it is stopped."""
        return self._process.pid if self._process else None

    @property
    def runs(self) -> bool:
        """Whether it is started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the broker and return when it answers.

        Raises:
            BrokerUnavailableError: it could not be fetched, ended, or did not answer in time.
        """
        self.launch()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def launch(self) -> None:
        """Start the broker and do not wait: a node of a cluster is ready when most others are.

        Raises:
            BrokerUnavailableError: it could not be fetched.
        """
        if self._process is not None:
            raise RuntimeError(f"the broker on {self.bootstrap_servers} is started already")
        jars = cached_jars()
        if self._classes is None:
            self._classes = class_sharing(Path(program("java")), jars, _run_once)
        if not self._formatted:
            self._format(jars)
        self._launch(jars)

    def stop(self) -> None:
        """Stop the broker with SIGTERM, and wait for its end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(
                self._with_log(f"the broker did not stop within {STOP_SECONDS:.0f} s")
            ) from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        if self._process is None or self._watchdog is None:
            return
        # The watchdog first: the id of a process that was waited for may be used again.
        for process in (self._watchdog, self._process):
            process.kill()
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        for process in (self._watchdog, self._process):
            process.wait()
        self._watchdog = self._process = None

    def pause(self) -> None:
        """Stop the broker with SIGSTOP: its connections stay open, and nothing answers."""
        assert self._process is not None, "the broker is not started"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused broker continue; nothing happens to one that runs or is stopped."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill the broker and start it again, with the same ports and data."""
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()

    def close(self) -> None:
        """Kill the broker and remove its directory."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def log_tail(self) -> str:
        """Return the last lines of the broker's log."""
        log = self.directory / "broker.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-LOG_TAIL_LINES:]) or "(empty)"

    def _format(self, jars: Path) -> None:
        properties = broker_properties(
            port=self._port,
            controller_port=self._controller_port,
            bind="127.0.0.1",
            advertise="127.0.0.1",
            data=str(self.directory / "data"),
        )
        lines = (f"{key}={value}\n" for key, value in (properties | self._overrides).items())
        (self.directory / "server.properties").write_text("".join(lines))
        (self.directory / "log4j2.properties").write_text(LOGGING)
        tool = ["kafka.tools.StorageTool", "format", "-t", self._cluster_id]
        command = [*self._java(jars), *tool, "-c", "server.properties"]
        run_program(command, FORMAT_SECONDS, cwd=self.directory)
        self._formatted = True

    def _launch(self, jars: Path) -> None:
        with (self.directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java(jars), "kafka.Kafka", "server.properties"],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # on Ctrl-C the tests end the broker
            )
        self._watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, "watchdog", str(self._process.pid), str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _java(self, jars: Path) -> list[str]:
        assert self._classes is not None
        return [
            program("java"),
            f"-Xmx{self._heap_mb}m",
            self._classes,
            # Two cores are shared with the tests: less compilation, no threads for the collector.
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Dlog4j2.configurationFile=log4j2.properties",
            "-cp",
            f"{jars}/*",
        ]

    def wait_until_ready(self) -> None:
        """Return when the broker answers.

        Raises:
            BrokerUnavailableError: it ended, or did not answer in time.
        """
        deadline = time.monotonic() + START_SECONDS
        while not _speaks_kafka("127.0.0.1", self._port):
            assert self._process is not None
            if self._process.poll() is not None:
                raise BrokerUnavailableError(
                    self._with_log(f"the broker ended with status {self._process.returncode}")
                )
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    self._with_log(f"the broker did not answer within {START_SECONDS:.0f} s")
                )
            time.sleep(POLL_SECONDS)
        try:
            answered = wait_for_broker(self.bootstrap_servers, deadline - time.monotonic())
        except BrokerUnavailableError as error:
            raise BrokerUnavailableError(self._with_log(str(error))) from error
        if answered != self._cluster_id:
            raise BrokerUnavailableError(
                self._with_log(f"another broker answers on {self.bootstrap_servers}")
            )

    def _with_log(self, message: str) -> str:
        return f"{message}; the end of its log:\n{self.log_tail()}"


def _run_once(classes: str) -> None:
    with LocalKafka(classes=classes) as broker:
        broker.stop()
