"""One subject per protocol: what a scenario for several protocols knows of the one that it runs on.

A scenario of such a family (NET) is a coroutine ``script(subject, client, expect)``. Which protocols it is
run for is in the family's file of the catalogue, under ``[protocols.<name>]``: the ids in ``holds``, and
for all others the reason in ``without``. Everything else that differs comes from the protocol's subject, the
class `SUBJECT` in the module ``subject`` of its folder. A protocol of another project names its package
(`Protocol.judge`), and its subject has the ids, `judged_by`.

So a scenario for one more protocol is one id in ``holds``.

A subject is a class below `Subject`. It offers

* as data (`Facts`): ``protocol``; ``rows``, in which it changes the rows of its scenarios (settings of the
  fake, roles, needs, sockets, time), for all, for a section or for one id; ``roles``, where its clients are
  caller and service instead of publisher and consumer (scripts ask for the latter two, rows show the former);
  ``variants``, the settings of the fake for each transporter or server version, of which there is then one
  row each; kinds of frames, phases, sizes and limits;
* what its fake does (abstract in `Facts`): queues, what is stored in them, what connects, refusals, malformed
  frames; `liveness` are the fake's settings for clients that give a silent server up after a time, for
  scripts that ask for that with ``liveness_s``;
* what its clients are asked for (`Subject`): every step has the usual op as its default. A protocol whose
  clients open queues overrides `open`; one that knows no confirm and no subscription overrides
  `begin_publish` (anything that ends with an answer), `outcomes`, `subscribe`, `put` and `stored`, or the
  whole of `exchange`, the middle of the base script.

Where a protocol needs a script of its own for a requirement, that is in the protocol's folder:
``@scenario("NET-1.12", protocol="echo", ...)`` comes before the script for all. It gets the subject, too.
"""

from __future__ import annotations

from conformance.suite.subjects import elsewhere, find
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)
ROLES = ("publisher", "consumer")

__all__ = ["CONSUMER", "PUBLISHER", "ROLES", "Check", "Op", "Subject", "elsewhere", "find"]
