"""The page of a run in a real browser: looked through with the keyboard, on a wide and on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakebrokers.viewer import RunDocument, write_page
from fakebrokers.viewer.rows import Fact, Lane, Row
from tests.browser import chromium, opened

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]

HOSTILE = "<img src=x onerror='window.hacked=1'></script><script>window.hacked=1</script>"
LOST = 3  #: the number of the message whose confirm is lost
MESSAGES = 25_000  #: four rows each


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def document(messages: int) -> RunDocument:
    """Ops with a publish and a confirm each; of the third the confirm is lost, and a rule says so."""
    rows = []
    for number in range(1, messages + 1):
        t, links = number / 1000, [f"p:{number}"]
        said = [f"v:{number}", *links]
        fields = [("fields", f'{{"id":{number}}}')]
        rows += [
            Row(t, "op", 0, "", "publish", f"message-{number}", "", said, number, []),
            Row(t, "in", 1, "", "Publish", f"id {number}", "", links, 0, fields, [("publish", 1)]),
            Row(
                *(t, "out", 1, "", "PublishConfirm", f"id {number}", "", links, 0, [("hex", "00ff41")]),
                [("confirm", 1)],
            ),
            Row(t, "end", 0, "", "publish", "ok", "", links, number, []),
        ]
        if number == LOST:
            rows[-2] = Row(
                t, "out", 1, "said", "PublishConfirm", f"id {LOST}", HOSTILE, links, 0, [], [("confirm", 1)]
            )
            proof = [("rule", HOSTILE), ("why", HOSTILE), ("rows", "9 11")]
            rows.append(Row(t, "rule", 0, "", "acked-not-stored", HOSTILE, "", [], 0, proof))
    lanes = [Lane("s1", "session"), Lane("c1", "connection"), Lane("broker", "broker")]
    fact = Fact(f"stream {HOSTILE}")
    fact.rows = [4 * number - 3 for number in range(1, messages + 1)]
    fact.texts = [f"{number} published {HOSTILE}" for number in range(1, messages + 1)]
    found = RunDocument(HOSTILE, [("note", HOSTILE)], lanes, rows, [("standard error", HOSTILE)])
    found.facts = [fact]
    return found


@pytest.fixture(params=[(1280, 900), (360, 740)], ids=["wide", "narrow"])
def page(browser: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    write_page(tmp_path / "run.html", [document(50)])
    with opened(browser, (tmp_path / "run.html").as_uri(), *request.param) as page:
        page.locator("body[data-ready]").wait_for()
        yield page


def picked(page: Any) -> str:
    return str(page.locator("aside h3").inner_text())


def test_it_begins_at_the_first_mark_and_steps(page: Any) -> None:
    assert picked(page).startswith("PublishConfirm id 3")
    page.keyboard.press("m")
    assert picked(page).startswith("acked-not-stored")
    page.keyboard.press("m")  # from the last to the first
    assert picked(page).startswith("PublishConfirm id 3")
    page.keyboard.press("ArrowUp")
    assert picked(page) == "Publish id 3"
    assert '"id": 3' in page.locator("aside pre").inner_text()
    assert page.url.endswith("#row-9")


def test_the_page_is_as_high_as_its_window_and_the_list_scrolls(page: Any) -> None:
    page.keyboard.press("End")
    assert page.evaluate("document.body.scrollHeight <= innerHeight && scrollY === 0")
    assert page.locator("aside").is_visible()
    assert page.evaluate("document.querySelector('.list').scrollTop") > 0


def test_a_search_finds_and_goes_on(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("message-4")
    assert "of" in page.locator(".count").inner_text()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert "message-41" in picked(page)
    page.keyboard.press("Escape")
    assert page.locator(".row.hit").count() == 0


def test_one_message_is_followed(page: Any) -> None:
    page.keyboard.press("f")
    assert "4 rows of one message" in page.locator(".count").inner_text()
    assert page.locator(".row.linked").count() == 4


def test_a_row_that_is_followed_shows_that_it_was_found(page: Any) -> None:
    page.keyboard.press("f")
    page.keyboard.press("/")
    page.keyboard.type("publish")
    hit = page.locator(".row.linked.hit:not(.picked)").first
    other = page.locator(".row.hit:not(.linked):not(.picked)").first
    colours = [each.evaluate("row => getComputedStyle(row).backgroundColor") for each in (hit, other)]
    assert colours[0] == colours[1]


def test_a_key_that_was_published_again_is_not_called_one_message(browser: Any, tmp_path: Path) -> None:
    found = document(2)
    found.rows += [Row(1.0, "in", 1, "", "Publish", "id 1", "", ["p:1"], 0, [], [("publish", 1)])]
    write_page(tmp_path / "run.html", [found])
    with opened(browser, (tmp_path / "run.html").as_uri(), 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        page.keyboard.press("End")
        page.keyboard.press("f")
        assert "5 rows with one key, of 2 publishes" in page.locator(".count").inner_text()


def test_a_rule_says_why_and_leads_to_what_proves_it(page: Any) -> None:
    page.keyboard.press("m")
    assert "why" in page.locator("aside dl").inner_text()
    page.locator("aside .row-link").first.click()
    assert picked(page) == "Publish id 3"


def test_what_was_written_besides_is_shown_as_text(page: Any) -> None:
    page.keyboard.press("l")
    assert HOSTILE in page.locator("aside pre.log").inner_text()


def test_a_row_says_what_there_was_up_to_it(page: Any) -> None:
    cells = [page.locator("aside .sums tr").nth(n).locator("td").all_inner_texts() for n in (1, 2)]
    assert cells == [["published", "3", "3"], ["confirmed", "2", "3"]]
    assert "published, and no answer yet: 3" in page.locator("aside").inner_text()
    assert page.locator("aside td.unlike").count() == 2


def test_a_row_says_what_the_broker_knew_and_what_the_row_has_changed(page: Any) -> None:
    page.locator("body[data-facts]").wait_for()
    broker = page.locator("aside .broker")
    assert broker.inner_text().split() == [*f"stream {HOSTILE}".split(), *f"3 published {HOSTILE}".split()]
    assert broker.locator(".changed").count() == 0
    page.keyboard.press("ArrowUp")  # the publish
    assert broker.locator(".changed s").inner_text() == f"2 published {HOSTILE}"
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("width", [1280, 360])
def test_what_is_of_a_connection_stands_below_its_name_and_what_has_changed_is_seen(
    browser: Any, tmp_path: Path, width: int
) -> None:
    found = document(2)
    found.facts = [
        Fact("c10 publisher 1", [0], ["to orders"]),
        *(Fact(f"c2 subscription {number}", [0], [f"credit {number}"]) for number in range(50)),
        Fact("c2 subscription 50", [0, 2], ["credit 1", "credit 0"]),
        Fact("queue of c3 and others", [0], ["empty"]),
    ]
    found.is_reported = True
    write_page(tmp_path / "run.html", [found])
    with opened(browser, (tmp_path / "run.html").as_uri() + "#row-1", width, 740) as page:
        page.locator("body[data-facts]").wait_for()
        broker = page.locator("aside .broker")
        assert broker.locator("th").first.inner_text() == "queue of c3 and others"
        assert broker.locator(".of").all_inner_texts() == ["c2"]
        assert "and 13 more" in page.locator("aside").inner_text()
        page.keyboard.press("ArrowDown")
        changed = broker.locator(".changed")
        assert changed.inner_text().split() == ["subscription", "50", "credit", "0", "credit", "1"]
        top, bottom = changed.evaluate(
            "row => { const box = row.getBoundingClientRect(); return [box.top, box.bottom]; }"
        )
        assert top >= 0 and bottom < 741  # of 740, and less than a pixel
        assert page.evaluate("scrollY === 0 && document.body.scrollTop === 0")
        assert page.locator("aside h4").first.inner_text() == "The broker now"


@pytest.mark.parametrize(
    ("wire", "title"),
    [(True, "The broker now, by what passed on the wire"), (False, "The broker now, by its frames")],
)
def test_what_is_derived_says_so(browser: Any, tmp_path: Path, wire: bool, title: str) -> None:
    found = document(2)
    found.is_of_the_wire = wire
    write_page(tmp_path / "run.html", [found])
    with opened(browser, (tmp_path / "run.html").as_uri() + "#row-1", 1280, 740) as page:
        page.locator("body[data-facts]").wait_for()
        assert page.locator("aside h4").first.inner_text() == title


def test_a_frame_that_a_fault_has_changed_says_which_fields(browser: Any, tmp_path: Path) -> None:
    def deliver(tap: str, first: int, length: str) -> Row:
        fields = f'{{"chunk":{{"first":{first},"data_length":{length}}}}}'
        counts = [("deliver", 2)]
        return Row(0.1, "out", 1, tap, "Deliver", "", "", [f"d:{first}"], 0, [("fields", fields)], counts)

    rows = [deliver("said", 0, "27"), deliver("said", 2, "9"), deliver("sent", 0, "34")]
    rows.append(Row(0.2, "event", 0, "", "deliver", "", "", [], 0, []))
    lanes = [Lane("x", "subscription"), Lane("c1", "connection"), Lane("broker", "broker")]
    write_page(tmp_path / "run.html", [RunDocument("a run", [], lanes, rows)])
    with opened(browser, (tmp_path / "run.html").as_uri() + "#row-2", 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        assert page.locator("aside .altered").all_inner_texts() == ["chunk.data_length: 27 \u2192 34"]
        assert page.locator("aside .given").inner_text() == "handed to the application: 0"
        page.keyboard.press("End")
        assert page.locator("aside .given").inner_text() == "handed to the application: 1"
        assert page.locator("aside .altered").count() == 0


def test_frames_beside_the_broker_have_room_for_their_text_and_end_leads_to_the_last(
    browser: Any, tmp_path: Path
) -> None:
    rows = [Row(0.1 * n, "in", n, "", "SaslAuthenticate", f"id {n}", "", [], 0, []) for n in range(12)]
    lanes = [*(Lane(f"c{n}", "connection") for n in range(12)), Lane("broker", "broker")]
    write_page(tmp_path / "run.html", [RunDocument("a run", [], lanes, rows)])
    with opened(browser, (tmp_path / "run.html").as_uri(), 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        page.keyboard.press("End")
        assert picked(page) == "SaslAuthenticate id 11"
        cut = "rows => rows.filter(row => row.scrollWidth > row.clientWidth).length"
        assert page.locator(".row .say").evaluate_all(cut) == 0


def test_kinds_are_left_out(page: Any) -> None:
    page.get_by_label("ops").uncheck()
    assert page.locator(".row.op").count() == 0
    assert page.locator(".row.in").count() > 0


def test_bytes_are_shown_as_a_dump(page: Any) -> None:
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "00 ff 41" in page.locator("aside pre").inner_text()


def test_a_link_leads_to_a_moment(browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "run.html", [document(50)])
    with opened(browser, (tmp_path / "run.html").as_uri() + "#99", 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        assert picked(page).startswith("PublishConfirm id 25")
        assert page.locator(".row.picked").is_visible()


def test_two_runs_begin_where_they_differ(browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "two.html", [document(5), document(4)], (17, -1))
    with opened(browser, (tmp_path / "two.html").as_uri(), 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        assert page.locator("section.run").count() == 2
        assert page.locator(".row.differs").count() == 1
        assert "message-5" in picked(page)


def test_a_hundred_thousand_rows_are_a_few_megabytes_and_few_of_them_in_the_page(
    browser: Any, tmp_path: Path
) -> None:
    write_page(tmp_path / "long.html", [document(MESSAGES)])
    assert (tmp_path / "long.html").stat().st_size < 10 << 20
    with opened(browser, (tmp_path / "long.html").as_uri(), 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        assert f"{4 * MESSAGES + 1} rows" in page.locator(".count").inner_text()
        page.keyboard.press("End")
        assert page.locator(".row.picked").is_visible()
        assert page.locator(".row").count() < 100


def test_an_offset_finds_the_chunk_that_has_it_on_another_connection_but_not_on_another_stream(
    browser: Any, tmp_path: Path
) -> None:
    def deliver(lane: int, first: int, last: int, scope: str) -> Row:
        links = [f"d:{first}"]
        return Row(0.1, "out", lane, "", "Deliver", scope, "", links, 0, [], [], ("d", first, last), scope)

    rows = [deliver(0, 4, 900, "orders"), deliver(0, 901, 950, "orders"), deliver(0, 4, 900, "bills")]
    rows.append(Row(0.2, "in", 1, "", "StoreOffset", "offset 500", "", ["d:500"], 0, [], [], None, "orders"))
    rows.append(Row(0.3, "event", 1, "", "message", "of a client", "", ["d:7"], 0, []))
    lanes = [Lane("c1", "connection"), Lane("c2", "connection"), Lane("broker", "broker")]
    write_page(tmp_path / "run.html", [RunDocument("a run", [], lanes, rows)])
    with opened(browser, (tmp_path / "run.html").as_uri() + "#row-3", 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        page.keyboard.press("f")
        linked = page.locator(".row.linked .name")
        assert linked.all_inner_texts() == ["Deliver", "StoreOffset"]
        page.keyboard.press("Home")
        page.keyboard.press("f")
        assert linked.all_inner_texts() == ["Deliver", "StoreOffset", "message"]


def test_a_text_that_has_no_room_is_whole_in_its_title_and_on_the_clipboard(
    browser: Any, tmp_path: Path
) -> None:
    said = f"payload {HOSTILE} " + "x" * 3000
    found = document(2)
    found.rows.append(Row(1.0, "log", 0, "", "app WARNING", said, "", [], 0, [("line", said)]))
    write_page(tmp_path / "run.html", [found])
    with opened(browser, (tmp_path / "run.html").as_uri(), 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; }")
        page.keyboard.press("End")
        assert page.locator(".row.picked .say").get_attribute("title") == f"app WARNING {said}"
        assert page.locator("aside pre.log").inner_text() == said
        page.keyboard.press("c")
        page.get_by_role("button", name="copied").wait_for()
        assert page.evaluate("window.copied") == f"1.000000 s app WARNING {said}\nline: {said}"
        page.get_by_label("log lines").uncheck()
        assert page.locator(".row.log").count() == 0


def test_an_address_of_an_earlier_release_leads_to_its_row(browser: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "run.html", [document(5)])
    with opened(browser, (tmp_path / "run.html").as_uri() + "#4", 1280, 900) as page:
        page.locator("body[data-ready]").wait_for()
        assert picked(page) == "publish message-2"
