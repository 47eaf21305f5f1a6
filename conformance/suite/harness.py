"""One client that is kept over many scenarios, for callers without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.messages import Hello
from conformance.known.defects import KnownDefects
from conformance.results import RuleResult, Verdict
from conformance.suite.brokers import fake_for
from conformance.suite.clients import ClientUnderTest
from conformance.suite.expectations import news
from conformance.suite.judge import Judgement, unfit
from conformance.suite.pool import AdapterPool
from conformance.suite.rule_results import joined, rule_results
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario
from fakebrokers.errors import UsageError


class ClientHarness:
    """Judges one scenario after the other; the client is started for the first, and again after a failure.

    Its loop runs only inside `judge`, on the thread that calls.

    Args:
        known: What is known of the client; see `Runner`.
        greeted: Gets once what the client says about itself; a `UsageError` from it ends all judging.
        seed: Of the fakes' random decisions.
    """

    def __init__(
        self,
        client: ClientUnderTest,
        *,
        known: KnownDefects | None = None,
        greeted: Callable[[Hello], None] = lambda _: None,
        seed: int = 0,
    ) -> None:
        self._client = client
        self._known = known or KnownDefects()
        self._rules: list[RuleResult] = []
        self._new_rules: list[RuleResult] = []
        self._greeted = greeted
        self._harness = AdapterPool(client.make)
        self._runner = Runner(self._harness, fake_for(seed=seed), known=self._known)
        self._loop: asyncio.Runner | None = None
        self._hello: Hello | None = None
        self._refused = ""

    @property
    def is_open(self) -> bool:
        """Whether there is something to close."""
        return self._loop is not None

    @property
    def hello(self) -> Hello | None:
        """What the client said about itself; None before the first scenario."""
        return self._hello

    def judge(self, item: Scenario) -> Judgement:
        """The verdict, second opinions included. What breaks it off ends the client's processes too."""
        if self._loop is None:
            self._loop = asyncio.Runner()
        try:
            return self._loop.run(self._judged(item))
        except BaseException:
            self.close()
            raise

    @property
    def new_rules(self) -> list[RuleResult]:
        """What rules have found in the last run, that nobody knows and no earlier run has shown."""
        return self._new_rules

    def close(self) -> None:
        """End the client. Harmless if there is none; the next `judge` starts one."""
        loop, self._loop = self._loop, None
        if loop is not None:
            with loop:
                loop.run(self._harness.close())

    async def _judged(self, item: Scenario) -> Judgement:
        try:
            hello = await self._about()
        except (AdapterFailed, UsageError) as error:
            self._refused = str(error)
        if self._refused or self._hello is None:
            return Judgement(item, Verdict.HARNESS_ERROR, reason=self._refused)
        refused = unfit(item, hello, in_process=self._client.in_process)
        if refused is not None:
            return refused
        judgement = await self._runner.settle(item, apart=False, final=False)
        if judgement is None:  # it was only late, perhaps because of other tests
            judgement = await self._runner.settle(item, apart=True, final=True)
        assert judgement is not None
        self._note_rules(judgement)
        return judgement

    def _note_rules(self, judgement: Judgement) -> None:
        new = msgspec.structs.replace(judgement, findings=tuple(news(self._known, judgement)))
        before = len(joined(self._rules))
        found = [one for one in rule_results(new) if len(joined([*self._rules, one])) > before]
        self._rules = joined([*self._rules, *found])
        self._new_rules = found

    async def _about(self) -> Hello:
        """What the client says about itself; asked once. A client that cannot start is not tried again."""
        if self._hello is None and not self._refused:
            hello = await self._harness.hello()
            self._greeted(hello)
            self._hello = hello
        if self._hello is None:
            raise UsageError(self._refused)
        return self._hello
