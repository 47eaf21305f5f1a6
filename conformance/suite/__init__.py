"""Judging one client: scenarios, the runner, verdicts.

from conformance.suite import scenario

@scenario("RMQS-3.06", roles=["publisher"])
async def confirm_for_unknown_id(broker, client, expect):
    ...
"""

from conformance.suite.client import Client
from conformance.suite.expect import Expect
from conformance.suite.scenario import Scenario, scenario

__all__ = ["Client", "Expect", "Scenario", "scenario"]
