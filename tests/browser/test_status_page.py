"""The status page in a real browser, with a real server and a real fold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from axe_core_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.world import World
from tests.unit.monitoring.fold import duels

NewPage = Callable[..., Page]
NewWorld = Callable[[dict[str, Any]], World]

PHONE = {"width": 390, "height": 844}

PLACES = ("/", "/experiments/search", "/experiments/a%2Fb%20gr%C3%B6%C3%9Fe")


def experiment(world: World) -> str:
    return f"{world.url}/experiments/search"


def cell(page: Page, row: int, column: int) -> Any:
    return page.locator(".heat tbody tr").nth(row).locator("td").nth(column)


def fight(world: World, number: int, winners: str = "b" * 20) -> None:
    """More duels, and a commit."""
    world.fold(duels("search", number, "bm25", "ltr-v3", winners), world.task.stream_time + 1000)
    world.commit()


class TestHeatMap:
    def test_hovering_a_cell_shows_its_details(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world))
        tip = cell(page, 0, 1).locator(".tip")
        expect(tip).to_have_css("opacity", "0")
        cell(page, 0, 1).hover()
        expect(tip).to_have_css("opacity", "1")
        expect(tip).to_contain_text(re.compile(r"^ltr-v3 against .+: won [\d.,]+ of [\d.,]+ duels"))
        expect(tip).to_contain_text("95 % at any time")

    def test_details_overlap_nothing(self, world: World, open_page: NewPage) -> None:
        for viewport in ({"width": 1280, "height": 900}, PHONE):
            page = open_page(experiment(world), viewport=viewport)
            cell(page, 5, 0).hover()
            tip = cell(page, 5, 0).locator(".tip").bounding_box()
            grid = page.locator(".heat").bounding_box()
            scale = page.locator(".scale").bounding_box()
            assert tip is not None
            assert grid is not None
            assert scale is not None
            assert grid["y"] + grid["height"] <= tip["y"]
            assert tip["y"] + tip["height"] <= scale["y"]
            assert tip["x"] >= 0
            assert tip["x"] + tip["width"] <= viewport["width"]

    def test_keyboard_navigation_between_cells(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world))
        page.get_by_role("region", name="The matrix").focus()
        page.keyboard.press("Tab")
        expect(cell(page, 0, 0)).to_be_focused()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(cell(page, 2, 1)).to_be_focused()
        expect(cell(page, 2, 1).locator(".tip")).to_have_css("opacity", "1")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.heat')") is None
        page.keyboard.press("Shift+Tab")
        expect(cell(page, 2, 1)).to_be_focused()

    def test_cells_are_accessible_to_screen_readers(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world))
        words = page.get_by_role("gridcell", name=re.compile(r"^ltr-v3 against \S+: won"))
        assert words.count() == 5


class TestLive:
    def test_the_page_updates_without_a_reload(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world))
        page.evaluate("window.loadedOnce = true")
        tile = page.locator(".tiles div").filter(has_text="Duels").locator("dd")
        before = int(tile.inner_text().replace(",", ""))
        fight(world, 1_000_000)
        expect(tile).to_have_text(f"{before + 20:,}")
        assert page.evaluate("window.loadedOnce")

    def test_focus_scroll_position_and_open_details_are_kept(
        self, world: World, open_page: NewPage
    ) -> None:
        page = open_page(experiment(world), viewport=PHONE)
        page.locator("summary").first.click()
        cell(page, 3, 2).focus()
        page.locator(".dead-letters").evaluate("table => table.parentElement.scrollLeft = 90")
        page.evaluate("window.scrollTo(0, 700)")
        seen = "it => it.getBoundingClientRect().top"
        place = cell(page, 3, 2).evaluate(seen)
        epoch = page.locator("time").last
        before = epoch.inner_text()
        fight(world, 2_000_000)
        expect(epoch).not_to_have_text(before)
        expect(cell(page, 3, 2)).to_be_focused()
        assert page.locator("details").first.evaluate("it => it.open")
        assert page.locator(".dead-letters").evaluate("it => it.parentElement.scrollLeft") == 90
        # A line more above does not move what the reader looks at, but for a fraction of a pixel.
        assert abs(cell(page, 3, 2).evaluate(seen) - place) < 2

    def test_text_input_is_kept(self, world: World, open_page: NewPage) -> None:
        page = open_page(world.url)
        page.get_by_label("Name or champion").fill("sea")
        at = page.locator("time").last
        before = at.inner_text()
        fight(world, 3_000_000)
        expect(at).not_to_have_text(before)
        expect(page.get_by_label("Name or champion")).to_have_value("sea")

    def test_pause_and_resume(self, world: World, open_page: NewPage) -> None:
        page = open_page(world.url)
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("status")).to_have_text("paused")
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(2500)
        assert asked == []
        with page.expect_request(f"{world.url}/"):
            page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("status")).to_have_text("live")

    @pytest.mark.parametrize("answered", [True, False])
    def test_answers_after_a_pause_are_ignored(
        self, world: World, browser: Browser, answered: bool
    ) -> None:
        page = browser.new_page()  # Chromium itself reports the failed request as an error
        page.goto(world.url)
        asked: list[Route] = []

        def hold(route: Route) -> None:
            asked.append(route)

        page.route(f"{world.url}/", hold)
        with page.expect_request(f"{world.url}/"):
            pass
        page.evaluate("document.title = 'before the pause'")
        page.get_by_role("button", name="Pause").click()
        if answered:
            with page.expect_response(f"{world.url}/") as response:
                asked[0].continue_()
            response.value.finished()
        else:
            with page.expect_event("requestfailed"):
                asked[0].abort()
        page.wait_for_timeout(100)
        expect(page.get_by_role("status")).to_have_text("paused")
        expect(page).to_have_title("before the pause")
        page.close()

    @pytest.mark.parametrize(
        "fail",
        [lambda it: it.abort(), lambda it: it.fulfill(status=503, body="<main id=main>Later")],
    )
    def test_no_answer_is_shown(self, world: World, browser: Browser, fail: Any) -> None:
        page = browser.new_page()  # Chromium itself reports the failed request as an error
        page.goto(experiment(world))
        duels_shown = page.locator(".tiles").inner_text()
        page.route(experiment(world), fail)
        expect(page.get_by_role("status")).to_have_text("no answer; retrying")
        assert page.locator(".tiles").inner_text() == duels_shown
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        expect(page.get_by_role("alert")).to_be_in_viewport()
        expect(page.get_by_role("alert")).to_have_text(
            re.compile(r"^No answer since \d\d:\d\d:\d\d UTC; the figures are outdated\.$")
        )
        expect(page.locator("main")).to_have_css("opacity", "0.45")
        page.unroute_all()
        expect(page.get_by_role("status")).to_have_text("live")
        expect(page.get_by_role("alert")).to_be_hidden()
        expect(page.locator("main")).to_have_css("opacity", "1")
        page.close()


class TestWithoutJavaScript:
    def test_the_page_is_complete(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world), java_script_enabled=False)
        cell(page, 1, 0).hover()
        expect(cell(page, 1, 0).locator(".tip")).to_have_css("opacity", "1")
        expect(page.get_by_text("Reload the page to update it.")).to_be_visible()
        expect(page.locator(".drawing .line")).to_have_count(2)
        page.get_by_text("What is regret?").click()
        expect(page.get_by_text("The cost of exploring:")).to_be_visible()

    def test_experiments_are_found_and_sorted(self, world: World, open_page: NewPage) -> None:
        page = open_page(world.url, java_script_enabled=False)
        rows = page.locator(".experiments tbody th")
        expect(rows).to_have_text(["a/b größe", "paused", "search"])
        page.get_by_role("link", name="Duels").click()
        expect(rows.first).to_have_text("search")
        page.get_by_label("Status").select_option("paused")
        page.get_by_role("button", name="Find").click()
        expect(rows).to_have_text(["paused"])
        page.get_by_label("Name or champion").fill("nowhere")
        page.get_by_role("button", name="Find").click()
        page.get_by_role("link", name="Show all").click()
        page.get_by_role("link", name="a/b größe").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("a/b größe")

    def test_each_cell_can_be_tabbed_to(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world), java_script_enabled=False)
        page.get_by_role("region", name="The matrix").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(cell(page, 0, 1)).to_be_focused()


class TestLooks:
    def test_dark_and_light_schemes(self, world: World, open_page: NewPage) -> None:
        colours = {}
        for scheme in ("light", "dark"):
            page = open_page(experiment(world), color_scheme=scheme)
            colours[scheme] = page.evaluate(
                "['body', '.card', '.win2', '.lose2'].map("
                "it => getComputedStyle(document.querySelector(it)).backgroundColor)"
            )
        for light, dark in zip(colours["light"], colours["dark"], strict=True):
            assert brightness(light) - brightness(dark) > 80

    @pytest.mark.parametrize("path", PLACES)
    @pytest.mark.parametrize("width", [320, 390, 768])
    def test_no_page_is_wider_than_the_screen(
        self, world: World, open_page: NewPage, path: str, width: int
    ) -> None:
        page = open_page(world.url + path, viewport={"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    @pytest.mark.parametrize(
        ("path", "table", "headings"),
        [
            ("/", "Table of experiments", "Experiment,Champion,Confidence,Progress,Sure in"),
            ("/experiments/search", "Table of rankers", "Ranker,Beats,wins,Evidence,Traffic"),
            ("/experiments/search", "Timeline", "Stream time,What,Who"),
        ],
    )
    def test_a_phone_shows_the_columns_that_matter(
        self, world: World, open_page: NewPage, path: str, table: str, headings: str
    ) -> None:
        region = open_page(world.url + path, viewport=PHONE).get_by_role("region", name=table)
        for heading in headings.split(","):
            column = region.get_by_role("columnheader", name=re.compile(heading))
            assert right(column) <= right(region), heading

    def test_the_overview_on_a_phone_says_which_experiment_is_paused(
        self, world: World, open_page: NewPage
    ) -> None:
        names = open_page(world.url, viewport=PHONE).locator(".experiments tbody th")
        said = "it => getComputedStyle(it, '::after').content"
        assert [name.evaluate(said) for name in names.all()] == [
            '"running"',
            '"paused"',
            '"running"',
        ]

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_a_shadow_is_at_the_edge_where_a_table_goes_on(
        self, world: World, open_page: NewPage, scheme: str
    ) -> None:
        page = open_page(world.url, viewport=PHONE, color_scheme=scheme)
        region = page.get_by_role("region", name="Table of experiments")
        for place, edges in ((0, (False, True)), (1000, (True, False))):
            region.evaluate("(it, place) => it.scrollLeft = place", place)
            picture = Image.open(BytesIO(region.screenshot())).convert("RGB")
            # Above the headings, where no text is.
            row = [picture.getpixel((x, 3)) for x in (0, picture.width // 2, picture.width - 1)]
            assert (row[0] != row[1], row[2] != row[1]) == edges

    def test_paper_has_every_column(self, new_world: NewWorld, open_page: NewPage) -> None:
        arms = [f"learning-to-rank-{number}" for number in range(20)]
        policy = {"name": "relative_confidence_sampling"}
        world = new_world({"search": {"arms": arms, "policy": policy}, "x": {"arms": arms[:3]}})
        world.fold(duels("search", 1, arms[0], arms[1], "b" * 2000), 1000)
        world.commit()
        for path in ("/", "/experiments/search", "/experiments/x"):
            page = open_page(world.url + path, viewport={"width": 718, "height": 1000})
            page.emulate_media(media="print")
            regions = page.locator(".scroll")
            assert regions.count() >= 1
            for region in regions.all():
                label = region.get_attribute("aria-label")
                wide, room = region.evaluate("it => [it.scrollWidth, it.clientWidth]")
                assert wide <= room, label

    @pytest.mark.parametrize("width", [641, 1280, 1400])
    def test_the_overview_has_every_column(
        self, world: World, open_page: NewPage, width: int
    ) -> None:
        page = open_page(world.url, viewport={"width": width, "height": 900})
        for heading in page.locator(".experiments thead th").all():
            expect(heading).to_be_visible()

    def test_long_names_do_not_break_the_page(
        self, new_world: NewWorld, open_page: NewPage
    ) -> None:
        world = new_world({"x" * 256: {"arms": ["y" * 256, "word " * 50, "z"]}})
        for path in ("/", f"/experiments/{'x' * 256}"):
            page = open_page(world.url + path, viewport=PHONE)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def right(element: Any) -> float:
    box = element.bounding_box()
    return float(box["x"] + box["width"])


def brightness(colour: str) -> float:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue


class TestAccess:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("path", [*PLACES, "/?q=nowhere"])
    def test_axe_finds_no_violations(
        self, world: World, open_page: NewPage, path: str, scheme: str
    ) -> None:
        # axe is put into the page as a script, which the page itself would not allow.
        page = open_page(world.url + path, color_scheme=scheme, bypass_csp=True)
        for summary in page.locator("summary").all():
            summary.click()
        found = Axe().run(page)
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
        assert found["passes"], "it has looked"

    @pytest.mark.parametrize("path", PLACES)
    def test_the_keyboard_reaches_everything(
        self, world: World, open_page: NewPage, path: str
    ) -> None:
        page = open_page(world.url + path)
        wanted = page.evaluate(
            "[...document.querySelectorAll('a, button, input:not([type=hidden]), select, summary')]"
            ".filter(it => it.checkVisibility()).length"
        )
        seen = list(tabbed(page))
        assert len([each for each in seen if each not in {"TD", "DIV"}]) == wanted
        assert seen[0] == "A"

    def test_skip_link(self, world: World, open_page: NewPage) -> None:
        page = open_page(experiment(world))
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

    def test_focus_is_visible(self, world: World, open_page: NewPage) -> None:
        page = open_page(world.url)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def tabbed(page: Page) -> Iterator[str]:
    """The elements that the Tab key reaches, until it leaves the page."""
    page.evaluate("window.been = new Set()")
    for _ in range(500):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "document.activeElement === document.body || been.has(document.activeElement) ? null"
            " : (been.add(document.activeElement), document.activeElement.nodeName)"
        )
        if name is None:
            return
        yield str(name)


class TestMany:
    def test_a_thousand_experiments_are_paged(
        self, new_world: NewWorld, open_page: NewPage
    ) -> None:
        world = new_world({f"search-{number:04d}": {"arms": ["x", "y"]} for number in range(1000)})
        page = open_page(world.url)
        expect(page.locator(".experiments tbody tr")).to_have_count(50)
        page.get_by_role("link", name="Next").click()
        expect(page.get_by_text("51 to 100 of 1,000")).to_be_visible()
        page.get_by_label("Name or champion").fill("0777")
        page.keyboard.press("Enter")
        expect(page.locator(".experiments tbody th")).to_have_text(["search-0777"])

    def test_of_a_thousand_arms_the_best_twenty_are_shown(
        self, new_world: NewWorld, open_page: NewPage
    ) -> None:
        world = new_world({"search": {"arms": [f"arm{number}" for number in range(1000)]}})
        page = open_page(f"{world.url}/experiments/search", viewport=PHONE)
        expect(page.locator(".heat tbody tr")).to_have_count(20)
        expect(page.get_by_text("980 left out").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
