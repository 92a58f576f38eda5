"""The command line: one module per command, imported when the command runs."""

from streamduel.cli.app import main

__all__ = ["main"]
