"""Files of known failures in pytest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.entry.toys import IN_PROCESS, line

KNOWN = """
client = "toy"
protocol = "pzq"
[[defect]]
id = "known"
cause = "a known defect"
"""


def known(row: str, more: str = "", listed: str = "rows") -> str:
    return f'{KNOWN}{listed} = [{{ row = "TOY-1.{row}"{more} }}]'


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        (known("03"), {"xfailed": 1}),
        (known("03 all-is-well"), {"xfailed": 1}),
        (known("03", listed="sometimes"), {"xfailed": 1}),
        (known("01"), {"failed": 1}),
        (known("01", listed="sometimes"), {"xpassed": 1}),
        (known("04"), {"failed": 1}),
        (known("04", ', verdict = "inconclusive"'), {"xfailed": 1}),
        (known("05"), {"errors": 1}),
        (known("06"), {"skipped": 1}),
        (known("02", ', verdict = "non-strict"'), {"passed": 1}),
    ],
)
def test_known_failures_are_expected(run, project: Path, text: str, outcomes: dict[str, int]) -> None:
    (project / "known.toml").write_text(text)
    [name] = re.findall("TOY-1...", text)
    result = run("-rxX", test=line(IN_PROCESS, name, more="expect='known.toml'"))
    result.assert_outcomes(**outcomes)
    if "xfailed" in outcomes or (outcomes == {"failed": 1} and name == "TOY-1.01"):
        assert "a known defect" in "\n".join(result.outlines)


def test_another_criterion_of_a_known_failure_is_news(run, project: Path) -> None:
    script = project / "toys" / "scripts.py"
    more = "'', id='all-is-well'); expect.that(0, 'another', id='another')"
    script.write_text(script.read_text().replace("'it is <not>', id='all-is-well')", more))
    (project / "known.toml").write_text(known("03 another"))
    run(test=line(IN_PROCESS, "TOY-1.03", more="expect='known.toml'")).assert_outcomes(failed=1)


def test_known_failures_of_another_client_are_an_error(run, project: Path) -> None:
    (project / "known.toml").write_text(known("03").replace("toy", "other"))
    result = run(test=line(IN_PROCESS, "TOY-1.01", more="expect='known.toml'"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is about 'other', and this client is called adapter or toy*"])
