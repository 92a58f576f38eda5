"""The command line in this process, as for its own tests."""

from tests.unit.cli.conftest import matrix, streamduel

__all__ = ["matrix", "streamduel"]
