"""The configuration of librdkafka, from the settings of this connector."""

from __future__ import annotations

import logging

import pytest

from streamduel_kafka.confluent.opening import Errors, configuration
from streamduel_kafka.settings import Security

APART = {
    # Read into the passwords.
    "ssl_password_file", "sasl_plain_password_file",
    # Refused with client confluent.
    "sasl_kerberos_name", "sasl_kerberos_domain_name",
}  # fmt: skip


def test_every_setting_of_security_is_passed_on() -> None:
    servers, heard = {"bootstrap_servers": ["nowhere:1"]}, Errors()
    without, ignored = configuration(servers, heard), set()
    for name, field in Security.model_fields.items():
        other = not field.default if isinstance(field.default, bool) else "other"
        if configuration({**servers, name: other}, heard) == without:
            ignored.add(name)
    assert ignored == APART


@pytest.mark.parametrize(
    ("level", "written"), [(logging.CRITICAL, "WARNING"), (logging.INFO, "INFO")]
)
def test_lines_of_librdkafka_are_at_most_warnings(
    caplog: pytest.LogCaptureFixture, level: int, written: str
) -> None:
    """What its client cannot recover from, the process does."""
    caplog.set_level(logging.DEBUG)
    used = configuration({"bootstrap_servers": ["nowhere:1"]}, Errors())["logger"]
    used.log(level, "%s [%s] %s", "TXNERR", "producer-5", "Fatal transaction error")
    assert [record.levelname for record in caplog.records] == [written]
