"""What the configuration refuses of YAML, and reads as YAML 1.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.config.document import Document
from tests.unit.config.sentences import placed


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("source: {}\nsink: {}\nsource: {}\n", "source", 3),
        ("source: {path: a, path: b}", "path", 1),
        ("experiments:\n  search: {arms: [a, b]}\n  search: {arms: [c, d]}\n", "search", 3),
        ("a:\n  <<: {b: 1}\n  c: &x {d: 1,\n    d: 2}\n", "d", 4),
        ("1: a\n'1': b", "1", 2),
    ],
)
def test_a_duplicate_key_is_refused_with_its_line(
    text: str, key: str, line: int, tmp_path: Path
) -> None:
    assert placed(tmp_path / "search.yaml", text) == [
        f"the configuration has the key '{key}' twice (HERE/search.yaml, line {line})."
    ]


@pytest.mark.parametrize("value", ["0500", "-017", "+0_7", "00", "!!int 010", "!!int 090", "1:30"])
def test_an_integer_that_is_not_read_as_decimal_is_refused_with_its_line(
    value: str, tmp_path: Path
) -> None:
    text = f"a: 1\ncommit:\n  interval_ms: {value}\n"
    sentence = (
        "the configuration has an integer with a leading zero or a colon, which YAML does not read "
        "as decimal; write it without, or quote the value if it is text (HERE/search.yaml, line 3)."
    )
    assert placed(tmp_path / "search.yaml", text) == [sentence]
    assert placed(tmp_path / "search.yaml", f"a: 1\nb: 2\n? {value}\n: 3") == [sentence]


@pytest.mark.parametrize("value", ["0:30.5", "-1:30.", "!!float 1:30", f"1{':30' * 200}.5"])
def test_a_number_with_a_colon_is_refused_with_its_line(value: str, tmp_path: Path) -> None:
    assert placed(tmp_path / "search.yaml", f"a: 1\nb: {value}") == [
        "the configuration has a number with a colon, which YAML does not read as decimal; write it"
        " without, or quote the value if it is text (HERE/search.yaml, line 2)."
    ]


@pytest.mark.parametrize(
    ("value", "found"), [("1.5", 1.5), ("00.5", 0.5), ("1.0e-2", 0.01), ("!!float 1", 1.0)]
)
def test_other_numbers_of_yaml_are_read(value: str, found: float, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(f"a: {value}")
    assert Document(path).values == {"a": found}


@pytest.mark.parametrize("value", ["0x1f4", "0b101", "500", "0"])
def test_other_integers_of_yaml_are_read(value: str, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(f"a: {value}")
    assert Document(path).values == {"a": int(value, 0)}
