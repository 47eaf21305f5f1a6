"""The report in a real browser: clicked through, on a wide and on a narrow screen."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.report import write_report
from tests.browser import PATIENCE_MS, chromium, opened

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]

_spec = importlib.util.spec_from_file_location("browser_sample", Path(__file__).parent / "sample.py")
assert _spec is not None and _spec.loader is not None
sample: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = sample
_spec.loader.exec_module(sample)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    arguments = sample.everything()
    return write_report(tmp_path_factory.mktemp("report"), arguments.pop("runs"), **arguments).as_uri()


@pytest.fixture(params=[(1280, 900), (360, 740)], ids=["wide", "narrow"])
def page(browser: Any, url: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened(browser, url, *request.param) as page:
        yield page


def test_from_the_matrix_to_a_scenario_and_back(page: Any) -> None:
    page.locator(".matrix a.sign.fail").first.click()
    article = page.locator("article.page.current")
    article.wait_for()  # the address changes first, and the page follows in its own time
    assert article.count() == 1 and not page.locator("main").is_visible()
    assert article.locator(".result.fail svg.sequence .cross").first.is_visible()
    assert article.locator(".journal .faulty").first.is_visible()
    article.locator("summary", has_text="Reproducer").first.click()
    assert article.get_by_text("def test_it(rabbitmq_stream)").first.is_visible()
    article.get_by_text("All scenarios").click()
    page.locator("main").wait_for()
    assert not article.is_visible()
    page.go_back()
    article.wait_for()
    assert article.count() == 1


def test_the_filters_of_the_matrix(page: Any) -> None:
    rows = page.locator(".matrix tbody tr:visible")
    everything = rows.count()
    page.locator("#search").fill("heartbeats stop")
    assert 0 < rows.count() < everything
    assert all("Heartbeats stop" in text for text in rows.all_inner_texts())
    page.locator("#search").fill("")
    page.locator(".chip[data-look=fail]").click()
    assert rows.count() == page.locator(".matrix tbody tr:has(a.sign.fail)").count() < everything
    page.locator(".chip[data-level=MUST]").click()
    assert all(row.get_attribute("data-level") == "MUST" for row in rows.all())
    assert "of" in page.locator("#shown").inner_text()
    page.locator(".chip[data-look='']").click()
    page.locator(".chip[data-level=MUST]").click()
    assert rows.count() == everything
    page.locator("#search").fill("there is no such scenario")
    assert rows.count() == 0


def test_an_anomaly_opens_to_its_evidence(page: Any) -> None:
    page.locator("a.tile[href='#anomaly-lost-write']").click()
    page.locator("#anomaly-lost-write").get_by_text("#17, #23").wait_for()


def test_an_anomaly_leads_to_its_scenario_and_back(page: Any) -> None:
    page.locator("a.tile[href='#anomaly-lost-write']").click()
    evidence = page.locator("#anomaly-lost-write")
    evidence.locator("a.link").first.click()
    article = page.locator("article.page.current")
    article.wait_for()
    result = article.locator("details.result", has=page.locator("a.tag.link")).first
    if result.get_attribute("open") is None:
        result.locator("summary").first.click()
    result.locator("a.tag.link[href='#anomaly-lost-write']").first.click()
    evidence.get_by_text("#17, #23").wait_for()
    assert not article.is_visible()


def test_a_finding_and_a_source_lead_to_the_scenario(page: Any) -> None:
    page.locator("#findings .list a").first.click()
    page.locator("article.page.current").wait_for()
    page.locator(".brand").click()
    page.locator("main").wait_for()
    pill = page.locator("#coverage .pill:visible").first
    name = pill.inner_text().split("/")[0].split(" ")[0]
    pill.click()
    assert name in page.locator("article.page.current .eyebrow").inner_text()


def test_light_and_dark(page: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.locator("#theme").click()
    light = page.evaluate(ground)
    assert dark != light
    page.locator("#theme").click()
    assert page.evaluate(ground) == dark


def test_a_command_is_copied(page: Any) -> None:
    page.goto(page.url.partition("#")[0] + "#s-RMQS-3.03--rabbitmq-stream")
    button = page.locator("article.page.current .result.fail .copy").first
    button.wait_for()  # the page is unpacked when somebody looks at it
    page.evaluate(
        """window.said = [];
        for (const button of document.querySelectorAll(".copy"))
          new MutationObserver(() => said.push(button.textContent)).observe(button, {childList: true});"""
    )
    button.click()
    while not page.evaluate("said.length"):
        page.wait_for_timeout(20)
    assert page.evaluate("said[0]") == "Copied"


def test_what_changed_since_the_baseline(page: Any) -> None:
    page.locator(".since a").click()
    table = page.locator("#comparison")
    rows = table.locator("tbody tr")
    rows.first.wait_for()
    said = [text.split("\t") for text in rows.all_inner_texts()]
    assert ["regressed", "alpha 1.0", "RMQS-3.04/rabbitmq-stream", "verdict", "pass → fail", "3 of 3"] in said
    assert ["intermittent", "alpha 1.0", "RMQS-3.03/rabbitmq-stream", "verdict", "fail", "2 of 3"] in said
    assert "beta 1.0 → 2.0" in {row[1] for row in said}
    counts = {chip.get_attribute("data-change"): int(chip.inner_text().split()[0])
              for chip in table.locator(".chip").all()}  # fmt: skip
    assert counts == {change: sum(row[0] == change for row in said) for change in counts}
    table.locator("[data-change=vanished]").click()
    assert {row.split("\t")[0] for row in rows.all_inner_texts()} == {"vanished"}
    table.locator("[data-change=fixed]").click()
    assert {row.split("\t")[0] for row in rows.all_inner_texts()} == {"vanished", "fixed"}
    table.locator("input").fill("beta 3.03")
    assert [row.split("\t")[0] for row in rows.all_inner_texts()] == ["fixed"]
    assert table.locator("output").inner_text() == f"1 of {len(said)} rows"
    rows.locator("a").click()
    page.locator("article.page.current").wait_for()


def test_the_matrix_of_faults(page: Any) -> None:
    page.evaluate("location.hash = '#faults'")
    table = page.locator("#faults")
    rows = table.locator("tbody tr")
    table.locator("[data-protocol=rabbitmq-stream]").wait_for()
    rows.first.wait_for()
    table.locator("[data-protocol=rabbitmq-stream]").click()
    assert table.locator("thead th").all_inner_texts()[2:] == ["alpha 1.0", "beta 1.0"]  # 1: the hostile one
    cuts = rows.filter(has_text="40 faults")
    assert cuts.inner_text().split("\t")[2:] == ["1 of 40", "0 of 40"]
    before = rows.count()
    cuts.locator(".fold").click()
    assert rows.count() == before + 40
    assert table.locator(".fold[aria-expanded=true]").evaluate("e => e === document.activeElement")
    assert rows.filter(has_text="c1 cut at 7").first.inner_text().split("\t")[2:] == ["1/3", "0/3"]
    table.locator(".fold[aria-expanded=true]").click()
    assert rows.count() == before
    table.locator("[data-bad]").click()
    table.locator("input").fill("lost-write")
    assert [row.split("\t")[2] for row in rows.all_inner_texts()] == ["0/3 · 1 lost-write"]
    table.locator("input").fill("")
    table.locator("[data-by=fault]").click()
    table.locator("[data-bad]").click()
    assert "c# cut at # (40)" in table.inner_text()
    table.locator("[data-protocol=moleculer]").click()
    assert rows.first.inner_text().startswith("no fault touched it")


def test_a_table_that_is_drawn_moves_nothing_below_it(browser: Any, url: str) -> None:
    page = browser.new_page(offline=True)
    page.set_default_timeout(PATIENCE_MS)
    place = "document.getElementById('latency').getBoundingClientRect().top + scrollY"
    rows = "document.querySelectorAll('.packed-table tbody tr').length"
    page.add_init_script(
        f"addEventListener('DOMContentLoaded', () => {{ window.at_first = [{rows}, {place}]; }})"
    )
    page.goto(url)
    for table in page.locator(
        ".packed-table"
    ).all():  # nobody scrolls there: what prints a page does not, either
        table.locator("tbody tr").first.wait_for(state="attached")
    assert page.evaluate("at_first") == [0, page.evaluate(place)]
    page.close()


def test_on_paper_all_tables_are_drawn_and_nothing_is_folded(page: Any) -> None:
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for table in page.locator(".packed-table").all():
        table.locator("tbody tr").first.wait_for(state="attached")
    assert page.locator("main details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main details:not([open])").count() > 0


def loaded(browser: Any, folder: Path, clients: int) -> dict[str, float]:
    """What Chromium says of a page with so many clients once it has loaded: counts, and its CPU seconds."""
    runs = [sample.client(f"client-{number}", "1.0", 420, number) for number in range(clients)]
    analysis = {**sample.analysis(), "faults": sample.faults() * 40}
    url = write_report(folder / str(clients), runs, analysis=analysis).as_uri()
    found = []
    for _ in range(3):
        page = browser.new_page(offline=True)
        page.set_default_timeout(PATIENCE_MS)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable")
        page.goto(url)
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        found.append({each["name"]: each["value"] for each in metrics})
        page.close()
    return {name: min(each[name] for each in found) for name in found[0]}


def test_eight_clients_are_no_more_than_what_is_on_the_screen_in_a_second(
    browser: Any, tmp_path: Path
) -> None:
    """An idle processor takes 0.8 s for so much (tests/benchmarks/test_report.py), a busy one more."""
    one, eight = loaded(browser, tmp_path, 1), loaded(browser, tmp_path, 8)
    assert 20_000 < eight["Nodes"] < 50_000 and 10_000 < eight["LayoutObjects"] < 32_000
    assert 0 < eight["ProcessTime"] < 6 * one["ProcessTime"]


#: Every text on the screen whose contrast with what lies behind it is less than WCAG's level AA asks for.
FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (colour, ground) => {
    canvas.fillStyle = `rgb(${ground.join(",")})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const behind = (element) => {
    const ground = element.parentElement ? behind(element.parentElement) : [255, 255, 255];
    return over(getComputedStyle(element).backgroundColor, ground);
  };
  const luminance = (colour) => {
    const shares = colour.map((c) => c / 255);
    const linear = shares.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const found = {}, texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), ground = behind(element);
    const front = over(element.closest("svg") ? style.fill : style.color, ground);
    const [low, high] = [luminance(front), luminance(ground)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    seen += 1;
    const name = element.className.baseVal ?? element.className;
    if ((high + 0.05) / (low + 0.05) < (large ? 3 : 4.5)) found[name] = text.data.slice(0, 40);
  }
  return [seen, found];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(browser: Any, url: str, scheme: str) -> None:
    """As the browser paints it, on the overview and on the page of a scenario, with everything opened."""
    page = browser.new_page(offline=True, color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    for table in page.locator(".packed-table").all():
        table.scroll_into_view_if_needed()
        table.locator("tbody tr").first.wait_for()
    page.locator("#faults [data-protocol=rabbitmq-stream]").click()
    page.locator(".fold").first.click()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    seen, found = page.evaluate(FAINT)
    assert seen > 500 and found == {}
    page.evaluate("location.hash = '#s-RMQS-3.03--rabbitmq-stream'")
    page.locator("article.page.current svg.sequence").first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    seen, found = page.evaluate(FAINT)
    assert seen > 50 and found == {}
    page.close()
