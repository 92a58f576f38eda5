"""`python -m streamduel`: the command line, and Ctrl-C before it is there."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while its imports are still under way shows no traceback."""
    try:
        from streamduel.cli import app as cli  # noqa: PLC0415 - takes a third of a second

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
