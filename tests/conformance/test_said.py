"""What a client says becomes no command, no link and no control character, whatever it is written into."""

from __future__ import annotations

import io
import json
import re
import sys
import zlib
from base64 import b64decode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conformance.cli.gate import show, summary_of, workflow_commands
from conformance.gate import decide
from conformance.printing import SafeConsole
from conformance.report.write import write_report
from conformance.results import Results, Verdict
from conformance.suite.allure import write_allure
from conformance.suite.console import print_results
from conformance.suite.junit import junit
from fakebrokers.cli import main
from fakebrokers.output import Inert, command, inert_output
from tests.conformance.report.sample import analysis
from tests.conformance.suite.hostile import results, row, with_everywhere

HOSTILE = (
    "::stop-commands::x",
    "::add-mask::x",
    ":",
    "##[add-mask]x",
    "##vso[task.setvariable variable=a]b",
    "##",
    "[",
    *("[a](http://evil.example)", "![a](//evil.example)", "www.evil.example", "https://evil.example"),
    *("a@b.example", "@someone", "#1", "<img src=x onerror=alert(1)>", "</script><script>", "]]>", "&lt;"),
    *("\\", "`", "``", "|", "*", "\x00", "\x1b[2J", "\x1b[31m", "\x9b2J", "\x07", "\u202e", "\ud800"),
    *("\r", "\n", "\r\n", "\u2028", "\t", " "),
    "x" * 190,
)  # fmt: skip
texts = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), min_size=1, max_size=12).map("".join)
BAD = with_everywhere("x")


def commands(printed: str) -> list[str]:
    """The lines that a runner of CI would obey: GitHub's two kinds (the first after blanks), Azure's."""
    lines = re.split("\r\n|\r|\n", printed)
    coloured = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in lines]
    return [line for line in coloured if line.startswith("::") or re.search(r"##\w*\[", line)]


def control(text: str) -> list[str]:
    return [sign for sign in text if not sign.isprintable() and sign != "\n"]


def said(text: str) -> Results:
    found = with_everywhere(text, id="RMQS-3.01")
    unsure = msgspec.structs.replace(found.results[0], verdict=Verdict.INCONCLUSIVE, tags=())
    return msgspec.structs.replace(found, results=(*found.results, unsure))


@given(texts, st.integers(20, 210))
def test_on_the_console(text: str, width: int) -> None:
    written = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", written)
        with inert_output():
            console = SafeConsole(highlight=False, width=width)
            show(console, decide([said(text)]))
            print_results(console, said(text))
            console.print(text, markup=False)
    printed = written.buffer.getvalue().decode()
    assert not commands(printed)
    assert not control(printed)


@given(st.lists(texts))
def test_in_pieces(pieces: list[str]) -> None:
    inert = Inert()
    assert not [line for line in commands("".join(map(inert, pieces))) if line.startswith("::")]


@given(texts)
def test_in_json_on_the_console(text: str) -> None:
    document = json.dumps({"said": text}, ensure_ascii=False, indent=1)
    printed = Inert()(document)
    assert not commands(printed)
    assert json.loads(printed) == json.loads(document)


@given(texts)
def test_in_the_summary_of_a_step(text: str) -> None:
    summary = summary_of(decide([said(text)]))
    assert not control(summary)
    markdown = MarkdownIt("gfm-like", {"linkify": False, "html": True})
    tokens = markdown.parse(summary)
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= {
        *("heading", "paragraph", "inline", "table", "thead", "tbody", "tr", "th", "td")
    }
    children = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in children} <= {"text", "code_inline"}
    ours = " ".join(child.content for child in children if child.type == "text")
    assert re.fullmatch(r"(change|row|level|what|MUST|failed|not judged| )+", ours.strip())


@given(texts)
def test_in_an_annotation(text: str) -> None:
    for line in workflow_commands(decide([said(text)])):
        assert not control(line)
        name, title, _ = re.fullmatch(r"::(\w+) title=([^:,]*)::([^\r\n]*)", line).groups()  # type: ignore[union-attr]
        assert name == "error" and title


@given(texts)
def test_in_junit(text: str) -> None:
    content = junit(said(text)).decode()
    assert not control(content)
    root = ElementTree.fromstring(content)
    assert {element.tag for element in root.iter()} == {
        element.tag for element in ElementTree.fromstring(junit(BAD)).iter()
    }


@settings(max_examples=10)
@given(texts)
def test_in_allure(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("allure")
    write_allure(said(text), folder)
    for path in folder.iterdir():
        content = path.read_text(encoding="utf-8")
        strings = _strings(json.loads(content)) if path.suffix == ".json" else [content]
        assert not [sign for string in strings for sign in control(string)]


@settings(max_examples=4, phases=(Phase.generate,), report_multiple_bugs=False)
@given(texts)
def test_in_the_pages(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    names = Elements(_page(tmp_path_factory.mktemp("pages"), "x"))
    found = Elements(_page(tmp_path_factory.mktemp("pages"), text))
    assert not control(found.text)
    assert found.names <= names.names | {"a"}
    assert all(
        link.startswith(("#", "data:image", "junit", "results", "reproducers")) for link in found.links
    )


class Elements(HTMLParser):
    """The elements of a page and of all that is packed in it, their handlers and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        for part in (
            text,
            *_packed(text, "packed"),
        ):  # pages; the other is data, which a script draws as text
            self.feed(part)
        self.text = "\n".join([text, *_packed(text, "packed"), *_packed(text, "content")])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs if name.startswith("on"))}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def _packed(text: str, what: str) -> Iterator[str]:
    for content in re.findall(f'data-{what}="([A-Za-z0-9+/=]+)"', text):
        yield from _strings(json.loads(zlib.decompress(b64decode(content))))


def _strings(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list):
        for each in document.values() if isinstance(document, dict) else document:
            yield from _strings(each)


def _page(folder: Path, text: str) -> str:
    found = analysis()
    found["findings"] = [{**each, "detail": text, "key": text, "value": text} for each in found["findings"]]
    return write_report(folder, [said(text)], analysis=found, note="").read_text(encoding="utf-8")


def test_our_own_commands_are_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with inert_output():
        print("  ::error::of a client")
        command("::error title=x::of ours")
    assert capsys.readouterr().out == "  \\u003a:error::of a client\n::error title=x::of ours\n"


def test_what_is_wrong_with_a_file_of_a_client_is_no_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from conformance.results import dump

    for number, name in enumerate(("evil\n::stop-commands::x", "other\x1b[2J")):
        (tmp_path / f"{number}.json").write_bytes(dump(msgspec.structs.replace(results(row()), client=name)))
    with pytest.raises(SystemExit) as ended:
        main(["gate", *(str(tmp_path / f"{number}.json") for number in (0, 1))])
    assert ended.value.code == 64
    printed = capsys.readouterr().err
    assert "stop-commands" in printed
    assert not commands(printed) and not control(printed)
