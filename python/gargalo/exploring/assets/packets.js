// Single packets: the time-sequence graph of a flow, as tcptrace draws it, and the packets on their way at the cursor.
"use strict";
const Packets = (() => {
  const HEIGHT = 300;
  const WAIT = 200; // Milliseconds without a further zoom before packets are asked for.
  const NEAR = 40; // Pixels around the pointer.
  const MOST_DOTS = 600;
  const FROM_NODE = 44; // Pixels from a node's centre to where its box ends.

  const { el, short } = Viewer;
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const count = (n) => n.toLocaleString("en");
  const seconds = (t) => (t === null ? "–" : `${t.toFixed(6)} s`);
  const KINDS = [
    ["sent", "--accent", "sent"], ["again", "--lost", "retransmission"], ["lost", "--lost", "× dropped"],
    ["mark", "--warning", "◆ marked (CE)"], ["ack", "--acknowledged", "acknowledged up to"],
    ["sack", "--sack", "SACK block"], ["window", "--reference", "end of the receive window"],
  ];

  class Shown {
    // `ask` gets the packets of { flow, from_s, to_s }; without it only what is given is shown.
    constructor(viewer, holder, ask) {
      this.viewer = viewer;
      this.ask = ask;
      this.data = null;
      this.on = false;
      this.wanted = 0;
      this.chosen = null;
      this.flow = el("select", { "aria-label": "flow whose packets are shown", onchange: () => this.load() });
      this.path = el("select", { "aria-label": "path whose packets are shown", onchange: () => this.draw() });
      this.button = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "packets of this window");
      this.back = el("button", { type: "button", onclick: () => this.step(-1) }, "previous packet");
      this.next = el("button", { type: "button", onclick: () => this.step(1) }, "next packet");
      this.legend = el("ul", { class: "legend" }, ...KINDS.map(([, colour, name]) => {
        const mark = el("span", { class: "mark" });
        mark.style.background = `var(${colour})`;
        return el("li", {}, mark, name);
      }));
      this.plotted = el("div", { class: "plot packets" });
      this.told = el("output", { class: "packet", "aria-live": "polite" });
      this.notes = el("p", { class: "notes" });
      this.way = el("p", { class: "on-way" });
      this.body = el("div", { hidden: true }, this.legend, this.plotted,
        el("div", { class: "row" }, this.back, this.next, this.told), this.way, this.notes);
      this.heading = el("h3", {}, "Packets");
      holder.replaceChildren(...[this.heading, ask ? el("div", { class: "row" }, this.button, this.flow, this.path) : this.path, this.body].filter(Boolean));
      this.path.hidden = true;
      viewer.followers.push(this);
      new ResizeObserver(() => this.resized()).observe(holder);
    }

    // The flows that can be chosen: { id, name }.
    flows(rows) {
      const had = this.flow.value;
      this.flow.replaceChildren(...rows.map((f) => el("option", { value: f.id }, f.name)));
      if (rows.some((f) => String(f.id) === had)) this.flow.value = had;
      this.button.disabled = !rows.length;
      this.data = null;
      this.clear();
      if (this.on) this.load();
    }

    toggle() {
      this.on = !this.on;
      this.button.setAttribute("aria-pressed", String(this.on));
      this.body.hidden = !this.on;
      this.wanted++; // What is under way is of no use any more.
      if (this.on) this.load();
      else this.clear();
    }

    // The window that is shown, and its flow: what a link or a frozen page keeps.
    window() {
      return this.on ? { flow: Number(this.flow.value), from_s: this.viewer.span[0], to_s: this.viewer.span[1] } : null;
    }

    // Shows a flow around an instant.
    lead(flow, time, width) {
      if (![...this.flow.options].some((o) => o.value === String(flow))) return;
      this.flow.value = String(flow);
      this.viewer.zoom(Math.max(time - width / 2, 0), time + width / 2);
      if (this.on) this.load();
      else this.toggle();
    }

    async load() {
      if (!this.ask || !this.on) return;
      const mine = ++this.wanted;
      this.notes.textContent = "running again with packets recorded";
      let found;
      try {
        found = await this.ask(this.window());
      } catch (error) {
        if (error.name === "AbortError" || mine !== this.wanted) return;
        this.data = null;
        this.clear();
        this.notes.textContent = error.message;
        document.body.dataset.packets = "none";
        return;
      }
      if (mine === this.wanted) this.show(found);
    }

    show(data) {
      this.data = data;
      this.on = true;
      this.body.hidden = false;
      this.chosen = null;
      const had = this.path.value;
      this.path.replaceChildren(...data.paths.map((p, i) => el("option", { value: i }, p.name)));
      this.path.hidden = data.paths.length < 2;
      if (Number(had) < data.paths.length) this.path.value = had || "0";
      const unit = data.unit === "byte" ? "bytes of the stream" : "packet numbers";
      this.heading.textContent = `Packets of ${data.name}: ${unit}${data.from ? `, seen at ${data.from}` : ""}`;
      this.draw();
      this.notes.textContent = data.notes.join("; ");
      document.body.dataset.packets = `${data.from_s} ${data.to_s}`;
    }

    clear() {
      this.plot?.destroy();
      this.plot = null;
      this.told.textContent = "";
      this.way.textContent = "";
      this.dots?.remove();
    }

    get shown() {
      return this.data?.paths[Number(this.path.value) || 0] ?? null;
    }

    // Numbers between which the drawn packets and acknowledgements are.
    range() {
      const [from, to] = this.viewer.span;
      let [least, most] = [Infinity, -Infinity];
      const s = this.shown?.segments;
      for (let i = 0; s && i < s.sent_s.length; i++) {
        if (s.sent_s[i] < from || s.sent_s[i] > to) continue;
        least = Math.min(least, s.first[i]);
        most = Math.max(most, s.end[i]);
      }
      const acks = this.shown?.acks;
      for (let i = 0; acks && i < acks.time_s.length; i++) {
        if (acks.time_s[i] > to || (acks.time_s[i + 1] ?? Infinity) < from) continue;
        least = Math.min(least, acks.cumulative[i]);
        most = Math.max(most, acks.cumulative[i]);
      }
      if (least > most) return [0, 1];
      const margin = Math.max((most - least) * 0.04, this.data.unit === "byte" ? 100 : 0.5);
      return [least - margin, most + margin];
    }

    draw() {
      this.plot?.destroy();
      this.plot = null;
      if (!this.data || !this.on) return;
      const ink = style("--ink");
      const grid = style("--grid");
      const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
      // As wide as the axes of other panels with their labels, so that one instant is at one place in all.
      const number = (v) => (!Number.isInteger(v) ? "" : v < 1e6 ? count(v) : `${(v / 1e6).toLocaleString("en", { maximumFractionDigits: 6 })}M`);
      this.plot = new uPlot({
        width: Math.max(this.plotted.clientWidth || 600, 200),
        height: HEIGHT,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false, range: () => this.viewer.span }, y: { range: () => this.range() } },
        axes: [
          { ...axis, label: "time (s)", labelSize: 18, size: 34 },
          { ...axis, size: 72, values: (u, all) => all.map(number) },
        ],
        series: [{}, { points: { show: false }, stroke: "transparent" }],
        hooks: {
          draw: [(u) => this.paint(u), () => this.place()],
          setCursor: [(u) => {
            if (u.cursor.left < 0) return;
            this.choose(u.cursor.left, u.cursor.top);
            this.viewer.point(u.posToVal(u.cursor.left, "x"));
          }],
          setSelect: [(u) => {
            if (u.select.width <= 2) return;
            const [from, until] = [u.select.left, u.select.left + u.select.width].map((x) => u.posToVal(x, "x"));
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            this.viewer.zoom(from, until);
          }],
        },
      }, [this.viewer.span.slice(), [0, 0]], this.plotted);
      this.plot.over.addEventListener("dblclick", () => this.viewer.zoom(null));
      this.cursor = el("div", { class: "cursor" });
      this.plot.over.append(this.cursor);
      this.tell();
    }

    paint(u) {
      const path = this.shown;
      if (!path) return;
      const { ctx, bbox } = u;
      const ratio = devicePixelRatio;
      const colours = Object.fromEntries(KINDS.map(([kind, colour]) => [kind, style(colour)]));
      const x = (t) => u.valToPos(t, "x", true);
      const y = (n) => u.valToPos(n, "y", true);
      const [from, to] = this.viewer.span;
      const inside = (t) => t >= from && t <= to;
      const stroke = (colour, width, dash = []) => {
        ctx.strokeStyle = colour;
        ctx.fillStyle = colour;
        ctx.lineWidth = width * ratio;
        ctx.setLineDash(dash.map((d) => d * ratio));
      };
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      const steps = (times, values, colour) => {
        stroke(colour, 1.4);
        ctx.beginPath();
        let begun = false;
        times.forEach((t, i) => {
          if (t > to || (times[i + 1] ?? Infinity) < from || values[i] === null) return;
          const left = x(Math.max(t, from));
          if (begun) ctx.lineTo(left, y(values[i]));
          else ctx.moveTo(left, y(values[i]));
          begun = true;
          ctx.lineTo(x(Math.min(times[i + 1] ?? Math.min(to, this.data.to_s), to)), y(values[i]));
        });
        ctx.stroke();
      };
      if (path.acks) {
        steps(path.acks.time_s, path.acks.window_end, colours.window);
        steps(path.acks.time_s, path.acks.cumulative, colours.ack);
      }
      const upright = (at, first, end) => {
        const [low, high] = [y(first), y(end)];
        // A packet is visible however little of the axis it takes.
        const spare = Math.max(2 * ratio - (low - high), 0) / 2;
        ctx.beginPath();
        ctx.moveTo(at, low + spare);
        ctx.lineTo(at, high - spare);
        ctx.stroke();
        return [low + spare, high - spare];
      };
      stroke(colours.sack, 1.6);
      path.sack?.time_s.forEach((t, i) => {
        if (inside(t)) upright(x(t), path.sack.first[i], path.sack.end[i]);
      });
      const s = path.segments;
      const arm = 2.5 * ratio;
      s.sent_s.forEach((t, i) => {
        if (!inside(t)) return;
        const again = s.retransmission[i];
        stroke(again ? colours.again : colours.sent, again ? 2.2 : 1.4, s.fate[i] === "unknown" ? [2, 2] : []);
        const at = x(t);
        const [low, high] = upright(at, s.first[i], s.end[i]);
        if (low - high > 6 * ratio) {
          // Arrows at both ends, as tcptrace's.
          ctx.setLineDash([]);
          ctx.beginPath();
          for (const [end, turn] of [[low, -arm], [high, arm]]) {
            ctx.moveTo(at - arm, end + turn);
            ctx.lineTo(at, end);
            ctx.lineTo(at + arm, end + turn);
          }
          ctx.stroke();
        }
        const middle = (low + high) / 2;
        if (s.fate[i] === "dropped") {
          stroke(colours.lost, 1.8);
          ctx.beginPath();
          for (const turn of [1, -1]) {
            ctx.moveTo(at - 4 * ratio, middle - 4 * ratio * turn);
            ctx.lineTo(at + 4 * ratio, middle + 4 * ratio * turn);
          }
          ctx.stroke();
        }
        if (s.marked_at[i] !== null) {
          stroke(colours.mark, 1);
          ctx.beginPath();
          for (const [dx, dy] of [[0, -5], [4, 0], [0, 5], [-4, 0]]) ctx.lineTo(at + dx * ratio, middle + dy * ratio);
          ctx.closePath();
          ctx.fill();
        }
      });
      if (this.chosen !== null) {
        stroke(style("--ink"), 1);
        const at = x(s.sent_s[this.chosen]);
        const [low, high] = [y(s.first[this.chosen]), y(s.end[this.chosen])];
        ctx.strokeRect(at - 6 * ratio, high - 4 * ratio, 12 * ratio, low - high + 8 * ratio);
      }
      if (this.viewer.differs !== null && inside(this.viewer.differs)) {
        stroke(style("--warning"), 1, [6, 3]);
        ctx.beginPath();
        ctx.moveTo(x(this.viewer.differs), bbox.top);
        ctx.lineTo(x(this.viewer.differs), bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    }

    // The packet nearest to a place of the picture, in pixels.
    choose(left, top) {
      const s = this.shown?.segments;
      let [best, nearest] = [null, NEAR];
      for (let i = 0; s && i < s.sent_s.length; i++) {
        const dx = this.plot.valToPos(s.sent_s[i], "x") - left;
        if (Math.abs(dx) >= nearest) continue;
        const low = this.plot.valToPos(s.first[i], "y");
        const high = this.plot.valToPos(s.end[i], "y");
        const far = Math.hypot(dx, Math.max(high - top, top - low, 0));
        if (far < nearest) [best, nearest] = [i, far];
      }
      this.pick(best);
    }

    pick(i) {
      this.chosen = i;
      this.plot.redraw(false);
      this.told.textContent = i === null ? "" : this.sentence(i);
    }

    // The next or previous packet from the chosen one, or from the cursor.
    step(by) {
      const s = this.shown?.segments;
      if (!s || !s.sent_s.length) return;
      const now = this.viewer.time ?? this.viewer.span[0];
      let i = this.chosen === null ? s.sent_s.findIndex((t) => t >= now) : this.chosen + by;
      if (this.chosen === null && (i < 0 || by < 0)) i = i < 0 ? s.sent_s.length - 1 : i - 1;
      i = Math.min(Math.max(i, 0), s.sent_s.length - 1);
      this.viewer.at(s.sent_s[i]);
      this.pick(i);
    }

    sentence(i) {
      const s = this.shown.segments;
      const what = s.syn?.[i] ? "SYN" : s.fin?.[i] && s.end[i] === s.first[i] + 1 ? "FIN"
        : this.data.unit === "byte" ? `bytes ${count(s.first[i])} to ${count(s.end[i])}` : `packet ${count(s.first[i])}`;
      const fate = s.fate[i] === "arrived" ? `arrived ${seconds(s.arrived_s[i])} (${short((s.arrived_s[i] - s.sent_s[i]) * 1e3)} ms)`
        : s.fate[i] === "dropped" ? `dropped at ${s.dropped_at[i]}` : "what became of it is not known";
      return [`${what}, sent ${seconds(s.sent_s[i])}`, s.retransmission[i] ? "retransmission" : null, fate,
        s.marked_at[i] === null ? null : `marked at ${s.marked_at[i]}`,
        s.declared_lost_s?.[i] ? `declared lost ${seconds(s.declared_lost_s[i])}` : null,
        s.reduced?.[i] ? "CWR" : null].filter(Boolean).join("; ");
    }

    // --- what the viewer tells

    zoomed() {
      if (!this.on) return;
      this.plot?.setData([this.viewer.span.slice(), [0, 0]]);
      this.tell();
      const [from, to] = this.viewer.span;
      const d = this.data;
      if (d && from === d.from_s && to === d.to_s) return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.load(), WAIT);
    }

    tell() {
      this.place();
      this.onWay(this.viewer.time);
    }

    // The cursor; after a zoom it has its place only when the picture is drawn.
    place() {
      if (!this.plot || !this.cursor) return;
      const time = this.viewer.time;
      const left = time === null ? -1 : this.plot.valToPos(time, "x");
      this.cursor.hidden = left < 0 || left > this.plot.over.clientWidth;
      this.cursor.style.left = `${left}px`;
    }

    resized() {
      const width = this.plotted.clientWidth;
      if (width && this.plot && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: HEIGHT });
    }

    // The packets on their way at an instant: in the drawing of the network, and in words.
    onWay(time) {
      this.dots?.remove();
      this.way.textContent = "";
      const found = this.data?.links;
      const lines = this.viewer.network.lines;
      if (!this.on || !found || !lines || time === null || time < this.data.from_s || time > this.data.to_s) return;
      const drawing = this.viewer.network.root.querySelector("svg");
      this.dots = document.createElementNS("http://www.w3.org/2000/svg", "g");
      this.dots.classList.add("dots");
      const totals = new Map();
      const queued = new Map();
      let drawn = 0;
      for (let i = 0; i < found.link.length; i++) {
        // What was dropped is on its way for no known time.
        if (found.entered_s[i] > time || found.exited_s[i] === null || found.exited_s[i] <= time) continue;
        const place = `${found.link[i]} ${found.direction[i]}`;
        const name = this.data.names[found.flow[i]] ?? "other flows";
        const waits = found.served_s[i] !== null && time < found.served_s[i];
        const all = totals.get(place) ?? totals.set(place, { waiting: new Map(), moving: new Map(), either: new Map() }).get(place);
        const kind = found.served_s[i] === null ? all.either : waits ? all.waiting : all.moving;
        kind.set(name, (kind.get(name) ?? 0) + 1);
        const line = lines.get(found.link[i])?.line;
        if (!line || drawn >= MOST_DOTS) continue;
        drawn++;
        const begin = found.served_s[i] ?? found.entered_s[i];
        const share = waits ? 0 : (time - begin) / Math.max(found.exited_s[i] - begin, 1e-12);
        const behind = waits ? queued.set(place, (queued.get(place) ?? 0) + 1).get(place) - 1 : 0;
        this.dot(line, found.direction[i], share, behind, found, i);
      }
      drawing?.append(this.dots);
      const said = [];
      const list = (counts) => [...counts].map(([name, n]) => `${count(n)} of ${name}`).join(", ");
      for (const [place, { waiting, moving, either }] of totals) {
        const parts = [waiting.size ? `waiting or in transmission ${list(waiting)}` : null,
          moving.size ? `on the line ${list(moving)}` : null, either.size ? `in the queue or on the line ${list(either)}` : null];
        said.push(`${place}: ${parts.filter(Boolean).join("; ")}`);
      }
      this.way.textContent = said.length ? `On their way at ${time.toFixed(6)} s. ${said.join(". ")}.` : `Nothing is on its way at ${time.toFixed(6)} s.`;
    }

    dot(line, direction, share, behind, found, i) {
      const at = (name) => Number(line.getAttribute(name));
      let [a, b] = [[at("x1"), at("y1")], [at("x2"), at("y2")]];
      if (direction === "down") [a, b] = [b, a];
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
      const unit = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
      const edge = Math.min(FROM_NODE, length / 3);
      const along = edge + share * (length - 2 * edge);
      // Each direction at its right-hand side; packets that wait are in rows at the beginning.
      const aside = 5 + (share === 0 ? 4 * (behind % 10) : 0);
      const row = share === 0 ? 4 * Math.floor(behind / 10) : 0;
      const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      dot.setAttribute("cx", a[0] + unit[0] * (along + row) - unit[1] * aside);
      dot.setAttribute("cy", a[1] + unit[1] * (along + row) + unit[0] * aside);
      dot.setAttribute("r", found.data[i] ? 2.4 : 1.4);
      dot.setAttribute("fill", this.data.colours[found.flow[i]] ?? "currentColor");
      this.dots.append(dot);
    }
  }

  return { create: (viewer, holder, ask = null) => new Shown(viewer, holder, ask) };
})();
