"""Chaos in front of a real server: a fake stands in for it here, and nothing of it is looked at."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from conformance.run import pace
from conformance.search.random import client as subjects
from conformance.search.random import workload
from conformance.search.random.campaign import ChaosCampaign
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, available, draw
from conformance.search.random.history import KeptJournals
from conformance.search.random.material import material_of
from conformance.search.random.schedule import Schedule
from conformance.search.random.toxics import TOXIC
from conformance.search.random.verdict import Word, verdict_on
from fakebrokers.cli import main
from fakebrokers.faults.steps import Step
from fakebrokers.protocol import find_protocol
from tests.real_toxiproxy import TOXIPROXIES

PARAMS = {
    "sessions": 1, "targets": 1, "rate": 50.0, "size": 0, "publishers": 1, "messages": 10, "waits": 1.0,
    "consumers": 1, "puts": 0, "sleep_ms": 0, "requests": 0,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses in real time are short: the server is near."""
    monkeypatch.setattr(subjects, "PAUSE_S", 0.4)
    monkeypatch.setattr(pace, "LONG_S", 0.4)
    monkeypatch.setattr(workload, "LIVE_DRAIN_S", 0.4)


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["rabbitmq-stream", "narconi"])
def test_a_cut_goes_through_the_proxy_and_the_history_is_judged(protocol: str, tmp_path: Path) -> None:
    cut = Step("cut", 0.1, 0.5, {"how": "rst", "times": 1}, "step1")
    schedule = Schedule(protocol, "mixed", PARAMS, (cut,), seconds=1.0)
    with find_protocol(protocol).load()() as server:
        case = ChaosClient(protocol, "reference", target=f"127.0.0.1:{server.port}").run(
            schedule, "", KeptJournals(tmp_path)
        )
    verdict = verdict_on(case)
    assert verdict.word is Word.PASS, verdict
    assert case.log is not None
    assert "rst" in {row.kind for row in case.log.frames}
    sent = {op.value for op in case.log.ops if op.f == "publish" and op.outcome == "ok"}
    got = {op.value for op in case.log.ops if op.f == "deliver"}
    assert len(sent & got) >= 5


def test_what_needs_the_broker_itself_is_not_drawn() -> None:
    setting = Setting("rabbitmq-stream", is_process=True, is_remote=True)
    names = available(setting, material_of("rabbitmq-stream"))
    assert "nemesis partition" in names
    assert not {"nemesis crash-forget", "nemesis leader-move", "nemesis node-flap"} & set(names)
    assert not [name for name in names if name.startswith("act ")]
    assert {draw(setting, str(seed)).workload for seed in range(40)} == {"publish", "request", "mixed"}


def test_a_protocol_whose_peers_are_ours_is_refused(tmp_path: Path) -> None:
    command = ["chaos", "--client", "reference", "--protocol", "moleculer", "--target", "127.0.0.1:1"]
    with pytest.raises(SystemExit) as left:
        main([*command, "--report", str(tmp_path)])
    assert left.value.code == 64


def test_the_document_says_that_it_was_a_proxy(tmp_path: Path) -> None:
    subject = ChaosClient("narconi", "reference", target="127.0.0.1:1")
    setting = Setting("narconi", is_process=True, is_remote=True)
    assert ChaosCampaign(subject, setting, tmp_path).document()["engine"] == "proxy"


@pytest.mark.full
@pytest.mark.parametrize("name", ["rolling-restart", "crash", "partition"])
def test_what_fakes_do_to_their_nodes_a_proxy_does_to_itself(name: str, tmp_path: Path) -> None:
    params = {**PARAMS, "nodes": 3, "messages": 3}
    nemesis = material_of("rabbitmq-stream").nemeses[name]
    args = nemesis.draw(Random(1), params, find_protocol("rabbitmq-stream").wires[0])
    assert args is not None
    schedule = Schedule(
        "rabbitmq-stream", "publish", params, (Step(name, 0.1, 0.3, args, "step1"),), seconds=0.5
    )
    with find_protocol("rabbitmq-stream").load()() as server:
        subject = ChaosClient("rabbitmq-stream", "reference", target=f"127.0.0.1:{server.port}")
        case = subject.run(schedule, "", KeptJournals(tmp_path))
    assert [band["kind"] for band in case.bands] == [name]
    assert verdict_on(case).word is Word.PASS, verdict_on(case)


@pytest.mark.full
@pytest.mark.parametrize("toxiproxy", TOXIPROXIES)
@pytest.mark.parametrize("name", list(TOXIC))
def test_a_toxic_takes_place_and_is_taken_out(name: str, toxiproxy: str, tmp_path: Path) -> None:
    args = TOXIC[name].draw(Random(1), PARAMS, find_protocol("narconi").wires[0])
    assert args is not None
    schedule = Schedule("narconi", "mixed", PARAMS, (Step(name, 0.1, 0.3, args, "step1"),), seconds=0.6)
    with find_protocol("narconi").load()() as server, TOXIPROXIES[toxiproxy]() as url:
        subject = ChaosClient("narconi", "reference", target=f"127.0.0.1:{server.port}", toxiproxy=url)
        case = subject.run(schedule, "", KeptJournals(tmp_path))
    assert verdict_on(case).word is Word.PASS, verdict_on(case)
    [band] = case.bands
    assert band["end_s"] - band["begin_s"] >= 0.29
    assert subject.engine == "toxiproxy"


def test_with_a_toxiproxy_nothing_but_its_toxics_is_drawn() -> None:
    setting = Setting("narconi", is_process=True, is_remote=True, is_toxic=True)
    kinds = {step.kind for seed in range(60) for step in draw(setting, str(seed)).steps}
    assert kinds == set(TOXIC)
