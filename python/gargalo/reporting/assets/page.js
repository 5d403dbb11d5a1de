"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  let figures = [];
  const plots = all(".plot");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const narrow = matchMedia("(max-width: 600px)");
  const touch = matchMedia("(pointer: coarse)");

  // --- figures

  const axes = (layout) => Object.keys(layout).filter((k) => /^[xy]axis\d*$/.test(k));

  function colours() {
    const night = dark.matches && !printing.matches;
    return night ? { ink: "#e6e9ec", grid: "#30363d", soft: "#8b96a1" } : { ink: "#1c2126", grid: "#e3e7eb", soft: "#7b858f" };
  }

  function layoutOf(figure) {
    const { ink, grid, soft } = colours();
    const own = figure.layout;
    const shared = {
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 13, color: ink },
      margin: { l: 62, r: 12, t: touch.matches ? 8 : 34, b: 50 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
      hovermode: "closest",
      dragmode: touch.matches ? false : "zoom",
      legend: { orientation: "h", x: 0, y: 0, yref: "container", yanchor: "bottom", maxheight: 0.8, font: { size: narrow.matches ? 11 : 12 } },
      showlegend: figure.data.some((t) => t.name),
    };
    const merged = { ...shared, ...own, font: { ...shared.font, ...own.font }, legend: { ...shared.legend, ...own.legend } };
    delete merged.width;
    delete merged.height;
    delete merged.title;
    for (const name of new Set([...axes(own), "xaxis", "yaxis"])) {
      merged[name] = { gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true, ...own[name] };
    }
    return merged;
  }

  const options = { displaylogo: false, responsive: true, displayModeBar: !touch.matches, modeBarButtons: [["toImage", "zoom2d", "pan2d", "autoScale2d"]] };

  // Plotly's library and the figures are compressed: the page is half as large.
  async function unpacked(id) {
    const element = document.getElementById(id);
    const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    element.remove();
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  async function load() {
    figures = JSON.parse(await unpacked("figure-data"));
    const script = document.createElement("script");
    script.textContent = await unpacked("plotly");
    document.head.append(script);
  }

  async function draw() {
    if (plots.length === 0) return;
    try {
      await load();
    } catch (error) {
      for (const plot of plots) plot.textContent = `Figures need a browser of 2023 or later: ${error.message}`;
      console.error(error);
      return;
    }
    for (const plot of plots) {
      const figure = figures[Number(plot.dataset.figure)];
      try {
        await Plotly.newPlot(plot, figure.data, layoutOf(figure), options);
        plot.dataset.drawn = "yes";
        // A page of many figures stays usable meanwhile.
        await new Promise((done) => setTimeout(done));
      } catch (error) {
        plot.textContent = `This figure could not be drawn: ${error.message}`;
        console.error(error);
      }
    }
  }

  function recolour() {
    const { ink, grid, soft } = colours();
    for (const plot of plots) {
      if (!plot.dataset.drawn) continue;
      const change = { "font.color": ink, "modebar.color": soft, "modebar.activecolor": ink };
      for (const name of axes(plot.layout)) {
        change[`${name}.gridcolor`] = grid;
        change[`${name}.zerolinecolor`] = grid;
        change[`${name}.linecolor`] = grid;
      }
      Plotly.relayout(plot, change);
    }
  }
  dark.addEventListener("change", recolour);
  printing.addEventListener("change", recolour);
  // Paper is narrower than most windows.
  addEventListener("beforeprint", () => plots.forEach((p) => p.dataset.drawn && Plotly.Plots.resize(p)));
  addEventListener("afterprint", () => plots.forEach((p) => p.dataset.drawn && Plotly.Plots.resize(p)));

  // --- filters

  const form = document.getElementById("filters");
  const chosen = (name) => new Set(all(`input[name=${name}]:checked`).map((i) => i.value));
  const offered = (name) => all(`input[name=${name}]`).length > 0;

  function filterFigures(algorithms) {
    for (const plot of plots) {
      if (!plot.dataset.drawn) continue;
      const { keys, data } = figures[Number(plot.dataset.figure)];
      const shown = keys.map((key) => key === null || !algorithms || algorithms.has(key));
      // What the reader hid by the legend stays so.
      const visible = shown.map((on, i) => {
        const now = plot.data[i].visible;
        if (!on) return false;
        return now === false ? (data[i].visible === "legendonly" ? "legendonly" : true) : (now ?? true);
      });
      if (visible.some((v, i) => v !== (plot.data[i].visible ?? true))) {
        Plotly.restyle(plot, { visible }, visible.map((_, i) => i));
      }
      const nothing = shown.length > 0 && !shown.some(Boolean);
      plot.hidden = nothing;
      plot.parentElement.querySelector(".nothing").hidden = !nothing;
    }
  }

  function filter() {
    const algorithms = offered("algorithm") ? chosen("algorithm") : null;
    const groups = offered("group") ? chosen("group") : null;
    for (const block of all("[data-group]")) {
      const was = block.hidden;
      block.hidden = groups !== null && !groups.has(block.dataset.group);
      const plot = block.querySelector(".plot");
      if (was && !block.hidden && plot && plot.dataset.drawn) Plotly.Plots.resize(plot);
    }
    filterFigures(algorithms);
    tables.forEach((table) => table.update());
    const state = document.getElementById("filter-state");
    if (state) {
      const parts = [];
      if (algorithms) parts.push(`${algorithms.size} of ${all("input[name=algorithm]").length} shown`);
      if (groups) parts.push(`${groups.size} of ${all("input[name=group]").length} sections`);
      state.textContent = parts.join(", ");
    }
  }

  if (form) {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", filter);
    for (const button of all("button[data-set]", form)) {
      button.addEventListener("click", () => {
        all("input", button.closest("fieldset")).forEach((i) => { i.checked = button.dataset.set === "all"; });
        filter();
      });
    }
  }

  // --- tables

  // Most cells say their value; others have it with more digits. Thousands are apart by a narrow space.
  const raw = (cell) => cell.dataset.v ?? cell.textContent.replaceAll("\u202f", "");
  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const link = (rows) => `data:text/csv;charset=utf-8,${encodeURIComponent(rows.map((r) => r.map((c) => quote(String(c ?? ""))).join(",")).join("\n") + "\n")}`;

  // The address is made when it is wanted: a page of tables does not hold them twice.
  function onUse(anchor, make) {
    const renew = () => { anchor.href = make(); };
    for (const event of ["pointerenter", "focus", "click", "contextmenu"]) anchor.addEventListener(event, renew);
  }

  class Table {
    constructor(section) {
      this.section = section;
      this.element = section.querySelector("table");
      this.body = this.element.tBodies[0];
      this.heads = all("thead th", this.element);
      this.rows = [...this.body.rows];
      this.texts = this.rows.map((r) => r.textContent.toLowerCase());
      this.limit = Number(this.element.dataset.shown);
      this.search = section.querySelector(".search");
      this.more = section.querySelector(".more");
      this.search.addEventListener("input", () => this.update());
      this.more.addEventListener("click", () => { this.limit = Infinity; this.update(); });
      this.heads.forEach((head, i) => head.querySelector("button").addEventListener("click", () => this.sort(head, i)));
      onUse(section.querySelector(".table-csv"), () => this.csv());
      this.update();
    }

    matching() {
      const column = this.element.dataset.algorithm;
      const known = new Set(column === undefined ? [] : all("input[name=algorithm]").map((i) => i.value));
      const algorithms = chosen("algorithm");
      const hidden = (row) => known.has(row.cells[column]?.textContent) && !algorithms.has(row.cells[column].textContent);
      const text = this.search.value.trim().toLowerCase();
      const fits = new Map(this.rows.map((r, i) => [r, this.texts[i].includes(text)]));
      return [...this.body.rows].filter((r) => fits.get(r) && !hidden(r));
    }

    update() {
      const rows = this.matching();
      const shown = new Set(rows.slice(0, this.limit));
      for (const row of this.rows) row.hidden = !shown.has(row);
      const left = rows.length - shown.size;
      this.more.hidden = left === 0;
      this.more.textContent = `show all ${rows.length} rows`;
      const total = this.rows.length;
      this.section.querySelector(".rows").textContent = rows.length === total ? `${total} rows` : `${rows.length} of ${total} rows`;
    }

    sort(head, column) {
      const up = head.getAttribute("aria-sort") !== "ascending";
      this.heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const numeric = head.classList.contains("number");
      const order = this.rows.map((row, i) => {
        const text = raw(row.cells[column]);
        return { row, i, value: numeric ? Number(text) : text, missing: text === "" || text === "–" };
      });
      order.sort((a, b) => {
        if (a.missing || b.missing) return a.missing - b.missing || a.i - b.i; // Missing ones last, either way.
        const by = numeric ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
        return (up ? by : -by) || a.i - b.i;
      });
      this.body.append(...order.map((o) => o.row));
      this.update();
    }

    csv() {
      const head = this.heads.flatMap((h) => (h.dataset.interval ? [h.dataset.name, `${h.dataset.name}_low`, `${h.dataset.name}_high`] : [h.dataset.name]));
      const line = (row) => [...row.cells].flatMap((cell, i) => {
        const value = cell.textContent === "–" ? "" : raw(cell);
        return this.heads[i].dataset.interval ? [value, cell.dataset.low, cell.dataset.high] : [value];
      });
      return link([head, ...this.matching().map(line)]);
    }
  }

  const tables = all("section.table").map((s) => new Table(s));

  for (const anchor of all(".figure-csv")) {
    onUse(anchor, () => {
      const plot = plots.find((p) => p.dataset.figure === anchor.dataset.figure);
      const { layout } = plot;
      const title = (axis) => layout[axis]?.title?.text || axis[0];
      const rows = [["series", title("xaxis"), title("yaxis"), "half width of interval"]];
      for (const trace of plot._fullData ?? []) {
        if (trace.visible !== true || !trace.x) continue;
        const half = trace.error_y?.array ?? [];
        for (let i = 0; i < trace.x.length; i++) rows.push([trace.meta ?? trace.name, trace.x[i], trace.y[i], half[i]]);
      }
      return link(rows);
    });
  }

  filter();
  draw().then(() => {
    filter();
    document.documentElement.dataset.ready = "yes";
  });
})();
