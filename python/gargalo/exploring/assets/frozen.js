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
  const about = parts.find((p) => p.part === "about");
  document.getElementById("scenario").textContent = about.text;
  document.getElementById("told").textContent =
    `${about.description || "One run"}; seed ${about.seed}, Gargalo ${about.version}.`;
  document.addEventListener("keydown", (e) => {
    if (!e.target.closest("input, select, textarea")) viewer.key(e);
  });
})();
