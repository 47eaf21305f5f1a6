"""Nodes that lose, mix up or leave open streams."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.caller import Caller, Upload
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.serving import Server
from conformance.clients.reference.moleculer.streams import Incoming, chunk_of

Json = dict[str, Any]


@mutant("streams-never-end", tag="life-cycle", breaks=["M13"])
class StreamsNeverEnd(Incoming):
    """Does not notice the end of a stream."""

    def take(self, packet: Json) -> None:
        if self.opening is None or packet.get("stream") is True:
            super().take(packet)


@mutant("order-of-arrival", tag="data", breaks=["M13"])
class OrderOfArrival(Incoming):
    """Reads the packets of a stream as they come."""

    def add(self, packet: Json) -> None:
        if self.opening is None and packet.get("seq") != 0:
            return
        self.take(packet)


@mutant("duplicates-count", tag="data", breaks=["M13"])
class DuplicatesCount(Incoming):
    """Waits for the packet after the next one when a packet has come twice."""

    def is_old(self, seq: int) -> bool:
        if super().is_old(seq):
            self._expected += 1
        return super().is_old(seq)


@mutant("old-chunk-sets-back", tag="life-cycle", breaks=["M13"])
class OldChunkSetsBack(Incoming):
    """Waits again for everything after a chunk that has come twice."""

    def add(self, packet: Json) -> None:
        seq = packet.get("seq")
        if isinstance(seq, int) and 0 < seq < self._expected - 1:
            self._expected = seq
        super().add(packet)


@mutant("stream-errors-are-ends", tag="data", breaks=["M13"])
class StreamErrorsAreEnds(Incoming):
    """Takes the error at the end of a stream for a proper end."""

    def error_in(self, packet: Json) -> ClientError | None:
        return None


@mutant("uploads-outlive-their-senders", tag="life-cycle", breaks=["M8", "M13"])
class UploadsOutliveTheirSenders(Server):
    """Waits for the rest of an upload whose sender is gone."""

    def lost(self, peer: str) -> None:
        """Nothing is done."""


@mutant("downloads-outlive-their-senders", tag="life-cycle", breaks=["M8", "M13"])
class DownloadsOutliveTheirSenders(Caller):
    """Waits for the rest of a stream whose sender is gone."""

    def lost(self, peer: str) -> None:
        self.streams.clear()
        super().lost(peer)


@mutant("upload-without-an-end", tag="wire", breaks=["M10", "M13"])
class UploadWithoutAnEnd(Caller):
    """Sends no end packet when the call ends before the upload."""

    def send_end(self, command: str, rest: str, packet: Json) -> None:
        if "$streamError" not in packet["headers"]:
            super().send_end(command, rest, packet)


@mutant("chunks-uncut", tag="wire", breaks=["M13"])
class ChunksUncut(Post):
    """Sends chunks as large as they are."""

    chunk_limit = 1 << 30


@mutant("no-back-pressure", tag="life-cycle", breaks=["M13"], aims=["MOL-4.15"])
class NoBackPressure(Post):
    """Goes on with an upload although the server does not read."""

    async def drained(self) -> None:
        """Nothing is waited for."""


@mutant("objects-without-their-flag", tag="wire", breaks=["M13"])
class ObjectsWithoutTheirFlag(Caller):
    """Does not say that a stream is one of objects."""

    def request(self, *args: Any) -> Json:
        return {**super().request(*args), "headers": {}}


@mutant("late-chunk-runs-the-action", tag="data", breaks=["M13"])
class LateChunkRunsTheAction(Server):
    """Runs the action again for a chunk after the end of its upload."""

    def upload(self, packet: Json) -> None:
        if self.has_ended(packet["id"]):
            ended = self._runtime.part(Incoming)(packet["sender"], "params")
            ended.end()
            self.begin(packet, ended)
            return
        super().upload(packet)


@mutant("falsy-objects-are-nothing", tag="data", breaks=["M13"])
class FalsyObjectsAreNothing(Incoming):
    """Skips objects of a stream that are 0, false or empty."""

    def take(self, packet: Json) -> None:
        is_object = self.opening is not None and packet.get("stream") is True
        if not is_object or chunk_of(packet.get(self._payload)):
            super().take(packet)


@mutant("uploads-outlive-their-calls", tag="data", breaks=["M13"])
class UploadsOutliveTheirCalls(Caller):
    """What a call uploads is sent to its end, also when the call has ended."""

    async def send_up(self, *args: Any) -> None:
        await asyncio.shield(self._runtime.tasks.spawn(super().send_up(*args)))


@mutant("cut-uploads-end-well", tag="data", breaks=["M13"])
class CutUploadsEndWell(Caller):
    """An upload that the end of its call has cut ends as if it were whole."""

    def send_end(self, command: str, rest: str, packet: Json) -> None:
        error = packet["headers"].get("$streamError", {})
        if error.get("message") == "the call has ended":
            packet = {**packet, "headers": {}}
        super().send_end(command, rest, packet)


@mutant("failed-sources-end-well", tag="data", breaks=["M13"])
class FailedSourcesEndWell(Caller):
    """An upload whose source fails ends as if that were all of it."""

    def send_end(self, command: str, rest: str, packet: Json) -> None:
        error = packet["headers"].get("$streamError", {})
        if error.get("message") != "the call has ended":
            packet = {**packet, "headers": {}}
        super().send_end(command, rest, packet)


@mutant("failed-answers-end-well", tag="data", breaks=["M13"])
class FailedAnswersEndWell(Server):
    """An answer whose source fails ends as if that were all of it."""

    def reply(self, packet: Json, fields: Json) -> None:
        if fields.get("seq") and fields["success"] is False:
            fields = {**fields, "success": True, "error": None}
        super().reply(packet, fields)


@mutant("broken-uploads-are-whole", tag="data", breaks=["M13"])
class BrokenUploadsAreWhole(Server):
    """An action reads an upload that has broken off as if it were whole."""

    def upload(self, packet: Json) -> None:
        headers = packet.get("headers") or {}
        super().upload({**packet, "headers": {**headers, "$streamError": None}})


@mutant("streams-have-no-meta", tag="data", breaks=["M5", "M13"])
class StreamsHaveNoMeta(Server):
    """Answers with a stream without the meta of its action."""

    async def send_down(self, packet: Json, context: Context, stream: Upload) -> None:
        await super().send_down(packet, replace(context, meta={}), stream)
