"""The bundled clients: what is described, what is missing, and how they are started."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from conformance.campaign import ConformCampaign
from conformance.clients.adapters.registry import bundled, find
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


def _is_there(word: str) -> bool:
    return Path(word).is_file() or Path(word.partition(os.pathsep)[0], "Adapter.class").is_file()


def test_the_bundled_clients_for_rabbitmq_stream() -> None:
    names = [client.name for client in bundled("rabbitmq-stream")]
    assert names == sorted(names)
    assert {"rabbitmq-stream-go", "rabbitmq-stream-java", "rabbitmq-stream-rust", "rbfly", "rstream"} <= set(
        names
    )
    for client in bundled():
        assert list(client.as_json()) == CONTRACT
        is_module = "-m" in client.command
        assert is_module or client.missing or any(map(_is_there, client.command))


def test_names_and_aliases() -> None:
    assert find("rstream").library == "rstream"
    assert find("rabbitmq-stream-js-client") == find("rabbitmq-stream-js")
    with pytest.raises(UsageError, match=r"no bundled client 'kafka'.* Choose from: .*rstream"):
        find("kafka")


def test_what_is_installed_can_run(tmp_path: Path) -> None:
    describe(tmp_path, "pytest", '[needs]\npython = ["pytest"]\nprograms = ["sh"]\nfiles = ["adapter.toml"]')
    (client,) = bundled(folder=tmp_path)
    assert client.runnable
    assert client.version == pytest.__version__
    assert client.command[1] == f"{tmp_path}/one/adapter.py"


def test_a_client_that_takes_minutes_waits_for_the_full_job(tmp_path: Path) -> None:
    describe(tmp_path, "pytest", "nightly = true")
    late = bundled(folder=tmp_path)
    prompt = [find("rbfly")]
    campaign = ConformCampaign(tmp_path, "gate", 1, 0, Console(quiet=True))
    assert campaign.without_nightly([*late, *prompt]) == prompt
    assert campaign.left_out == ["one: is judged with --full only"]


def test_one_adapter_for_two_versions_of_a_library(tmp_path: Path) -> None:
    describe(tmp_path, "lib", '[needs]\nnpm = ["lib-1"]')
    first = tmp_path / "one" / "adapter.toml"
    text = first.read_text("utf-8")
    first.rename(first.with_name("adapter-1.toml"))
    second = text.replace('"one"', '"two"').replace("lib-1", "lib-2")
    first.with_name("adapter-2.toml").write_text(second, "utf-8")
    for alias, version in (("lib-1", "1.4.0"), ("lib-2", "2.0.1")):
        package = tmp_path / "one" / "node_modules" / alias
        package.mkdir(parents=True)
        (package / "package.json").write_text(f'{{"name": "lib", "version": "{version}"}}', "utf-8")
    found = [(client.name, client.version, client.runnable) for client in bundled(folder=tmp_path)]
    assert found == [("one", "1.4.0", True), ("two", "2.0.1", True)]


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


def test_a_go_program_has_the_version_of_its_module(tmp_path: Path) -> None:
    module = "example.com/mq/client"
    describe(tmp_path, module, f'[needs]\ngo = ["{module}"]\nfiles = ["build/adapter"]')
    (tmp_path / "one" / "go.mod").write_text(
        f"module x\n\nrequire (\n\t{module} v1.8.3\n\tother v1 // indirect\n)\n"
    )
    (client,) = bundled(folder=tmp_path)
    assert client.version == "1.8.3"
    assert client.missing == [f"build/adapter: get it for {tmp_path}/one"]
    (tmp_path / "one" / "build").mkdir()
    (tmp_path / "one" / "build" / "adapter").touch()
    (client,) = bundled(folder=tmp_path)
    assert client.runnable


def test_a_rust_program_has_the_version_of_its_lock_file(tmp_path: Path) -> None:
    describe(tmp_path, "mq-client", '[needs]\ncargo = ["mq-client", "other"]\nfiles = ["build/debug/one"]')
    (tmp_path / "one" / "Cargo.lock").write_text('[[package]]\nname = "mq-client"\nversion = "0.11.0"\n')
    (client,) = bundled(folder=tmp_path)
    assert client.version == "0.11.0"
    remedy = f"get it for {tmp_path}/one"
    assert client.missing == [f"other: {remedy}", f"build/debug/one: {remedy}"]


def test_a_misspelt_description_is_an_error(tmp_path: Path) -> None:
    describe(tmp_path, "pytest", "[kneads]")
    with pytest.raises(msgspec.ValidationError, match="kneads"):
        bundled(folder=tmp_path)


def test_lock_files_name_no_addresses() -> None:
    for client in bundled():
        for lock in Path(client.folder).glob("package-lock.json"):
            assert '"resolved"' not in lock.read_text("utf-8"), lock
