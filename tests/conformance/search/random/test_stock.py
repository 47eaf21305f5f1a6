"""Chaos for stock clients on virtual time: real time has the last word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.adapters.registry import find
from conformance.rules import Finding
from conformance.run.simulated import NeedsProcess
from conformance.search import campaign as campaigns
from conformance.search.random import campaign, runs
from conformance.search.random.campaign import UNCONFIRMED, ChaosCampaign
from conformance.search.random.case import ChaosCase
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, draw
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import RunVerdict, Word, verdict_on
from fakebrokers.faults.steps import Step

PROTOCOL = "rabbitmq-stream"
NAME = "rstream"
SETTING = Setting(PROTOCOL, is_process=True)
SEEDS = ("2", "3", "5")

pytestmark = [
    pytest.mark.skipif(not find(NAME).runnable, reason="rstream is not installed"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # rstream leaves them to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def subject(**more: Any) -> ChaosClient:
    return ChaosClient(PROTOCOL, NAME, stock_in_memory=True, **more)


def test_a_schedule_repeats() -> None:
    schedule = draw(SETTING._replace(nemeses=("crash", "drop", "rst")), "2")
    one, other = subject().run(schedule), subject().run(schedule)
    assert one.digest == other.digest != ""
    assert verdict_on(one) == verdict_on(other)


def test_in_front_of_a_real_server_it_is_a_process() -> None:
    assert subject(target="127.0.0.1:1").is_process
    assert ChaosClient(PROTOCOL, NAME).is_process


def test_what_is_done_to_the_process_needs_one() -> None:
    schedule = Schedule(PROTOCOL, "publish", steps=(Step("pause", 0.5, 1.0, {}, "step1"),))
    with pytest.raises(NeedsProcess, match="pause is done to the client's process"):
        subject().run(schedule)


class Judged:
    """A campaign whose runs, here and in real time, are what a test says."""

    def __init__(self, folder: Path, here: Callable[[str], Word], real: Callable[[str], Word]) -> None:
        client = subject()
        self.live: list[str] = []
        cases = {seed: ChaosCase(draw(SETTING, seed), []) for seed in SEEDS}
        words = {Word.FAIL: [("lost", "a message")]}

        def verdict(word: Word) -> RunVerdict:
            return RunVerdict(word, tuple(Finding(*one) for one in words.get(word, [])))

        def run(schedule: Schedule, *_: Any) -> ChaosCase:
            if here(schedule.seed) is Word.HARNESS_ERROR:
                raise NeedsProcess("a thread")
            return cases[schedule.seed]

        async def judge_live(schedule: Schedule, *_: Any) -> tuple[ChaosCase, RunVerdict]:
            self.live.append(schedule.seed)
            return cases.get(schedule.seed, ChaosCase(schedule, [])), verdict(real(schedule.seed))

        client.run = run  # type: ignore[method-assign]
        client.judge_live = judge_live  # type: ignore[method-assign]
        self.verdict_here = lambda case: verdict(here(case.schedule.seed))
        self.campaign = ChaosCampaign(client, SETTING, folder)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Judged]:
    def go(here: Callable[[str], Word], real: Callable[[str], Word]) -> Judged:
        made = Judged(tmp_path, here, real)
        for module in (campaign, runs):
            monkeypatch.setattr(module, "verdict_on", made.verdict_here)
        monkeypatch.setattr(campaign, "write_page", lambda *_: None)
        monkeypatch.setattr(campaigns.Campaign, "_smallest_plan", lambda self, plan, name, end_s: plan)
        made.campaign.go(iter(SEEDS))
        return made

    return go


def test_what_real_time_shows_too_fails(judged: Callable[..., Judged]) -> None:
    made = judged(lambda seed: Word.FAIL if seed == "3" else Word.PASS, lambda _: Word.FAIL)
    assert [one.seed for one in made.campaign.failures] == ["3"]
    assert made.campaign.words == {"pass": 2, "fail": 1}
    assert set(made.live) == {"3"}
    assert made.campaign.document()["unconfirmed"] == []


def test_what_real_time_does_not_show_does_not(judged: Callable[..., Judged]) -> None:
    made = judged(lambda _: Word.FAIL, lambda seed: Word.FAIL if seed == "5" else Word.PASS)
    assert [one.seed for one in made.campaign.failures] == ["5"]
    assert (made.campaign.words["fail"], made.campaign.words[UNCONFIRMED]) == (1, 2)
    assert len(made.campaign.document()["unconfirmed"]) == 2


def test_what_needs_a_process_runs_in_one(judged: Callable[..., Judged]) -> None:
    made = judged(lambda seed: Word.HARNESS_ERROR if seed == "5" else Word.PASS, lambda _: Word.PASS)
    assert made.live == ["5"]
    assert made.campaign.words == {"pass": 3}
