"""A web page in headless Chromium, driven by the adapter protocol.

The page runs ../_narconi/client.mjs on the browser's own fetch and WebSocket. It lives on the origin of the
server, so that no request of its own crosses origins; the server is not asked for it (see `browser`).
Sessions with the same server share a page. This process carries the lines between runner and pages.
"""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser, Page

from conformance.clients.adapter import kit

Json = dict[str, Any]

HERE = Path(__file__).parent
SAME_ORIGIN_PATH = "/page"
PAGE_S = 30.0  #: for a new page, which costs much on a busy machine
AT_ONCE = 128  #: publishes that the pages have in hand; bodies of further ones are not made yet


def page_html() -> str:
    """One document with all modules in it."""
    shared = HERE.parent / "_narconi"
    modules = [shared / "sockets.mjs", shared / "client.mjs", HERE / "page.mjs"]
    text = "".join(module.read_text("utf-8") for module in modules)
    script = re.sub(r"^(import .*\n|export )", "", text, flags=re.MULTILINE)
    return f'<!doctype html><link rel="icon" href="data:,"><script type="module">{script}</script>'


def details(message: Json) -> Json:
    named = {name if name == "Content-Type" else name.lower(): v for name, v in message["headers"].items()}
    shown: Json = {"headers": named, "redelivered": message["redelivered"]}
    return shown | {"ts": message["timestamp"], "position": message["ackId"]}


def encoded(body: Json) -> str:
    return base64.b64encode(kit.body_bytes(body)).decode()


def failure(error: Json) -> kit.Failure:
    return kit.Failure(error["kind"], error["text"], code=error.get("code"), definite=error.get("definite"))


class Adapter(kit.AdapterBase):
    adapter = "narconi-browser"
    library = "chromium"
    protocols = ("narconi",)
    roles = ("publisher", "consumer", "admin", "http")
    caps = "ack_timeout ack_to encoding"
    settles = "manual"
    # the browser keeps connections, as many as it likes, and lets go of them when it likes
    contract: Mapping[str, bool] = {
        "others": False,
        "drops_idle": True,
        "logs_callbacks": True,
        "many_connections": True,
    }
    limits = kit.limits(connect=int(PAGE_S * 1000)) | {"processes": 4}

    def __init__(self) -> None:
        super().__init__()
        self.browser = Browser(shutil.which("chromium") or "chromium")
        self.html = page_html()
        self.deliveries: set[asyncio.Task[None]] = set()
        self.starting: asyncio.Future[None] | None = None
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.pages: dict[str, asyncio.Task[Page]] = {}

    async def started(self) -> Browser:
        """The browser, started by the first that asks."""
        if self.starting is None:
            self.starting = asyncio.ensure_future(self.browser.start())
        await asyncio.shield(self.starting)
        return self.browser

    def start(self, write: Callable[[Json], None], *, own_process: bool = False) -> None:
        super().start(write)  # what is open here belongs to the bridge, and outlives `reset`

    @kit.op("hello")
    async def _hello(self, version: int, protocol: str) -> Json:
        self.library_version = (await self.started()).version
        return await super()._hello(version, protocol)

    @kit.op("shutdown")
    async def _shutdown(self, request_id: int | None = None) -> None:
        await super()._shutdown(request_id)
        if self.starting is not None:
            await self.browser.stop()

    async def clear(self) -> None:
        opening, self.pages = self.pages, {}
        for page in await asyncio.gather(*opening.values(), return_exceptions=True):
            if isinstance(page, Page):
                await page.close()

    # sessions

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json) -> None:
        base = options.get("base") or f"http://{endpoints[0]}"
        if base not in self.pages:
            self.pages[base] = asyncio.create_task(self.page_for(base))
        page = await asyncio.wait_for(asyncio.shield(self.pages[base]), PAGE_S)
        await page.evaluate("begin", session, options.get("project", "test"))
        self.sessions[session] = page

    async def page_for(self, base: str) -> Page:
        """A new page for all sessions with that server."""
        browser = await self.started()
        return await browser.open(base + SAME_ORIGIN_PATH, self.html, self.heard)

    async def call(self, session: str, name: str, **args: Any) -> Any:
        """Call one of the functions of the session's page."""
        answer = await self.session(session).evaluate("call", session, name, args)
        if "error" in answer:
            raise failure(answer["error"])
        return answer["value"]

    def heard(self, news: Json) -> None:
        """A page reports something."""
        if news.get("what") == "error":
            error = failure(news["news"]).report()
            self.emit("error", session=news["session"], where="read", error=error)
        elif news.get("what") == "lost":
            self.emit("session", session=news["session"], what="connection_lost", text=news["news"])
        elif news["sub"] in self.subs:
            message, subscription = news["message"], self.subs[news["sub"]]
            shown = message["body"]
            body = base64.b64decode(shown["b64"]) if "b64" in shown else shown
            delivered = subscription.deliver(body, native=message["ackId"] or "", **details(message))
            task = self.loop.create_task(delivered)
            self.deliveries.add(task)
            task.add_done_callback(self.deliveries.discard)

    @kit.op("state")
    async def state(self, session: str) -> Json:
        if session not in self.sessions:
            return {"open": False, "pending": None}
        found: Json = await self.call(session, "state")
        return found

    @kit.op("close")
    async def close(self, session: str, timeout_ms: float | None = None) -> None:
        await self.call(session, "close", ms=timeout_ms)

    # HTTP

    @kit.op("narc.ensure_queue")
    async def ensure_queue(self, session: str, target: str, timeout_ms: float | None) -> None:
        await self.call(session, "ensureQueue", queue=target, ms=timeout_ms)

    @kit.op("narc.delete_queue")
    async def delete_queue(self, session: str, target: str, timeout_ms: float | None) -> None:
        await self.call(session, "deleteQueue", queue=target, ms=timeout_ms)

    @kit.op("narc.post")
    async def post(
        self, session: str, target: str, body: Json, headers: Json | None, timeout_ms: float | None
    ) -> Json:
        await self.call(
            session, "post", queue=target, body=encoded(body), headers=headers or {}, ms=timeout_ms
        )
        return {"outcome": "acked", "key": None, "meta": {}}

    @kit.op("narc.take")
    async def take(self, session: str, target: str, timeout_ms: float | None) -> Json:
        message = await self.call(session, "take", queue=target, ms=timeout_ms)
        if message is None:
            return {"message": None}
        body = kit.report_body(base64.b64decode(message["body"]["b64"]))
        shape = {"ref": self.next_ref(), "sub": "", "target": target, "body": body, "meta": {}}
        return {"message": {**shape, **details(message)}}

    # WebSocket

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, headers: Json | None, wait: bool,
        timeout_ms: float | None, request_id: int,
    ) -> Json:  # fmt: skip
        work = self.published(session, target, body, headers or {}, timeout_ms)
        if wait:
            await work
            return {"outcome": "acked", "key": None, "meta": {}}

        async def later() -> None:
            try:
                await work
                self.emit("outcome", id=request_id, outcome="acked", key=None, code=None)
            except (kit.Failure, TimeoutError) as problem:
                error = problem if isinstance(problem, kit.Failure) else self.classify(problem)
                word = "nacked" if error.definite else "unknown"
                self.emit("outcome", id=request_id, outcome=word, key=None, code=error.code)

        task = self.loop.create_task(later())
        self.deliveries.add(task)
        task.add_done_callback(self.deliveries.discard)
        return {"outcome": "sent", "key": None, "meta": {}}

    async def published(
        self, session: str, queue: str, body: Json, headers: Json, timeout_ms: float | None
    ) -> None:
        """Have the page publish, as soon as there is room for it."""
        begun = self.loop.time()
        await asyncio.wait_for(self.slots.acquire(), timeout_ms and timeout_ms / 1000)
        try:
            spent = (self.loop.time() - begun) * 1000
            ms = None if timeout_ms is None else max(1.0, timeout_ms - spent)
            await self.call(session, "publish", queue=queue, body=encoded(body), headers=headers, ms=ms)
        finally:
            self.slots.release()

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Json, on_message: Json, timeout_ms: float | None
    ) -> None:
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)
        subscription.handle = session
        await self.call(session, "consume", queue=target, sub=sub, options=options, ms=timeout_ms)

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str) -> None:
        subscription = self.subscription(sub)
        if how == "nack":
            raise kit.Failure("unsupported", "Narconi has no negative acknowledgement")
        ack_id = subscription.native.get(ref)
        await self.call(subscription.handle, "ack", sub=sub, ackId=ack_id, upTo=how == "ack_to")

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        await self.call(self.subscription(sub).handle, "end", sub=sub, drain=drain, ms=timeout_ms)


if __name__ == "__main__":
    kit.run(Adapter())
