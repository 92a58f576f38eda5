"""A broker with TLS, passwords (SCRAM) and access control, as clients of a real cluster see one."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    UserScramCredentialUpsertion,
)

from tests.broker.local_kafka import LocalKafka, free_port

PASSWORD: Final = "correct horse"

KEY_SECONDS: Final = 60.0  # making a key takes a tenth of a second on an idle machine

PLAIN: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="broker" password="between-brokers" user_ada="{PASSWORD}";'
)
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

OPERATIONS: Final = {
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
}
KINDS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


class Grant(NamedTuple):
    """One access control list entry, in the words of `kafka-acls.sh`; `prefix-*` is prefixed."""

    operation: str
    kind: str
    name: str

    def acl(self, user: str) -> ACL:
        """The entry for a user."""
        prefixed = self.name.endswith("*")
        pattern = ResourcePattern(
            KINDS[self.kind],
            self.name.rstrip("*"),
            ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL,
        )
        return ACL(
            f"User:{user}", "*", OPERATIONS[self.operation], ACLPermissionType.ALLOW, pattern
        )


def make_keys(folder: Path) -> Path:
    """Make a certificate for 127.0.0.1, its authority `ca.pem`, and a file with the password.

    Raises:
        FileNotFoundError: there is no openssl.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        raise FileNotFoundError("there is no openssl to make a certificate with")
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=broker"
    command += " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out ca.pem"
    subprocess.run(
        command.split(), cwd=folder, check=True, capture_output=True, timeout=KEY_SECONDS
    )
    both = (folder / "key.pem").read_text() + (folder / "ca.pem").read_text()
    (folder / "broker.pem").write_text(both)
    (folder / "password").write_text(f"{PASSWORD}\n")
    return folder


class SecuredKafka(LocalKafka):
    """A broker with a second listener, SASL_SSL, for 127.0.0.1 and passwords.

    The first listener, without encryption, is the administrator's. The user `ada` may do anything;
    any other may do what it was granted.

    Args:
        keys: the folder of `make_keys`.
    """

    def __init__(self, keys: Path) -> None:
        super().__init__()
        self.keys = keys
        self.secure = f"127.0.0.1:{free_port()}"
        plain, controller = f"127.0.0.1:{self._port}", f"127.0.0.1:{self._controller_port}"
        clients = f"CLIENTS://{plain},SECURE://{self.secure}"
        self._overrides |= {
            "listeners": f"{clients},CONTROLLER://{controller}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": (
                "CLIENTS:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"
            ),
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(keys / "broker.pem"),
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.secure.plain.sasl.jaas.config": PLAIN,
            "listener.name.secure.scram-sha-512.sasl.jaas.config": SCRAM,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:ada",
        }

    def add_users(self, grants: dict[str, Iterable[Grant]]) -> None:
        """Add users with `PASSWORD` and these rights."""
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(user, "SCRAM-SHA-512", PASSWORD) for user in grants]
            )
            admin.create_acls(
                [grant.acl(user) for user, granted in grants.items() for grant in granted]
            )

    def set_password(self, user: str, password: str) -> None:
        """Change the password of a user."""
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(user, "SCRAM-SHA-512", password)]
            )

    @contextmanager
    def denied(self, user: str, grant: Grant) -> Iterator[None]:
        """Take a right away from a user for a while."""
        acl = grant.acl(user)
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.delete_acls([acl])
            try:
                yield
            finally:
                admin.create_acls([acl])

    def client_settings(self, user: str) -> dict[str, Any]:
        """The settings of a client that is this user."""
        return {
            "bootstrap_servers": self.secure,
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(self.keys / "ca.pem"),
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
        }
