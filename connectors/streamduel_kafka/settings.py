"""The Kafka connector's sections of the configuration; keys are kafka-python's where it has one.

Validated with the context `{"directory": Path}`: relative file names refer to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from streamduel.connector import Contradiction
from streamduel.errors import escaped, shown
from streamduel.kafka_clients import Secret
from streamduel.section import TopicName

MAX_PORT: Final = 65_535


def _servers(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


SERVER: Final = re.compile(
    r"([a-z_]+://)?(\[[^]\s]+\]|[^][\s:;/]+)(:(?P<port>[0-9]{1,5}))?", re.IGNORECASE
)
"""As both clients read it: an IPv6 address with a port is in brackets, and either may lack one."""


def _addressed(server: str) -> str:
    with suppress(ValueError):
        IPv6Address(server)
        return server
    found = SERVER.fullmatch(server)
    if found is None or not 1 <= int(found["port"] or 1) <= MAX_PORT:
        wanted = f"must be host:port with a port from 1 to {MAX_PORT}"
        raise ValueError(f"{wanted} (found {shown(server)})")
    return server


def _existing(path: Path, info: ValidationInfo) -> Path:
    path = _directory(info) / path
    return _require_file(path, escaped(str(path)))


def _existing_unshown(path: Path, info: ValidationInfo) -> Path:
    hint = "; give the name of a file, not its content"
    return _require_file(_directory(info) / path, "of this name", hint)


def _require_file(path: Path, name: str, hint: str = "") -> Path:
    try:
        if path.is_file():
            return path
    except OSError as error:
        raise ValueError(f"the file {name} cannot be read: {error.strerror}{hint}") from None
    raise ValueError(f"there is no file {name}{hint}")


def _password(key: str, file: Path) -> SecretStr:
    try:
        text = file.read_text(encoding="utf-8-sig").rstrip("\r\n")  # Windows writes such a mark
    except OSError as error:
        raise ValueError(f"{key} {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{key} {file} is not UTF-8 text") from None
    if not text or "\n" in text:
        found = "several lines" if text else "nothing"
        raise ValueError(f"{key} {file} must contain only the password (found {found})")
    return SecretStr(text)


def _directory(info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("directory", "."))


Server = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_addressed)
]
Servers = Annotated[
    list[Server],
    BeforeValidator(_servers, json_schema_input_type=list[Server] | str),
    Field(min_length=1),
]
Password = SecretStr

# Strict: `"yes"` is no boolean, and `true` and a quoted number are no integers.
Flag = Annotated[bool, Field(strict=True)]
Integer = Annotated[int, Field(strict=True)]

MAX_INT32: Final = 2**31 - 1
"""The largest number that Kafka's protocol has room for."""

LIBRDKAFKA: Final = {
    "session_timeout_ms": 3_600_000,
    "max_poll_interval_ms": 86_400_000,
    "transaction_timeout_ms": MAX_INT32 - 100,  # it adds 100, without a check for overflow
}
"""The largest values that client confluent accepts; brokers may accept less."""

File = Annotated[Path, AfterValidator(_existing)]

SecretFile = Annotated[
    Path, AfterValidator(_existing_unshown), Field(json_schema_extra={"writeOnly": True})
]
"""Of a password or a key: errors do not repeat the name, which may be the secret by mistake."""


class Security(BaseModel):
    """Encryption and authentication; every field but the `_file` ones is kafka-python's own."""

    # A ValidationError would otherwise show the whole section with its passwords.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="Encryption (SSL) and authentication (SASL)."
    )
    ssl_check_hostname: Flag = Field(
        default=True, description="Whether the broker's certificate must match its host name."
    )
    ssl_cafile: File | None = Field(
        default=None, description="Trusted certificate authorities, PEM; null: the system's."
    )
    ssl_certfile: SecretFile | None = Field(  # may also contain the key
        default=None, description="The client's certificate, PEM."
    )
    ssl_keyfile: SecretFile | None = Field(
        default=None, description="The key of the client's certificate, PEM."
    )
    ssl_crlfile: File | None = Field(default=None, description="A certificate revocation list.")
    ssl_ciphers: str | None = Field(
        default=None, description="Allowed ciphers, in OpenSSL's notation."
    )
    ssl_password: Password | None = Field(
        default=None, description="Password of the key; better set in the environment or in a file."
    )
    ssl_password_file: SecretFile | None = Field(
        default=None, description="A file that contains only the password of the key."
    )
    sasl_mechanism: Literal["PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="SASL mechanism."
    )
    sasl_plain_username: str | None = Field(
        default=None, description="User name for PLAIN and SCRAM."
    )
    sasl_plain_password: Password | None = Field(
        default=None,
        description="Password for PLAIN and SCRAM; better set in the environment or in a file.",
    )
    sasl_plain_password_file: SecretFile | None = Field(
        default=None, description="A file that contains only the password."
    )
    sasl_kerberos_name: str | None = Field(
        default=None, description="The broker's whole principal, for GSSAPI."
    )
    sasl_kerberos_service_name: str = Field(
        default="kafka", description="The service in the broker's principal, for GSSAPI."
    )
    sasl_kerberos_domain_name: str | None = Field(
        default=None, description="The host in the broker's principal, for GSSAPI."
    )

    @model_validator(mode="after")
    def _read_passwords(self) -> Self:
        for name in ("ssl_password", "sasl_plain_password"):
            file: Path | None = getattr(self, f"{name}_file")
            if file is None:
                continue
            if getattr(self, name) is not None:
                raise ValueError(f"{name} and {name}_file are both given; keep one of them")
            setattr(self, name, _password(f"{name}_file", file))
            # Read once: a copy, or a second validation, must neither read nor refuse it again.
            setattr(self, f"{name}_file", None)
        return self

    @model_validator(mode="after")
    def _complete(self) -> Self:
        sasl = self.security_protocol.startswith("SASL_")
        if sasl and self.sasl_mechanism is None:
            raise ValueError(f"security_protocol {self.security_protocol} needs sasl_mechanism")
        if self.sasl_mechanism is not None and not sasl:
            raise ValueError(
                f"sasl_mechanism {self.sasl_mechanism} has no effect with security_protocol "
                f"{self.security_protocol}; take SASL_SSL or SASL_PLAINTEXT"
            )
        if sasl and self.sasl_mechanism != "GSSAPI":
            for name in ("sasl_plain_username", "sasl_plain_password"):
                value = getattr(self, name)
                if value is None:
                    raise ValueError(f"sasl_mechanism {self.sasl_mechanism} needs {name}")
                if not value:
                    raise ValueError(f"{name} must not be empty")
        return self


class Cluster(Security):
    """The settings that source, sink and snapshots share, because they share transactions."""

    connector: Literal["kafka"] = "kafka"
    client: Literal["kafka-python", "confluent"] = Field(
        default="kafka-python",
        description="The client library: kafka-python bounds the memory of every batch, confluent "
        "(the extra `fast`) reads several times as fast.",
    )
    bootstrap_servers: Servers = Field(
        description="Brokers as host:port: a list, or separated by commas.",
        examples=[["localhost:9092"]],
    )
    create_topics: Flag = Field(
        default=False,
        description="`streamduel run` creates missing topics; `streamduel-spark` creates none.",
    )
    replication_factor: Integer = Field(
        default=-1,
        ge=-1,
        le=32767,
        description="Replication factor of created topics; -1: the brokers' default.",
    )

    @model_validator(mode="after")
    def _supported(self) -> Self:
        for name in ("sasl_kerberos_name", "sasl_kerberos_domain_name"):
            if self.client == "confluent" and getattr(self, name) is not None:
                raise ValueError(f"{name} needs client kafka-python (found confluent)")
        for name, most in LIBRDKAFKA.items():
            value = getattr(self, name, 0)
            if self.client == "confluent" and value > most:
                raise ValueError(
                    f"{name} must be at most {most} with client confluent (found {value})"
                )
        return self

    @model_validator(mode="after")
    def _replicated(self) -> Self:
        if self.replication_factor == 0:
            raise ValueError("replication_factor must be at least 1, or -1 (found 0)")
        return self

    @property
    def client_settings(self) -> dict[str, Any]:
        """What every client is opened with; the names are kafka-python's, except `client`."""
        settings: dict[str, Any] = {
            "client": self.client,
            "bootstrap_servers": self.bootstrap_servers,
        }
        for name in Security.model_fields:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                value = Secret(value.get_secret_value())
            if isinstance(value, Path):
                value = str(value)
            if value is not None:
                settings[name] = value
        return settings


SHARED = frozenset(Cluster.model_fields) - {"connector"}


class SourceSettings(Cluster):
    """The topic of the click log, and the consumer group."""

    topic: TopicName = Field(
        description="The click log's topic; a record's key is its experiment's name.",
        examples=["clicks"],
    )
    control_topic: TopicName | None = Field(
        default=None,
        description="The topic of control records, with as many partitions as the click log; null:"
        " they come in the click log.",
    )
    group: str = Field(
        min_length=1,
        description="The consumer group, shared by all instances.",
        examples=["streamduel"],
    )
    instance: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]+$",
        max_length=249,
        description="This process's name in the group; null: host name and a free number.",
    )
    partitions: Integer = Field(
        default=1, ge=1, le=MAX_INT32, description="Partitions of the topic, if it is created."
    )
    # Polling 5,000 records takes some 30 ms, and folding them as long: SIGTERM is handled
    # immediately. Measured: 150,000 records/s; 130,000 with 500 per poll; no more with more.
    max_poll_records: Integer = Field(
        default=5000, ge=1, le=MAX_INT32, description="Most records per poll."
    )
    # Kafka's default. A process that is killed and restarted within it gets its partitions back
    # without a rebalance. At least 3: there is a heartbeat in each third.
    session_timeout_ms: Integer = Field(
        default=45_000,
        ge=3,
        le=MAX_INT32,
        description="Session timeout: partitions are reassigned after this long without a "
        "heartbeat.",
    )
    # Four times the longest commit (`transaction.COMMIT_SECONDS`). A rebalance waits this long for
    # a member that hangs: Kafka's default of five minutes would stop all members for too long.
    max_poll_interval_ms: Integer = Field(
        default=60_000,
        ge=1,
        le=MAX_INT32,
        description="Partitions are reassigned after this long without a poll.",
    )

    @model_validator(mode="after")
    def _patient(self) -> Self:
        if self.client == "confluent" and self.max_poll_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"max_poll_interval_ms must be at least session_timeout_ms "
                f"({self.session_timeout_ms}) with client confluent (found "
                f"{self.max_poll_interval_ms})"
            )
        return self

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.control_topic == self.topic:
            raise ValueError(
                f"control_topic must be another topic than topic (found '{self.topic}' for both); "
                "only a separate topic can have separate rights"
            )
        return self


class SinkSettings(Cluster):
    """The topics of assignments and dead letters."""

    assignments: TopicName = Field(
        description="The assignments' topic, compacted.", examples=["assignments"]
    )
    dead_letters: TopicName = Field(
        description="The dead letters' topic.", examples=["dead-letters"]
    )
    # Twice the longest commit, so that none times out; and below the session timeout, so that the
    # transaction of a killed process is aborted before another process owns its partitions.
    transaction_timeout_ms: Integer = Field(
        default=30_000,
        ge=1000,
        le=MAX_INT32,
        description="The broker aborts an unfinished commit after this long.",
    )


class SnapshotSettings(Cluster):
    """The topic of the snapshots."""

    topic: TopicName = Field(
        description="The snapshots' topic, compacted, with as many partitions as the click log; "
        "each group needs its own.",
        examples=["streamduel-snapshots"],
    )


def contradictions(
    source: SourceSettings | None, sink: SinkSettings, snapshots: SnapshotSettings
) -> Iterator[Contradiction]:
    """Topics with two uses: the service would read its own outputs, or lose records by compaction.

    Args:
        source: None if the click log is not in Kafka.
        sink: on the same brokers.
        snapshots: on the same brokers.
    """
    used = {}
    if source is not None:
        used[source.topic] = "source.topic"
        if source.control_topic is not None:
            used[source.control_topic] = "source.control_topic"
    for section, key, topic in (
        ("sink", "assignments", sink.assignments),
        ("sink", "dead_letters", sink.dead_letters),
        ("snapshots", "topic", snapshots.topic),
    ):
        if topic in used:
            other = f"must be another topic than {used[topic]} (found '{topic}')."
            yield Contradiction(section, key, other)
        used.setdefault(topic, f"{section}.{key}")
