"""The documented access control lists are enough, and each is named when it is missing."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from streamduel.client.event_log import EventLog
from streamduel.client.kafka import KafkaFeed, KafkaWriter
from streamduel.errors import ConnectorError
from streamduel_spark.sink import Message, Sink
from tests.broker.fixture import CLIENT
from tests.broker.fixture import without_broker as no_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.secured import PASSWORD, Grant, SecuredKafka, make_keys
from tests.command_line import run_command
from tests.unit.cli.commands import COMMAND, SECONDS, Result

pytestmark = pytest.mark.kafka

REPOSITORY: Final = Path(__file__).parents[3]

# docs/security.md has these tables; `test_the_documented_lists_are_the_tested_ones` compares them.
SERVICE: Final = (
    Grant("Read", "topic", "clicks"),
    Grant("Read", "group", "streamduel"),
    Grant("Write", "topic", "assignments"),
    Grant("Write", "topic", "dead-letters"),
    Grant("Read", "topic", "snapshots"),
    Grant("Write", "topic", "snapshots"),
    Grant("Write", "transactional-id", "streamduel-streamduel-*"),
)
AUDITOR: Final = (
    Grant("Read", "topic", "clicks"),
    Grant("Read", "topic", "assignments"),
    Grant("Read", "topic", "snapshots"),
)
INSPECTOR: Final = (Grant("Read", "topic", "snapshots"),)
OPERATOR: Final = (Grant("Write", "topic", "clicks"),)
APPLIER: Final = (
    *OPERATOR,
    Grant("Read", "topic", "clicks"),
    Grant("Read", "topic", "snapshots"),
)
SPARK: Final = (
    Grant("Read", "topic", "raw-clicks"),
    Grant("Read", "topic", "clicks"),
    Grant("Write", "topic", "clicks"),
    Grant("Write", "topic", "dead-letters"),
    Grant("Read", "group", "streamduel-spark"),
    Grant("Write", "transactional-id", "streamduel-spark"),
)
RANKER: Final = (Grant("Read", "topic", "assignments"), Grant("Write", "topic", "clicks"))
# With `source.control_topic: control`.
CONTROLLED_SERVICE: Final = (
    *SERVICE,
    Grant("Read", "topic", "control"),
    Grant("Write", "topic", "clicks"),
)
CONTROLLED_AUDITOR: Final = (*AUDITOR, Grant("Read", "topic", "control"))
CONTROLLED_OPERATOR: Final = (Grant("Write", "topic", "control"),)
CONTROLLED_APPLIER: Final = (
    *CONTROLLED_OPERATOR,
    Grant("Read", "topic", "control"),
    Grant("Read", "topic", "snapshots"),
)
OPTIONAL: Final = tuple(
    Grant("DescribeConfigs", "topic", name)
    for name in ("clicks", "assignments", "dead-letters", "snapshots")
)

COMMANDS: Final[dict[str, tuple[tuple[Grant, ...], tuple[str, ...]]]] = {
    "run": (SERVICE, ("run", "CONFIG", "--until-end")),
    "replay": (AUDITOR, ("replay", "CONFIG")),
    "inspect": (INSPECTOR, ("inspect", "CONFIG")),
    "control": (OPERATOR, ("control", "CONFIG", "search", "pause")),
    "controlled-run": (CONTROLLED_SERVICE, ("run", "CONFIG", "--until-end")),
    "controlled-replay": (CONTROLLED_AUDITOR, ("replay", "CONFIG")),
    "controlled-control": (CONTROLLED_OPERATOR, ("control", "CONFIG", "search", "pause")),
}
"""The rights of each command; `controlled-`: with a control topic."""

LACKING: Final = [
    (command, grant)
    for command, (grants, _) in COMMANDS.items()
    for grant in grants
    # A replay needs the control topic when these are tried, because the click log refers to it by
    # then. The rights that a service needs in any case are tried without it.
    if command != "replay" and not (command == "controlled-run" and grant in SERVICE)
]


def user_without(command: str, grant: Grant) -> str:
    return f"{command}-without-{grant.operation}-{grant.kind}-{grant.name.rstrip('*-')}".lower()


@dataclass
class Secured:
    """A broker with all users and topics, and a configuration for each user."""

    broker: SecuredKafka
    folder: Path

    def config(self, user: str) -> Path:
        path = self.folder / f"{user}.yaml"
        shared = self.broker.client_settings(user) | {
            "connector": "kafka",
            "client": CLIENT,
            "sasl_plain_password_file": str(self.broker.keys / "password"),
        }
        experiment: dict[str, Any] = {
            "arms": ["bm25", "ltr"], "policy": {"name": "rucb"}, "seed": 7
        }  # fmt: skip
        settings: dict[str, Any] = {
            "source": {
                **shared,
                "topic": "clicks",
                "group": "streamduel",
                "session_timeout_ms": 6000,
            },
            "sink": {
                "connector": "kafka",
                "assignments": "assignments",
                "dead_letters": "dead-letters",
            },
            "snapshots": {"connector": "kafka", "topic": "snapshots"},
            "monitoring": None,
            "experiments": {"search": experiment},
        }
        if user.endswith("apply"):
            experiment["decide_every"] = 5 if user == "apply" else 10
        if user.startswith("controlled-"):
            settings["source"]["control_topic"] = "control"
        path.write_text(yaml.safe_dump(settings))
        return path

    def streamduel(self, user: str, *words: str) -> Result:
        """A command of this user; the word CONFIG is its configuration."""
        config = str(self.config(user))
        given = (config if word == "CONFIG" else word for word in words)
        done = run_command(*given, seconds=SECONDS)
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    try:
        keys = make_keys(tmp_path_factory.mktemp("keys"))
    except FileNotFoundError as error:
        no_broker(str(error))
    try:
        broker = SecuredKafka(keys)
        broker.__enter__()
    except BrokerUnavailableError as error:
        no_broker(str(error))
    compacted = {"configs": {"cleanup.policy": "compact"}, "num_partitions": 1}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics(
            {
                "clicks": {"num_partitions": 1},
                "control": {"num_partitions": 1},
                "raw-clicks": {"num_partitions": 1},
                "assignments": compacted,
                "dead-letters": {"num_partitions": 1},
                "snapshots": compacted,
            },
            wait_for_metadata=True,
        )
    broker.add_users(
        {command: grants for command, (grants, _) in COMMANDS.items()}
        | {"ranker": RANKER, "informed": SERVICE + OPTIONAL, "taken": SERVICE}
        | {"spark": SPARK}
        | {user_without("spark", it): tuple({*SPARK} - {it}) for it in SPARK}
        | {"apply": APPLIER, "controlled-apply": CONTROLLED_APPLIER}
        | {
            user_without(command, left): [each for each in COMMANDS[command][0] if each != left]
            for command, left in LACKING
        }
    )
    yield Secured(broker, tmp_path_factory.mktemp("configs"))
    broker.close()


def test_the_documented_lists_are_the_tested_ones() -> None:
    page = (REPOSITORY / "docs/security.md").read_text()
    section = page.split("## Access control lists\n")[1].split("\n## ")[0]
    tables = re.split(r"^\| operation .*\n\|-.*\n", section, flags=re.MULTILINE)[1:]
    row = re.compile(r"^\| (\w+) \| ([\w-]+) \| `(.+?)` \|", re.MULTILINE)
    documented = [tuple(Grant(*found) for found in row.findall(table)) for table in tables]
    assert documented == [
        SERVICE, AUDITOR, INSPECTOR, OPERATOR, APPLIER[len(OPERATOR) :],
        CONTROLLED_SERVICE[len(SERVICE) :], CONTROLLED_AUDITOR[len(AUDITOR) :],
        CONTROLLED_OPERATOR, CONTROLLED_APPLIER[len(CONTROLLED_OPERATOR) :-1], SPARK, RANKER,
    ]  # fmt: skip


def applied(secured: Secured, user: str) -> None:
    result = secured.streamduel(user, "control", "apply", "CONFIG", "--yes")
    assert result.status == 0, (user, result.err)
    assert result.out.startswith("Wrote decide_every"), result.out


def test_the_documented_lists_are_enough(secured: Secured) -> None:
    settings = secured.broker.client_settings("ranker") | {"sasl_plain_password": PASSWORD}
    servers = settings.pop("bootstrap_servers")
    with EventLog(KafkaWriter(servers, "clicks", settings)) as log:
        for _ in range(20):
            log.duel("search", "bm25", "ltr", "a")
    result = secured.streamduel("run", "run", "CONFIG", "--until-end")
    assert result.status == 0, result.err
    assert "cleanup policy unknown" in result.err  # the documented warning, and nothing else
    for command in ("control", "replay", "inspect"):
        result = secured.streamduel(command, *COMMANDS[command][1])
        assert result.status == 0, (command, result.err)
    applied(secured, "apply")
    # The control topic is introduced while the experiment runs.
    for command in ("controlled-run", "controlled-control", "controlled-run", "controlled-replay"):
        result = secured.streamduel(command, *COMMANDS[command][1])
        assert result.status == 0, (command, result.err)
    applied(secured, "controlled-apply")
    feed = KafkaFeed(servers, "assignments", settings)
    assert feed.poll()
    feed.close()
    result = secured.streamduel("informed", "-v", "run", "CONFIG", "--until-end")
    assert result.status == 0, result.err
    assert "unknown" not in result.err
    assert "click log opened topic=clicks timestamps=CreateTime" in result.err


@pytest.mark.parametrize("left", [None, SERVICE[1], SERVICE[-1]], ids=str)
def test_doctor_tells_rights_to_group_and_transactions(
    secured: Secured, left: Grant | None
) -> None:
    user = "run" if left is None else user_without("run", left)
    lines = secured.streamduel(user, "doctor", "CONFIG").out.splitlines()
    failed = [line for line in lines if line.startswith("failed")]
    [timeouts] = (line for line in lines if line.startswith("unknown"))
    assert timeouts.split(": ")[0] == "unknown timeouts"
    assert timeouts.endswith("this user lacks DescribeConfigs on the cluster.")
    if left is None:
        assert failed == []
        return
    [line] = failed
    name = "source.group" if left.kind == "group" else "transactions"
    assert line.split(": ")[0].split() == ["failed", name]
    what = f"{left.operation} {left.kind} '{left.name.rstrip('*')}"
    assert f"Kafka does not allow user '{user}' to {what}" in line


@pytest.mark.parametrize(
    ("command", "left"),
    LACKING,
    ids=[user_without(command, left) for command, left in LACKING],
)
def test_a_missing_right_is_named(secured: Secured, command: str, left: Grant) -> None:
    user = user_without(command, left)
    result = secured.streamduel(user, *COMMANDS[command][1])
    assert result.status == 1
    what = f"{left.kind} '{left.name.rstrip('*')}"
    assert f"Kafka does not allow user '{user}' to {left.operation} {what}" in result.err
    assert f"--operation {left.operation} --{left.kind} {left.name.rstrip('*')}" in result.err
    assert "Traceback" not in result.err


def spark_sink(secured: Secured, user: str) -> Sink:
    settings = secured.broker.client_settings(user) | {"sasl_plain_password": PASSWORD}
    settings["bootstrap_servers"] = [settings["bootstrap_servers"]]
    return Sink(settings, "clicks", "streamduel-spark")


def test_the_documented_list_of_the_spark_job_is_enough(secured: Secured) -> None:
    with closing(spark_sink(secured, "spark")) as sink:
        sink.open("raw-clicks", "dead-letters")
        letters = [Message("", b"search", b"{}"), Message("dead-letters", None, b"{}")]
        assert sink.write("checkpoint", 0, letters)


@pytest.mark.parametrize("left", SPARK, ids=str)
def test_a_missing_right_of_the_spark_job_is_named(secured: Secured, left: Grant) -> None:
    user = user_without("spark", left)
    what = f"user '{user}' to {left.operation} {left.kind} '{left.name}'"
    with (
        closing(spark_sink(secured, user)) as sink,
        pytest.raises(ConnectorError, match=f"Kafka does not allow {what}"),
    ):
        sink.open("raw-clicks", "dead-letters")


TAKEN: Final = [
    each
    for each in SERVICE
    if each not in {Grant("Read", "topic", "snapshots"), Grant("Write", "topic", "assignments")}
]
"""The rights that a running process needs for the next dead letter."""


@pytest.mark.parametrize("taken", TAKEN, ids=str)
def test_a_right_that_is_taken_away_ends_the_process(secured: Secured, taken: Grant) -> None:
    servers = secured.broker.bootstrap_servers
    letters = TopicPartition("dead-letters", 0)
    command = [*COMMAND, "run", str(secured.config("taken"))]
    with (
        closing(KafkaConsumer(bootstrap_servers=servers)) as consumer,
        closing(KafkaProducer(bootstrap_servers=servers)) as producer,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        try:
            before = consumer.end_offsets([letters])[letters]
            producer.send("clicks", b"junk", key=b"search").get(30)
            deadline = time.monotonic() + SECONDS
            while consumer.end_offsets([letters])[letters] == before:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            with secured.broker.denied("taken", taken):
                producer.send("clicks", b"more junk", key=b"search").get(30)
                out = process.communicate(timeout=SECONDS)[0].decode()
        finally:
            process.kill()
    assert process.returncode == 1
    what = f"{taken.kind} '{taken.name.rstrip('*')}"
    assert f"Kafka does not allow user 'taken' to {taken.operation} {what}" in out
    assert f"--operation {taken.operation} --{taken.kind} {taken.name.rstrip('*')}" in out
