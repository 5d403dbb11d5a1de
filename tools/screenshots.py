"""Pictures of what people see, for the documentation: `make pictures`, or with names of pictures as arguments.

Commands in a terminal of 80 columns (docs/images/NAME.svg), and pages in headless Chromium (docs/images/NAME.png;
`make test-tools`). A test runs the commands again and compares; other tests use the same checks: no line is wider
than the terminal, nothing on a page is wider than the screen.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from explore_server import served
from gargalo.exploring.lessons import lesson, names
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from selenium.webdriver import Chrome

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH = 80
"""Columns of the terminal."""
SCREENS = (375, 1280)
"""Widths of a phone and of a small notebook, in pixels."""
OF_THE_MACHINE = "packets/s)"
"""A line with this says how fast the machine was."""


@dataclass(frozen=True)
class Terminal:
    """A command of a page, after those that come before it there."""

    page: str
    line: str
    """As it is on the page; `$ ` and this are the first line of the picture."""
    code: int = 0


@dataclass(frozen=True)
class Page:
    """A page that a command writes."""

    line: str
    file: str
    width: int = 1040
    height: int = 1290


TERMINALS = {
    "run": Terminal("tutorials/race", "gargalo run race.toml"),
    "mistake": Terminal("tutorials/race", "gargalo run race.toml --set flows.1.start=5", 2),
    "sweep": Terminal("tutorials/question", "gargalo sweep buffers.toml"),
    "evaluate": Terminal(
        "tutorials/congestion",
        "gargalo evaluate gentle.py --only bufferbloat --only versus-reno --output before",
    ),
}
EXPLORER = "explore"
"""The page of the explorer with its first example, the time at the first loss."""
LESSONS = "lessons"
"""Each lesson with one step answered: the lesson, and what it shows."""
ANSWERED = {
    "round-trips": 1,
    "bbr": 3,
    "head-of-line": 3,
    "l4s": 3,
    "starvation": 3,
    "own-controller": 3,
}
"""The step that is shown of a lesson; of others the second."""
PACKETS = "explore-packets"
"""The same page with packets around that loss."""
CRITERIA = ("bufferbloat", "loss-caused", "self-fairness", "versus-reno", "versus-cubic", "aqm",
            "varying-delay", "reordering", "path-change")  # fmt: skip
PAGES = {
    "report": Page(
        "gargalo sweep sweep.toml && gargalo report sweeps/against-cubic --output report.html",
        "report.html",
        height=1500,
    ),
    "scorecard": Page(
        f"gargalo evaluate vegas {' '.join(f'--only {c}' for c in CRITERIA)} --output card",
        "card/scorecard.html",
    ),
}
SWEEP = f"""\
name     = "against-cubic"
scenario = "{ROOT / "examples" / "cubic-vs-bbr.toml"}"
repeat   = 5
set      = {{ duration = "20s", "flows.0.start" = "100ms", "flows.1.start" = "0s" }}

[axes]
congestion = {{ key = "flows.1.transport.tcp.congestion", values = ["bbr", "cubic", "reno", "vegas"] }}
buffer     = {{ key = "topology.dumbbell.bottleneck.queue.droptail", values = ["0.25BDP", "0.5BDP", "1BDP", "2BDP", "4BDP"] }}
"""
"""Four congestion controls against CUBIC over five buffers, with five seeds each."""


# --- terminals


def in_terminal(
    words: Sequence[str], folder: Path, width: int, *, errors: bool = False
) -> tuple[int, str]:
    """Run a command whose standard output is a terminal, or its standard error; return exit code and what it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    drop = {"COLUMNS", "PYTHONUNBUFFERED", "NO_COLOR"}
    kept = {k: v for k, v in os.environ.items() if k not in drop}
    with subprocess.Popen(
        words,
        cwd=folder,
        stdin=theirs,
        stdout=subprocess.DEVNULL if errors else theirs,
        stderr=theirs if errors else subprocess.DEVNULL,
        env={**kept, "TERM": "xterm", "MPLBACKEND": "agg"},
    ) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    return process.returncode, seen.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # The other end is closed.
        return b""


def plain(shown: str) -> str:
    """Return what a terminal showed without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def wider(text: str, width: int) -> list[str]:
    """Return the lines that are wider than a terminal."""
    return [line for line in text.splitlines() if len(line.rstrip()) > width]


def files_of(page: str, folder: Path) -> None:
    """Write the files that a page has: blocks that begin with a comment of the name."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for name, block in re.findall(r"^```\w+\n(?=# ([\w.-]+)\n)(.*?)^```$", text, re.M | re.S):
        (folder / name).write_text(block, encoding="utf-8")


def shoot_terminal(shot: Terminal, folder: Path) -> str:
    """Return what a terminal shows after the command, with colours."""
    files_of(shot.page, folder)
    words = [sys.executable, "-m", "gargalo", *shlex.split(shot.line)[1:]]
    code, shown = in_terminal(words, folder, WIDTH, errors=shot.code != 0)
    if code != shot.code:
        raise SystemExit(f"{shot.line}: exit code {code}, not {shot.code}\n{shown}")
    if too_wide := wider(plain(shown), WIDTH):
        raise SystemExit(f"{shot.line}: wider than {WIDTH} columns\n{chr(10).join(too_wide)}")
    return shown


def svg(name: str, line: str, shown: str) -> str:
    """Draw a terminal; no font is loaded from elsewhere."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {line}", style="bold"), Text.from_ansi(shown.rstrip()), sep="\n")
        drawn = console.export_svg(title="", unique_id=name)
    return re.sub(r" *@font-face \{.*?\}\n|<!--.*?-->", "", drawn, flags=re.DOTALL)


def lines_of(drawn: str) -> list[str]:
    """Return the lines of text in the picture of a terminal."""
    rows: dict[str, str] = {}
    found = re.findall(
        r'<text class="[^"]*r\d+" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>([^<]*)<',
        drawn,
    )
    for x, y, length, escaped in found:
        text = unescape(escaped).replace("\xa0", " ")
        column = round(float(x) * len(text) / float(length))
        rows[y] = rows.get(y, "").ljust(column) + text
    return [row.strip() for row in rows.values()]


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two terminals show the same, spaces and the speed of the machine aside."""

    def words(lines: Sequence[str]) -> list[str]:
        return [w for line in lines if OF_THE_MACHINE not in line for w in line.split()]

    return words(one) == words(other)


# --- pages


def browser() -> Chrome:
    """Start headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if missing:
        raise SystemExit(f"{' and '.join(missing)} not installed: make test-tools, as root")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def resize(driver: Chrome, width: int, height: int) -> None:
    """Change the size of the screen, in pixels; returns when the page has had a frame to follow in."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    # What a page does when its parts change size happens at the next frame, not at the next script.
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def show(driver: Chrome, page: Path, width: int, height: int, *, drawn: bool) -> None:
    """Open a page on a screen; with `drawn` wait until it says that its figures are drawn."""
    resize(driver, width, height)
    driver.get(page.resolve().as_uri())
    if drawn:
        wait(driver, "document.documentElement.dataset.ready === 'yes'", str(page))


def wait(driver: Chrome, condition: str, what: str) -> None:
    """Wait until a page is drawn."""
    end = time.monotonic() + 60
    while not driver.execute_script(f"return {condition}"):
        if time.monotonic() > end:
            raise SystemExit(f"{what} is not drawn after a minute")
        time.sleep(0.1)


def overflow(driver: Chrome) -> list[str]:
    """Return what makes the page that is shown wider than its screen; nothing if it is not."""
    return driver.execute_script(
        """const wide = document.documentElement.clientWidth;
           if (document.documentElement.scrollWidth <= wide) return [];
           return [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > wide + 1)
             .map(e => `${e.tagName}.${e.className} ends at ${Math.round(e.getBoundingClientRect().right)}`).slice(0, 5)
             .concat([`the page is ${document.documentElement.scrollWidth} wide on a screen of ${wide}`]);"""
    )


def photograph(driver: Chrome, picture: Path, place: dict[str, float] | None = None) -> None:
    """Save what the screen shows as PNG, or a rectangle of it."""
    clip = {} if place is None else {"clip": {**place, "scale": 1}}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", **clip})
    picture.write_bytes(base64.b64decode(shot["data"]))


def make(page: Page, folder: Path) -> Path:
    """Do what writes a page; return its file."""
    (folder / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    line = page.line.replace("gargalo ", f"{shlex.quote(sys.executable)} -m gargalo ")
    subprocess.run(["sh", "-c", line], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / page.file


def explore(picture: Path) -> None:
    """Photograph the explorer, and its packets in another picture."""
    with served() as link:
        driver = browser()
        try:
            for width in SCREENS:
                resize(driver, width, 900)
                driver.get(link)
                wait(driver, "document.body.dataset.runs === '1'", "the explorer")
                if beyond := overflow(driver):
                    raise SystemExit(f"{EXPLORER} at {width}: {beyond}")
            driver.execute_script(
                "document.querySelector('#story [data-time]:not([data-time=\"0\"])').click();"
                "scrollTo(0, 0)"
            )
            photograph(driver, picture)
            driver.execute_script("document.querySelector('#packets button').click()")
            wait(driver, "document.body.dataset.packets", "packets")
            # As a person does: + zooms at the time that the story has led to.
            had = driver.execute_script("return document.body.dataset.packets")
            driver.execute_script("document.activeElement.blur()")
            driver.find_element("css selector", "body").send_keys("+" * 7)
            wait(driver, f"document.body.dataset.packets !== '{had}'", "the zoom")
            driver.execute_script("scrollTo(0, 0)")
            photograph(driver, picture.with_name(f"{PACKETS}.png"))
        finally:
            driver.quit()


def lessons(folder: Path) -> None:
    """Photograph a step of each lesson."""
    driver = browser()
    try:
        for name in names():
            with served("--lesson", name, folder=folder) as link:
                learn(driver, link, name)
    finally:
        driver.quit()


def learn(driver: Chrome, link: str, name: str) -> None:
    """Answer a lesson up to the step that is shown, and photograph it."""
    for width in SCREENS:
        resize(driver, width, 900)
        driver.get("about:blank")
        driver.get(link)
        wait(driver, "!document.getElementById('lesson').hidden", name)
        if beyond := overflow(driver):
            raise SystemExit(f"{name} at {width}: {beyond}")
    resize(driver, 1480, 1400)
    shown = ANSWERED.get(name, 2)
    for number, step in enumerate(lesson(name).steps[:shown], 1):
        if number > 1:
            driver.execute_script("document.querySelector('#lesson .next').click()")
        driver.execute_script(
            "document.querySelector(`#lesson input[value=${arguments[0]}]`).click();"
            "document.querySelector('#lesson .answer').click()",
            step.right,
        )
        wait(driver, f"document.getElementById('lesson').dataset.shown === '{number}'", name)
    place = driver.execute_script(
        "document.activeElement.blur(); scrollTo(0, 0);"
        "const all = document.querySelector('.middle').getBoundingClientRect();"
        "const last = document.querySelector('.panel').getBoundingClientRect();"
        "return { x: all.x, y: all.y, width: all.width, height: last.bottom - all.y }"
    )
    photograph(driver, IMAGES / "lessons" / f"{name}.png", place)


def main() -> None:
    """Take them."""
    known = [*TERMINALS, *PAGES, EXPLORER, LESSONS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"{', '.join(known)}; default: all")
    for name in parser.parse_args().names or known:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            if name in TERMINALS:
                picture = IMAGES / f"{name}.svg"
                shot = TERMINALS[name]
                drawn = svg(name, shot.line, shoot_terminal(shot, folder))
                # What only the machine's speed changed is left.
                if not picture.exists() or not same(
                    lines_of(drawn), lines_of(picture.read_text(encoding="utf-8"))
                ):
                    picture.write_text(drawn, encoding="utf-8")
            elif name in PAGES:
                picture = IMAGES / f"{name}.png"
                page = PAGES[name]
                file = make(page, folder)
                driver = browser()
                try:
                    for width in (*SCREENS, page.width):
                        show(driver, file, width, page.height, drawn=True)
                        if beyond := overflow(driver):
                            raise SystemExit(f"{name} at {width}: {beyond}")
                    photograph(driver, picture)
                finally:
                    driver.quit()
            elif name == EXPLORER:
                picture = IMAGES / f"{name}.png"
                explore(picture)
            elif name == LESSONS:
                picture = IMAGES / name
                picture.mkdir(exist_ok=True)
                lessons(folder)
            else:
                raise SystemExit(f"no picture {name}; there are {', '.join(known)}")
            print(picture.relative_to(ROOT))


if __name__ == "__main__":
    main()
