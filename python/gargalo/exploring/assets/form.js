// The scenario as controls, made from its JSON Schema: kinds are menus, quantities have sliders, lists can be added to.
"use strict";
const Form = (() => {
  const QUANTITY = /^([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([^0-9\s].*)?$/i;
  const SPAN = 10;           // A slider goes from a tenth of a value to ten times it.
  const STEPS = 200;

  const { el } = Viewer;
  // Of a button within a summary, which would fold what it heads.
  const press = (act) => (event) => {
    event.preventDefault();
    act();
  };
  const words = (name) => String(name).replaceAll("_", " ");
  const isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  // What a part of the schema says, with the parts that it refers to.
  const resolved = (root, schema) => {
    let found = schema;
    while (found.$ref) {
      const { $ref, ...own } = found;
      found = { ...root.$defs[$ref.split("/").pop()], ...own };
    }
    return found;
  };

  // The choices of a part: `word` is a value, `key` a table of one key, neither any other value.
  const choices = (root, schema) => {
    const at = resolved(root, schema);
    const several = at.oneOf || at.anyOf;
    if (several) return several.flatMap((s) => choices(root, s));
    const about = at.description || "";
    if (at.const !== undefined) return [{ word: at.const, about }];
    if (at.enum) return at.enum.map((word) => ({ word, about }));
    const names = Object.keys(at.properties || {});
    if (names.length === 1 && (at.required || []).length === 1 && at.additionalProperties === false) {
      return [{ key: names[0], schema: at.properties[names[0]], about }];
    }
    return [{ schema: at, about }];
  };

  // The schema of a key's value, of whichever choice has it.
  const below = (root, at, key) => choices(root, at).map((c) => (c.key === key ? c.schema
    : c.schema?.properties?.[key] ?? (isTable(c.schema?.additionalProperties) ? c.schema.additionalProperties : null))).find(Boolean);

  // A value to begin with, which the schema allows.
  const initial = (root, schema) => {
    const at = resolved(root, schema);
    if (at.default !== undefined && at.default !== null) return at.default;
    const all = choices(root, at);
    const simple = all.find((c) => c.word !== undefined) || all.find((c) => c.key) || all[0];
    if (simple.word !== undefined) return simple.word;
    if (simple.key) return { [simple.key]: initial(root, simple.schema) };
    if (at.examples) return at.examples[0];
    const types = [].concat(at.type || []);
    if (types.includes("boolean")) return true;
    if (types.includes("integer") || types.includes("number")) return at.minimum ?? 1;
    if (types.includes("array")) return [];
    if (types.includes("object")) {
      return Object.fromEntries((at.required || []).map((k) => [k, initial(root, at.properties[k])]));
    }
    return "";
  };

  class Made {
    constructor(schema, holder, edit) {
      this.root = schema;
      this.holder = holder;
      this.edit = edit;
      this.open = new Map([["topology", true], ["flows", true]]);
      this.ranges = new Map();
    }

    // Shows a scenario; what was open stays open, and the focus where it was.
    show(scenario) {
      this.scenario = scenario;
      const focused = document.activeElement?.dataset?.place;
      this.holder.replaceChildren(...this.table(this.root, scenario, []));
      if (focused) this.holder.querySelector(`[data-place="${CSS.escape(focused)}"]`)?.focus();
    }

    id(place, kind = "") {
      return [kind, ...place].join("/");
    }

    change(place, value) {
      this.edit([{ place, value }], false);
    }

    rebuild(place, value) {
      this.edit([value === undefined ? { place } : { place, value }], true);
    }

    // The rows of a table, and a menu of the keys that it does not have.
    table(schema, value, place) {
      const at = resolved(this.root, schema);
      const known = at.properties || {};
      const rows = [];
      for (const [key, inner] of Object.entries(value)) {
        const below = known[key] || at.additionalProperties;
        if (!below) continue;
        const required = (at.required || []).includes(key);
        rows.push(this.row(key, below, inner, [...place, key], required));
      }
      const missing = Object.keys(known).filter((k) => !(k in value));
      if (missing.length) rows.push(this.adding(known, missing, place));
      if (isTable(at.additionalProperties)) rows.push(this.naming(at.additionalProperties, place));
      return rows;
    }

    adding(known, missing, place, set = (key, value) => this.rebuild([...place, key], value)) {
      const menu = el("select", {
        class: "add", "data-place": this.id(place, "add"),
        "aria-label": `add a setting to ${place.length ? place.join(" ") : "the scenario"}`,
        onchange: () => menu.value && set(menu.value, initial(this.root, known[menu.value])),
      }, el("option", { value: "" }, "add …"), ...missing.map((k) =>
        el("option", { value: k, title: resolved(this.root, known[k]).description }, words(k))));
      return menu;
    }

    naming(schema, place) {
      const name = el("input", { placeholder: "name", "aria-label": `name of a new part of ${place.join(" ")}` });
      const add = () => name.value && this.rebuild([...place, name.value], initial(this.root, schema));
      return el("div", { class: "row" }, name, el("button", { type: "button", onclick: add }, "add"));
    }

    // A key with its control; a table or a list can be folded.
    row(key, schema, value, place, required) {
      const at = resolved(this.root, schema);
      const about = at.description || "";
      const remove = required ? null : el("button", {
        type: "button", class: "remove", title: `remove ${words(key)}`, "aria-label": `remove ${place.join(" ")}`,
        onclick: press(() => this.rebuild(place)),
      }, "×");
      const control = this.control(at, value, place);
      if (Array.isArray(value) && value.some(isTable) || isTable(value)) {
        const id = place.join("/");
        const folded = el("details", {
          open: this.open.get(id) ?? place.length < 5,
          ontoggle: (e) => this.open.set(id, e.target.open),
        }, el("summary", { title: about }, words(key), remove), ...control);
        return folded;
      }
      return el("div", { class: "row" },
        el("label", { title: about, for: this.id(place) }, words(key)), ...control, remove);
    }

    control(schema, value, place) {
      const all = choices(this.root, schema);
      const kinds = [...new Set(all.filter((c) => c.word !== undefined || c.key).map((c) => c.word ?? c.key))];
      if (kinds.length > 1 || (kinds.length === 1 && all.length > 1)) return this.menu(all, kinds, value, place);
      if (kinds.length === 1 && all[0].key && isTable(value)) return this.table(schema, value, place);
      const at = all[0].schema || resolved(this.root, schema);
      if (Array.isArray(value)) return this.list(at, value, place);
      if (isTable(value)) return this.table(at, value, place);
      if (typeof value === "boolean") return [this.check(value, place)];
      return this.quantity(at, value, place);
    }

    // A menu of kinds, and below it what the chosen one has.
    menu(all, kinds, value, place) {
      const chosen = isTable(value) ? Object.keys(value)[0] : all.some((c) => c.word === value) ? value : "";
      const other = all.find((c) => c.word === undefined && !c.key);
      const shared = chosen === "" && other;
      const id = this.id(place, shared ? "kind" : "");
      const select = el("select", {
        id, "data-place": id, "aria-label": shared ? `kind of ${place.join(" ")}` : place.join(" "),
        onchange: () => {
          const word = all.find((c) => c.word === select.value);
          const table = all.find((c) => c.key === select.value);
          this.rebuild(place, word ? word.word
            : table ? { [table.key]: initial(this.root, table.schema) } : initial(this.root, other.schema));
        },
      });
      if (other) select.append(el("option", { value: "", selected: chosen === "" }, "value"));
      for (const kind of kinds) {
        const about = all.find((c) => (c.word ?? c.key) === kind).about;
        select.append(el("option", { value: kind, title: about, selected: kind === chosen }, kind));
      }
      const table = all.find((c) => c.key === chosen);
      if (shared) return [select, ...this.control(other.schema, value, place)];
      if (!table) return [select];
      const inside = resolved(this.root, table.schema);
      if (isTable(value)) return [select, ...this.control(inside, value[chosen], [...place, chosen])];
      if (!inside.properties) return [select];
      // A word has no table yet: the first parameter makes it.
      const set = (key, first) => this.rebuild(place, { [chosen]: { [key]: first } });
      return [select, this.adding(inside.properties, Object.keys(inside.properties), place, set)];
    }

    list(schema, value, place) {
      const item = schema.items;
      if (!item || !value.every(isTable)) return [this.json(value, place)];
      const rows = value.map((inner, i) => {
        const id = [...place, i].join("/");
        const name = inner.label || inner.name || `${words(place[place.length - 1])} ${i + 1}`;
        return el("details", {
          open: this.open.get(id) ?? value.length < 4, ontoggle: (e) => this.open.set(id, e.target.open),
        }, el("summary", {}, name,
          el("button", {
            type: "button", class: "copy", title: `copy ${name}`, "aria-label": `copy ${name}`,
            onclick: press(() => this.rebuild([...place, value.length], inner)),
          }, "copy"),
          el("button", {
            type: "button", class: "remove", title: `remove ${name}`, "aria-label": `remove ${name}`,
            onclick: press(() => this.rebuild([...place, i])),
          }, "×")), ...this.table(item, inner, [...place, i]));
      });
      const last = value[value.length - 1] ?? initial(this.root, item);
      rows.push(el("button", {
        type: "button", "data-place": this.id(place, "new"),
        onclick: () => this.rebuild([...place, value.length], last),
      }, `add to ${words(place[place.length - 1])}`));
      return rows;
    }

    json(value, place) {
      return el("input", {
        id: this.id(place), "data-place": this.id(place), "aria-label": place.join(" "), value: JSON.stringify(value), class: "wide",
        onchange: (e) => {
          try {
            this.change(place, JSON.parse(e.target.value));
            e.target.setCustomValidity("");
          } catch {
            e.target.setCustomValidity("not a list as in [1, 2] or [\"a\", \"b\"]");
            e.target.reportValidity();
          }
        },
      });
    }

    check(value, place) {
      return el("input", {
        type: "checkbox", "aria-label": place.join(" "), id: this.id(place), "data-place": this.id(place), checked: value,
        onchange: (e) => this.change(place, e.target.checked),
      });
    }

    // A text field with the value, and a slider where it is a number with or without a unit.
    quantity(schema, value, place) {
      const number = typeof value === "number";
      const id = this.id(place);
      const field = el("input", {
        id, "data-place": id, "aria-label": place.join(" "), value: String(value), ...(schema.examples ? { placeholder: schema.examples[0] } : {}),
        onchange: () => this.change(place, number && field.value.trim() !== "" && isFinite(field.value) ? Number(field.value) : field.value),
      });
      const parts = number ? [null, String(value), ""] : QUANTITY.exec(String(value));
      const measured = number || schema.format !== undefined;
      if (!parts || !measured || !(Number(parts[1]) > 0)) return [field];
      const range = this.range(id, Number(parts[1]), parts[2] || "", schema);
      const text = (v) => {
        const whole = schema.type === "integer" || v >= 100 ? Math.round(v) : Number(v.toPrecision(3));
        return number ? whole : `${whole}${range.unit}`;
      };
      const slider = el("input", {
        type: "range", min: 0, max: STEPS, value: range.at(Number(parts[1])), "data-place": this.id(place, "slider"),
        "aria-label": place.filter((p) => typeof p === "string").map(words).join(" "), "aria-valuetext": String(value),
        oninput: () => {
          const now = text(range.value(Number(slider.value)));
          field.value = now;
          slider.setAttribute("aria-valuetext", now);
          this.change(place, now);
        },
      });
      return [slider, field];
    }

    // A slider keeps its ends while it is moved.
    range(id, value, unit, schema) {
      const had = this.ranges.get(id);
      if (had && had.unit === unit && value >= had.least * 0.999 && value <= had.most * 1.001) return had;
      const low = Math.max(value / SPAN, schema.type === "integer" ? 1 : 0, schema.minimum ?? 0) || value / SPAN;
      const high = Math.min(value * SPAN, schema.maximum ?? Infinity);
      const least = Math.min(low, value);
      const most = Math.max(high, value, least * 1.0001);
      const ratio = Math.log(most / least);
      const made = {
        unit, least, most,
        at: (v) => Math.round(STEPS * Math.log(v / least) / ratio),
        value: (place) => least * Math.exp(ratio * place / STEPS),
      };
      this.ranges.set(id, made);
      return made;
    }
  }

  return { create: (schema, holder, edit) => new Made(schema, holder, edit), resolved, below };
})();
