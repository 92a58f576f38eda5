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


def _text(value: object) -> object:
    # YAML reads an unquoted 12345 as a number. Refusing it would quote the password in the error.
    return str(value) if isinstance(value, int | float) else value


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
Servers = Annotated[list[Server], BeforeValidator(_servers), Field(min_length=1)]
Password = Annotated[SecretStr, BeforeValidator(_text)]
File = Annotated[Path, AfterValidator(_existing)]


class Security(BaseModel):
    """How to reach the brokers safely; every field is kafka-python's own, but for `_file`."""

    # A ValidationError otherwise shows the whole section, passwords included.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    ssl_check_hostname: bool = True
    ssl_cafile: File | None = None
    ssl_certfile: File | None = None
    ssl_keyfile: File | None = None
    ssl_crlfile: File | None = None
    ssl_ciphers: str | None = None
    ssl_password: Password | None = None
    ssl_password_file: File | None = None
    sasl_mechanism: Literal["PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: Password | None = None
    sasl_plain_password_file: File | None = None
    sasl_kerberos_name: str | None = None
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None

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
    bootstrap_servers: Servers
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

    topic: TopicName
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
    max_poll_records: int = Field(default=5000, ge=1)
    # Kafka's own default. A process that is killed and restarted within it gets its partitions
    # back without a rebalance; one that does not return loses them after it.
    session_timeout_ms: int = Field(default=45_000, ge=1)
    # Four times the longest commit (`transaction.COMMIT_SECONDS`). A rebalance waits at most this
    # long for a member that hangs, so Kafka's default of five minutes would stop all for too long.
    max_poll_interval_ms: int = Field(default=60_000, ge=1)


class SinkSettings(Cluster):
    """Where assignments and dead letters go."""

    assignments: TopicName
    dead_letters: TopicName
    # Twice the longest commit, so that none is cut off; and below the session timeout, so that
    # what a dead process left open is undone before another one takes over its partitions.
    transaction_timeout_ms: int = Field(default=30_000, ge=1000)


class SnapshotSettings(Cluster):
    """Where the snapshots go."""

    topic: TopicName
