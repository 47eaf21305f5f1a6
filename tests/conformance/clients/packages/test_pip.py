"""Several versions of one library side by side, each in a folder that is fetched once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters.registry import find
from conformance.clients.packages.cache import cache
from conformance.clients.packages.pip import fetched, listed
from conformance.suite import clients
from fakebrokers.cli import main
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

OTHER = """\
Metadata-Version: 2.1
Name: rstream
Version: {version}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No version is there, and none can be had: nothing is fetched from anywhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return cache()


def provide(folder: Path, version: str) -> Path:
    """What pip would leave of a version: here only what says which one it is."""
    found = folder / f"rstream-{version}-{sys.implementation.cache_tag}"
    (found / f"rstream-{version}.dist-info").mkdir(parents=True)
    (found / f"rstream-{version}.dist-info" / "METADATA").write_text(OTHER.format(version=version))
    return found


def test_a_version_that_is_there_is_taken(own_cache: Path) -> None:
    found = provide(own_cache, "0.9.9")
    client = find("rstream==0.9.9")
    assert (client.name, client.version, client.asked) == ("rstream", "0.9.9", "rstream==0.9.9")
    assert client.env["PYTHONPATH"].split(os.pathsep)[0] == str(found)
    assert clients.bundled("rstream==0.9.9", None).options == ("--client", "rstream==0.9.9")
    assert find("rstream").asked == "rstream"


def test_the_adapter_imports_that_version(own_cache: Path) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    provide(own_cache, "0.9.9")

    async def version(name: str) -> str:
        client = find(name)
        adapter = ProcessAdapter(client.command, "rabbitmq-stream", env=client.env)
        try:
            await adapter.start()
            return adapter.hello.library_version
        finally:
            await adapter.kill()

    assert asyncio.run(version("rstream==0.9.9")) == "0.9.9"
    assert asyncio.run(version("rstream")) == find("rstream").version != "0.9.9"


def test_what_pip_cannot_get_is_said(own_cache: Path) -> None:
    with pytest.raises(UsageError, match=r"pip cannot install rstream==99\.9: .*rstream==99\.9"):
        fetched("rstream", "99.9")
    assert list(own_cache.iterdir()) == []


@pytest.mark.parametrize("version", ["", "latest", "../1.0", "1.0 --pre", "1.0;"])
def test_it_has_to_be_a_version(version: str) -> None:
    with pytest.raises(UsageError, match="expected a version such as"):
        fetched("rstream", version)


def test_what_comes_with_a_language_has_one_version() -> None:
    with pytest.raises(UsageError, match=r"net/http comes with its language"):
        find("narconi-go==1.0")


def test_pip_without_an_index_knows_no_versions() -> None:
    with pytest.raises(UsageError, match="pip knows no versions of rstream: No matching distribution"):
        listed("rstream")


def test_a_version_that_cannot_be_imported_leaves_the_other_its_verdicts(
    own_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    broken = provide(own_cache, "0.9.9") / "rstream"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('it needs another Python')")
    with pytest.raises(SystemExit) as left:
        main(["conform", "--client", "rstream==0.9.9,rstream", "--json", "RMQS-1.01"])
    assert left.value.code == ExitCode.INCONCLUSIVE
    first, second = json.loads(capfd.readouterr().out)["results"]
    assert (first["client_version"], first["results"], first["complete"]) == ("0.9.9", [], False)
    assert "it needs another Python" in first["reasons"][0]
    assert [row["id"] for row in second["results"]] == ["RMQS-1.01"]
