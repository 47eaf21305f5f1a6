"""Headless Chromium, over its DevTools protocol (https://chromedevtools.github.io/devtools-protocol/).

Pages are shown under any address without a server having to serve them: the browser asks us instead.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

Json = dict[str, Any]

# Local network access would have to be allowed by a person: a page that we serve counts as from elsewhere.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --mute-audio --disable-dev-shm-usage "
    "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets --remote-debugging-port=0"
)
FOLDERS = "fakebrokers-chromium-"


class Browser:
    """One browser process; its pages are `Page`."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._calls: dict[int, asyncio.Future[Json]] = {}
        self._ids = itertools.count(1)
        self.pages: dict[str, Page] = {}
        self.version = ""
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start it, and find out its version."""
        _sweep()
        self._folder = tempfile.mkdtemp(prefix=f"{FOLDERS}{os.getpid()}-")
        _write_preferences(Path(self._folder))
        setpriv = shutil.which("setpriv")  # a kill of this adapter kills the browser too
        dying_with_us = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
        self._process = await asyncio.create_subprocess_exec(
            *dying_with_us,
            self._program,
            *FLAGS.split(),
            f"--user-data-dir={self._folder}",
            "about:blank",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        address = b""
        while not address:
            line = await self._process.stderr.readline()
            if not line:
                raise RuntimeError(f"{self._program} did not start")
            if found := re.search(rb"DevTools listening on (ws://\S+)", line):
                address = found[1]
        self.tasks.append(asyncio.create_task(self._drain(self._process.stderr)))
        self._http = aiohttp.ClientSession()
        self._socket = await self._http.ws_connect(address.decode(), max_msg_size=0)
        self.tasks.append(asyncio.create_task(self._read()))
        product: str = (await self.send("Browser.getVersion"))["product"]
        self.version = product.partition("/")[2]

    async def _drain(self, stream: asyncio.StreamReader) -> None:
        while await stream.read(1 << 16):
            pass

    async def _read(self) -> None:
        async for message in self._socket:
            news = json.loads(message.data)
            if "id" in news:
                answer = self._calls.pop(news["id"], None)
                if answer is not None and not answer.done():
                    answer.set_result(news)
            elif (page := self.pages.get(news.get("sessionId"))) is not None:
                page.heard(news["method"], news["params"])

    async def send(self, method: str, session: str | None = None, **params: Any) -> Json:
        """One command and its answer."""
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        number = next(self._ids)
        self._calls[number] = answer
        addressed = {"sessionId": session} if session else {}
        await self._socket.send_str(
            json.dumps({"id": number, "method": method, "params": params, **addressed})
        )
        found = await answer
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']['message']}")
        result: Json = found["result"]
        return result

    async def open(self, url: str, html: str, on_news: Callable[[Json], None]) -> Page:
        """Show `html` under an address of which no server is asked; returns when its scripts have run."""
        context = (await self.send("Target.createBrowserContext"))["browserContextId"]
        blank = {"url": "about:blank", "browserContextId": context}
        target = (await self.send("Target.createTarget", **blank))["targetId"]
        session = (await self.send("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = self.pages[session] = Page(self, context, session, html, on_news)
        await page.show(url)
        return page

    async def stop(self) -> None:
        """End it and remove its folder."""
        for task in self.tasks:
            task.cancel()
        await self._http.close()
        self._process.kill()
        await self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class Page:
    """One tab, in a profile of its own. Its scripts call ``report(text)``, we call its functions."""

    def __init__(
        self, browser: Browser, context: str, session: str, html: str, on_news: Callable[[Json], None]
    ) -> None:
        self._browser = browser
        self._context = context
        self._session = session
        self._html = html
        self._on_news = on_news
        self._ready = asyncio.Event()
        self.tasks: set[asyncio.Task[Any]] = set()

    async def _send(self, method: str, **params: Any) -> Json:
        return await self._browser.send(method, self._session, **params)

    async def show(self, url: str) -> None:
        """Go to the address, and serve it."""
        await self._send("Runtime.enable")
        await self._send("Runtime.addBinding", name="report")
        await self._send("Fetch.enable", patterns=[{"urlPattern": "*", "resourceType": "Document"}])
        await self._send("Page.navigate", url=url)
        await self._ready.wait()
        await self._send("Fetch.disable")

    def heard(self, method: str, params: Json) -> None:
        """An event of this tab."""
        if method == "Fetch.requestPaused":
            body = base64.b64encode(self._html.encode()).decode()
            headers = [{"name": "Content-Type", "value": "text/html; charset=utf-8"}]
            answer = self._send(
                "Fetch.fulfillRequest",
                requestId=params["requestId"],
                responseCode=200,
                responseHeaders=headers,
                body=body,
            )
            task = asyncio.create_task(answer)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        elif method == "Runtime.bindingCalled" and params["name"] == "report":
            news = json.loads(params["payload"])
            if news.get("what") == "ready":
                self._ready.set()
            else:
                self._on_news(news)

    async def evaluate(self, function: str, *args: Any) -> Any:
        """Call a function of the page, and wait for its promise."""
        text = f"{function}({', '.join(json.dumps(one) for one in args)})"
        answer = await self._send("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"].get("exception", answer)))
        return answer["result"].get("value")

    async def close(self) -> None:
        """Close the tab and all that belongs to it: its connections end without a Close frame."""
        self._browser.pages.pop(self._session, None)
        await self._browser.send("Target.disposeBrowserContext", browserContextId=self._context)


def _write_preferences(folder: Path) -> None:
    """No connections to servers before a page asks for them."""
    profile = folder / "Default"
    profile.mkdir()
    preferences = {"net": {"network_prediction_options": 2}}
    (profile / "Preferences").write_text(json.dumps(preferences), "utf-8")


def _sweep() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        pid = folder.name.removeprefix(FOLDERS).partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            shutil.rmtree(folder, ignore_errors=True)
