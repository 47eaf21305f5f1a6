"""The documentation as a site: what is made from the program is whole and true, and needs no network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from ci.site import effect_pages, reference_pages, rule_page, scenario_page
from ci.site.architecture import picture
from ci.site.pictures import sequence
from ci.site.shown_effects import EXAMPLES, Arrow, Talk, example, missing, talk
from conformance.rules.sentences import rules
from conformance.suite.load import all_scenarios
from fakebrokers.cli import cli
from fakebrokers.commands import ExitCode
from fakebrokers.faults.registry import COMMON
from fakebrokers.protocol import protocols
from tests.eventually import PATIENCE_S
from tests.pages import DOCS, TOP


def confirms(effect: str) -> list[Arrow]:
    """The confirms of a talk, in the order in which the broker said them."""
    return [arrow for arrow in talk(example(effect)).arrows if arrow.out and "Confirm" in arrow.label]


def test_every_effect_has_an_example() -> None:
    assert missing() == set()


def test_a_dropped_frame_never_arrives() -> None:
    assert [arrow.label for arrow in confirms("drop") if arrow.came is None] == ["PublishConfirm 2"]


def test_a_delayed_frame_is_overtaken() -> None:
    late = confirms("delay")[1]
    assert (late.label, late.left, late.came) == ("PublishConfirm 2", 0.1, pytest.approx(0.35))


def test_behind_a_latency_everything_waits() -> None:
    assert [arrow.came for arrow in confirms("latency")] == pytest.approx([0.0, 0.25, 0.25, 0.3, 0.4])


def test_a_reply_stands_for_what_the_broker_never_heard() -> None:
    found = [arrow for arrow in talk(example("reply")).arrows if arrow.touched]
    assert [(arrow.label, arrow.came) for arrow in found] == [("Publish 2", None), ("PublishError 2", 0.1)]


def test_a_sliced_frame_comes_in_several_writes() -> None:
    assert [size for _, size in talk(example("slice")).writes][:4] == [21, 7, 7, 7]


def test_a_crash_and_the_time_of_the_restart() -> None:
    assert talk(example("crash")).states == [
        (0.1, "crash state kept"),
        (0.1, "rst"),
        (pytest.approx(0.45), "listening"),
    ]


@pytest.mark.parametrize("effect", EXAMPLES)
def test_each_picture_is_drawn_and_shows_that_something_happened(effect: str) -> None:
    seen = talk(example(effect))
    assert any(arrow.touched for arrow in seen.arrows)
    drawn = ElementTree.fromstring(sequence(seen, effect))
    assert drawn.tag.endswith("svg") and any("touched" in each.get("class", "") for each in drawn.iter())
    assert sequence(seen, effect) == sequence(talk(example(effect)), effect)


def test_texts_in_a_picture_are_escaped() -> None:
    hostile = Talk([Arrow(True, "<script>", 0.0, 0.0)], [(0.0, "a & b")])
    drawn = sequence(hostile, '"><script>')
    assert "<script>" not in drawn
    ElementTree.fromstring(drawn)


def test_the_page_of_effects_tells_all_of_them_with_their_settings() -> None:
    text = effect_pages.page()
    for effect in (*COMMON, *(each for protocol in protocols() for each in protocol.own_effects)):
        about, settings = effect_pages.described(effect)
        assert about and f"### {effect_pages.effect_name(effect)}\n" in text
        assert settings.keys() == set(effect.__struct_fields__)


def test_the_command_line_is_told_whole() -> None:
    text = reference_pages.command_line()
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert f"## fakebrokers {name}\n" in text


def test_all_exit_codes_are_told() -> None:
    rows = re.findall(r"^\| (\d+) \| \S", reference_pages.exit_codes(), re.MULTILINE)
    assert rows == [str(code.value) for code in ExitCode]


def test_the_control_api_is_told_with_its_arguments() -> None:
    text = reference_pages.control_api()
    assert "| `POST /brokers/B/kill` | `connection?`, `how?` |" in text
    for own in ("create_stream", "configure_domain", "change_identity", "lose_backend", "node_call"):
        assert f"`POST /brokers/B/{own}`" in text
    assert text.count("`POST /brokers/B/crash`") == 1


def test_the_columns_of_the_journal_are_told() -> None:
    text = reference_pages.journal()
    assert "| `heartbeat_limit_ms` | number or null | Silence of the fake" in text
    assert all(f"### {table}\n" in text for table in ("runs", "frames", "ops", "metrics"))


def test_each_rule_for_all_runs_is_there_with_its_reasons() -> None:
    text = rule_page.page()
    for name, rule in rules().items():
        assert f"\n## {name}\n" in text
        assert all(part in text for part in (*rule.sentences, rule.why, rule.example, rule.reason))
    assert re.search(r"\* RabbitMQ Stream: correlation ids \(`docs/protocols/\S+`, 2\)\.", text)
    assert "* **Judges**: moleculer\n" in text


def test_each_scenario_is_told() -> None:
    text = scenario_page.page()
    assert all(f"| {item.id} | {item.level} |" in text for item in all_scenarios())


def test_the_architecture_is_a_picture() -> None:
    words = [each.text for each in ElementTree.fromstring(picture()).iter() if each.text]
    assert {"received", "heard", "said", "sent", "journal", "session"} <= set(words)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; any warning is an error."""
    pytest.importorskip("mkdocs", reason="missing: mkdocs (pip install 'fakebrokers[docs]')")
    folder = tmp_path_factory.mktemp("site")
    build = ["-m", "mkdocs", "build", "--strict", "--config-file", "ci/site/mkdocs.yml", "--site-dir", folder]
    done = subprocess.run(
        [sys.executable, *build], cwd=TOP, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.full
def test_the_site_needs_no_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="((?:https?:)?//[^"]+)"', text)
        assert loaded == [], page
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.findall(r"url\([\"']?(?:https?:)?//", styles)


@pytest.mark.full
def test_search_works_without_a_server(site: Path) -> None:
    sync = pytest.importorskip("playwright.sync_api", reason="missing: playwright (pip install playwright)")
    if (browser_path := shutil.which("chromium")) is None:
        pytest.skip("missing: chromium (apt-get install chromium)")
    asked: list[str] = []
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox"], timeout=2 * PATIENCE_S * 1000
        )
        page = browser.new_page()
        page.set_default_timeout(2 * PATIENCE_S * 1000)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{(site / 'reference' / 'effects.html').as_uri()}?q=heartbeat")
        page.wait_for_selector(".md-search-result__item", state="attached")
        browser.close()
    assert asked and all(url.startswith(("file:", "data:")) for url in asked)


@pytest.mark.full
def test_every_page_is_on_the_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        built = page.relative_to(DOCS).with_suffix(".html")
        assert (site / (built.with_name("index.html") if built.stem == "README" else built)).is_file(), page
    assert (site / "reference" / "effects" / "drop.svg").is_file()
    assert "stored: 1" in (site / "findings" / "rbfly-shared-ids.html").read_text(encoding="utf-8")
    assert "RMQS-3.09" in (site / "reference" / "scenarios.html").read_text(encoding="utf-8")
