"""The `streamduel` command: its commands, common options and exit statuses."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import RawIOBase, TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from streamduel import __version__
from streamduel.diagnosis import Grade
from streamduel.errors import (
    ConfigurationError,
    SnapshotError,
    StreamduelError,
    readable,
    shortened,
)

COMMANDS: Final = {
    "run": "Run the service: read clicks, update the policy, publish assignments.",
    "validate": "Check a configuration without starting anything.",
    "inspect": "Show the newest snapshots: champion, confidence, win rates and records by outcome.",
    "replay": "Fold the click log again and compare every assignment with the published one.",
    "doctor": "Check topics or files, rights, snapshots, clocks and the newest records.",
    "control": "Change a running experiment: pause, resume, reset, arms, pairs; apply settings.",
    "repair": "Skip a record, set stream time, or continue in another click log.",
    "analyze": "Show which ranker has won in a click log of any origin, and with what confidence.",
    "demo": "Watch streamduel find the best of six rankers in about a minute.",
    "simulate": "Measure the regret of policies on known preferences.",
    "plan": "Estimate how many impressions and days it takes until the champion is known.",
    "policies": "List every policy with its parameters, their defaults, and its paper.",
}
"""Each command with its summary. `streamduel.cli.NAME` has the function NAME that runs it."""

FORMS: Final[dict[str, tuple[str, ...]]] = {"control": ("apply", "note")}
"""Subcommands: words after a command, each with its own arguments and module."""

MISTAKE: Final = 2
"""Exit status of a mistake in the configuration or on the command line."""
FAILURE: Final = 1
"""Exit status of every other error."""
INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as in shells."""

UNWRITABLE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Errors of writing to standard output: a full or broken disk, or a closed descriptor."""

MAX_LINE: Final = 4000
"""Characters of a printed line that may have text of records in it; no sentence is longer."""

GRADE_COLOURS: Final[dict[Grade, str]] = {
    "fine": "green", "warning": "yellow", "failed": "bold red", "unknown": "dim",
}  # fmt: skip

if os.environ.get("COLUMNS") == "0":  # set by programs without a terminal; Rich would print nothing
    del os.environ["COLUMNS"]
out = Console(emoji=False)
err = Console(stderr=True, emoji=False)


class LazyCommand(TyperCommand):
    """A command whose module is imported when it runs or shows its help."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Import the command and parse its arguments."""
        name, words, arguments = str(self.name), str(info_name), list(args)
        if (word := next(iter(arguments), "")) in FORMS.get(name, ()):
            name, words, arguments = word, f"{words} {word}", arguments[1:]
        module = import_module(f"streamduel.cli.{name}")
        command = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        command.command(words)(getattr(module, name))
        made = typer.main.get_command(command)
        try:
            return made.make_context(words, list(arguments), parent, **extra)
        except typer.BadParameter as error:
            _name_value(error)
            _hint_at_form(error, name, args)
            raise
        except Exception as error:  # typer exports no name for a usage error
            _hint_at_repetition(error, made, arguments)
            raise


def _name_value(error: typer.BadParameter) -> None:
    """Let a sentence of pydantic say which value it found."""
    from pydantic import ValidationError  # noqa: PLC0415 - takes 0.1 s; needed for a mistake only

    if isinstance(error.__cause__, ValidationError):
        found = repr(error.__cause__.errors()[0]["input"])
        rule = error.message.removeprefix("Value error, ").replace("Input should be", "must be")
        error.message = rule if found in rule else f"{rule} (found {shortened(found, 80)})"


def _hint_at_form(error: typer.BadParameter, name: str, arguments: list[str]) -> None:
    """Let the sentence say where a subcommand stands, if it was taken for an argument."""
    for word in FORMS.get(name, ()):
        if word in arguments:
            hint = f"Did you mean `streamduel {name} {word}`? '{word}' comes first."
            error.message = f"{error.message} {hint}".strip()


def _hint_at_repetition(error: Any, command: Any, arguments: list[str]) -> None:
    """Let the sentence about an extra argument say that it may be one more value of an option."""
    if "unexpected extra argument" not in getattr(error, "message", ""):
        return
    repeated = {name for it in command.params if getattr(it, "multiple", False) for name in it.opts}
    for option, _, word in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if option in repeated and not word.startswith("-"):
            error.message += f". {option} takes one value each time: write {option} {word}"


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"streamduel {__version__}", highlight=False)
        raise typer.Exit


def _set_up(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log more: -v events, -vv debug messages, -vvv also those of libraries.",
        ),
    ] = 0,
) -> None:
    """Find the best of K rankers from the clicks of real users."""
    from streamduel.logging import set_up  # noqa: PLC0415 - takes 0.1 s; --help needs none of it

    context.obj = verbose
    set_up("text", verbose)


def _group() -> TyperGroup:
    app = typer.Typer(
        name="streamduel",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_set_up)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, summary in COMMANDS.items():
        group.add_command(LazyCommand(name, help=summary))
    return group


def say(console: Console, text: str) -> None:
    """Print a text as it is: no markup, no colours, and lines that only the terminal wraps."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    r"""A text whose lines cannot control the terminal: records and their names are in them.

    >>> plain("unknown arm 'x\x1b[2J'.")
    "unknown arm 'x\\x1b[2J'."
    """
    return "\n".join(readable(line, MAX_LINE) if line else line for line in text.split("\n"))


@contextmanager
def exit_at_signals() -> Iterator[None]:
    """Let signals end the command as Ctrl-C does: it cleans up, and shows what it has found."""

    def leave(number: int, _frame: FrameType | None) -> None:
        for each in before:  # `timeout` sends its signal twice: to the process and to its group
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)  # the status that a shell shows for a signal

    caught = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP
    before = {each: found for each in caught if (found := signal.getsignal(each)) != signal.SIG_IGN}
    for each in before:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _open_streams() -> None:
    """Let every command print, whatever its standard streams are."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed, as by `2>&-`
            nothing = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end
            setattr(sys, stream, nothing)
    if not isinstance(sys.stdout, TextIOWrapper):
        return
    if isinstance(sys.stdout.buffer, RawIOBase):
        # With PYTHONUNBUFFERED, as in the image: one write may write a part only, without an error.
        sys.stdout = open(  # noqa: SIM115 - to the end
            sys.stdout.fileno(), "w", buffering=1, encoding=sys.stdout.encoding, closefd=False
        )
    # An encoding such as Latin-1 lacks the ellipsis and Greek letters of the tables.
    sys.stdout.reconfigure(errors="replace")


def main() -> None:
    """Run the command line; an error is one sentence on standard error, never a traceback."""
    _open_streams()
    try:
        _group()()
    except StreamduelError as error:
        from streamduel.logging import redact  # noqa: PLC0415 - as above

        tell(plain(redact(f"streamduel: {error}")))
        sys.exit(exit_status(error))
    except OSError as error:
        if error.filename is not None or error.errno == errno.EPIPE:
            raise
        if error.errno not in UNWRITABLE:
            tell(f"streamduel: the operating system reports: {error.strerror}.")
            sys.exit(FAILURE)
        tell(f"streamduel: standard output cannot be written: {error.strerror}.")
        os._exit(FAILURE)  # the interpreter would try to write the rest once more
    finally:
        try:
            sys.stderr.flush()
        except OSError:  # the interpreter would try to write once more, and exit with 120
            sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end


def tell(sentence: str) -> None:
    """Write a line to standard error; one that cannot be written is lost, as Rich would not do."""
    with suppress(OSError):
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


def exit_status(error: StreamduelError) -> int:
    """The exit status of a command that ends with this error."""
    return MISTAKE if isinstance(error, ConfigurationError | SnapshotError) else FAILURE
