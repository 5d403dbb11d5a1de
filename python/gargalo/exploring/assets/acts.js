// What happens at an instant: steps of a rate or a delay, outages, flows that start and stop. Each is a key of the
// scenario; here it is a mark on the time axis, which can be moved, and a menu that makes one at the cursor.
"use strict";
const Acts = (() => {
  const UNITS = { ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
  const SIGNS = { rate: "⇕", delay: "↔", outage: "⊘", back: "○", start: "▶", stop: "■" };
  const OUTAGE = 0.05;   // Of what is shown, to begin with.
  const APART = 22;      // Pixels; marks that are nearer are below each other.
  const { el, short } = Viewer;

  const seconds = (text) => {
    const found = /^\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(\S+)\s*$/i.exec(String(text));
    return found && UNITS[found[2]] ? Number(found[1]) * UNITS[found[2]] : null;
  };
  // As short as what is shown can tell apart.
  const digits = (width) => Math.min(Math.max(Math.ceil(-Math.log10(width / 100)), 0), 9);
  const written = (time, width) => `${Number(time.toFixed(digits(width)))}s`;
  const times = (text, factor) => {
    const found = /^\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(\S+)\s*$/i.exec(String(text));
    return found ? `${Number((Number(found[1]) * factor).toPrecision(6))}${found[2]}` : null;
  };
  const isTable = (value) => value !== null && typeof value === "object";

  // The links of a scenario, and the directions of links that have keys of their own: what may have outages.
  const links = (root, schema, value, place = [], name = "") => {
    if (!isTable(value)) return [];
    const at = Form.resolved(root, schema);
    const parts = Array.isArray(value)
      ? value.map((inner, i) => [i, inner, at.items])
      : Object.entries(value).map(([key, inner]) => [key, inner, Form.below(root, at, key)]);
    const own = at.properties?.outages ? [{ place, value, name }] : [];
    return own.concat(parts.flatMap(([key, inner, below]) => {
      if (!below || !isTable(inner)) return [];
      const called = typeof key === "number" ? inner.name ?? (inner.from ? `${inner.from}-${inner.to}` : `${name} ${key + 1}`)
        : own.length ? `${name} ${key}` : key.replaceAll("_", " ");
      return links(root, below, inner, [...place, key], called);
    }));
  };

  // All acts of a scenario: instant, what is told, where it is written, and between which instants it may be moved.
  const found = (schema, scenario) => {
    const acts = [];
    const add = (kind, text, told, place, least = 0, most = Infinity) => {
      const time = seconds(text);
      if (time !== null) acts.push({ kind, time, told, place, least, most });
    };
    for (const { place, value, name } of links(schema, schema.properties.topology, scenario.topology, ["topology"])) {
      for (const key of ["rate", "delay"]) {
        const steps = value[key]?.steps ?? [];
        steps.forEach(([at, to], i) => i && add(key, at, `${key} of ${name}: ${to}`, [...place, key, "steps", i, 0],
          seconds(steps[i - 1][0]), seconds(steps[i + 1]?.[0] ?? "") ?? Infinity));
      }
      const spans = value.outages ?? [];
      spans.forEach(([from, until], i) => {
        add("outage", from, `outage of ${name} begins`, [...place, "outages", i, 0],
          i ? seconds(spans[i - 1][1]) : 0, seconds(until));
        add("back", until, `outage of ${name} ends`, [...place, "outages", i, 1],
          seconds(from), seconds(spans[i + 1]?.[0] ?? "") ?? Infinity);
      });
    }
    flows(scenario).forEach(({ name, value, place }) => {
      const [start, stop] = [seconds(value.start ?? "0s"), seconds(value.stop ?? "")];
      if (start) add("start", value.start, `${name} starts`, [...place, "start"], 0, stop ?? Infinity);
      if (stop !== null) add("stop", value.stop, `${name} stops`, [...place, "stop"], start);
    });
    return acts;
  };

  const flows = (scenario) => (scenario.flows ?? []).map((value, i) => (
    { value, place: ["flows", i], name: value.label ?? `flow ${i + 1}` }));

  // What can be made at an instant; each gives its edits.
  const possible = (schema, scenario, time, width) => {
    const at = written(time, width);
    const list = [];
    const here = links(schema, schema.properties.topology, scenario.topology, ["topology"]);
    for (const [key, factor, what] of [["rate", 0.5, "half the rate"], ["delay", 2, "twice the delay"]]) {
      for (const { place, value, name } of here) {
        const steps = value[key]?.steps ?? (typeof value[key] === "string" ? [["0s", value[key]]] : []);
        const before = steps.filter(([t]) => seconds(t) < seconds(at));
        const now = before.length ? times(before[before.length - 1][1], factor) : null;
        if (now === null || parseFloat(now) === 0) continue;
        const after = steps.filter(([t]) => seconds(t) > seconds(at));
        list.push({ kind: key, text: `${what} of ${name}`, edits: () => (value[key].steps && !after.length
          ? [{ place: [...place, key, "steps", before.length], value: [at, now] }]
          : [{ place: [...place, key], value: { steps: [...before, [at, now], ...after] } }]) });
      }
    }
    for (const { place, value, name } of here) {
      const spans = value.outages ?? [];
      const before = spans.filter(([from]) => seconds(from) <= time);
      const after = spans.slice(before.length);
      if (before.length && seconds(before[before.length - 1][1]) >= time) continue;
      const until = Math.min(time + OUTAGE * width, seconds(after[0]?.[0] ?? "") ?? Infinity);
      list.push({ kind: "outage", text: `outage of ${name}`, edits: () => [
        { place: [...place, "outages"], value: [...before, [at, written(until, width)], ...after] }] });
    }
    const every = flows(scenario);
    for (const { place, value, name } of every) {
      if (!value.stop || seconds(value.stop) > time) {
        list.push({ kind: "start", text: `${name} starts`, edits: () => [{ place: [...place, "start"], value: at }] });
      }
    }
    for (const { place, value, name } of every) {
      if (seconds(value.start ?? "0s") < time) {
        list.push({ kind: "stop", text: `${name} stops`, edits: () => [{ place: [...place, "stop"], value: at }] });
      }
    }
    for (const { value, name } of every) {
      const { stop, ...rest } = value;
      const made = { ...rest, label: `${name} from ${at}`, start: at };
      list.push({ kind: "flow", text: `another flow like ${name}`, edits: () => [{ place: ["flows", every.length], value: made }] });
    }
    return list;
  };

  const KEYS = { r: "rate", d: "delay", o: "outage", s: "start", x: "stop", f: "flow" };
  const GROUPS = { rate: "a step of a rate", delay: "a step of a delay", outage: "an outage", start: "start", stop: "stop", flow: "add" };

  class Made {
    // `strip` holds the marks, `menu` is a select; `edit` changes the scenario.
    constructor(schema, viewer, strip, menu, edit) {
      Object.assign(this, { schema, viewer, strip, menu, edit, acts: [], scenario: null });
      viewer.moved = () => this.place();
      menu.addEventListener("mousedown", () => this.offer());
      menu.addEventListener("focus", () => this.only || this.offer());
      menu.addEventListener("blur", () => { this.only = false; });
      menu.addEventListener("change", () => this.take(Number(menu.value)));
      this.offer();
    }

    show(scenario) {
      this.scenario = scenario;
      this.acts = found(this.schema, scenario);
      const focused = this.strip.contains(document.activeElement) ? document.activeElement.dataset.act : null;
      this.strip.replaceChildren(...this.acts.map((act) => this.mark(act)));
      this.viewer.acts = this.acts.map((act) => act.time);
      this.place();
      if (focused) this.strip.querySelector(`[data-act="${CSS.escape(focused)}"]`)?.focus();
    }

    get now() {
      return this.viewer.time ?? (this.viewer.span[0] + this.viewer.span[1]) / 2;
    }

    get width() {
      return this.viewer.span[1] - this.viewer.span[0];
    }

    offer(kind = null) {
      this.choices = this.scenario ? possible(this.schema, this.scenario, this.now, this.width) : [];
      const groups = Object.entries(GROUPS).filter(([k]) => kind === null || k === kind).map(([k, title]) =>
        el("optgroup", { label: title }, ...this.choices.flatMap((c, i) => (c.kind === k ? [el("option", { value: i }, c.text)] : []))));
      this.menu.replaceChildren(el("option", { value: "" }, "at the cursor …"), ...groups.filter((g) => g.children.length));
      return this.choices.filter((c) => kind === null || c.kind === kind);
    }

    take(index) {
      const chosen = this.choices[index];
      this.menu.blur();
      this.offer();
      if (chosen) this.edit(chosen.edits());
    }

    // A key makes what it names, or asks which if there are several.
    key(event) {
      const kind = KEYS[event.key];
      if (!kind || event.ctrlKey || event.metaKey || event.altKey) return false;
      event.preventDefault();
      const choices = this.offer(kind);
      if (choices.length === 1) this.take(this.choices.indexOf(choices[0]));
      else if (choices.length) {
        this.only = true;
        this.menu.focus();
        try {
          this.menu.showPicker?.();
        } catch {
          // It is chosen with the arrows where a page may not open it.
        }
      }
      return true;
    }

    mark(act) {
      const button = el("button", {
        type: "button", class: `act ${act.kind}`, "data-act": act.place.join("/"), onclick: () => this.viewer.at(act.time),
      }, SIGNS[act.kind]);
      act.mark = button;
      this.tell(act, act.time);
      // As it is written it stays between its neighbours.
      const inside = (time) => {
        const unit = 10 ** -digits(this.width);
        return Math.max(Math.min(time, act.most - unit, this.viewer.duration), act.least + unit);
      };
      let from = null;
      button.addEventListener("pointerdown", (e) => {
        from = e.clientX;
        button.setPointerCapture(e.pointerId);
      });
      button.addEventListener("pointermove", (e) => {
        if (from === null || Math.abs(e.clientX - from) < 3) return;
        act.moved = inside(this.viewer.timeAt(e.clientX));
        this.tell(act, act.moved);
        button.style.left = `${this.viewer.leftOf(act.moved, this.strip)}px`;
      });
      button.addEventListener("pointerup", () => {
        from = null;
        if (act.moved !== undefined) this.move(act, act.moved);
      });
      button.addEventListener("pointercancel", () => {
        from = null;
        delete act.moved;
        this.place();
      });
      button.addEventListener("keydown", (e) => {
        const by = { ArrowLeft: -0.01, ArrowRight: 0.01 }[e.key];
        if (!by && e.key !== "Delete") return;
        e.preventDefault();
        e.stopPropagation();
        if (by) this.move(act, inside(act.time + by * (e.shiftKey ? 10 : 1) * this.width));
        else this.remove(act);
      });
      return button;
    }

    tell(act, time) {
      const told = `${act.told} at ${short(time)} s; drag or arrows move it, Delete removes it`;
      act.mark.title = told;
      act.mark.setAttribute("aria-label", told);
    }

    move(act, time) {
      this.edit([{ place: act.place, value: written(time, this.width) }]);
    }

    // A step, a whole outage, or the key of a flow.
    remove(act) {
      const { place, kind } = act;
      this.edit([{ place: kind === "start" || kind === "stop" ? place : place.slice(0, -1) }]);
    }

    // Marks where their instants are in the pictures; those that are close are below each other.
    place() {
      const rows = [];
      const shown = this.acts.map((act) => [this.viewer.leftOf(act.time, this.strip), act]).sort((a, b) => a[0] - b[0]);
      for (const [left, act] of shown) {
        act.mark.hidden = act.time < this.viewer.span[0] || act.time > this.viewer.span[1];
        if (act.mark.hidden) continue;
        let row = rows.findIndex((last) => left - last >= APART);
        if (row < 0) row = rows.length;
        rows[row] = left;
        act.mark.style.left = `${left}px`;
        act.mark.style.top = `${row * APART}px`;
      }
      this.strip.style.height = `${rows.length * APART}px`;
    }
  }

  return { create: (...given) => new Made(...given) };
})();
