"""Documents, examples and messages say one address, which is written in one place."""

from __future__ import annotations

import re

import pytest

from ci import addresses
from ci.addresses import TOP, files, with_addresses
from fakebrokers import __version__, extras


def test_no_program_says_an_address_of_its_own() -> None:
    said = [
        f"{path.relative_to(TOP)}:{number}: {line.strip()}"
        for folder in ("fakebrokers", "conformance", "scenarios")
        for path in sorted((TOP / folder).rglob("*"))
        if path.suffix in (".py", ".j2", ".js", ".mjs", ".go") and "node_modules" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"pip install[^#]*fakebrokers", line)
    ]
    assert said == [], "fakebrokers.extras.installing says it"


def test_the_address_is_that_of_this_version() -> None:
    assert f"-{__version__}-" in extras.ADDRESS or extras.ADDRESS == "fakebrokers"
    if extras.ADDRESS == "fakebrokers":
        left = [path.name for path in files() if "on no index" in path.read_text(encoding="utf-8")]
        assert left == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("$ pip install fakebrokers rstream", "$ pip install fakebrokers rstream"),
        ("pip install ./fakebrokers-0.1.0-py3-none-any.whl", "pip install fakebrokers"),
        (
            "pip install './fakebrokers-1-py3-none-any.whl[suite]' ./fakebrokers_suite-1-py3-none-any.whl x",
            "pip install 'fakebrokers[suite]' x",
        ),
        ('pip install "fakebrokers[suite]" --editable .', "pip install 'fakebrokers[suite]' --editable ."),
        ("(`pip install fakebrokers`, or", "(`pip install fakebrokers`, or"),
        ("pip install fakebrokers-other", "pip install fakebrokers-other"),
    ],
)
def test_on_the_day_of_the_release(monkeypatch: pytest.MonkeyPatch, before: str, after: str) -> None:
    monkeypatch.setattr(extras, "ADDRESS", "fakebrokers")
    monkeypatch.setattr(extras, "SUITE_ADDRESS", "")
    monkeypatch.setattr(addresses, "ADDRESS", "fakebrokers")
    assert with_addresses(before, is_yaml=False) == after
    noted = f"script:\n    {addresses.NOTE}\n    - {before}\n"
    assert with_addresses(noted, is_yaml=True) == f"script:\n    - {after}\n"


def test_until_then() -> None:
    monday = with_addresses("script:\n  - pip install 'fakebrokers[cli,suite]' x\n", is_yaml=True)
    main, suite = extras.ADDRESS, extras.SUITE_ADDRESS
    assert monday == f"script:\n  {addresses.NOTE}\n  - pip install '{main}[cli,suite]' {suite} x\n"
    assert with_addresses(monday, is_yaml=True) == monday
