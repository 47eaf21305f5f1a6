"""Known changes of clients, found by ``bisect`` in their registries.

It needs those registries the first time; ``ci/nightly bisect`` runs it.
"""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.adapters import registry
from conformance.versions.sources import Releases
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode

HERE = Path(__file__).parent
CHANGES: list[dict[str, str]] = tomllib.loads((HERE / "known_changes.toml").read_text())["change"]


def name_of(change: dict[str, str]) -> str:
    return "-".join(change[word] for word in ("client", "row", "variant") if word in change)


@pytest.mark.nightly
@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("change", CHANGES, ids=name_of)
def test_the_release_is_named(change: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    client, good, bad = change["client"], change["good"], change["bad"]
    found = registry.find(client)
    if not found.runnable:
        pytest.skip("; ".join(found.missing))
    row = change["row"]
    words = [
        str(HERE / row) if row.endswith(".json") else row,
        "--client",
        client,
        "--good",
        good,
        "--bad",
        bad,
    ]
    words += ["--variant", change["variant"]] if "variant" in change else []
    with pytest.raises(SystemExit) as left:
        main(["bisect", *words, "--json"])
    said: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert (left.value.code or 0, said["changed_in"], said["after"]) == (
        ExitCode.OK,
        change["release"],
        change["after"],
    )
    versions = Releases(client, [good, bad]).versions()
    many = versions.index(bad) - versions.index(good) + 1
    assert len(said["judged"]) <= math.ceil(math.log2(many)) + 2


def test_the_list_covers_several_clients() -> None:
    assert len({each["client"] for each in CHANGES}) >= 4
    assert len({name_of(each) for each in CHANGES}) == len(CHANGES)
    for each in CHANGES:
        registry.find(each["client"])
        assert each["after"] in ("pass", "fail") and each["source"]
