// The page of `gargalo explore`: a function of the scenario. Each change is a new run of the whole.
"use strict";
(async () => {
  const byId = (id) => document.getElementById(id);
  const holders = Object.fromEntries(
    ["panels", "network", "story", "figures", "findings", "time", "instant"].map((id) => [id, byId(id)]));
  const viewer = Viewer.create(holders);
  // The packets of a window; a newer window ends the run for an older one.
  let looking = null;
  const packets = Packets.create(viewer, byId("packets"), async (window) => {
    looking?.abort();
    looking = new AbortController();
    const response = await post("/api/packets", { text: state.text, beside: state.beside, ...window }, looking.signal);
    const found = await response.json();
    if (!response.ok) throw new Error(found.diagnostics.map((d) => d.message).join("; "));
    return found;
  });
  const state = {
    text: "", beside: "", panels: null, parts: [], kept: null, history: [], running: null,
  };

  const post = (path, body, signal) => fetch(path, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal,
  });

  // --- a scenario within a link

  const packed = async (value) => {
    const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  const unpacked = async (text) => {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  };

  // --- runs

  // Parts of an answer, as they come.
  const parts = async function* (response) {
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const pieces = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = pieces.pop();
      for (const piece of pieces) yield JSON.parse(piece);
    }
  };

  // Changes the scenario and runs it, and says whether it ran; a newer change ends an older run.
  const run = async (edits = [], rebuild = true, begun = performance.now()) => {
    state.running?.abort();
    const mine = new AbortController();
    state.running = mine;
    byId("status").textContent = "running";
    try {
      const request = { text: state.text, edits, beside: state.beside, panels: state.panels };
      if (edits.length) remember();
      const response = await post("/api/run", request, mine.signal);
      if (!response.ok) {
        wrong((await response.json().catch(() => null))?.diagnostics ?? [{ message: await response.text().catch(() => "refused") }]);
        return false;
      }
      const found = [];
      for await (const part of parts(response)) {
        if (state.running !== mine) return false;
        take(part, found, rebuild, begun);
      }
      return state.parts === found;
    } catch (error) {
      if (error.name === "AbortError") return false;
      wrong([{ message: `the server does not answer (${error.message}); is gargalo explore still running?` }]);
      return false;
    } finally {
      if (state.running === mine) {
        state.running = null;
        byId("progress").hidden = true;
      }
    }
  };

  const take = (part, found, rebuild, begun) => {
    if (part.part === "scenario") {
      state.text = part.text;
      if (document.activeElement !== byId("text")) byId("text").value = part.text;
      if (rebuild) form.show(part.plain);
      acts.show(part.plain);
      return;
    }
    if (part.part === "error") {
      wrong(part.diagnostics);
      return;
    }
    if (part.part === "progress") {
      byId("progress").hidden = false;
      byId("progress").value = part.fraction;
      return;
    }
    if (part.part === "about") {
      wrong([]);
      viewer.begin(ghosts());
      viewer.mark(null);
      byId("differing").hidden = true;
      found.length = 0;   // What a run had done so far, of which it now has more.
      if (part.partial) byId("status").textContent = "running, drawn so far";
    }
    found.push(part);
    if (part.part !== "done") {
      viewer.show(part);
      if (part.part === "panel") Papers.buttons(viewer, part.metric, papers);
      if (part.part === "panel" && !found.pictured) {
        found.pictured = true;
        document.body.dataset.pictured = String(Math.round(performance.now() - begun));
      }
      return;
    }
    viewer.end();
    state.parts = found;
    const about = found.find((p) => p.part === "about");
    packets.flows(about.flows);
    menu(about.metrics);
    const took = Math.round(performance.now() - begun);
    const lab = about.world === "lab" ? "measured in the lab, a change is simulated; " : "";
    byId("status").textContent = `${lab}${about.packets.toLocaleString("en")} packets, seed ${about.seed}, drawn in ${took} ms`;
    document.body.dataset.runs = String(Number(document.body.dataset.runs || 0) + 1);
    document.body.dataset.took = String(took);
    document.title = `${about.name} – gargalo explore`;
  };

  const wrong = (diagnostics) => {
    const lines = state.text.split("\n");
    const shown = diagnostics.flatMap((d) => {
      const place = d.line ? `line ${d.line}: ` : "";
      const told = [Viewer.el("p", {}, `${place}${d.message}`)];
      if (d.line && lines[d.line - 1] !== undefined) {
        told.push(Viewer.el("pre", {}, `${lines[d.line - 1]}\n${" ".repeat(Math.max((d.column ?? 1) - 1, 0))}^`));
      }
      if (d.help) told.push(Viewer.el("p", {}, d.help));
      return told;
    });
    byId("errors").replaceChildren(...shown);
    if (diagnostics.length) byId("status").textContent = "not run";
    document.body.dataset.errors = String(diagnostics.length);
  };

  // --- A and B

  const ghosts = () => new Map((state.kept?.parts ?? []).filter((p) => p.part === "panel").map((p) => [p.metric, p]));

  const keep = () => pin(state.kept ? null : { text: state.text, beside: state.beside, parts: state.parts });

  const pin = (kept) => {
    state.kept = kept;
    byId("pin").setAttribute("aria-pressed", String(Boolean(state.kept)));
    byId("pin").textContent = state.kept ? "forget A" : "keep as A";
    byId("differ").disabled = !state.kept;
    viewer.begin(ghosts());
    state.parts.filter((p) => p.part === "panel").forEach((p) => viewer.show(p));
    viewer.mark(null);
  };

  const differ = async () => {
    const b = { text: state.text, beside: state.beside };
    const a = { text: state.kept.text, beside: state.kept.beside };
    byId("status").textContent = "comparing";
    const response = await post("/api/difference", { a, b });
    const found = await response.json();
    if (!response.ok) {
      wrong(found.diagnostics);
      return;
    }
    if (found === null) {
      byId("status").textContent = "A and B do not differ in anything recorded";
      return;
    }
    viewer.mark(found.time_s);
    viewer.at(found.time_s);
    const packet = found.packet;
    byId("differing").hidden = packet?.flow == null;
    // Some packets before and after it.
    byId("differing").onclick = () => packets.lead(packet.flow, packet.time_s, Math.max(viewer.duration / 200, 1e-4));
    const told = (value) => (value === null ? "nothing" : value);
    const also = packet && found.table !== "packets" ? `; first packet: ${told(packet.first)} in A, ${told(packet.second)} in B` : "";
    byId("status").textContent = `first difference at ${Viewer.short(found.time_s)} s: ${found.subject}, ${found.column.replaceAll("_", " ")} ${told(found.first)} in A, ${told(found.second)} in B${also}`;
  };

  // --- what is changed and kept

  const remember = () => {
    if (state.history[state.history.length - 1] !== state.text) state.history.push(state.text);
    if (state.history.length > 200) state.history.shift();
    byId("undo").disabled = false;
  };

  const undo = () => {
    if (!state.history.length) return;
    state.text = state.history.pop();
    byId("text").value = state.text;
    byId("undo").disabled = !state.history.length;
    run();
  };

  const save = (name, content, type) => {
    const link = Viewer.el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const papers = {
    ask: (path, more) => post(path, { text: state.text, beside: state.beside, ...more }), save, wrong: (found) => wrong(found),
  };
  const named = (ending) => `${state.parts.find((p) => p.part === "about")?.name || "scenario"}.${ending}`;

  // All lines of all panels in long form.
  const csv = () => {
    const cell = (v) => (/[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v);
    const rows = [["panel", "unit", "line", "time_s", "value"]];
    for (const [metric, panel] of viewer.panels) {
      for (const line of panel.lines) {
        line.x.forEach((x, i) => rows.push([metric, panel.unit, line.name, x, Number.isNaN(line.y[i]) ? "" : line.y[i]]));
      }
    }
    return rows.map((r) => r.map(cell).join(",")).join("\n") + "\n";
  };

  // All panels below each other, as they are drawn.
  const png = () => {
    const plots = [...viewer.panels.values()].map((p) => [p.title, p.plot.ctx.canvas]);
    const ratio = devicePixelRatio;
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(...plots.map(([, c]) => c.width));
    canvas.height = plots.reduce((sum, [, c]) => sum + c.height + 24 * ratio, 0);
    const ctx = canvas.getContext("2d");
    const css = getComputedStyle(document.body);
    ctx.fillStyle = css.backgroundColor;
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.fillStyle = css.color;
    ctx.font = `${14 * ratio}px system-ui, sans-serif`;
    let y = 0;
    for (const [title, plot] of plots) {
      ctx.fillText(title, 8 * ratio, y + 17 * ratio);
      ctx.drawImage(plot, 0, y + 24 * ratio);
      y += plot.height + 24 * ratio;
    }
    canvas.toBlob((blob) => save(named("png"), blob, "image/png"));
  };

  const menu = (metrics) => {
    const shown = new Set(viewer.panels.keys());
    byId("more").replaceChildren(Viewer.el("option", { value: "" }, "…"),
      ...metrics.map((m) => Viewer.el("option", { value: m }, shown.has(m) ? `${m} (remove)` : m)));
  };

  byId("more").addEventListener("change", (e) => {
    const name = e.target.value;
    if (!name) return;
    const now = [...viewer.panels.keys()];
    state.panels = now.includes(name) ? now.filter((n) => n !== name) : [...now, name];
    run();
  });
  const PAUSE_MS = 40;   // Letters that come faster than this are one change.
  let typed = 0;
  byId("text").addEventListener("input", () => {
    clearTimeout(typed);
    remember();
    state.text = byId("text").value;
    const begun = performance.now();
    typed = setTimeout(() => run([], true, begun), PAUSE_MS);
  });
  byId("presets").addEventListener("change", (e) => begin(e.target.value));
  byId("pin").addEventListener("click", keep);
  byId("differ").addEventListener("click", differ);
  byId("undo").addEventListener("click", undo);
  byId("share").addEventListener("click", async () => {
    location.hash = `s=${await packed({ text: state.text, beside: state.beside, panels: state.panels })}`;
    await navigator.clipboard?.writeText(location.href).catch(() => null);
    byId("status").textContent = "the link is in the address, and copied where that is allowed";
  });
  byId("save-toml").addEventListener("click", () => save(named("toml"), state.text, "application/toml"));
  byId("save-csv").addEventListener("click", () => save(named("csv"), csv(), "text/csv"));
  byId("save-png").addEventListener("click", png);
  byId("save-page").addEventListener("click", async () => {
    const response = await post("/api/frozen", {
      text: state.text, beside: state.beside, panels: state.panels, ...packets.window(),
    });
    if (response.ok) save(named("html"), await response.text(), "text/html");
    else wrong((await response.json()).diagnostics);
  });
  document.addEventListener("keydown", (e) => {
    if (e.target.closest("input, select, textarea")) return;
    if (viewer.key(e) || acts.key(e) || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "a") keep();
    if (e.key === "u") undo();
  });

  // --- the beginning

  const given = await (await fetch("/api/start")).json();
  byId("presets").append(...given.presets.map((p) => Viewer.el("option", { value: p.name, title: p.about }, p.name)));
  const form = Form.create(given.schema, byId("form"), (edits, rebuild) => run(edits, rebuild));
  const acts = Acts.create(given.schema, viewer, byId("acts"), byId("act"), (edits) => run(edits));
  const begin = (name) => {
    const preset = given.presets.find((p) => p.name === name);
    Object.assign(state, { text: preset.text, beside: preset.name, panels: null });
    byId("presets").value = name;
    byId("text").value = state.text;
    return run();
  };
  const opened = async () => {
    if (!location.hash.startsWith("#s=")) return false;
    try {
      const shared = await unpacked(location.hash.slice(3));
      if (typeof shared.text !== "string") throw new Error("it has no scenario");
      Object.assign(state, { text: shared.text, beside: shared.beside ?? "", panels: shared.panels ?? null });
      byId("text").value = state.text;
      await run();
    } catch (error) {
      wrong([{ message: `the link cannot be read: ${error.message}` }]);
    }
    return true;
  };
  addEventListener("hashchange", opened);
  // A lesson begins with a question: nothing runs before it is answered.
  const learn = (lesson) => {
    const beside = lesson.name;
    Object.assign(state, { text: lesson.text, beside });
    byId("presets").value = beside;
    byId("text").value = state.text;
    form.show(lesson.plain);
    Lesson.create(lesson, byId("lesson"), {
      run: async (text = state.text, panels = state.panels) => {
        if (text !== state.text) remember();
        if (String(panels) !== String([...viewer.panels.keys()])) {
          viewer.panels.forEach((p) => p.remove());  // In the step's order: what is to be seen first.
          viewer.panels.clear();
        }
        Object.assign(state, { text, beside, panels });
        byId("text").value = text;
        return await run() ? state.parts : null;
      },
      keep: (kept) => pin(kept && { ...kept, beside }),
      at: (time) => viewer.at(time),
    });
  };
  if (await opened()) return;
  if (given.lesson) learn(given.lesson);
  else await begin(given.first);
})();
