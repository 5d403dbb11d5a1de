"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const address = (type, text) => `data:${type};charset=utf-8,${encodeURIComponent(text)}`;

  // --- what is shown

  const form = document.getElementById("choose");
  const items = all("[data-item]");
  const state = document.getElementById("choose-state");

  function chosen(name) {
    const inputs = all(`input[name=${name}]`, form);
    return inputs.length ? new Set(inputs.filter((i) => i.checked).map((i) => i.value)) : null;
  }

  function choose() {
    const verdicts = chosen("verdict");
    const strengths = chosen("strength");
    const different = chosen("different")?.has("yes");
    for (const item of items) {
      const { verdict, strength } = item.dataset;
      item.hidden = (verdicts !== null && !verdicts.has(verdict)) || (strengths !== null && !strengths.has(strength)) || (different && !item.dataset.different);
      // Figures like the yardstick's leave, unless they are all that an item at fault has.
      const figures = all("[data-figure-verdict]", item);
      const differs = (f) => ["worse", "better"].includes(f.dataset.figureVerdict);
      const some = figures.some(differs);
      for (const f of figures) f.hidden = Boolean(different && some && !differs(f));
    }
    for (const holder of all("[data-holder]")) holder.hidden = !all("[data-item]", holder).some((i) => !i.hidden);
    for (const plot of all(".plot[data-drawn]")) if (plot.checkVisibility()) Plotly.Plots.resize(plot);
    // A criterion is there twice: a row of the overview and an article.
    const rows = items.filter((i) => i.tagName === "TR");
    const shown = rows.filter((i) => !i.hidden).length;
    state.textContent = shown === rows.length ? `${rows.length} ${state.dataset.what}` : `${shown} of ${rows.length} ${state.dataset.what}`;
    for (const nothing of all(".none-left")) nothing.hidden = shown > 0;
  }

  // Whoever follows a link to what is hidden wants to see it.
  function reveal() {
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return; // Not a fragment of ours.
    }
    if (!target) return;
    const hidden = target.closest("[data-item][hidden], [data-holder][hidden]");
    if (!hidden) return;
    form.reset();
    choose();
    target.scrollIntoView();
  }

  if (form) {
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", choose);
    form.addEventListener("reset", () => setTimeout(choose));
    addEventListener("hashchange", reveal);
    for (const link of all("a[href^='#']")) link.addEventListener("click", () => setTimeout(reveal));
    choose();
  }

  // --- scenario files

  // The address is made when it is wanted: a page does not hold its scenarios twice.
  function onUse(anchor, make) {
    const renew = () => { anchor.href = make(); };
    for (const event of ["pointerenter", "focus", "click", "contextmenu"]) anchor.addEventListener(event, renew);
  }

  for (const anchor of all("a.save")) {
    onUse(anchor, () => address("application/toml", anchor.closest(".cell").querySelector(".scenario").textContent));
  }

  async function copy(element) {
    try {
      await navigator.clipboard.writeText(element.textContent);
      return true;
    } catch {
      // Pages opened as files may not be let at the clipboard: select it, as a reader would.
      element.closest("details").open = true;
      const range = document.createRange();
      range.selectNodeContents(element);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      return document.execCommand("copy");
    }
  }

  const told = document.getElementById("copied");
  for (const button of all("button.copy")) {
    const words = button.textContent;
    button.addEventListener("click", async () => {
      const done = await copy(button.closest(".cell").querySelector(`.${button.dataset.copy}`));
      button.textContent = done ? "Copied" : "Selected: copy it by hand";
      told.textContent = button.textContent;
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }

  // --- answers

  const answers = document.getElementById("answers");
  if (answers) {
    onUse(answers, () => {
      const parts = all(".questions li").map((li) => {
        const [section, strength, question] = [".section", ".strength", ".question"].map((s) => li.querySelector(s).textContent);
        return `## ${section} (${strength}): ${question}\n\n${li.querySelector("textarea").value.trim() || "(no answer yet)"}\n`;
      });
      return address("text/markdown", `# ${document.title}: questions\n\n${parts.join("\n")}`);
    });
  }

  if (!document.getElementById("figure-data")) document.documentElement.dataset.ready = "yes";
})();
