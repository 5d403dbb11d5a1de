// Buttons of each panel: its picture as `gargalo plot` draws it for papers, in SVG, PDF or PNG.
"use strict";
const Papers = (() => {
  const { el } = Viewer;
  const FORMATS = ["svg", "pdf", "png"];

  // `ask` posts a request with the scenario, `save` gives a file to the reader, `wrong` shows what a request was refused for.
  const buttons = (viewer, metric, { ask, save, wrong }) => {
    const panel = viewer.panels.get(metric);
    if (!panel || panel.root.querySelector(".papers")) return;
    const width = el("select", { "aria-label": `width of the picture of ${panel.title}` },
      el("option", { value: "one-column" }, "one column"), el("option", { value: "two-columns" }, "two columns"));
    const get = async (format) => {
      const zoomed = viewer.span[0] > 0 || viewer.span[1] < viewer.duration;
      const response = await ask("/api/picture", { metric, format, width: width.value, span: zoomed ? viewer.span : null });
      if (response.ok) save(`${metric.replaceAll(/[^a-zA-Z0-9_-]+/g, "-")}.${format}`, await response.blob(), response.headers.get("content-type"));
      else wrong((await response.json()).diagnostics);
    };
    panel.root.querySelector("h3").after(el("details", { class: "papers" }, el("summary", {}, "for a paper"), width,
      ...FORMATS.map((f) => el("button", { type: "button", "aria-label": `${panel.title} as ${f.toUpperCase()}`, onclick: () => get(f) }, f.toUpperCase()))));
  };

  return { buttons };
})();
