"""Lists of releases, and adapters that are built with another version; package managers are stand-ins."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conformance.clients.adapters.registry import bundled
from conformance.clients.packages import FRESH_S, Package, cache, fetched, in_order, released
from conformance.clients.packages.cache import built, made, output_of
from conformance.clients.packages.cargo import repin as repin_crate
from conformance.clients.packages.maven import repin as repin_artifact
from fakebrokers.errors import UsageError

PACKAGES = {client.name: client.package for client in bundled()}
NPM = """\
#!/bin/sh
echo "$@" >>"$LOG"
case $1 in
    view) echo '["1.0.0", "1.1.0", "0.14.2", "1.2.0-beta.1", "1.10.0", "0.14.10"]' ;;
    install) mkdir node_modules ;;
esac
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache()


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm whose calls are in the file that is returned."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(NPM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "calls"))
    return tmp_path / "calls"


def test_releases_are_in_the_order_of_their_numbers() -> None:
    versions = ["1.10.0", "1.9.0", "1.9.0", "2.0.0rc1", "1.0.0-beta.2", "not a number", "1.9.0.post1"]
    assert in_order(versions) == ["1.9.0", "1.9.0.post1", "1.10.0"]
    assert in_order(versions, ["2.0.0rc1"])[-1] == "2.0.0rc1"


def test_what_each_client_depends_on() -> None:
    managers = {name: package.manager for name, package in PACKAGES.items() if package.manager}
    assert managers == {
        **dict.fromkeys(["blazingmq-cpp", "narconi-python", "narconi-websockets"], "pip"),
        **dict.fromkeys(
            ["mqtt-aiomqtt", "mqtt-paho", "nats-python", "pzq-python", "rbfly", "redis-python", "rstream"],
            "pip",
        ),
        **dict.fromkeys(
            [
                "moleculer-0.14",
                "moleculer-0.15",
                "mqtt-node",
                "narconi-node",
                "nats-node",
                "pzq-node",
                "redis-node",
            ],
            "npm",
        ),
        "rabbitmq-stream-js": "npm",
        **dict.fromkeys(["nats-go", "pzq-go", "rabbitmq-stream-go", "redis-go"], "go"),
        **dict.fromkeys(["moleculer-java", "rabbitmq-stream-java"], "maven"),
        "rabbitmq-stream-rust": "cargo",
    }


def test_a_list_is_asked_for_once_a_day_and_stays_where_nobody_answers(
    npm: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = PACKAGES["narconi-node"]
    assert released(package) == released(package) == ["0.14.2", "0.14.10", "1.0.0", "1.1.0", "1.10.0"]
    assert npm.read_text().splitlines() == ["view ws versions --json"]
    [kept] = (own_cache.parent / "releases").iterdir()
    yesterday = kept.stat().st_mtime - 2 * FRESH_S
    os.utime(kept, (yesterday, yesterday))
    released(package)
    assert len(npm.read_text().splitlines()) == 2
    os.utime(kept, (yesterday, yesterday))
    monkeypatch.setenv("PATH", "/nowhere")
    assert released(package)[-1] == "1.10.0"
    kept.unlink()
    with pytest.raises(UsageError, match="npm knows no versions of ws: npm is not on the PATH"):
        released(package)


def test_an_adapter_for_one_line_of_versions_has_only_those(npm: Path) -> None:
    assert released(PACKAGES["moleculer-0.14"]) == ["0.14.2", "0.14.10"]


def test_a_package_of_npm_comes_into_a_copy_of_the_adapter(npm: Path, own_cache: Path) -> None:
    folder = fetched(PACKAGES["moleculer-0.14"], "0.14.2")
    assert fetched(PACKAGES["moleculer-0.14"], "0.14.2") == folder
    (call,) = npm.read_text().splitlines()
    assert call.startswith("install ") and call.endswith(" moleculer-0.14@npm:moleculer@0.14.2")
    assert (folder / "adapter.mjs").is_file() and (folder / "node_modules").is_dir()
    assert (folder.parent / "_node" / "kit.mjs").is_file(), "what it imports from beside it"
    assert [path for path in own_cache.iterdir() if path.name.startswith("fetching-")] == []


def test_an_adapter_that_has_changed_is_built_anew(tmp_path: Path) -> None:
    adapter = tmp_path / "adapters" / "mine"
    adapter.mkdir(parents=True)
    (adapter / "main").write_text("first")
    first = built(str(adapter), "1.0", lambda folder: None)
    assert built(str(adapter), "1.0", pytest.fail) == first
    (adapter / "build").mkdir()
    assert built(str(adapter), "1.0", pytest.fail) == first, "what it was built into here is nothing of it"
    (adapter / "main").write_text("second")
    assert built(str(adapter), "1.0", lambda folder: None) != first


def test_what_fails_leaves_nothing(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        folder.mkdir()
        raise UsageError("no such thing")

    with pytest.raises(UsageError):
        made("some", fail)
    assert list(own_cache.iterdir()) == []


def test_of_two_that_make_the_same_one_is_kept(own_cache: Path) -> None:
    both = threading.Barrier(2)

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "whole").touch()
        both.wait()

    threads = [threading.Thread(target=made, args=("some", make)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [path.name for path in own_cache.rglob("*")] == ["some", "whole"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_manager_takes_its_children_along(
    own_cache: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A signal reaches this process alone; what it has started is ended, with what that has started."""
    script = (
        "from conformance.clients.packages.cache import made, output_of\n"
        "made('some', lambda folder: output_of(['sh', '-c', 'sleep 1000 & echo $! >$OUT; wait'], 'it'))\n"
    )
    out = tmp_path / "pid"
    env = {**os.environ, "OUT": str(out)}
    process = subprocess.Popen([sys.executable, "-c", script], env=env, stderr=subprocess.PIPE)
    while not (out.is_file() and out.read_text().strip()):
        assert process.poll() is None
    process.send_signal(number)
    process.communicate()
    child = Path("/proc") / out.read_text().strip() / "stat"
    assert not child.exists() or child.read_text().split()[2] == "Z"
    assert list(own_cache.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("echo 'npm error code ETARGET' >&2; echo 'npm error A complete log' >&2", "code ETARGET"),
        ("echo '[ERROR] Failed: no such artifact'; echo '[ERROR] Re-run'", "Failed: no such artifact"),
        ("echo 'error: failed to select'; echo 'package `a` depends on `b`'", "package `a` depends on `b`"),
        ("echo one >&2; echo two >&2", "two"),
        ("true", "no reason given"),
    ],
)
def test_what_a_manager_says_when_it_fails(said: str, shown: str) -> None:
    with pytest.raises(UsageError) as failed:
        output_of(["sh", "-c", f"{said}; exit 1"], "it fails")
    assert str(failed.value) == f"it fails: {shown}"


def test_a_crate_is_pinned_with_or_without_features(tmp_path: Path) -> None:
    manifest = tmp_path / "Cargo.toml"
    manifest.write_text('tokio = "1"\nlib = { version = "=0.11.0", features = ["serde"] }\nlibs = "1.0"\n')
    repin_crate(manifest, "lib", "0.9.0")
    repin_crate(manifest, "tokio", "1.2.0")
    assert manifest.read_text() == (
        'tokio = "=1.2.0"\nlib = { version = "=0.9.0", features = ["serde"] }\nlibs = "1.0"\n'
    )


def test_an_adapter_in_rust_is_built_beside_those_of_other_versions(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cargo here writes what it was asked for into a program that is called like the package."""
    program = tmp_path / "cargo"
    program.write_text(
        "#!/bin/sh\n"
        "while [ $# -gt 1 ]; do [ $1 != --target-dir ] || target=$2; shift; done\n"
        "mkdir -p $target/debug\n"
        "grep ^lib Cargo.toml >$target/debug/$(sed -n 's/^name = \"\\(.*\\)\"/\\1/p' Cargo.toml)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    adapter = tmp_path / "adapters" / "some"
    adapter.mkdir(parents=True)
    (adapter / "Cargo.toml").write_text('[package]\nname = "some"\n[dependencies]\nlib = "1.0.0"\n')
    package = Package("cargo", "lib", "lib", str(adapter))
    for version in ("1.1.0", "1.2.0"):
        folder = fetched(package, version)
        assert (folder / "build" / "debug" / "some").read_text() == f'lib = "={version}"\n'
    shared = own_cache / "cargo" / "debug"
    assert sorted(path.name for path in shared.iterdir()) == ["some-1-1-0", "some-1-2-0"]


def test_an_artifact_is_pinned_and_its_lock_is_not_checked(tmp_path: Path) -> None:
    pom = tmp_path / "pom.xml"
    adapter = Path(PACKAGES["rabbitmq-stream-java"].folder)
    pom.write_bytes((adapter / "pom.xml").read_bytes())
    repin_artifact(pom, "com.rabbitmq:stream-client", "1.2.3")
    text = pom.read_text()
    assert "<version>1.2.3</version>" in text and "maven-lockfile" not in text
    assert "<artifactId>maven-compiler-plugin</artifactId>" in text and "<version>2.15.0</version>" in text


def test_the_list_of_a_crate_is_read_from_what_cargo_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        json.dumps({"name": "lib", "vers": version, "deps": [{"name": "x"}], "yanked": version == "0.2.0"})
        for version in ("0.1.0", "0.2.0", "0.3.0")
    ]
    kept = tmp_path / "registry" / "index" / "some-index" / ".cache" / "3" / "l" / "lib"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"\x03\x02\x00etag\x00" + b"".join(f"0\0{line}\0".encode() for line in lines))
    program = tmp_path / "cargo"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert released(Package("cargo", "lib", "lib", "")) == ["0.1.0", "0.3.0"]
