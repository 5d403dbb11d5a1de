"""QUIC stacks against each other: which there are, what each client does with each server, faults for their authors."""

from gargalo.interop.cases import CASES, Case
from gargalo.interop.model import Cell, Matrix, Stack
from gargalo.interop.running import matrix
from gargalo.interop.stacks import find, known

__all__ = ["CASES", "Case", "Cell", "Matrix", "Stack", "find", "known", "matrix"]
