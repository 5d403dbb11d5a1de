// A run without a server: its parts are in the page.
"use strict";
(() => {
  const holders = Object.fromEntries(
    ["panels", "network", "story", "figures", "findings", "time", "instant"].map((id) => [id, document.getElementById(id)]));
  const viewer = Viewer.create(holders);
  const parts = JSON.parse(document.getElementById("data").textContent);
  viewer.begin();
  parts.forEach((part) => viewer.show(part));
  viewer.end();
  const seen = parts.find((p) => p.part === "packets");
  if (seen) {
    const packets = Packets.create(viewer, document.getElementById("packets"));
    packets.show(seen);
    viewer.zoom(seen.from_s, seen.to_s);
  }
  const about = parts.find((p) => p.part === "about");
  document.getElementById("told").textContent =
    `${about.description || "One run"}; ${about.seed === null ? "" : `seed ${about.seed}, `}Gargalo ${about.version}.`;
  // A heading sorts its table: up, then down; what is missing comes last.
  document.querySelectorAll(".report th").forEach((head) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    const body = head.closest("table").tBodies[0];
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const text = (row) => row.cells[head.cellIndex].textContent;
    const order = (a, b) => (value(a) === undefined || value(b) === undefined
      ? (value(a) === undefined) - (value(b) === undefined) || (up ? 1 : -1) * text(a).localeCompare(text(b))
      : (up ? 1 : -1) * (value(a) - value(b)));
    body.append(...[...body.rows].sort(order));
    head.closest("tr").querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
  }));
  document.addEventListener("keydown", (e) => {
    if (!e.target.closest("input, select, textarea")) viewer.key(e);
  });
})();
