"""A headless Chromium, driven over its DevTools websocket.

It draws WebGL by software, about one picture a second: deadlines are minutes.
"""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "There is no Chromium on this machine: `make browser` installs it."
PATIENCE = 300.0
"""How long anything may take [s]."""
_FLAGS = (
    "--headless=new", "--no-sandbox", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-dev-shm-usage",
    "--remote-debugging-port=0", "--no-first-run", "--disable-background-networking",
)  # fmt: skip


def find_chromium() -> str | None:
    """The path of a Chromium; None: there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One page of a headless browser."""

    def __init__(self, size: tuple[int, int] = (1280, 800)) -> None:
        path = find_chromium()
        assert path is not None, MISSING
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = Path(self._folder.name)
        self._process = subprocess.Popen(
            [path, *_FLAGS, f"--window-size={size[0]},{size[1]}",
             f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.errors: list[str] = []
        """What the page has complained about."""
        try:
            port = _wait(lambda: _port(profile), "Chromium's port")
            page = _wait(lambda: _page(port), "Chromium's page")
            self._socket = connect(page, max_size=None)
        except BaseException:
            self._process.kill()
            raise
        self._numbers = itertools.count(1)
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A call of the DevTools, and its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(message))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            self._note(answer)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
        raise TimeoutError(method)

    def _note(self, event: dict[str, Any]) -> None:
        params, method = event.get("params", {}), event.get("method")
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(json.dumps(params["args"])[:500])

    def open(self, url: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        return answer["result"].get("value")

    def screenshot(self, path: Path | None = None) -> bytes:
        """A picture of the page as it is, PNG."""
        data = base64.b64decode(self.call("Page.captureScreenshot")["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def click(self, label: str) -> bool:
        """Click the button, tab or checkbox with this label; whether there is one."""
        place = self.evaluate(
            "(() => { const all = [...document.querySelectorAll("
            "'button, label, [role=tab]')];"
            "const one = all.find(e => e.textContent.trim() === "
            f"{json.dumps(label)});"
            "if (!one) return null; one.scrollIntoView();"
            "const box = one.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        if not place:
            return False
        where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **where)
        return True

    def close(self) -> None:
        """End the browser."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        self._folder.cleanup()


def wait_until(
    condition: Callable[[], Any], what: str, within: float = PATIENCE
) -> Any:
    """What a condition gives once it is true; raises if it takes too long."""
    return _wait(condition, what, within)


def _wait(condition: Callable[[], Any], what: str, within: float = PATIENCE) -> Any:
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {within:g} s")


def _port(profile: Path) -> int | None:
    file = profile / "DevToolsActivePort"
    lines = file.read_text().split() if file.exists() else []
    return int(lines[0]) if lines else None


def _page(port: int) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as got:
            pages = json.load(got)
    except OSError:
        return None
    found = [one["webSocketDebuggerUrl"] for one in pages if one["type"] == "page"]
    return found[0] if found else None
