"""The works that the studies repeat, item by item, and where each item stands.

What each work says is written here; what came out is taken from `docs/studies/results`, which the studies make.
`python -m gargalo_studies.works docs` writes `docs/works.md`.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo.reporting import VERDICTS
from gargalo.studies import STUDIES, pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gargalo.reporting import Verdict

LATER = "future work"
"""Where a work has what it leaves for later."""
NEW = re.compile(r"^New: |^\d+\. \(new\) ")
"""How the text of a claim of ours begins."""


@dataclass(frozen=True)
class Item:
    """A figure, a table, a claim or an idea for future work of a work."""

    place: str
    """Where the work has it: `claim 1`, `figure 4`, `table 4.3`, `future work`."""
    text: str
    """What it says."""
    claim: str = ""
    """The claim of the study that decides it."""
    reading: str = ""
    """The title of the reading that decides it, if it is not the stack of the work's time."""
    shows: Sequence[str] = ()
    """Which figures of the claim's evidence are shown, by the beginning of their labels."""
    experiments: Sequence[str] = ()
    """Those of the study that make it, if no claim decides it."""
    profile: str = ""
    """Of the study that has all of its levels, if it is not the one whose results are published."""
    shown: str = ""
    """Where it is shown, if no claim decides it, in Markdown."""


@dataclass(frozen=True)
class Work:
    """A published work."""

    title: str
    source: str
    study: str
    items: Sequence[Item]


HIGH_SPEED_PAGE = "studies/high-speed-tcp.md"
HIGH_SPEED_RESULTS = "studies/results/high-speed-tcp.md#tables"

NSQUIC = Work(
    "nsQUIC",
    "a master's dissertation of 2018 (USP)",
    "nsquic",
    (
        Item("claim 1", "QUIC finishes earlier than TCP CUBIC for every size, bandwidth, delay and "
            "loss.", "always-faster"),
        Item("claim 2", "Its advantage grows with bandwidth (near 3 times at 1 Gbit/s) and with delay "
            "(about 2 times at 200 ms).", "advantage-grows", shows=("1 Gbit/s", "200 ms")),
        Item("claim 3", "QUIC's time varies little up to 0.1% of loss, TCP's grows and varies.", "loss"),
        Item("claim 4", "With many nodes the fastest flow is QUIC's, the slowest TCP's.", "many-nodes"),
        Item("claim 5", "QUIC is fair to QUIC, TCP to TCP; QUIC takes more from TCP: 3.6 times its rate "
            "at 100 kB.", "fairness", shows=("quic + cubic, 100 kB",)),
        Item("figure: order", "QUIC, Hybla, the others, Vegas.", "order"),
        Item("printed rates", "QUIC: 4.17 and 11.07 Mbit/s for 1 MB, 9.96 for 210 MB, 90% and 23% "
            "of the link.", "figures-quic", shows=("5 Mbit/s, 1 MB", "1 Gbit/s, 1 MB")),
        Item("printed rates", "TCP CUBIC: 2.87 and 3.99 Mbit/s for 1 MB, 9.89 for 210 MB, 78% and "
            "10% of the link.", "figures-tcp", shows=("5 Mbit/s, 1 MB", "1 Gbit/s, 1 MB")),
        Item("text", "10 kB: QUIC and TCP differ by hundredths of a second; 1 kB: QUIC is slightly "
            "slower.", "small-transfers"),
        Item(LATER, "Reordering.", "reordering"),
        Item(LATER, "Pages of many small objects.", "small-objects"),
        Item(LATER, "0-RTT.", "zero-rtt"),
        Item(LATER, "Wireless and mixed networks.", "wireless"),
        Item(LATER, "BBR among the TCPs.", experiments=("simple",),
            shown="BBR is in every figure and table of the 13 TCPs, of 2018 and of today"),
    ),
)  # fmt: skip

TOOL = Work(
    "The tool paper of nsQUIC",
    "a tool paper of 2018 (USP)",
    "nsquic",
    (
        Item(
            "figure 4", "From 10 kB on QUIC finishes earlier than Hybla and NewReno.", "tool-sizes"
        ),
        Item(
            "figure 5",
            "On its dumbbell QUIC finishes earlier than both at every delay.",
            "tool-delays",
        ),
    ),
)

HIGH_SPEED = Work(
    "TCP variants for high speeds",
    "a master's dissertation of 2008 (UNICAMP)",
    "high-speed-tcp",
    (
        Item("claim 1", "16 connections fill 1 Gbit/s with 20% background, of all but Libra.", "sixteen-fill"),
        Item("claim 2", "Above 1 Gbit/s the share falls; more connections raise it, larger buffers "
            "hardly.", "above-a-gigabit"),
        Item("claim 3", "FAST and H-TCP scale best, Libra worst, below Reno.", "who-scales"),
        Item("claim 4", "Utilisation falls with delay, less so with background.", "delay"),
        Item("claim 5", "Libra, then CUBIC, harm Reno least, FAST and H-TCP most.", "reno-suffers"),
        Item("claim 6, tables of RTT fairness", "Indices of 0.8 and more; Libra first, H-TCP above "
            "0.9, BIC and Scalable last.", "rtt-fairness"),
        Item("claim 7", "BIC and CUBIC converge slowest, FAST and HSTCP fastest, H-TCP within 8 s.", "convergence"),
        Item("claim 8", "At 80% background CUBIC and FAST vary by 25%, Libra, HSTCP and H-TCP by "
            "40%, BIC and Scalable by more than 50%.", "stability"),
        Item("claim 9", "Parking lot: the same ranking, and H-TCP is fair to long round trips.", "parking-lot"),
        Item("text", "16 flows have 49.4 Mbit/s each.", "sixteen-fill", shows=("cubic, 16 connections",)),
        Item("text", "20 flows of BIC use 22% of 5 Gbit/s, 50 flows 57%.", experiments=("capacity", "contrast"),
            profile="full", shown=f"[beside ours]({HIGH_SPEED_PAGE}#windows)"),
        Item("figures", "Dumbbell: use against 2 to 256 connections, 155 Mbit/s to 10 Gbit/s, 10 to 200 ms, with "
            "20, 50 and 80% of background.", experiments=("connections", "capacity", "contrast", "delay"),
            profile="full", shown="figures of the report; `night` has the points that claims need"),
        Item("figures", "Dumbbell: Reno's share beside 0 to 40 flows.", experiments=("compatibility",),
            profile="full", shown="figures of the report; `night` has 0 and 20"),
        Item("tables", "RTT fairness: goodput of a flow, coefficient of variation and Jain's index at 20, 50 and "
            "80%.", experiments=("rtt-fairness",), shown=f"[published and here]({HIGH_SPEED_RESULTS}), and how far "
            "they agree"),
        Item("figures", "Fairness of 20 equal flows, and stability of their sum.", experiments=("same-fairness",),
            shown="figures of the report"),
        Item("figures", "Fairness of 20 flows that start 25 s apart.", experiments=("start-fairness",),
            profile="full", shown="figure of the report"),
        Item("table", "Dumbbell: two flows of every protocol together, with and without Libra.",
            experiments=("inter-fairness",), shown=f"[All protocols together, dumbbell]({HIGH_SPEED_RESULTS})"),
        Item("figures", "Parking lot: use against 4 to 256 connections and 155 Mbit/s to 10 Gbit/s.",
            experiments=("parking-scalability",), profile="full", shown="table of all cells of the report"),
        Item("figures", "Parking lot: Reno's share beside 0 to 40 flows.", experiments=("parking-compatibility",),
            profile="full", shown="figures of the report; `night` has 20"),
        Item("figures", "Parking lot: use and fairness of 20 flows, half at each round trip.",
            experiments=("parking-fairness",), shown="figures of the report"),
        Item("table", "Parking lot: two flows of every protocol together, one at each round trip.",
            experiments=("parking-inter",), shown=f"[All protocols together, parking lot]({HIGH_SPEED_RESULTS})"),
        Item("tables", "Ratings from very good to bad by five properties, for both topologies.",
            shown=f"[Ratings, dumbbell and parking lot]({HIGH_SPEED_RESULTS})"),
    ),
)  # fmt: skip

MPTCP = Work(
    "Schedulers and a path manager for MPTCP",
    "a master's dissertation of 2017 (UNIFEI)",
    "mptcp-schedulers",
    (
        Item("claim 1", "E1, 4 to 12% lost: LWS has about 7% more than LL with LIA, OLIA and wVegas.", "lossy-lws"),
        Item("claim 1", "There LTS has about 4% more.", "lossy-lts"),
        Item("claim 1", "There HSR has as much as LL; under BALIA all have.", "lossy-same"),
        Item("claim 2", "From 0 to 1% of loss goodput rises, but not with wVegas.", "rises"),
        Item("claim 3", "BALIA degrades fastest as loss grows.", "balia-degrades"),
        Item("claim 3", "wVegas is best overall.", "wvegas-best"),
        Item("claim 4", "E2: HSR and LTS gain about 2% over LL on average.", "average-gain"),
        Item("claim 4", "Exp4 under OLIA: HSR, LWS and LTS beat LL clearly.", "exp4-olia"),
        Item("claim 4", "Under BALIA LL wins on average; under wVegas all are alike.", "balia-ll"),
        Item("claim 5", "Exp5 to Exp8: schedulers are alike.", "lossy-alike"),
        Item("claim 6", "Single mesh at least doubles full mesh in Exp3 and Exp4 under OLIA and "
            "BALIA.", "single-doubles"),
        Item("claim 6", "There it is worse under LIA and wVegas.", "single-worse"),
        Item("claim 6", "In Exp5 to Exp8 it is worse.", "single-lossy"),
        Item("claim 7", "Full mesh without loss can be below one TCP.", "below-tcp"),
        Item("figures", "E1: goodput by loss, for 16 pairs of scheduler and control; by path.",
            experiments=("congested",), shown="figures of the report"),
        Item("figures", "E2: goodput of Exp1 to Exp8, for the same pairs; by path.", experiments=("mixed",),
            shown="figures of the report"),
        Item("figures 15 and 17", "Box plots of goodput by scheduler, in E1 and in E2.",
            experiments=("congested", "mixed"), shown="figures *spread by scheduler* of the report"),
        Item("figures", "Single mesh beside full mesh.", experiments=("mixed", "mesh"),
            shown="figures *by path* and *spread by path manager* of the report"),
        Item("text", "500 messages of 3 MB on one connection.", experiments=("messages",),
            shown="table of its cells in the report"),
        Item("text", "Duplicate acknowledgements by path.", experiments=("congested", "mixed"),
            shown="columns of the tables of cells in the report"),
        Item(LATER, "A scheduler that switches between LWS, LTS and HSR.", "adaptive"),
        Item(LATER, "TCP and UDP flows in the background of the paths.", "background"),
    ),
)  # fmt: skip

USERSPACE = Work(
    "BBR in user space",
    "a bachelor's monograph of 2023 (UnB)",
    "userspace-bbr",
    (
        Item("claim 1", "Over losses of 0 to 1% BBR has most, and leads above 0.1%.", "loss-lead"),
        Item("claim 1, means", "BBR 6.39, NewReno 4.66, CUBIC 4.61 Mbit/s.", "loss-means"),
        Item("claim 1", "At 1% BBR leads by a factor of 2.44.", "loss-factor"),
        Item("claim 2, means", "BBR 7.35, NewReno 5.26, CUBIC 4.95 Mbit/s.", "rate-means"),
        Item("claim 2", "At 6 Mbit/s BBR is not ahead: 73%, CUBIC 81%.", "rate-low"),
        Item("claim 2", "At 24 Mbit/s BBR has near 50%, the others near 24%.", "rate-high"),
        Item("claim 3, means", "Cellular traces: BBR 5.3, CUBIC 4.66, NewReno 3.71 Mbit/s.", "traces-order"),
        Item("claim 3", "BBR leads on T-Mobile's traces only.", "traces-lead"),
        Item("text", "BBR varies less from run to run: coefficients of 0.47 (BBR), 0.12 and 0.13.", "variation",
            shows=("BBR: coefficient", "NewReno: coefficient", "CUBIC: coefficient")),
        Item("set-up", "The lab and the simulator agree: the kernel's senders.", "fidelity",
            reading="today, in the lab"),
        Item("set-up", "The lab and the simulator agree: our stack.", "same-stack", reading="today, in the lab"),
        Item(LATER, "Pacing.", "pacing"),
        Item(LATER, "What its absence cost.", "pacing-cost"),
        Item(LATER, "Several flows that compete.", "competition"),
        Item(LATER, "Later versions of BBR: BBRv2, BBRv3.", "later-bbr"),
        Item(LATER, "Voice.", "calls"),
        Item(LATER, "Games.", experiments=("applications",), shown="[how long a game's packets take]"
            "(studies/results/userspace-bbr.md#claim-calls) beside each sender"),
        Item(LATER, "Real queues.", experiments=("queue", "applications"), shown="limits of 100 and 1,000 packets, "
            "CoDel, PIE and FQ-CoDel, in figures of the report"),
        Item(LATER, "Streaming.", "films"),
        Item(LATER, "Complex topologies.", "parking-lot"),
    ),
)  # fmt: skip

WORKS = (NSQUIC, TOOL, HIGH_SPEED, MPTCP, USERSPACE)

HEAD = """\
<!-- Made by `python -m gargalo_studies.works`; do not edit. -->

# The works, item by item

Every figure, table, claim and idea for future work of the five works that the [studies](studies.md) repeat: what came out with the
stack of the work's time and with today's, and where it stands. A claim that the first stack reproduces or contradicts is **inconclusive** where
something that the work leaves open changes the verdict: the readings are named. What a work leaves for later is built, and judged by a claim
of ours, which the row repeats; those are counted apart. The works are named by kind, year and university.

"""


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page from the results of the studies, by name."""
    text = HEAD + "\n".join(overview(results)) + "\n"
    for work in WORKS:
        text += f"\n## {work.title}\n\nSource: {work.source}; [what was done](studies/{work.study}.md).\n\n"
        found = results.get(work.study)
        if found is None:
            text += "Its results are not here.\n"
            continue
        text += f"`{found['command']}` makes all of it; published are {found['runs']:,} different runs.\n\n"
        text += "\n".join(pages.table(heads(found), rows(work, found))) + "\n"
    return text


def overview(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a table of how many items of each work stand where, and of how many claims of ours on what it leaves.

    Items that no claim decides are shown: a figure or a table of which no numbers are known.
    """
    counted = []
    for work in WORKS:
        found = results.get(work.study)
        cells = [work.title]
        for ours in (False, True):
            items = [i for i in work.items if (i.place == LATER) == ours]
            states = [
                standing(claim_of(found, i.claim), i.reading)[0] for i in items if i.claim and found
            ]
            counts = [*(states.count(v) for v in VERDICTS), sum(not i.claim for i in items)]
            cells += [str(len(items)), *(str(n) if found else "" for n in counts)]
        counted.append(cells)
    heads: list[str] = [*VERDICTS, "shown"]
    return pages.table(
        ["work", "published items", *heads, LATER, *(f"ours {h}" for h in heads)], counted
    )


def shown(found: Mapping[str, Any]) -> list[str]:
    """Return the readings that have a column: the stack of the work's time, and today's."""
    return pages.readings(found)[:2]


def heads(found: Mapping[str, Any]) -> list[str]:
    """Return the heads of the table of a work."""
    return ["item", "it says", "command", *shown(found), "stands"]


def rows(work: Work, found: Mapping[str, Any]) -> Iterable[list[str]]:
    """Return a row for each item."""
    columns = shown(found)
    for item in work.items:
        start = [item.place, item.text, f"`{command(work, item, found)}`"]
        if not item.claim:
            yield [*start, *[""] * len(columns), f"shown: {item.shown}"]
            continue
        claim = claim_of(found, item.claim)
        by_reading = {j["reading"]: j for j in pages.judgements(claim)}
        cells = [told(by_reading.get(r), item.shows) for r in columns]
        verdict, why = standing(claim, item.reading)
        link = f"studies/results/{work.study}.md#{pages.anchor(claim)}"
        state = f"[{pages.sign(verdict)}]({link})" + (f": {why}" if why else "")
        if item.place == LATER:
            start[1] += f" Ours: {NEW.sub('', claim['text'])}"
        yield [*start, *cells, state]


def command(work: Work, item: Item, found: Mapping[str, Any]) -> str:
    """Return what makes an item: the experiments of the study that it needs."""
    whole = (
        f"gargalo study {work.study} --profile {item.profile}" if item.profile else found["command"]
    )
    if item.claim:
        claims = {c.id: c for c in STUDIES[work.study].claims}
        needed = claims[item.claim].experiments
    else:
        needed = item.experiments
    if not needed:
        return whole
    return f"{whole} --set {shlex.quote(f'experiments={json.dumps(list(needed))}')}"


def claim_of(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the results of a claim."""
    return next(c for c in found["claims"] if c["id"] == name)


def told(judgement: Mapping[str, Any] | None, shows: Sequence[str]) -> str:
    """Return a verdict in a reading, with figures of its evidence."""
    if judgement is None:
        return ""
    lines = [] if isinstance(judgement["evidence"], str) else judgement["evidence"]
    figures = [
        f"{e['label']}: {pages.written(e)}"
        for e in lines
        if str(e["label"]).startswith(tuple(shows or [" "]))
    ]
    return "; ".join([pages.sign(judgement["verdict"]), *figures])


TURNED: Mapping[Verdict, str] = {
    "reproduced": "reproduced with",
    "contradicted": "contradicted with",
    "inconclusive": "not decided with",
}
"""How a reading is told that turns a verdict."""


def standing(claim: Mapping[str, Any], reading: str = "") -> tuple[Verdict, str]:
    """Return where a claim stands, and why.

    What the stack of its time, or the reading that is named, reproduces or contradicts is inconclusive if a
    hypothesis, a reading of what the work leaves open, does not.
    """
    first, *others = pages.judgements(claim)
    if reading:
        first = next(j for j in others if j["reading"] == reading)
        return first["verdict"], f"by the reading {reading}"
    if first["verdict"] == "inconclusive":
        return "inconclusive", first["explanation"]
    tried = {j["reading"]: j["verdict"] for j in others if j["tried"]}
    turning = [
        f"{told_as} {'; '.join(readings)}"
        for verdict, told_as in TURNED.items()
        if verdict != first["verdict"]
        and (readings := [r for r, v in tried.items() if v == verdict])
    ]
    if turning:
        return "inconclusive", ". ".join(turning)
    return first["verdict"], f"tried: {'; '.join(tried)}" if tried else ""


def stored(folder: Path) -> dict[str, Any]:
    """Return the results of all studies in `docs/studies/results`, by name."""
    return {
        f.stem: json.loads(f.read_text(encoding="utf-8")) for f in sorted(folder.glob("*.json"))
    }


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    docs = parser.parse_args().docs
    (docs / "works.md").write_text(page(stored(docs / "studies" / "results")), encoding="utf-8")


if __name__ == "__main__":
    main()
