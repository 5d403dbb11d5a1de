"""Runs inside the lab's sandbox; started as a script of its own by `gargalo.lab`.

The sandbox can only be entered by a process of one thread, and importing data-frame libraries starts
some: so this imports nothing but the engine. It reads a request (JSON) from one descriptor and
writes events (JSON lines) to another; the standard streams are left to programs.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import signal
import sys
from typing import Any


def engine(path: str) -> Any:
    """Load the engine without its package."""
    spec = importlib.util.spec_from_file_location("_core", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not the engine")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def enter(core: Any, *, kept: bool) -> None:
    """Enter the sandbox; root gets a new network too, unless it may keep its own."""
    if kept:
        try:
            core.enter_sandbox(kept=True)
        except core.RunError:
            pass
        else:
            return
    core.enter_sandbox()


def interrupt(*_: Any) -> None:
    """End the run. A second signal, such as one from the terminal and one from our parent, has no effect."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def classes(core: Any, plugins: list[list[str]]) -> dict[str, Any]:
    """Return the congestion controls and the stacks of shared libraries, given as name and bytes in base 64."""
    libraries = [(file, base64.b64decode(data)) for file, data in plugins]
    controls = [c for library in libraries for c in core.native_congestion(*library)]
    stacks = [core.native_stack(*library) for library in libraries]
    return {
        "congestion": {c.name: c for c in controls},
        "stack": {s.name: s for s in stacks if s is not None},
    }


def main(request_fd: int, events_fd: int) -> int:
    """Do what the request says; the exit code is for a shell, events report the rest."""
    with os.fdopen(request_fd, encoding="utf-8") as file:
        request = json.load(file)
    core = engine(request["engine"])
    events = os.fdopen(events_fd, "w", encoding="utf-8", buffering=1)

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events, flush=True)

    def progress(*told: float | str) -> None:
        tell(progress=told)

    try:
        enter(core, kept=request.get("kept", False))
        if "shell" in request:
            # A handler, unlike SIG_IGN, is not inherited by the program, which must get its own Ctrl-C.
            signal.signal(signal.SIGINT, lambda *_: None)

            told: list[int] = []

            def watch(time_s: float, up: list[Any], down: list[Any], outside: int | None) -> None:
                if request["watch"]:
                    tell(link=[time_s, up, down])
                if outside is not None and not told:
                    told.append(outside)
                    tell(outside=outside)

            return int(core.shell(json.dumps(request["shell"]), watch))
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, interrupt)
        if "scripts" in request:
            core.scripts(
                json.dumps(request["scripts"]), lambda i, verdict: tell(script=[i, verdict])
            )
            return 0
        result = core.run(
            request["text"],
            request["path"],
            [tuple(pair) for pair in request["overrides"]],
            classes(core, request["plugins"]),
            progress=progress,
            output=request["output"],
            replace=request["replace"],
            world="lab",
            memory_limit=request["memory_limit"],
        )
    except core.ScenarioError as e:
        tell(error="scenario", message=str(e), diagnostics=[d.to_json() for d in e.diagnostics])
        return 2
    except core.RunError as e:
        tell(error="run", message=str(e))
        return 1
    tell(
        done=json.loads(result.json),
        keyboard_interrupt=result.keyboard_interrupt,
        directory=str(result.directory),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
