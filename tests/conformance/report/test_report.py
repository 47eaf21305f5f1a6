"""What the report says, and that nothing a client sends can do anything in it."""

from __future__ import annotations

import html
import importlib.util
import json
import random
import re
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")

from conformance.report import write_report
from conformance.report.charts import milliseconds
from conformance.report.diagram import LANES, sequence
from conformance.report.model import build
from conformance.report.packs import TOGETHER
from conformance.results import Results, Step, Verdict

_spec = importlib.util.spec_from_file_location("report_sample", Path(__file__).parent / "sample.py")
assert _spec is not None and _spec.loader is not None
sample: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = sample
_spec.loader.exec_module(sample)


def written(folder: Path, **arguments: Any) -> str:
    """The whole report, the pages of the scenarios in their places, as the script unpacks them."""
    text = write_report(folder, arguments.pop("runs"), **arguments).read_text(encoding="utf-8")
    return re.sub(r'<div data-packed="([^"]+)">(.*?)</div>', filled, text, flags=re.DOTALL)


def filled(found: re.Match[str]) -> str:
    """The articles of a pack with their content."""
    pages = iter(unpacked(found[1]))
    articles: str = re.sub(
        r"(<article [^>]+>)(</article>)", lambda one: one[1] + next(pages) + one[2], found[2]
    )
    assert next(pages, None) is None
    return articles


def unpacked(pack: str) -> list[str]:
    pages: list[str] = json.loads(zlib.decompress(b64decode(pack)))
    return pages


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("report"), **sample.everything())


class Elements(HTMLParser):
    """Counts elements, notes attributes, and checks that they nest."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def parsed(text: str) -> Elements:
    elements = Elements()
    elements.feed(text)
    return elements


def test_markup_of_a_client_stays_text(text: str) -> None:
    elements = parsed(text)
    assert [tag for tag, _ in elements.seen].count("script") == 1
    assert "img" not in {tag for tag, _ in elements.seen}
    assert not [name for _, attributes in elements.seen for name in attributes if name == "onerror"]
    assert "49" not in re.findall(r"\{\{|49\]\]", text)
    assert html.escape("<script>window.hacked=1</script>") in text


def test_code_in_prose_is_set_as_code_and_stays_harmless() -> None:
    from conformance.report.write import words

    assert words("ends as `unknown`, <b>not</b>") == "ends as <code>unknown</code>, &lt;b&gt;not&lt;/b&gt;"
    assert words("`<img src=x>`") == "<code>&lt;img src=x&gt;</code>"


def test_nothing_is_fetched(text: str) -> None:
    for tag, attributes in parsed(text).seen:
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert "@import" not in text and "url(http" not in text
    assert "default-src 'none'" in text


def test_every_link_inside_leads_somewhere_and_ids_are_unique(text: str) -> None:
    elements = parsed(text).seen
    ids = [attributes["id"] for _, attributes in elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    links = {
        (attributes["href"] or "")[1:] for tag, attributes in elements if tag == "a" and "href" in attributes
    }
    assert links <= set(ids)


def test_a_scenario_has_its_page_with_everything(text: str) -> None:
    page = text[text.index('id="s-RMQS-3.03--rabbitmq-stream"') :]
    page = page[: page.index("</article>")]
    failed = sample.result(3, Verdict.FAIL)
    for part in (
        failed.requirement,
        failed.source.partition(": ")[2],
        *failed.acceptable,
        failed.actual,
        failed.replay,
        "forgets-waiter",
    ):
        assert html.escape(part) in page
    code = failed.source.partition(": ")[0]
    address = f"source-rabbitmq-stream-{code}"
    assert f'<a class="link" href="#{address}">{code}</a>' in page and f'id="{address}"' in text
    assert "lose the first confirm" in page and "rabbitmq_stream.url" in page
    assert page.count('<svg class="sequence"') == 3
    assert "revision 1" in page


def test_the_pages_of_scenarios_are_packed(tmp_path: Path) -> None:
    path = write_report(tmp_path, [sample.client("alpha", "1.0", TOGETHER + 2, 1)])
    text = path.read_text()
    assert 'class="journal"' not in text and "<noscript>" in text
    packs = re.findall(r'data-packed="([^"]+)"', text)
    assert [len(unpacked(pack)) for pack in packs] == [TOGETHER, 2]
    assert text.count('<article class="page"') == TOGETHER + 2


def test_eight_clients_with_long_stories_stay_below_two_megabytes(tmp_path: Path) -> None:
    """Each with as many scenarios as a whole run has, with journals that hardly repeat themselves."""
    dice, story = random.Random(1), ("publish " + "x" * 5_000_000,)
    runs = []
    for number in range(8):
        run = sample.client(f"client-{number}", "1.0", 150, number)
        rows = [
            msgspec.structs.replace(
                row,
                journal=tuple(f"{dice.random():.4f}  c1 -> Publish {dice.random():.8f}" for _ in range(30)),
                story=story if row.verdict is Verdict.FAIL else (),
                reproducer="",
            )
            for row in run.results
        ]
        runs.append(msgspec.structs.replace(run, results=tuple(rows)))
    assert write_report(tmp_path, runs).stat().st_size < 2_000_000


def test_an_anomaly_leads_to_its_scenario_and_back(text: str) -> None:
    anomalies = text[text.index('id="anomalies"') : text.index('id="latency"')]
    assert '<a class="link" href="#s-RMQS-3.03--rabbitmq-stream">RMQS-3.03</a>' in anomalies
    page = text[text.index('id="s-RMQS-3.03--rabbitmq-stream"') :]
    assert '<a class="tag link" href="#anomaly-lost-write">' in page[: page.index("</article>")]


def test_a_source_sentence_names_its_scenarios_and_their_mutants(text: str) -> None:
    coverage = text[text.index('id="coverage"') : text.index("</main>")]
    assert "Either side closes the connection" in coverage
    assert "RMQS-3.04 <small>· 1 kill</small>" in coverage
    assert "proven in this run" in coverage


def test_without_analysis_and_mutants_there_is_a_report_too(tmp_path: Path) -> None:
    text = written(tmp_path, runs=[sample.client("alpha", "1.0", 3, 1)])
    assert 'id="anomalies"' not in text and 'id="latency"' not in text
    assert "proven by the project&#39;s tests" in text
    assert "alpha 1.0" in text


def test_nothing_at_all_is_said_plainly(tmp_path: Path) -> None:
    empty = Results("alpha", "1.0", "0.1.0", 1, "2026-01-01T00:00:00Z", 0.0, ())
    assert "No scenario was run." in written(tmp_path, runs=[empty])
    assert "No scenario was run." in written(tmp_path, runs=[])


@pytest.mark.parametrize(
    ("verdicts", "judgement"),
    [
        ([("MUST", Verdict.PASS)], "conformant"),
        ([("MUST", Verdict.PASS), ("SHOULD", Verdict.FAIL)], "conformant"),
        ([("MUST", Verdict.FAIL), ("MUST", Verdict.FAIL)], "2 MUST failed"),
        ([("MUST", Verdict.INCONCLUSIVE)], "not judged"),
    ],
)
def test_the_judgement_of_a_client(tmp_path: Path, verdicts: list[Any], judgement: str) -> None:
    results = tuple(sample.result(n, verdict, level=level) for n, (level, verdict) in enumerate(verdicts))
    text = written(tmp_path, runs=[Results("a", "1", "0", 1, "", 0.0, results)])
    assert f">{judgement}</p>" in text


def test_clients_that_were_judged_side_by_side_take_no_longer_than_the_last_of_them(tmp_path: Path) -> None:
    runs = [
        Results("a", "1", "0", 1, f"2026-01-01T00:0{minute}:00Z", seconds, ())
        for minute, seconds in ((1, 30.0), (0, 100.0))
    ]
    assert "100 s" in written(tmp_path, runs=runs)
    assert "130 s" in written(tmp_path, runs=[msgspec.structs.replace(run, started="once") for run in runs])


# diagrams


def test_arrows_point_where_frames_went() -> None:
    drawn = str(sequence([Step(0.0, "in", "Ask", "#1"), Step(0.1, "out", "Answer", "#1")]))
    shafts = re.findall(r'class="shaft" d="M(\d+) 0H(\d+)"', drawn)
    assert [int(a) < int(b) for a, b in shafts] == [True, False]


def test_what_a_fault_took_is_marked_and_ends_in_a_cross() -> None:
    drawn = str(sequence([Step(0.0, "out", "Confirm", "#1", "lose it", lost=True)]))
    assert 'class="step out faulty lost"' in drawn and 'class="cross"' in drawn and "lose it" in drawn
    assert "never arrived" in drawn
    plain = str(sequence([Step(0.0, "out", "Confirm", "#1")]))
    assert "cross" not in plain and "faulty" not in plain


def lifelines(drawn: str) -> list[tuple[str, int, int, int]]:
    found = re.findall(r'class="(life[^"]*)" x1="(\d+)" y1="(\d+)" x2="\d+" y2="(\d+)"', drawn)
    return [(kind, int(x), int(begin), int(end)) for kind, x, begin, end in found]


def test_a_connection_has_a_lifeline_from_its_first_step_to_its_last() -> None:
    steps = [
        Step(0.0, "", "accepted", connection="c1"),
        Step(0.1, "in", "Publish", connection="c1"),
        Step(0.2, "", "reset", connection="c1"),
        Step(0.3, "", "accepted", connection="c2"),
        Step(0.4, "out", "Confirm", connection="c2"),
        Step(0.5, "", "crashed"),
    ]
    drawn = str(sequence(steps))
    solid = [line for line in lifelines(drawn) if line[0] == "life"]
    client, one, two = solid
    assert client[1] < one[1] < two[1]
    assert one[2] < one[3] < two[2] < two[3] < client[3]
    assert [line[1] for line in lifelines(drawn) if line[0] == "life idle"] == [one[1], two[1]]
    shafts = re.findall(r'class="shaft" d="M(\d+) 0H(\d+)"', drawn)
    assert [abs(int(a) - one[1]) < 3 or abs(int(b) - one[1]) < 3 for a, b in shafts] == [True, False]
    assert abs(int(shafts[1][0]) - two[1]) < 3
    names = re.findall(r'class="lane" x="(\d+)" y="\d+">([^<]+)<', drawn)
    assert names == [(str(one[1]), "c1"), (str(two[1]), "c2")]


def test_with_one_connection_there_is_one_line_on_each_side() -> None:
    drawn = str(sequence([Step(0.0, "in", "Ask", connection="c1"), Step(0.1, "", "crashed")]))
    assert [kind for kind, *_ in lifelines(drawn)] == ["life", "life"] and "lane" not in drawn


def test_of_many_connections_the_last_share_a_line_and_are_named_beside_it() -> None:
    steps = [Step(n / 10, "in", "Open", connection=f"c{n}") for n in range(1, 31)]
    steps.append(Step(4.0, "", "crashed"))
    drawn = str(sequence(steps))
    assert len({x for _, x, *_ in lifelines(drawn)}) == 1 + LANES
    assert re.findall(r'class="lane"[^>]*>([^<]+)<', drawn) == [*(f"c{n}" for n in range(1, LANES)), "others"]
    assert "c8 800.0 ms" in drawn and ">700.0 ms" in drawn
    (width,) = re.findall(r'viewBox="0 0 (\d+) ', drawn)
    assert int(width) < 1500


def test_files_beside_the_page_are_linked(tmp_path: Path) -> None:
    result = sample.result(3, Verdict.FAIL, run="run-3")
    runs = [Results("alpha", "1.0", "0.1.0", 42, "2026-01-02T03:04:05Z", 1.0, (result,), {"fail": 1}, 1)]
    assert 'href="junit.xml"' not in written(tmp_path, runs=runs)
    for name in ("journal", "alpha-rabbitmq-stream/reproducers"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("results.json", "junit.xml", "reproducers/test_rmqs_3_03.py"):
        (tmp_path / "alpha-rabbitmq-stream" / name).write_text("x")
    text = written(tmp_path, runs=runs)
    overview, page = text.split('<article class="page"')
    for link in ("alpha-rabbitmq-stream/results.json", "alpha-rabbitmq-stream/junit.xml", "journal/"):
        assert f'href="{link}"' in overview
    for link in ("alpha-rabbitmq-stream/junit.xml", "journal/"):
        assert f'href="{link}"' in page
    assert 'href="alpha-rabbitmq-stream/reproducers/test_rmqs_3_03.py"' in page
    assert "<code>fakebrokers trace journal/run-3</code>" in page


def test_long_texts_are_cut_and_kept_in_the_tooltip() -> None:
    drawn = str(sequence([Step(0.0, "in", "K" * 100, "l" * 300)]))
    assert "K" * 29 not in drawn.split("</title>")[1] and "l" * 300 in drawn.split("</title>", maxsplit=1)[0]


@pytest.mark.parametrize(("value", "shown"), [(0.0123, "12.3 µs"), (1.5, "1.5 ms"), (2345.0, "2.35 s")])
def test_durations_have_a_fitting_unit(value: float, shown: str) -> None:
    assert milliseconds(value) == shown


def test_findings_stand_together_by_root_cause(tmp_path: Path) -> None:
    causes = ["frames are read by field", "", "no time-out", "frames are read by field"]
    rows = [sample.result(n, Verdict.FAIL, cause=cause) for n, cause in enumerate(causes)]
    run = Results("alpha", "1.0", "0.1.0", 1, "2026-01-01T00:00:00Z", 0.0, tuple(rows))
    (found,) = build([run], None, None).clients
    assert [(cause.text, len(cause.findings)) for cause in found.causes] == [
        ("frames are read by field", 2),
        ("no time-out", 1),
        ("", 1),
    ]
    text = written(tmp_path, runs=[run])
    assert "4, 2 known root causes" in text and "Without a known root cause" in text


def test_findings_without_a_cause_stand_together_by_criterion(tmp_path: Path) -> None:
    criteria = ["op-ends", "in-time", "", "op-ends", "op-ends"]
    rows = [sample.result(n, Verdict.FAIL, criterion=each) for n, each in enumerate(criteria)]
    rows[4] = msgspec.structs.replace(rows[4], cause="no time-out")
    run = Results("alpha", "1.0", "0.1.0", 1, "2026-01-01T00:00:00Z", 0.0, tuple(rows))
    (found,) = build([run], None, None).clients
    assert [(cause.text, cause.criterion, len(cause.findings)) for cause in found.causes] == [
        ("no time-out", "", 1),
        ("", "op-ends", 2),
        ("", "", 2),
    ]
    assert "Without a known root cause: all by <code>op-ends</code>" in written(tmp_path, runs=[run])
