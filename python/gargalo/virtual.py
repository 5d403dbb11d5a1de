"""Virtual time and seeded random bytes for libraries that read a clock or a random source of their own.

A stack of Python around such a library replaces what the library reads, in the library's own modules and permanently,
by the functions of this module:

```python
library.module.os = virtual.module(os, urandom=virtual.urandom)
library.module.time = virtual.module(time, time=virtual.time)
```

and marks its methods with `runs`. The functions then answer for the object that runs in this thread; outside of such a
call they are the usual ones, for whoever else uses the library.
"""

from __future__ import annotations

import datetime
import functools
import os
import threading
import time as _time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gargalo._core import QuicHost

__all__ = ["DATE", "is_running", "module", "runs", "time", "urandom", "utcnow"]

DATE = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)
"""The date at the start of a run."""


class _Running(threading.local):
    """The object that runs in this thread."""

    host: QuicHost | None = None
    now = 0.0


_running = _Running()
_F = TypeVar("_F", bound="Callable[..., Any]")


def runs(method: _F) -> _F:
    """Make the object the running one during a call of a method.

    The object has its host as `host`; the method's first argument is the time in seconds. Calls may be nested.
    """

    @functools.wraps(method)
    def call(self: Any, now: float, *args: Any, **kwargs: Any) -> Any:
        before = _running.host, _running.now
        _running.host, _running.now = self.host, now
        try:
            return method(self, now, *args, **kwargs)
        finally:
            _running.host, _running.now = before

    return cast("_F", call)


def is_running() -> bool:
    """Return whether an object runs in this thread."""
    return _running.host is not None


def urandom(length: int) -> bytes:
    """Return random bytes of the running object, as `os.urandom`."""
    return os.urandom(length) if _running.host is None else _running.host.random(length)


def time() -> float:
    """Return the seconds since the start of the run; outside of a call those of `time.time`."""
    return _time.time() if _running.host is None else _running.now


def utcnow() -> datetime.datetime:
    """Return the date in the run, which starts at `DATE`; outside of a call the current date."""
    if _running.host is None:
        return datetime.datetime.now(datetime.timezone.utc)
    return DATE + datetime.timedelta(seconds=_running.now)


def module(original: ModuleType, **names: Any) -> SimpleNamespace:
    """Return a stand-in for a module, with some of its names replaced."""
    return SimpleNamespace(**{**vars(original), **names})
