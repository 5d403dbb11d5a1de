"""No two files of a crate depend on each other: what is read first can be understood without what is read later."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gargalo._toml import loads

CRATES = Path(__file__).parents[1] / "crates"

Module = tuple[str, ...]

#: Crates with cycles between files, and why.
CYCLIC = {
    "cc": "the registry lists the algorithms, and an algorithm declares its entry and its "
    "parameters in terms of the registry",
    "host": "the host has the state that listening, output and UDP sockets declare, and they are methods of the host",
    "script": "the calls of a script are methods of the runner, which has the sockets that they open",
    "tcp": "the sender says what the endpoint has room for in the endpoint's terms",
}

TOKEN = re.compile(r"\w+|::|[{},*]")
PATH = re.compile(r"(?<![\w:])((?:crate|self|super)\s*::)")
USE = re.compile(r"\buse\s+([^;]+);")
COMMENT = re.compile(r"//[^\n]*")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{")


def modules(source: Path) -> dict[Module, str]:
    """The code of each module that has a file, without comments and tests."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[-1] in ("lib", "mod"):
            parts = parts[:-1]
        if not any("tests" in p or "testing" in p for p in parts):
            text = COMMENT.sub("", file.read_text())
            tests = TESTS.search(text)
            found[parts] = text[: tests.start()] if tests else text
    return found


def paths(text: str) -> list[tuple[list[str], str]]:
    """The paths that a tree of imports or an expression begins with, and the name that each gets: `a::{b, c as d}`
    gives `a::b` as b and `a::c` as d."""
    tokens = TOKEN.findall(text)
    at = 0

    def tree(before: list[str]) -> Iterator[tuple[list[str], str]]:
        nonlocal at
        path = list(before)
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token == "{":
                while at < len(tokens) and tokens[at] != "}":
                    if tokens[at] == ",":
                        at += 1
                    else:
                        yield from tree(path)
                at += 1
                return
            path.append(token)
            if at < len(tokens) and tokens[at] == "::":
                at += 1
                continue
            name = token
            if tokens[at : at + 1] == ["as"]:
                name = tokens[at + 1]
                at += 2
            yield (path[:-1], path[-2]) if token == "self" and len(path) > 1 else (path, name)
            return

    return list(tree([]))


class Crate:
    """The modules of a crate, and what the names in them stand for."""

    def __init__(self, source: Path) -> None:
        self.code = modules(source)
        self.imports: dict[Module, dict[str, list[str]]] = {
            module: {name: path for use in USE.findall(text) for path, name in paths(use)}
            for module, text in self.code.items()
        }

    def target(self, module: Module, path: list[str], depth: int = 0) -> Module | None:
        """The module that declares what `path` names in `module`; None: it is in another crate."""
        at = module
        first, *rest = path
        if first == "crate":
            at = ()
        elif first == "super":
            at = module[:-1]
        elif first != "self":
            if (*module, first) not in self.code and first not in self.imports[module]:
                return None
            rest = path
        for i, name in enumerate(rest):
            if name == "super":
                at = at[:-1]
            elif (*at, name) in self.code:
                at = (*at, name)
            elif depth < 9 and path != (found := self.imports.get(at, {}).get(name, path)):
                return self.target(at, [*found, *rest[i + 1 :]], depth + 1)
            else:
                break
        return at

    def uses(self, module: Module) -> set[Module]:
        """The modules that a module names."""
        text = self.code[module]
        named = [path for use in USE.findall(text) for path, _ in paths(use)]
        bodies = USE.sub("", text)
        named += [
            path
            for m in PATH.finditer(bodies)
            for path, _ in paths(bodies[m.start() : m.start() + 200])[:1]
        ]
        named += [[name, "*"] for name in re.findall(r"(?<![\w:])([a-z]\w*)::", bodies)]
        return {found for path in named if (found := self.target(module, path)) is not None} - {
            module
        }

    def cycles(self) -> list[list[str]]:
        """Cycles between siblings: modules of one parent, each with all below it."""
        edges: dict[Module, dict[Module, None]] = {}
        for module in self.code:
            for used in sorted(self.uses(module)):
                common = 0
                while common < min(len(module), len(used)) and module[common] == used[common]:
                    common += 1
                if common < min(len(module), len(used)):
                    edges.setdefault(module[: common + 1], {})[used[: common + 1]] = None
        return [found for start in edges if (found := cycle(edges, start))]


def cycle(edges: dict[Module, dict[Module, None]], start: Module) -> list[str] | None:
    """The shortest way from a module to itself, if no module before it in the alphabet is on it."""
    ways = [[start]]
    seen = set()
    while ways:
        way = ways.pop(0)
        for after in edges.get(way[-1], {}):
            if after == start:
                return ["::".join(m) for m in [*way, start]] if min(way) == start else None
            if after not in seen:
                seen.add(after)
                ways.append([*way, after])
    return None


@pytest.mark.parametrize("name", sorted(p.name for p in CRATES.iterdir() if (p / "src").is_dir()))
def test_files_of_a_crate_do_not_depend_on_each_other_in_a_cycle(name: str) -> None:
    found = Crate(CRATES / name / "src").cycles()
    if name in CYCLIC:
        assert found, f"crates/{name} has no cycles any more: take it out of CYCLIC"
    else:
        assert not found, "; ".join(" -> ".join(way) for way in found)


def test_a_cycle_is_found(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "lib.rs").write_text("mod one;\nmod two;\npub use two::Second;\n")
    (tmp_path / "one/mod.rs").write_text("use std::fmt;\nmod below;\n")
    (tmp_path / "one/below.rs").write_text("use crate::{Second, fmt as f};\n")
    (tmp_path / "two.rs").write_text("pub struct Second;\nfn f() { super::one::g() }\n")
    assert Crate(tmp_path).cycles() == [["one", "two", "one"]]
    (tmp_path / "two.rs").write_text(
        "pub struct Second;\n#[cfg(test)]\nmod tests { use crate::one::g; }\n"
    )
    assert Crate(tmp_path).cycles() == []


def test_a_module_with_files_below_it_is_its_folder() -> None:
    sources = [*CRATES.rglob("*.rs"), *(CRATES.parent / "fuzz/src").rglob("*.rs")]
    beside = [str(f) for f in sources if any(f.with_suffix("").rglob("*.rs"))]
    assert not beside, f"move to mod.rs: {beside}"


def test_every_file_of_a_test_program_is_in_it() -> None:
    mains = sorted(CRATES.glob("*/tests/*/main.rs"))
    assert mains
    for main in mains:
        declared = set(re.findall(r"^mod (\w+);", main.read_text(), re.MULTILINE))
        files = {f.stem for f in main.parent.glob("*.rs")} - {"main"}
        assert files <= declared, f"{main.parent}: not declared in main.rs"


@pytest.mark.parametrize("crate", sorted(p.parent.name for p in CRATES.glob("*/Cargo.toml")))
def test_examples_in_the_documentation_of_a_crate_are_tested(crate):
    sources = (CRATES / crate / "src").rglob("*.rs")
    example = any(re.search(r"^\s*//[/!].*```", f.read_text(), re.MULTILINE) for f in sources)
    library = loads((CRATES / crate / "Cargo.toml").read_text()).get("lib", {})
    # To look for examples where there are none takes a second or two for each crate.
    assert library.get("doctest", True) == example
