"""`streamduel doctor`."""

from __future__ import annotations

import typer
from rich.text import Text

from streamduel.cli.app import FAILURE, GRADE_COLOURS, MAX_LINE, out
from streamduel.cli.arguments import AsJson, ConfigPath, load_config, print_json, sentences
from streamduel.diagnosis import Finding
from streamduel.doctor import examine
from streamduel.errors import StreamduelError, readable
from streamduel.logging import redact


def doctor(config: ConfigPath, as_json: AsJson = False) -> None:
    """Check topics or files, rights, snapshots, clocks and the newest records.

    Shows, in a line for each check, whether the service would work, whether the newest records of
    the click log would count, and what to do if not. It may run beside the service: it writes
    nothing and owns no partition. Exits with 1 if something would keep the service from working.

    For example:

        streamduel doctor search.yaml
    """
    try:
        loaded = load_config(config)
    except StreamduelError as error:
        if as_json:
            mistakes = [Finding("configuration", "failed", it) for it in sentences(error)]
            print_json({"works": False, "checks": [it._asdict() for it in mistakes]})
        raise
    findings: list[Finding] = []
    for finding in examine(loaded):
        shown = finding._replace(sentence=readable(redact(finding.sentence), MAX_LINE))
        findings.append(shown)
        if not as_json:
            verdict = f"{shown.verdict:<8}", GRADE_COLOURS[shown.verdict]
            out.print(Text.assemble(verdict, f"{shown.name}: ", shown.sentence), soft_wrap=True)
    works = not any(it.verdict == "failed" for it in findings)
    if as_json:
        print_json({"works": works, "checks": [it._asdict() for it in findings]})
    if not works:
        raise typer.Exit(FAILURE)
