"""`tomllib`, which Python 3.10 lacks; `tomli` is there with the type checker."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

__all__ = ["loads"]
