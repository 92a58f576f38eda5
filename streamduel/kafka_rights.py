"""The sentence that names a missing right, and how to grant it; that for refused credentials."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafka import errors

from streamduel.errors import ConnectorError


def missing(wanted: Collection[str], granted: Collection[str] | None) -> list[str]:
    """The operations that are needed and not granted.

    Args:
        wanted: the operations, as `kafka-acls.sh` calls them.
        granted: the broker's answer, in capitals; None from brokers before Kafka 2.3.

    >>> missing(["Read", "Write"], ["DESCRIBE", "READ"])
    ['Write']
    """
    if granted is None:
        return []
    return [operation for operation in wanted if operation.upper() not in granted]


def refused_credentials(settings: Mapping[str, Any], error: BaseException) -> str:
    """The sentence for brokers that refuse the password of a client.

    Args:
        settings: the client's settings.
        error: their answer.
    """
    return (
        f"Kafka at {','.join(settings['bootstrap_servers'])} refused the credentials "
        f"(sasl_mechanism {settings.get('sasl_mechanism')}, user "
        f"{settings.get('sasl_plain_username')!r}): {str(error).rstrip('.')}."
    )


class Rights:
    """What a client may do, for the sentence that says what it may not.

    Args:
        settings: the client's settings.
        group: the consumer group that it uses.
        transactional_id: its transactional id.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        group: str | None = None,
        transactional_id: str | None = None,
    ) -> None:
        self._settings = settings
        self._servers = ",".join(settings["bootstrap_servers"])
        self._user: str | None = settings.get("sasl_plain_username")
        self._group = group
        self._transactional_id = transactional_id

    def lacks(self, operation: str, kind: str, name: str = "", setting: str = "") -> ConnectorError:
        """The error for a missing right.

        Args:
            operation: as `kafka-acls.sh` calls it.
            kind: topic, group, transactional-id or cluster.
            name: the resource.
            setting: the configuration key that names it, if one does.
        """
        who = f"user '{self._user}'" if self._user else "this client"
        what = f"{kind} '{name}'" if name else f"the {kind}"
        key = f" ({setting})" if setting else ""
        return ConnectorError(
            f"Kafka does not allow {who} to {operation} {what}{key}; grant it with: kafka-acls.sh "
            f"--bootstrap-server {self._servers} --add --allow-principal "
            f"User:{self._user or 'NAME'} --operation {operation} --{kind}"
            f"{f' {name}' if name else ''}."
        )

    def refused(
        self, error: BaseException, operation: str, topic: str = "", setting: str = ""
    ) -> ConnectorError | None:
        """The error for an answer that refuses a right or the credentials; None for any other.

        Args:
            error: the answer.
            operation: what was to be done with the topic.
            topic: the topic, if the answer does not name it.
            setting: the configuration key that names the topic.
        """
        if isinstance(error, errors.SaslAuthenticationFailedError):
            return ConnectorError(
                f"{refused_credentials(self._settings, error)} A new password in "
                "sasl_plain_password_file is read at the next start."
            )
        if isinstance(error, errors.TopicAuthorizationFailedError):
            named = error.args[0] if error.args else None
            topics = sorted(named) if isinstance(named, (set, frozenset)) else []
            return self.lacks(operation, "topic", (topics or [topic])[0], setting)
        if isinstance(error, errors.GroupAuthorizationFailedError):
            return self.lacks("Read", "group", self._group or str(error), "source.group")
        if isinstance(error, errors.TransactionalIdAuthorizationFailedError):
            return self.lacks("Write", "transactional-id", self._transactional_id or str(error))
        if isinstance(error, errors.ClusterAuthorizationFailedError):
            return self.lacks("IdempotentWrite", "cluster")
        return None
