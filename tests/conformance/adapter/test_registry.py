"""The bundled clients: what is described, what is missing, and how they are started."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from conformance.adapters.registry import bundled, find
from fakebrokers.errors import UsageError

CONTRACT = ["name", "protocols", "library", "version", "language", "runnable", "missing"]

DESCRIPTION = """\
name = "one"
protocols = ["pzq"]
library = "{library}"
tested = "1.0"
language = "python"
command = ["{{python}}", "{{folder}}/adapter.py"]
install = "get it for {{folder}}"
{needs}
"""


def describe(folder: Path, library: str, needs: str = "") -> None:
    (folder / "one").mkdir()
    text = DESCRIPTION.format(library=library, needs=needs)
    (folder / "one" / "adapter.toml").write_text(text)


def test_the_bundled_clients_for_rabbitmq_stream() -> None:
    names = [client.name for client in bundled("rabbitmq-stream")]
    assert names == sorted(names)
    assert {"rabbitmq-stream-js", "rbfly", "rstream"} <= set(names)
    for client in bundled():
        assert list(client.as_json()) == CONTRACT
        assert client.command[-2] == "-m" or Path(client.command[-1]).is_file()


def test_names_and_aliases() -> None:
    assert find("rstream").library == "rstream"
    assert find("rabbitmq-stream-js-client") == find("rabbitmq-stream-js")
    with pytest.raises(UsageError, match=r"no bundled client 'kafka'; there are .*rstream"):
        find("kafka")


def test_what_is_installed_can_run(tmp_path: Path) -> None:
    describe(tmp_path, "pytest", '[needs]\npython = ["pytest"]\nprograms = ["sh"]\nfiles = ["adapter.toml"]')
    (client,) = bundled(folder=tmp_path)
    assert client.runnable
    assert client.version == pytest.__version__
    assert client.command[1] == f"{tmp_path}/one/adapter.py"


def test_what_is_not_there_is_named_with_its_remedy(tmp_path: Path) -> None:
    needs = ['python = ["no-such-thing"]', 'programs = ["no-such-program"]', 'npm = ["left-pad"]']
    describe(tmp_path, "no-such-thing", "\n".join(["[needs]", *needs, 'files = ["a.jar"]']))
    (client,) = bundled(folder=tmp_path)
    assert not client.runnable
    assert client.as_json()["version"] is None
    remedy = f"get it for {tmp_path}/one"
    assert client.missing == [
        "no-such-program: not on the PATH",
        f"no-such-thing: {remedy}",
        f"left-pad: {remedy}",
        f"a.jar: {remedy}",
    ]


def test_a_misspelt_description_is_an_error(tmp_path: Path) -> None:
    describe(tmp_path, "pytest", "[kneads]")
    with pytest.raises(msgspec.ValidationError, match="kneads"):
        bundled(folder=tmp_path)


def test_lock_files_name_no_addresses() -> None:
    for client in bundled():
        for lock in Path(client.folder).glob("package-lock.json"):
            assert '"resolved"' not in lock.read_text("utf-8"), lock
