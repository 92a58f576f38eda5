"""The command line in this process, as for its own tests."""

from tests.unit.cli.conftest import streamduel

__all__ = ["streamduel"]
