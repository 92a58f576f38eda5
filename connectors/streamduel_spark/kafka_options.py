"""The options of Spark's Kafka source, from the keys of streamduel's Kafka connector."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from streamduel.errors import ConfigurationError

POLL_RECORDS: Final = 50
"""Records that Kafka's client decompresses together: with its default of 500, records of a megabyte
that compress well fill the default memory of Spark."""

_OLD_KEY: Final = re.compile(r"BEGIN (?!ENCRYPTED)\w+ PRIVATE KEY")
"""The first line of a key in another format than PKCS#8."""


def kafka_options(source: BaseModel, topic: str) -> dict[str, str]:
    """The options that read a topic as the source does.

    Certificates are passed as text: the executors do not have the files.

    Args:
        source: the source's settings.
        topic: the topic.

    Raises:
        ConfigurationError: a certificate or key cannot be read, or not by Java.
    """
    keys: Any = source
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "groupIdPrefix": f"{keys.group}-spark",
        "kafka.bootstrap.servers": ",".join(keys.bootstrap_servers),
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": str(POLL_RECORDS),
        "kafka.security.protocol": keys.security_protocol,
    }
    if keys.security_protocol.endswith("SSL"):
        options |= _encryption(keys)
    if keys.sasl_mechanism is not None:
        options |= _authentication(keys)
    return options


def _encryption(keys: Any) -> dict[str, str]:
    options = {}
    if not keys.ssl_check_hostname:
        options["kafka.ssl.endpoint.identification.algorithm"] = ""
    if keys.ssl_cafile is not None:
        options["kafka.ssl.truststore.type"] = "PEM"
        options["kafka.ssl.truststore.certificates"] = _text(keys, "ssl_cafile")
    if keys.ssl_certfile is not None:
        options["kafka.ssl.keystore.type"] = "PEM"
        options["kafka.ssl.keystore.certificate.chain"] = _text(keys, "ssl_certfile")
        options["kafka.ssl.keystore.key"] = _key(keys)
    if keys.ssl_password is not None:
        options["kafka.ssl.key.password"] = keys.ssl_password.get_secret_value()
    return options


def _key(keys: Any) -> str:
    name = "ssl_certfile" if keys.ssl_keyfile is None else "ssl_keyfile"
    file, text = getattr(keys, name), _text(keys, name)
    if found := _OLD_KEY.search(text):
        raise ConfigurationError(
            f"source.{name} has a key that Java cannot read ('{found[0]}'); convert it with "
            f"'openssl pkcs8 -topk8 -nocrypt -in {file} -out key.pem', and name key.pem in "
            "source.ssl_keyfile, without source.ssl_password."
        )
    return text


def _authentication(keys: Any) -> dict[str, str]:
    password = keys.sasl_plain_password.get_secret_value()
    user, word = (_quoted(text) for text in (keys.sasl_plain_username, password))
    # Others, such as GSSAPI, are refused with the configuration.
    name = "plain.Plain" if keys.sasl_mechanism == "PLAIN" else "scram.Scram"
    module = f"org.apache.kafka.common.security.{name}LoginModule"
    login = f"{module} required username={user} password={word};"
    return {"kafka.sasl.mechanism": keys.sasl_mechanism, "kafka.sasl.jaas.config": login}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(keys: Any, name: str) -> str:
    file: Path = getattr(keys, name)
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"source.{name} {file} cannot be read: {error.strerror}."
        ) from error
    except UnicodeDecodeError:
        raise ConfigurationError(f"source.{name} {file} is not text; it must be PEM.") from None
