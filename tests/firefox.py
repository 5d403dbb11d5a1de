"""Firefox for tests, driven by WebDriver BiDi, which it speaks itself: no driver program is needed.

A subset of Selenium's interface, so that a test does the same in each browser.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import websocket

PATIENCE_S = 60
PREFERENCES = {
    "browser.download.folderList": 2,
    "browser.download.alwaysOpenPanel": False,
    "browser.helperApps.neverAsk.saveToDisk": "text/html,text/csv,application/toml,image/png,image/svg+xml",
    "network.dns.disabled": True,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}
"""Files are saved without a question, and no host is asked for."""


def firefox_missing() -> str | None:
    """Why there is no Firefox; None if there is one."""
    found = program() is not None
    return None if found else "firefox-esr not installed (`make test-tools`, as root)"


def program() -> str | None:
    return shutil.which("firefox-esr") or shutil.which("firefox")


class BrowserError(Exception):
    """The browser refused a command, or a script failed."""


class Firefox:
    """A headless Firefox with one page."""

    def __init__(self, saved: Path) -> None:
        self.saved = saved
        self._profile = tempfile.TemporaryDirectory(prefix="gargalo-firefox-")
        chosen = {**PREFERENCES, "browser.download.dir": str(saved)}
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in chosen.items()]
        Path(self._profile.name, "user.js").write_text("".join(lines), encoding="utf-8")
        self._process = subprocess.Popen(
            [
                *(str(program()), "--headless", "--no-remote", "--profile", self._profile.name),
                *("--remote-debugging-port", "0"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        listening = (line for line in self._process.stderr if "BiDi listening on" in line)
        url = next(listening).split()[-1]
        self._socket = websocket.create_connection(
            f"{url}/session", suppress_origin=True, timeout=PATIENCE_S
        )
        self._sent = 0
        self._log: list[dict[str, Any]] = []
        self.do("session.new", capabilities={})
        self.do("session.subscribe", events=["log.entryAdded"])
        self._context = self.do("browsingContext.getTree")["contexts"][0]["context"]

    def do(self, method: str, **params: Any) -> Any:
        """Send a command; return its result."""
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        while True:
            got = json.loads(self._socket.recv())
            if got.get("method") == "log.entryAdded":
                self._log.append(
                    {"level": got["params"]["level"].upper(), "message": got["params"]["text"]}
                )
            if got.get("id") == self._sent:
                if got["type"] == "error":
                    raise BrowserError(f"{method}: {got['message']}")
                return got["result"]

    def get(self, url: str) -> None:
        self.do("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def set_window_size(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self.do("browsingContext.setViewport", context=self._context, viewport=size)

    def execute_script(self, script: str, *given: Any) -> Any:
        done = self.do(
            "script.callFunction",
            functionDeclaration=f"function() {{ {script} }}",
            arguments=[a.reference if isinstance(a, Element) else remote(a) for a in given],
            target={"context": self._context},
            awaitPromise=True,
            userActivation=True,
        )
        if done["type"] == "exception":
            raise BrowserError(done["exceptionDetails"]["text"])
        return self._local(done["result"])

    def find_element(self, by: str, selector: str) -> Element:
        assert by == "css selector"
        found = self.execute_script("return document.querySelector(arguments[0])", selector)
        if found is None:
            raise BrowserError(f"nothing matches {selector}")
        return found

    def get_log(self, kind: str) -> list[dict[str, Any]]:
        """What the console has told since the last call."""
        assert kind == "browser"
        self.do("session.status")
        told, self._log = self._log, []
        return told

    def act(self, element: Element, *after: dict[str, Any]) -> None:
        """Put the pointer on the middle of an element, and go on from there."""
        element.execute("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })")
        origin = {"type": "element", "element": element.reference}
        at = {"type": "pointerMove", "x": 0, "y": 0, "origin": origin}
        source = {"type": "pointer", "id": "mouse", "actions": [at, *after]}
        self.do("input.performActions", context=self._context, actions=[source])

    def keys(self, text: str) -> None:
        """Press keys, one after the other."""
        pressed = [{"type": t, "value": k} for k in text for t in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": pressed}
        self.do("input.performActions", context=self._context, actions=[source])

    def quit(self) -> None:
        try:
            self.do("browser.close")
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.communicate()
            self._socket.close()
            self._profile.cleanup()

    def _local(self, value: dict[str, Any]) -> Any:
        match value:
            case {"type": "undefined" | "null"}:
                return None
            case {"type": "node", "sharedId": shared}:
                return Element(self, {"sharedId": shared})
            case {"type": "array" | "nodelist" | "htmlcollection", "value": values}:
                return [self._local(v) for v in values]
            case {"type": "object", "value": pairs}:
                return {k: self._local(v) for k, v in pairs}
            case {"type": "number", "value": str(name)}:
                return float(name.replace("Infinity", "inf"))
            case {"value": plain}:
                return plain
        raise BrowserError(f"a script cannot return {value['type']}")


@dataclass(frozen=True)
class Element:
    """An element of the page."""

    browser: Firefox
    reference: dict[str, str]

    def execute(self, script: str, *given: Any) -> Any:
        return self.browser.execute_script(script, self, *given)

    def click(self) -> None:
        down, up = ({"type": t, "button": 0} for t in ("pointerDown", "pointerUp"))
        self.browser.act(self, down, up)

    def send_keys(self, text: str) -> None:
        self.execute("if (arguments[0] !== document.body) arguments[0].focus()")
        self.browser.keys(text)

    def is_enabled(self) -> bool:
        return not self.execute("return arguments[0].disabled")

    def is_displayed(self) -> bool:
        return bool(self.execute("return arguments[0].checkVisibility()"))

    @property
    def text(self) -> str:
        return str(self.execute("return arguments[0].innerText")).strip()

    def get_attribute(self, name: str) -> Any:
        script = "const e = arguments[0], n = arguments[1]; return e.getAttribute(n) ?? e[n]"
        return self.execute(script, name)

    def get_property(self, name: str) -> Any:
        return self.execute("return arguments[0][arguments[1]]", name)


def remote(value: Any) -> dict[str, Any]:
    """Return a value as BiDi writes it."""
    match value:
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "boolean", "value": value}
        case str():
            return {"type": "string", "value": value}
        case int() | float():
            return {"type": "number", "value": value}
        case list() | tuple():
            return {"type": "array", "value": [remote(v) for v in value]}
        case dict():
            return {"type": "object", "value": [[k, remote(v)] for k, v in value.items()]}
    raise BrowserError(f"not an argument of a script: {value!r}")
