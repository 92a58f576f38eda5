"""What all tests share: the real broker."""

pytest_plugins = ["tests.broker.fixture"]
