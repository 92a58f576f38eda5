"""The configuration of librdkafka, from the settings of this connector."""

from __future__ import annotations

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
