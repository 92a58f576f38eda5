"""The pages over HTTP: any name, safe in a browser, complete without JavaScript, cheap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest

from streamduel.errors import legible
from streamduel.monitoring.app import HEADERS, IMMUTABLE
from streamduel.monitoring.page import PAGE_HEADERS
from streamduel.monitoring.page.pages import STATIC
from streamduel.monitoring.page.wording import address
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter, RecentDeadLetters
from streamduel.preference.verdict import INTERVALS
from tests.logs import POISON
from tests.unit.monitoring.fold import commit, config, duels, fold, task
from tests.unit.monitoring.page.watched import counted
from tests.unit.monitoring.served import Service
from tests.unit.monitoring.test_experiments import UNUSUAL

ARMS: Final = ("bm25", "ltr", "dense")

VOID: Final = frozenset({"br", "input", "link", "meta", "wbr"})

HOSTILE: Final = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'-alert(1)-'", "{{ 7 * 7 }}",
    "javascript:alert(1)", "&lt;b&gt;", "<b>_", "a\u202eb", "\u200b", "   ", ".", "..",
)  # fmt: skip


class Page(HTMLParser):
    """Reads a page and checks that every element is closed.

    Attributes:
        text: the visible text.
        links: their targets.
        loaded: other files of the page.
        styled: elements with inline styles or scripts.
    """

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.text, self.links = "", list[str]()
        self.loaded, self.styled, self.ids = list[str](), list[str](), list[str]()
        self.feed(markup)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "a":
            self.links.append(given["href"] or "")
        if tag in {"script", "img", "link"}:
            self.loaded.append(given.get("src") or given.get("href") or "")
        if tag == "style" or any(name == "style" or name.startswith("on") for name in given):
            self.styled.append(tag)
        if "id" in given:
            self.ids.append(given["id"] or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    made.monitoring.observer.connection(source=True)
    yield made
    made.close()


def watch(service: Service, *names: str, **settings: object) -> None:
    watched = task(config(dict.fromkeys(names, ARMS), **settings))
    for name in names:
        fold(watched, *duels(name, 0, "bm25", "ltr", "bbbtbbabb"))
    commit(service.monitoring.observer, watched)
    list(service.monitoring.history.update(service.monitoring.observer.figures))


def page(answer: httpx.Response) -> Page:
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert ({**HEADERS, **PAGE_HEADERS}).items() <= dict(answer.headers).items()
    read = Page(answer.text)
    assert read.styled == []
    assert len(read.ids) == len(set(read.ids))
    assert all(each.startswith("/static/") for each in read.loaded)
    assert all(link.startswith(("/", "#")) for link in read.links)
    return read


def test_before_the_first_commit_the_page_gives_the_reason(service: Service) -> None:
    read = page(service.get("/"))
    assert "This process holds no experiment yet" in read.text
    assert "no partition is assigned" in read.text


def test_the_overview_links_to_each_experiment(service: Service) -> None:
    watch(service, "search", "ads")
    read = page(service.get("/"))
    links = [link for link in read.links if link.startswith("/experiments/")]
    assert links == ["/experiments/ads", "/experiments/search"]
    for link in links:
        shown = page(service.get(link))
        assert "Preference matrix" in shown.text
        assert "won 7.5 of 9 duels" in shown.text
        assert INTERVALS in shown.text


@pytest.mark.parametrize("policy", ["rucb", "double_thompson"])
def test_the_overview_says_that_none_beats_all(service: Service, policy: str) -> None:
    watched = task(config({"search": ARMS}, policy={"name": policy}))
    for a, b in (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25")):
        fold(watched, counted(a, b, 700, 300))
    commit(service.monitoring.observer, watched)
    list(service.monitoring.history.update(service.monitoring.observer.figures))
    assert re.search(r"(bm25|ltr|dense) none beats all", page(service.get("/")).text)


def test_no_ranker_beats_all_although_the_champion_has_no_evidence(service: Service) -> None:
    watched = task(config({"search": (*ARMS, "new")}, policy={"name": "rucb"}, seed=1))
    cycle = (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"), ("bm25", "new"))
    fold(watched, *(counted(a, b, 600, 400) for a, b in cycle))
    fold(watched, *(counted("new", rival, 501, 500) for rival in ("ltr", "dense")))
    commit(service.monitoring.observer, watched)
    list(service.monitoring.history.update(service.monitoring.observer.figures))
    assert re.search(r"new none beats all", page(service.get("/")).text)


def test_the_timeline_says_that_exploration_ended_without_a_winner(service: Service) -> None:
    watched = task(config({"search": ARMS}))
    cycle = (("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))
    fold(watched, *(counted(a, b, 900, 100) for a, b in cycle))
    commit(service.monitoring.observer, watched)
    shown = page(service.get("/experiments/search")).text
    assert re.search(r"finished: \w+; no ranker beats all others", shown)


def test_the_page_says_that_a_prior_steers(service: Service) -> None:
    prior = {"scores": {"bm25": 0.3, "ltr": 0.4}}
    watched = task(config({"search": ARMS}, policy={"name": "top_two"}, prior=prior))
    commit(service.monitoring.observer, watched)
    for path in ("/", "/experiments/search"):
        assert "top_two, steered by a prior" in page(service.get(path)).text
    fold(watched, counted("bm25", "ltr", 40, 0))
    commit(service.monitoring.observer, watched)
    for path in ("/", "/experiments/search"):
        assert "steered by a prior" not in page(service.get(path)).text, "it is abandoned"


def test_a_batch_has_no_bar_since_its_size_is_unknown(service: Service) -> None:
    watched = task(config({"search": ARMS}, policy={"name": "c2b", "horizon": 100_000}))
    commit(service.monitoring.observer, watched)
    answer = service.get("/experiments/search")
    assert re.search(r"<dt>Batch</dt><dd>1: \d+ duels remaining</dd>", answer.text)


def test_the_reason_for_a_pair_names_it_whatever_pair_a_guardrail_puts_first(
    service: Service,
) -> None:
    watched = task(
        config({"search": ARMS}, policy={"name": "top_two"}, guardrails={"max_share": 0.2})
    )
    fold(watched, counted("ltr", "bm25", 70, 50), counted("ltr", "dense", 70, 40))
    commit(service.monitoring.observer, watched)
    answer = service.get("/experiments/search")
    assert "none: served alone" in page(answer).text
    assert '<p class="why">ltr leads' in answer.text


@pytest.mark.parametrize("name", [*UNUSUAL, *HOSTILE])
def test_an_experiment_may_be_called_anything(service: Service, name: str) -> None:
    watch(service, name)
    overview = page(service.get("/"))
    (link,) = [link for link in overview.links if link.startswith("/experiments/")]
    assert link == address(name)
    assert legible(name) in overview.text
    answer = service.get(link)
    assert answer.status_code == 200
    assert legible(name) in page(answer).text


@pytest.mark.parametrize("name", HOSTILE)
def test_arms_searches_and_dead_letters_may_contain_anything(service: Service, name: str) -> None:
    service.monitoring.observer.restored(task(config({"search": (name, "ltr")})))
    commit(service.monitoring.observer, task(config({"search": (name, "ltr")})))
    (letters,) = (
        each for each in service.monitoring.observers if isinstance(each, RecentDeadLetters)
    )
    letters.newest = (RecentDeadLetter("invalid_json", name, name, 0, 1, name, 0.0, "search"),)
    for path in ("/", "/experiments/search"):
        assert legible(name) in page(service.get(path)).text
    page(service.client.get("/", params={"q": name, "sort": name, "page": name, "status": name}))
    page(service.client.get("/experiments/", params={"name": name}))


@pytest.mark.parametrize("name", ["serch", "x" * 1000, "%FF%00"])
def test_another_name_is_refused_in_a_sentence(service: Service, name: str) -> None:
    watch(service, "search")
    answer = service.get(f"/experiments/{name}")
    assert answer.status_code == 404
    read = page(answer)
    assert "is in no partition of this process" in read.text
    assert ("did you mean 'search'?" in read.text) == (name == "serch")


@pytest.mark.parametrize("path", ["/experiments", "/experiments/", "/experiments?sort=duels"])
def test_an_address_without_a_name_redirects_to_the_overview_on_the_same_host(
    service: Service, path: str
) -> None:
    answer = service.client.get(path, headers={"host": "elsewhere.example"})
    assert (answer.status_code, answer.headers["location"]) == (307, "/")


def test_reasons_for_not_folding_are_at_the_top(service: Service) -> None:
    watch(service, "search")
    for path in ("/", "/experiments/search"):
        assert "Not folding records" not in page(service.get(path)).text
    service.monitoring.observer.connection(source=False)
    for path in ("/", "/experiments/search"):
        assert "the click log cannot be reached." in page(service.get(path)).text


def test_dead_letters_are_shown_without_their_content(service: Service) -> None:
    watched = task(config({"search": ("bm25", "dense")}))
    fold(watched, *POISON, b'{"secret": "4711"}')
    commits = [watched.take_commit()]
    for observer in service.monitoring.observers:
        observer.committed([watched], 0.02)
        observer.published(commits)
    for path in ("/", "/experiments/search"):
        assert "4711" not in page(service.get(path)).text
    assert "not JSON" in page(service.get("/")).text
    assert "nobody" in page(service.get("/experiments/search")).text


def test_dead_letters_are_shown_with_their_experiment_or_apart(
    service: Service,
) -> None:
    watched = task(config({"search": ("bm25", "dense"), "ads": ("x", "y")}))
    fold(watched, *duels("search", 0, "bm25", "nobody", "a"), b"{")
    commits = [watched.take_commit()]
    for observer in service.monitoring.observers:
        observer.committed([watched], 0.02)
        observer.published(commits)
    assert "offset 0" in page(service.get("/experiments/search")).text
    assert "offset" not in page(service.get("/experiments/ads")).text
    known, apart, strays = page(service.get("/")).text.partition("Without an experiment")
    assert apart
    assert ("offset 0" in known, "offset 1" in known) == (True, False)
    assert ("offset 0" in strays, "offset 1" in strays) == (False, True)


@pytest.mark.parametrize("settings", [
    {"policy": {"name": "ccb"}}, {"policy": {"name": "c2b", "horizon": 10_000}},
    {"guardrails": {"control_arm": "bm25", "min_share": 0.1, "fallback": {"arm": "ltr"}}},
    {"policy": {"name": "auto"}, "slate": 5},
])  # fmt: skip
def test_every_kind_of_experiment_has_its_page(
    service: Service, settings: dict[str, object]
) -> None:
    watch(service, "search", **settings)
    assert "Assignment in force" in page(service.get("/experiments/search")).text


@pytest.mark.parametrize("name", STATIC)
def test_browsers_cache_the_files_of_a_page_until_they_change(service: Service, name: str) -> None:
    (path,) = [each for each in page(service.get("/")).loaded if f"/{name}?" in each]
    answer = service.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == STATIC[name]
    assert answer.headers["cache-control"] == IMMUTABLE["cache-control"]
    assert service.get(urlsplit(path).path).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("name", ["pages.py", "..%2Fpages.py", "style.css/", "%00", ""])
def test_no_other_file_is_served(service: Service, name: str) -> None:
    assert service.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/", "/experiments/search", "/static/style.css"])
def test_only_reading_is_allowed(service: Service, path: str) -> None:
    watch(service, "search")
    head = service.client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        assert service.client.request(method, path).status_code == 405


def test_script_and_style_load_nothing_from_other_hosts(service: Service) -> None:
    for name in STATIC:
        text = service.get(f"/static/{name}").text.replace('"http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|//[a-z]|@import|url\(|eval|innerHTML", text)


def test_every_pair_of_sixteen_arms_is_rendered(service: Service) -> None:
    arms = [f"arm{number}" for number in range(16)]
    watched = task(config({"search": arms}))
    for number in range(1, 16):
        fold(watched, *duels("search", 100 * number, "arm0", f"arm{number}", "aab" * 10))
    commit(service.monitoring.observer, watched)
    text = page(service.get("/experiments/search")).text
    assert len(re.findall(r"won [\d.]+ of 30 duels", text)) == 30


def test_a_page_of_a_thousand_experiments_is_small(service: Service) -> None:
    watched = task(config({f"search-{number:04d}": ARMS for number in range(1000)}))
    commit(service.monitoring.observer, watched)
    answer = service.get("/")
    assert len(answer.content) < 60_000
    assert "1 to 50 of 1,000" in page(answer).text
    assert "search-0999" in page(service.get("/?q=0999")).text
