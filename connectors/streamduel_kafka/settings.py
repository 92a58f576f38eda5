"""What a configuration may say about Kafka; the names of kafka-python are kept where it has one.

Validated with the context `{"directory": Path}`: file names are relative to that directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

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


class Secret(str):
    """A password on its way into kafka-python, which writes its settings to the debug log."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'**********'"


def _servers(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _existing(path: Path, info: ValidationInfo) -> Path:
    path = _directory(info) / path
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _directory(info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("directory", "."))


TopicName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", min_length=1, max_length=249)
]
Server = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Servers = Annotated[
    list[Server],
    BeforeValidator(_servers, json_schema_input_type=list[Server] | str),
    Field(min_length=1),
]
Password = SecretStr
File = Annotated[Path, AfterValidator(_existing)]


class Security(BaseModel):
    """How to reach the brokers safely; every field is kafka-python's own, but for `_file`."""

    # A ValidationError otherwise shows the whole section, passwords included.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="whether to encrypt (SSL) and to say who we are (SASL)"
    )
    ssl_check_hostname: bool = Field(
        default=True, description="whether the broker's certificate must carry its host's name"
    )
    ssl_cafile: File | None = Field(
        default=None, description="certificates of the authorities to trust; the system's if none"
    )
    ssl_certfile: File | None = Field(default=None, description="our own certificate, PEM")
    ssl_keyfile: File | None = Field(default=None, description="the key of our certificate, PEM")
    ssl_crlfile: File | None = Field(default=None, description="a list of revoked certificates")
    ssl_ciphers: str | None = Field(default=None, description="allowed ciphers, as OpenSSL has it")
    ssl_password: Password | None = Field(
        default=None, description="of the key; rather from the environment or a file"
    )
    ssl_password_file: File | None = Field(
        default=None, description="a file that holds the password of the key and nothing else"
    )
    sasl_mechanism: Literal["PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="how to say who we are"
    )
    sasl_plain_username: str | None = Field(
        default=None, description="who we are, for PLAIN and SCRAM"
    )
    sasl_plain_password: Password | None = Field(
        default=None, description="for PLAIN and SCRAM; rather from the environment or a file"
    )
    sasl_plain_password_file: File | None = Field(
        default=None, description="a file that holds the password and nothing else"
    )
    sasl_kerberos_name: str | None = Field(
        default=None, description="the broker's whole principal, for GSSAPI"
    )
    sasl_kerberos_service_name: str = Field(
        default="kafka", description="the service's part of the broker's principal, for GSSAPI"
    )
    sasl_kerberos_domain_name: str | None = Field(
        default=None, description="the host's part of the broker's principal, for GSSAPI"
    )

    @model_validator(mode="after")
    def _read_passwords(self) -> Self:
        for name in ("ssl_password", "sasl_plain_password"):
            file: Path | None = getattr(self, f"{name}_file")
            if file is None:
                continue
            if getattr(self, name) is not None:
                raise ValueError(f"{name} and {name}_file are both given; keep one of them")
            setattr(self, name, SecretStr(file.read_text(encoding="utf-8").rstrip("\r\n")))
            # Read now and once: validating again, or copying, must not read or refuse again.
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
                if getattr(self, name) is None:
                    raise ValueError(f"sasl_mechanism {self.sasl_mechanism} needs {name}")
        return self


class Cluster(Security):
    """What source, sink and snapshots must agree on: they share transactions."""

    connector: Literal["kafka"] = "kafka"
    bootstrap_servers: Servers = Field(
        description="host:port of one or more brokers, as a list or with commas between"
    )
    create_topics: bool = Field(default=False, description="create the topics that are missing")
    replication_factor: int = Field(
        default=-1, ge=-1, le=32767, description="of created topics; -1: as the brokers say"
    )

    @model_validator(mode="after")
    def _replicated(self) -> Self:
        if self.replication_factor == 0:
            raise ValueError("replication_factor must be at least 1, or -1 (found 0)")
        return self

    @property
    def client_settings(self) -> dict[str, Any]:
        """The keyword arguments that every client of kafka-python takes."""
        settings: dict[str, Any] = {"bootstrap_servers": self.bootstrap_servers}
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
    """Where the click log is, and who reads it."""

    topic: TopicName = Field(description="the click log; a record's key is its experiment's name")
    group: str = Field(min_length=1, description="the consumer group, shared by all instances")
    instance: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]+$",
        max_length=249,
        description="this process's name in the group; host name and a free number if not given",
    )
    partitions: int = Field(default=1, ge=1, description="of the topic, if it is created")
    # To poll 5,000 records takes some 30 ms, and to fold them as long: a SIGTERM is answered at
    # once. Measured, 150,000 records/s; with 500 a poll 130,000, with more no faster.
    max_poll_records: int = Field(
        default=5000, ge=1, description="read, and folded, at a time at most"
    )
    # Kafka's own default. A process that is killed and restarted within it gets its partitions
    # back without a rebalance; one that does not return loses them after it.
    session_timeout_ms: int = Field(
        default=45_000, ge=1, description="after which a process that is gone loses its partitions"
    )
    # Four times the longest commit (`transaction.COMMIT_SECONDS`). A rebalance waits at most this
    # long for a member that hangs, so Kafka's default of five minutes would stop all for too long.
    max_poll_interval_ms: int = Field(
        default=60_000, ge=1, description="after which a process that hangs loses its partitions"
    )


class SinkSettings(Cluster):
    """Where assignments and dead letters go."""

    assignments: TopicName = Field(description="the assignments' topic, compacted")
    dead_letters: TopicName = Field(description="the topic of records that could not be used")
    # Twice the longest commit, so that none is cut off; and below the session timeout, so that
    # what a dead process left open is undone before another one takes over its partitions.
    transaction_timeout_ms: int = Field(
        default=30_000, ge=1000, description="after which the broker undoes an unfinished commit"
    )


class SnapshotSettings(Cluster):
    """Where the snapshots go."""

    topic: TopicName = Field(
        description="the snapshots' topic, compacted, with as many partitions as the click log"
    )
