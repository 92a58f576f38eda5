"""Loading connectors, also broken ones of other packages: one sentence that names the connector."""

from __future__ import annotations

import doctest
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from streamduel.connector import connector_names, load_connector, own_connector_names
from streamduel.errors import ConfigurationError

MODULES = {
    "syntax": "x = = 3",
    "raising": "raise ValueError('no environment')",
    "missing": "import not_there",
    "old": "from streamduel.connector import Konnector as connector",
    "number": "connector = 3",
    "hookless": "from streamduel.connector import Connector\nconnector = Connector()",
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    load_connector.cache_clear()
    yield tmp_path
    load_connector.cache_clear()


def install(site: Path, package: str, entries: Sequence[str]) -> None:
    """Make a package visible that registers these connectors."""
    metadata = site / f"{package}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "\n".join(["[streamduel.connectors]", *entries]) + "\n"
    )


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("syntax", "connector 'mine' cannot be loaded: invalid syntax (it_syntax.py, line 1)"),
        ("raising", "connector 'mine' cannot be loaded: no environment (ValueError)."),
        (
            "missing",
            "connector 'mine' needs a package that is not installed (not_there); install it.",
        ),
        ("old", "connector 'mine' cannot be loaded: cannot import name 'Konnector'"),
        (
            "number",
            "connector 'mine' cannot be loaded: it_number:connector is not a "
            "streamduel.connector.Connector (TypeError).",
        ),
        ("hookless", "connector 'mine' cannot be loaded: Connector.__init__() missing 8 required"),
    ],
)
def test_a_broken_plug_in_is_named(site: Path, module: str, sentence: str) -> None:
    (site / f"it_{module}.py").write_text(MODULES[module])
    install(site, f"it_{module}", [f"mine = it_{module}:connector"])
    with pytest.raises(ConfigurationError) as raised:
        load_connector("mine")
    assert str(raised.value).startswith(sentence)


def test_two_packages_with_the_same_connector(site: Path) -> None:
    install(site, "it_other", ["files = it_other:connector"])
    assert own_connector_names() == ["files", "kafka"]
    with pytest.raises(ConfigurationError) as raised:
        load_connector("files")
    assert str(raised.value) == (
        "connector 'files' is installed twice, as it_other:connector and "
        "streamduel_files:connector; keep one."
    )


def test_the_example_of_the_reference_passes_with_a_plug_in(site: Path) -> None:
    install(site, "it_other", ["other = it_other:connector"])
    assert "other" in connector_names()
    page = Path(__file__).parents[2] / "docs/api/connector.md"
    text = page.read_text(encoding="utf-8").replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_an_unknown_connector() -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_connector("kafak")
    assert str(raised.value) == (
        "unknown connector 'kafak'; did you mean 'kafka'? (installed: "
        f"{', '.join(connector_names())})."
    )
