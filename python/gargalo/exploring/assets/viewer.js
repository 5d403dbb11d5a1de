// What is shown of a run: panels over one time axis, the network at the cursor, the figures and the story.
// The explorer and frozen pages both use it; it draws what it is given and asks for nothing.
"use strict";
const Viewer = (() => {
  const HEIGHT = 190;
  const GHOST = 0.35;
  const DASHES = { solid: [], dash: [8, 5], dot: [2, 4], dashdot: [8, 4, 2, 4], longdash: [14, 6], longdashdot: [14, 5, 2, 5] };
  const ROW = 46;

  const el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((c) => c !== null && c !== undefined));
    return made;
  };
  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  // Doubles, little-endian, in base64.
  const numbers = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Float64Array(bytes.buffer);
  };

  const short = (value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  };

  // The place of the last instant that is not after a time; -1 before the first.
  const before = (x, time) => {
    let low = 0;
    let high = x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };
  const valueAt = (line, time) => {
    const place = before(line.x, time);
    return place < 0 ? null : line.y[place];
  };

  // Where a value stands alone between gaps, no line shows it. What only other lines have is undefined here.
  const alone = (plot, series) => {
    const y = plot.data[series];
    const own = [...y.keys()].filter((i) => y[i] !== undefined);
    const known = (i) => (y[i] ?? null) !== null;
    return own.filter((at, k) => known(at) && !known(own[k - 1]) && !known(own[k + 1]));
  };

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // A piece of a line, as it is drawn.
  const sample = (colour, dash) => svg("svg", { class: "sample", "aria-hidden": "true" },
    svg("line", { x1: 0, y1: 4, x2: 28, y2: 4, stroke: colour, "stroke-width": 3, "stroke-dasharray": (DASHES[dash] || []).join(" ") }));

  const read = (line) => ({ ...line, x: numbers(line.x), y: numbers(line.y) });

  class Panel {
    constructor(viewer, part, ghost) {
      this.viewer = viewer;
      this.title = part.title;
      this.unit = part.unit;
      const heading = el("h3", {}, part.title);
      this.notes = el("p", { class: "notes" });
      this.holder = el("div", { class: "plot" });
      this.legend = el("ul", { class: "legend" });
      this.root = el("section", { class: "panel", "data-metric": part.metric, "aria-label": part.title },
        heading, this.legend, this.holder, this.notes);
      this.show(part, ghost);
    }

    show(part, ghost) {
      this.part = part;
      this.ghost = ghost || null;
      this.lines = part.lines.map(read);
      this.references = part.references.map(read);
      this.ghosts = ghost ? ghost.lines.map(read) : [];
      this.draw();
    }

    // All lines, what they are compared with last; of stacked areas the sums.
    drawn() {
      const own = this.part.stacked ? stacked(this.lines) : this.lines;
      return [
        ...this.ghosts.map((line) => ({ ...line, ghost: true })),
        ...own,
        ...this.references.map((line) => ({ ...line, reference: true })),
      ];
    }

    draw() {
      this.plot?.destroy();
      const lines = this.drawn();
      const ink = style("--ink");
      const grid = style("--grid");
      const series = lines.map((line) => ({
        label: line.name,
        stroke: line.reference ? style("--reference") : line.ghost ? faded(line.colour) : line.colour,
        width: line.ghost || line.reference ? 1.2 : 1.6,
        dash: DASHES[line.dash] || [],
        ...(this.part.stacked && !line.reference && !line.ghost ? { fill: `${line.colour}66` } : {}),
        ...(line.step ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
        points: { show: false, filter: alone },
      }));
      const data = lines.length ? uPlot.join(lines.map((line) => [
        Array.from(line.x), Array.from(line.y, (v) => (Number.isNaN(v) ? null : v)),
      ])) : [[0, 1]];
      const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
      this.plot = new uPlot({
        width: Math.max(this.holder.clientWidth || 600, 200),
        height: HEIGHT,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false, range: () => this.viewer.span }, y: { range: (u, least, most) => [Math.min(0, least ?? 0), (most > 0 ? most : 1) * 1.05] } },
        axes: [{ ...axis, label: "time (s)", labelSize: 18, size: 34 }, { ...axis, size: 56, label: this.unit || " ", labelSize: 16 }],
        series: [{}, ...series],
        hooks: {
          setCursor: [(u) => {
            if (u.cursor.left >= 0) this.viewer.point(u.posToVal(u.cursor.left, "x"));
          }],
          setSelect: [(u) => {
            if (u.select.width > 2) {
              const from = u.posToVal(u.select.left, "x");
              const until = u.posToVal(u.select.left + u.select.width, "x");
              u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              this.viewer.zoom(from, until);
            }
          }],
          draw: [(u) => this.marks(u)],
        },
      }, data, this.holder);
      this.plot.over.addEventListener("dblclick", () => this.viewer.zoom(null));
      this.cursor = el("div", { class: "cursor" });
      this.plot.over.append(this.cursor);
      const notes = [...this.part.notes];
      const thinned = this.lines.filter((line) => line.thinned_from);
      if (thinned.length) notes.push("least and greatest value of each pixel's data are drawn");
      this.notes.textContent = notes.join("; ");
      this.tell();
    }

    // The measured window, and the first difference of two runs.
    marks(u) {
      const { ctx, bbox } = u;
      const upright = (time, colour, dash) => {
        const at = Math.round(u.valToPos(time, "x", true));
        if (at < bbox.left || at > bbox.left + bbox.width) return;
        ctx.strokeStyle = colour;
        ctx.setLineDash(dash);
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
      };
      ctx.save();
      ctx.lineWidth = devicePixelRatio;
      if (this.part.window) this.part.window.forEach((t) => upright(t, style("--reference"), [4, 4]));
      this.viewer.acts.forEach((t) => upright(t, style("--reference"), [1, 4]));
      if (this.viewer.differs !== null) upright(this.viewer.differs, style("--warning"), [6, 3]);
      ctx.restore();
    }

    // The cursor, and the values of all lines there.
    tell() {
      const time = this.viewer.time;
      const left = time === null ? -1 : this.plot.valToPos(time, "x");
      this.cursor.hidden = left < 0 || left > this.plot.over.clientWidth;
      this.cursor.style.left = `${left}px`;
      if (this.part.counted) return this.count(time);
      const rows = [...this.lines, ...this.references].map((line) => {
        const mark = sample(this.references.includes(line) ? style("--reference") : line.colour, line.dash);
        const value = time === null ? null : valueAt(line, time);
        const told = time === null ? "" : `: ${short(value)}${this.unit && value !== null ? ` ${this.unit}` : ""}`;
        return el("li", {}, mark, `${line.name}${told}`);
      });
      this.legend.replaceChildren(...rows);
    }

    // How many lines of each name there are at an instant.
    count(time) {
      const names = new Map();
      for (const line of this.lines) {
        if (!names.has(line.name)) names.set(line.name, { line, many: 0 });
        if (time !== null && Number.isFinite(valueAt(line, time) ?? NaN)) names.get(line.name).many += 1;
      }
      this.legend.replaceChildren(...[...names].map(([name, { line, many }]) => {
        const mark = sample(line.colour, line.dash);
        return el("li", {}, mark, time === null ? name : `${name}: ${many} ${this.part.counted}`);
      }));
    }

    resize() {
      const width = this.holder.clientWidth;
      if (width && this.plot && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: HEIGHT });
    }

    remove() {
      this.plot?.destroy();
      this.root.remove();
    }
  }

  const faded = (colour) => colour + Math.round(GHOST * 255).toString(16).padStart(2, "0");

  // Areas on top of each other: each line with the sum of those before it, the last first.
  const stacked = (lines) => {
    const sums = [];
    let had = null;
    for (const line of lines) {
      const y = Float64Array.from(line.y, (v, i) => v + (had ? had[i] ?? 0 : 0));
      sums.push({ ...line, y });
      had = y;
    }
    return sums.reverse();
  };

  // Columns by the number of links from where the first flow begins.
  const columns = (network) => {
    const near = new Map(network.nodes.map((n) => [n.name, []]));
    for (const link of network.links) {
      near.get(link.from)?.push(link.to);
      near.get(link.to)?.push(link.from);
    }
    const starts = [...new Set(network.ends.map((e) => e.from))].filter((n) => near.has(n));
    const goals = new Set(network.ends.map((e) => e.to));
    const distance = new Map();
    const queue = starts.filter((n) => !goals.has(n));
    if (!queue.length && network.nodes.length) queue.push(starts[0] ?? network.nodes[0].name);
    queue.forEach((n) => distance.set(n, 0));
    while (queue.length) {
      const node = queue.shift();
      for (const next of near.get(node)) {
        if (!distance.has(next)) {
          distance.set(next, distance.get(node) + 1);
          queue.push(next);
        }
      }
    }
    const found = [];
    for (const node of network.nodes) {
      const at = distance.get(node.name) ?? 0;
      (found[at] ||= []).push(node);
    }
    return found.map((c) => c || []);
  };

  class Network {
    constructor(viewer) {
      this.viewer = viewer;
      this.root = el("figure", { class: "network" });
    }

    show(network) {
      this.network = network;
      this.directions = network.directions.map((d) => ({
        ...d, samples: Object.fromEntries(Object.entries(d.samples).map(([k, line]) => [k, read(line)])),
      }));
      const layers = columns(network);
      const tall = Math.max(...layers.map((c) => c.length), 1);
      const width = Math.max(layers.length, 2) * 170;
      const height = Math.min(Math.max(tall * ROW, 80), 420);
      const places = new Map();
      layers.forEach((nodes, x) => nodes.forEach((node, y) => places.set(node.name, {
        x: (x + 0.5) * width / layers.length, y: (y + 0.5) * height / nodes.length,
      })));
      const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "the network at the cursor" });
      this.lines = new Map();
      for (const link of network.links) {
        const [a, b] = [places.get(link.from), places.get(link.to)];
        if (!a || !b) continue;
        const line = svg("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: "link" });
        const busy = this.directions.filter((d) => d.link === link.name);
        const text = svg("text", { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 - 6, class: "told" });
        this.lines.set(link.name, { line, text, busy });
        drawing.append(line, text);
      }
      for (const node of network.nodes) {
        const at = places.get(node.name);
        if (!at) continue;
        drawing.append(
          svg("rect", { x: at.x - 38, y: at.y - 11, width: 76, height: 22, rx: node.host ? 4 : 11, class: node.host ? "host" : "router" }),
          svg("text", { x: at.x, y: at.y + 4, class: "name" }, node.name.length > 11 ? `${node.name.slice(0, 10)}…` : node.name),
        );
      }
      this.said = el("figcaption", {});
      this.root.replaceChildren(drawing, this.said);
      this.tell();
    }

    tell() {
      if (!this.lines) return;
      const time = this.viewer.time ?? this.viewer.duration;
      const told = [];
      for (const [name, { line, text, busy }] of this.lines) {
        const found = busy.map((d) => {
          const at = (column) => valueAt(d.samples[column], time);
          return { ...d, used: at("utilization"), queued: at("queue_packets"), waits: at("queue_delay_s"), dropped: at("dropped_packets") };
        });
        const used = Math.max(0, ...found.map((d) => d.used ?? 0));
        line.style.strokeWidth = 1.5 + 5 * Math.min(used, 1);
        line.classList.toggle("full", used > 0.95);
        const queued = found.reduce((sum, d) => sum + (d.queued ?? 0), 0);
        text.textContent = queued ? `${short(queued)} packets` : "";
        for (const d of found) {
          if (d.queued || d.dropped || (d.used ?? 0) > 0.5) {
            told.push(`${name} ${d.direction}: ${d.used === null ? "" : `${Math.round(d.used * 100)}% used, `}${short(d.queued)} packets in the queue (${short((d.waits ?? 0) * 1e3)} ms), ${short(d.dropped)} dropped since the start`);
          }
        }
      }
      this.said.textContent = `At ${short(time)} s. ${told.slice(0, 4).join("; ") || "No queue"}.`;
    }
  }

  class Made {
    // `holders` are elements: panels, network, story, figures, findings; `time` is a slider.
    constructor(holders) {
      this.holders = holders;
      this.panels = new Map();
      this.followers = []; // Whatever else shows the cursor and the zoom: tell, zoomed, draw.
      this.time = null;
      this.differs = null;
      this.acts = [];           // Instants at which the scenario says that something happens.
      this.moved = () => null;  // Called when the part that is shown is another.
      this.duration = 1;
      this.span = [0, 1];
      this.network = new Network(this);
      holders.network.replaceChildren(this.network.root);
      holders.time.addEventListener("input", () => this.at(Number(holders.time.value)));
      new ResizeObserver(() => {
        this.panels.forEach((p) => p.resize());
        this.moved();
      }).observe(holders.panels);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...this.panels.values(), ...this.followers].forEach((p) => p.draw()));
    }

    begin(ghosts = new Map()) {
      this.ghosts = ghosts;
      this.fresh = new Set();
    }

    show(part) {
      if (part.part === "about") this.about(part);
      else if (part.part === "network") this.network.show(part);
      else if (part.part === "panel") this.panel(part);
      else if (part.part === "story") this.story(part);
    }

    end() {
      for (const [metric, panel] of this.panels) {
        if (!this.fresh.has(metric)) {
          panel.remove();
          this.panels.delete(metric);
        }
      }
      this.moved();
    }

    about(part) {
      const zoomed = this.span[0] > 0 || this.span[1] < this.duration;
      this.duration = part.duration_s || 1;
      if (!zoomed || this.span[1] > this.duration) this.span = [0, this.duration];
      const slider = this.holders.time;
      slider.max = this.duration;
      slider.step = this.duration / 1000;
      if (this.time !== null && this.time > this.duration) this.time = this.duration;
      slider.value = this.time ?? this.duration;
      const { columns: heads, rows } = part.figures;
      const table = el("table", {},
        el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((c, i) => el(i ? "td" : "th", i ? {} : { scope: "row" }, c))))));
      const more = part.left_out ? el("p", {}, `and ${part.left_out} more flows`) : null;
      this.holders.figures.replaceChildren(table, ...(more ? [more] : []));
      const told = [...part.findings.map((f) => f.text), ...part.warnings];
      this.holders.findings.replaceChildren(...(told.length
        ? [el("ul", {}, ...told.map((t) => el("li", {}, t)))]
        : [el("p", {}, "The auditor found nothing that contradicts itself.")]));
      this.holders.findings.dataset.hash = part.results_hash ?? "";
    }

    panel(part) {
      this.fresh.add(part.metric);
      const had = this.panels.get(part.metric);
      const ghost = this.ghosts.get(part.metric);
      if (had) had.show(part, ghost);
      else {
        const made = new Panel(this, part, ghost);
        this.panels.set(part.metric, made);
        this.holders.panels.append(made.root);
        made.resize();
      }
    }

    story(part) {
      const groups = new Map();
      for (const s of part.sentences) {
        if (!groups.has(s.heading)) groups.set(s.heading, []);
        groups.get(s.heading).push(s);
      }
      const shown = [];
      for (const [heading, sentences] of groups) {
        shown.push(el("h3", {}, heading), el("ul", {}, ...sentences.map((s) => el("li", {}, s.time_s === null
          ? s.text
          : el("button", { type: "button", class: "instant", "data-time": s.time_s, onclick: () => this.at(s.time_s) }, s.text)))));
      }
      this.holders.story.replaceChildren(...shown);
    }

    // The cursor of all panels, from one of them.
    point(time) {
      const inside = Math.min(Math.max(time, 0), this.duration);
      if (inside !== this.time) this.at(inside);
    }

    at(time) {
      this.time = time;
      this.holders.time.value = time;
      this.holders.time.setAttribute("aria-valuetext", `${short(time)} s`);
      this.holders.instant.textContent = `${time.toFixed(3)} s`;
      this.network.tell();
      if (time < this.span[0] || time > this.span[1]) {
        const width = this.span[1] - this.span[0];
        const from = Math.min(Math.max(time - width / 2, 0), this.duration - width);
        this.zoom(from, from + width);
      }
      for (const panel of this.panels.values()) panel.tell();
      for (const follower of this.followers) follower.tell();
    }

    zoom(from, until) {
      const least = this.duration / 1e6;
      this.span = from === null || until - from < least ? [0, this.duration]
        : [Math.max(from, 0), Math.min(until, this.duration)];
      for (const panel of this.panels.values()) {
        panel.plot.setScale("x", { min: this.span[0], max: this.span[1] });
        panel.tell();
      }
      for (const follower of this.followers) follower.zoomed();
      this.moved();
    }

    // Where an instant is in the pictures: from the left edge of an element, and of a place on the screen.
    get over() {
      return this.panels.values().next().value?.plot.over.getBoundingClientRect() ?? this.holders.panels.getBoundingClientRect();
    }

    leftOf(time, element) {
      const { left, width } = this.over;
      return left - element.getBoundingClientRect().left + width * (time - this.span[0]) / (this.span[1] - this.span[0]);
    }

    timeAt(x) {
      const { left, width } = this.over;
      return this.span[0] + (this.span[1] - this.span[0]) * (x - left) / width;
    }

    mark(time) {
      this.differs = time;
      for (const follower of this.followers) follower.draw();
      for (const panel of this.panels.values()) panel.plot.redraw(false);
    }

    // Arrows move the cursor, + and - zoom, 0 shows all.
    key(event) {
      const width = this.span[1] - this.span[0];
      const now = this.time ?? this.span[0];
      const middle = this.time ?? (this.span[0] + this.span[1]) / 2;
      const move = (share) => this.at(Math.min(Math.max(now + share * width, 0), this.duration));
      const scale = (by) => this.zoom(middle - width * by / 2, middle + width * by / 2);
      const acts = {
        ArrowLeft: () => move(event.shiftKey ? -0.1 : -0.01), ArrowRight: () => move(event.shiftKey ? 0.1 : 0.01),
        "+": () => scale(0.5), "=": () => scale(0.5), "-": () => scale(2), 0: () => this.zoom(null),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return false;
      event.preventDefault();
      acts[event.key]();
      return true;
    }
  }

  return { create: (holders) => new Made(holders), el, short };
})();
