"""Campaigns: pools, shards, a corpus, interrupts, journals that are analysed, a canary."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from conformance.cli.analyze import analyze_journals
from conformance.cli.campaign import shrinking
from conformance.clients.mutants.registry import find_mutant
from conformance.rules.anomalies import check
from conformance.search.random import canary
from conformance.search.random.campaign import LIVE_SHRINK_S, ChaosCampaign
from conformance.search.random.client import ChaosClient
from conformance.search.random.corpus import Corpus
from conformance.search.random.draw import Setting, draw
from conformance.search.random.runs import sharded
from fakebrokers.cli import main
from fakebrokers.journal.reader import read_run, runs_in
from fakebrokers.progress import Shown
from fakebrokers.protocol import protocol_names

PROTOCOL = "rabbitmq-stream"
PROTOCOLS = protocol_names()[:5]  #: other tests may register more
SETTING = Setting(PROTOCOL)
MUTANT = "crc-signed"  #: every workload that consumes shows it
COMMAND = ("chaos", "--client", "reference", "--protocol", PROTOCOL)
SEEDS = [str(number) for number in range(1, 9)]


def command(*args: str) -> int:
    """Its exit code."""
    with pytest.raises(SystemExit) as left:
        main([*COMMAND, "--no-canary", *args])
    return int(left.value.code or 0)


def campaign(folder: Path, mutant: str = "", **options: object) -> ChaosCampaign:
    return ChaosCampaign(ChaosClient(PROTOCOL, "reference", mutant), SETTING, folder, **options)  # type: ignore[arg-type]


def test_a_pool_of_processes_tells_the_same_as_one(tmp_path: Path) -> None:
    reported = []
    for processes in (1, 2):
        seen: list[tuple[str, str, str]] = []
        one = campaign(tmp_path / str(processes), processes=processes)
        one.go(
            SEEDS,
            None,
            lambda _, outcome, seen=seen: seen.append((outcome.seed, outcome.word, outcome.digest)),
        )
        reported.append(seen)
    assert reported[0] == reported[1]
    assert [seed for seed, _, _ in reported[0]] == SEEDS


def test_shards_share_the_seeds_without_a_rest() -> None:
    parts = [list(sharded(iter(SEEDS), (number, 3))) for number in (1, 2, 3)]
    assert sorted(itertools.chain(*parts)) == SEEDS
    assert not set(parts[0]) & set(parts[1])


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """The folder of one campaign, and those of its two shards."""
    top = tmp_path_factory.mktemp("parted")
    campaign(top / "whole", MUTANT, keeps_journals=True).go(SEEDS[:4])
    for number in (1, 2):
        part = campaign(top / f"part{number}", MUTANT, keeps_journals=True)
        part.go(sharded(iter(SEEDS[:4]), (number, 2)))
    return [[top / "whole"], [top / "part1", top / "part2"]]


def test_two_shards_judged_together_give_the_anomalies_of_one_run(parted: list[list[Path]]) -> None:
    whole, parts = parted
    assert _anomalies(*whole)
    assert _anomalies(*parts) == _anomalies(*whole)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_shards_are_analysed_as_one_run(parted: list[list[Path]], tmp_path: Path, engine: str) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    import pyarrow.parquet as pq

    master = None
    if engine == "spark":
        pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
        if shutil.which("java") is None:
            pytest.skip("missing: java (apt-get install openjdk-17-jre-headless)")
        master = "local[2]"
    reported = []
    for number, folders in enumerate(parted):
        copies = [tmp_path / f"{number}-{folder.name}" for folder in folders]
        for folder, copy in zip(folders, copies, strict=True):
            shutil.copytree(folder / "journal", copy / "journal")
        out = tmp_path / f"out{number}"
        summary = analyze_journals(copies, out, engine=engine, master=master)
        rows = pq.read_table(out / "anomalies.parquet").select(["name", "key", "value"]).to_pylist()
        reported.append((summary["runs"], summary["anomalies"], sorted(map(str, rows))))
    assert reported[0][0] == 4
    assert reported[0][1]
    assert reported[0] == reported[1]


def _anomalies(*folders: Path) -> list[tuple[str, str, str]]:
    logs = [read_run(folder / "journal", run) for folder in folders for run in runs_in(folder / "journal")]
    return sorted((one.name, one.key, one.value) for log in logs for one in check(log))


def test_seeds_that_failed_are_run_first_and_forgotten_once_they_pass(tmp_path: Path) -> None:
    campaign(tmp_path, MUTANT).go(SEEDS)
    failed = Corpus.load(tmp_path).seeds_of(SETTING)
    assert failed
    order: list[str] = []
    campaign(tmp_path).go(["100"], None, lambda _, outcome: order.append(outcome.seed))
    assert order == [*failed, "100"]
    assert not Corpus.load(tmp_path).seeds_of(SETTING)


def test_seeds_of_another_setting_are_not_run(tmp_path: Path) -> None:
    campaign(tmp_path, MUTANT).go(SEEDS)
    other = SETTING._replace(workloads=("publish",))
    assert not Corpus.load(tmp_path).seeds_of(other)


def test_an_interrupt_keeps_what_was_done(tmp_path: Path) -> None:
    def seeds() -> Iterator[str]:
        yield from SEEDS
        raise KeyboardInterrupt

    one = campaign(tmp_path, MUTANT)
    with pytest.raises(KeyboardInterrupt):
        one.go(seeds())
    assert one.runs == len(SEEDS)
    assert one.failures
    assert all(failed.path.exists() for failed in one.failures)


def test_time_ends_a_campaign(tmp_path: Path) -> None:
    one = campaign(tmp_path)
    one.go((str(number) for number in itertools.count()), 0.5)
    assert 0 < one.runs < 200


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_canary_of_each_protocol_is_found(protocol: str) -> None:
    assert canary.material_of(protocol).actions.canary
    assert find_mutant(protocol, canary.material_of(protocol).actions.canary)
    assert canary.canary_fails(protocol)


def test_a_harness_that_finds_nothing_is_told_to_be_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(canary, "canary_fails", lambda _: False)
    with pytest.raises(SystemExit) as left:
        main(
            [
                "chaos",
                "--client",
                "reference",
                "--protocol",
                PROTOCOL,
                "--seeds",
                "1",
                "--report",
                str(tmp_path),
            ]
        )
    assert left.value.code == 3
    assert "the harness is broken" in capsys.readouterr().err


def test_the_command_prints_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--mutant", MUTANT, "--seeds", "1..6", "--report", str(tmp_path), "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] == 6
    assert document["engine"] == "in-process"
    assert set(document["failed"][0]) >= {"seed", "anomalies", "replay", "faults"}
    assert all(Path(row["replay"]).exists() for row in document["failed"])
    assert sum(document["verdicts"].values()) == 6


def test_exit_codes_tell_pass_and_wrong_usage(tmp_path: Path) -> None:
    report = ("--report", str(tmp_path))
    assert command("--seeds", "1..2", *report) == 0
    assert command("--commit", "3f2a91c", "--seeds", "1..2", *report) == 64
    assert command("--seeds", "5..2", *report) == 64
    assert command("--seeds", "1", "--shard", "3/2", *report) == 64
    assert command("--seeds", "1", "--nemesis", "nothing", *report) == 64
    assert command("--seeds", "1", "--workload", "nowhere:Nothing", *report) == 64
    assert command("--seeds", "1", "--contract", "twice", *report) == 64


def test_a_commit_is_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--commit", "3f2a91c", "--minutes", "0.01", "--report", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"] >= 1
    assert draw(SETTING, "3f2a91c-1") != draw(SETTING, "1")


def test_a_stricter_contract_finds_what_the_protocol_allows(tmp_path: Path) -> None:
    subject = ChaosClient("pzq", "reference")
    setting = Setting("pzq", workloads=("mixed",), nemeses=("expiry",))
    lenient = ChaosCampaign(subject, setting, tmp_path / "lenient")
    strict = ChaosCampaign(subject, setting, tmp_path / "strict", contract="exactly-once")
    for one in (lenient, strict):
        one.go([str(number) for number in range(1, 6)])
    assert not lenient.failures
    assert {name for failed in strict.failures for name in failed.names} == {"duplicate"}


def test_shrinking_in_real_time_is_told_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[int, float]] = []
    at_once = campaign(tmp_path / "virtual", MUTANT)
    at_once.go(SEEDS, on_shrink=lambda *what: reported.append(what))
    assert at_once.failures and reported == []  # it takes no time that anybody would wonder about

    async def nothing_smaller(wishes: list[object], *_: object) -> list[None]:
        assert reported
        return [None] * len(wishes)

    def turned_real(*_: object) -> None:
        monkeypatch.setattr(ChaosClient, "is_process", True)

    monkeypatch.setattr("conformance.search.campaign.shrink_all", nothing_smaller)
    campaign(tmp_path / "real", MUTANT).go(SEEDS, None, turned_real, lambda *what: reported.append(what))
    [(failures, limit_s)] = reported
    assert failures >= 1 and limit_s == LIVE_SHRINK_S


def test_the_time_of_shrinking_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with Shown(Console(width=100), "chaos", None, 1.0) as shown:
        shown.say(shrinking(2, 240.0))
    assert capsys.readouterr().out == "shrinking 2 failures in real time: up to about 4 minutes\n"
