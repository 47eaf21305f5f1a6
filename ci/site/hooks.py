"""What MkDocs does not do by itself: pages made from the program, links, and new pages in the navigation."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ci.site import (
    architecture,
    effect_pages,
    findings,
    reference_pages,
    rule_page,
    scenario_page,
    statement_page,
)

TOP = Path(__file__).parents[2]

#: Files of the repository that are pages, and where.
PAGES = {
    "conformance/ADAPTER.md": "reference/adapter-protocol.md",
    "conformance/helpers/README.md": "how-to/other-languages.md",
    "CHANGELOG.md": "changelog.md",
}
#: Pages that are made in place of a shorter one in the repository.
MADE = {"scenarios/README.md": "reference/scenarios.md"}
WORKER = "assets/worker.js"
WORKER_OF_THE_THEME = "https://unpkg.com/iframe-worker/shim"
#: Pages that are written when they are there; all others join the guides.
PLACES = {"chaos.md": "Tutorials"}
NEW_PAGES = "How-to guides"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages that the navigation does not know yet join it."""
    assert isinstance(config.nav, list)
    known = set(_paths(config.nav))
    for path in sorted(Path(config.docs_dir).glob("*.md")):
        if path.name not in known:
            section = PLACES.get(path.name, NEW_PAGES)
            next(each for each in config.nav if section in each)[section].append(path.name)
    return config


def _paths(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inside = nav.values() if isinstance(nav, dict) else nav
    return [path for each in inside for path in _paths(each)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, or are kept elsewhere."""
    made = {
        WORKER: (TOP / "ci" / "site" / "worker.js").read_text("utf-8"),
        "explanation/architecture.svg": architecture.picture(),
        "reference/effects.md": effect_pages.page(),
        "reference/command-line.md": reference_pages.command_line(),
        "reference/exit-codes.md": reference_pages.exit_codes(),
        "reference/control-api.md": reference_pages.control_api(),
        "reference/journal.md": reference_pages.journal(),
        "reference/rules.md": rule_page.page(),
        MADE["scenarios/README.md"]: scenario_page.page(),
        "reference/statements.md": statement_page.page(),
    }
    made |= {f"reference/effects/{name}.svg": picture for name, picture in effect_pages.pictures()}
    made |= {f"findings/{name}": text for name, text in findings.pages()}
    made |= {page: _without_links_out((TOP / source).read_text("utf-8")) for source, page in PAGES.items()}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def _without_links_out(text: str) -> str:
    """Links to files of the repository, which the site does not have, become plain text."""
    return re.sub(r"\[([^\]]+)\]\((?!#|https?:)[^)]+\)", r"\1", text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page that is named by its path in the repository becomes a link to it."""
    here = page.file.src_uri

    def link(named: re.Match[str]) -> str:
        path = named[1]
        target = (PAGES | MADE).get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(target) is None or target == here:
            return named[0]
        return f"[`{path}`]({relpath(target, str(Path(here).parent))})"

    if here == "findings/README.md":
        markdown = findings.page(markdown)
    if not here.startswith("reference/api/"):
        markdown = _without_references(markdown)
    return re.sub(r"(?<!\[)`((?:docs|conformance|scenarios)/[\w/-]+\.md)`", link, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The theme would load a script for the search from a server; ours does the same."""
    here = str(Path(page.file.dest_uri).parent)
    return output.replace(WORKER_OF_THE_THEME, relpath(WORKER, here))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for the page of wrong addresses, which only a server shows."""
    return output_content.replace(WORKER_OF_THE_THEME, f"/{WORKER}")


def _without_references(markdown: str) -> str:
    """Messages of several parts are written ``[a][b]`` here, which is no reference to a class."""
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("`") else re.sub(r"\](\s?)\[", r"]\1&#91;", part) for part in parts
    )
