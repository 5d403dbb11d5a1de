// A lesson: a question first, then the run that answers it, then why. What is shown of the run is the explorer's own.
"use strict";
const Lesson = (() => {
  const { el } = Viewer;
  const LETTERS = "abcd";
  // What is between backticks is code.
  const prose = (text) => text.split("`").map((piece, i) => (i % 2 ? el("code", {}, piece) : piece));

  class Made {
    // `page` runs a scenario (`run`), shows an instant (`at`) and keeps parts of a run as A (`keep`).
    constructor(lesson, holder, page) {
      this.lesson = lesson;
      this.holder = holder;
      this.page = page;
      this.place = 0;
      this.answers = new Map();   // What was answered, by the step's place.
      this.runs = new Map();      // Parts of the step's run.
      this.told = new Map();      // Its explanation.
      holder.hidden = false;
      this.draw();
    }

    get step() {
      return this.lesson.steps[this.place];
    }

    async answer(choice) {
      const { place } = this;
      this.answers.set(place, choice);
      await this.show();
      this.holder.querySelector(place + 1 < this.lesson.steps.length ? ".next" : ".again").focus();
    }

    // The step's own scenario, whatever was changed before: its explanation is of that.
    async show() {
      const { place, step } = this;
      this.draw();
      this.page.keep(step.ghost ? { text: this.lesson.steps[place - 1].text, parts: this.runs.get(place - 1) } : null);
      const explained = this.told.has(place) ? null : fetch(`/api/lesson/${place + 1}`);
      const parts = await this.page.run(step.text, step.panels);
      if (parts) this.runs.set(place, parts);
      if (step.at_s !== null) this.page.at(step.at_s);
      if (explained) {
        const response = await explained;
        if (response.ok) this.told.set(place, await response.json());
      }
      if (this.place === place) this.draw();
      this.holder.dataset.shown = String(place + 1);
    }

    go(by) {
      this.place += by;
      if (this.answers.has(this.place)) return this.show();
      this.draw();
      this.holder.querySelector("input, .answer")?.focus();
      return null;
    }

    draw() {
      const { lesson, place, step } = this;
      const { steps } = lesson;
      const answered = this.answers.has(place);
      const first = place ? [] : [
        el("p", {}, ...prose(lesson.teaches)),
        el("p", { class: "about" }, ...prose(`${lesson.source}. Before: ${lesson.needs} About ${lesson.minutes} minutes.`)),
      ];
      this.holder.replaceChildren(
        el("h2", {}, lesson.title), ...first,
        el("h3", {}, `Step ${place + 1} of ${steps.length}: ${step.title}`),
        this.question(answered),
        el("div", { role: "status", "aria-live": "polite" }, ...(answered ? this.explanation() : [])),
        el("p", { class: "steps" },
          el("button", { type: "button", class: "back", disabled: place === 0, onclick: () => this.go(-1) }, "back"),
          el("button", { type: "button", class: "next", disabled: !answered || place + 1 === steps.length, onclick: () => this.go(1) }, "next step"),
          el("button", { type: "button", class: "again", disabled: !answered, onclick: () => this.page.run() }, "run again"),
          answered && place + 1 === steps.length ? this.end() : null),
      );
    }

    question(answered) {
      const { step } = this;
      const given = this.answers.get(this.place);
      const button = el("button", { type: "submit", class: "answer", disabled: step.choices.length > 0 },
        step.choices.length ? "answer" : "I have an answer: show me");
      const choices = step.choices.map((choice, i) => el("label", {},
        el("input", {
          type: "radio", name: "choice", value: LETTERS[i], checked: given === LETTERS[i], disabled: answered,
          onchange: () => { button.disabled = false; },
        }), el("span", {}, `${LETTERS[i]}) `, ...prose(choice))));
      return el("form", {
        onsubmit: (event) => {
          event.preventDefault();
          this.answer(event.target.elements.choice?.value ?? "");
        },
      }, el("fieldset", {}, el("legend", {}, ...prose(step.question)), ...choices), answered ? null : button);
    }

    explanation() {
      const { step } = this;
      const given = this.answers.get(this.place);
      const told = this.told.get(this.place);
      const verdict = step.right === null ? [] : [el("p", { class: "verdict" },
        given === step.right ? `Yes: ${step.right}.` : `No, not ${given}: ${step.right}.`)];
      const changes = step.changes.length
        ? [el("p", { class: "about" }, "Changed in the scenario:"), el("pre", {}, step.changes.join("\n"))] : [];
      if (!told) return [...verdict, ...changes];
      const figures = el("details", {}, el("summary", {}, "the figures"),
        el("table", {}, el("tbody", {}, ...told.figures.map((f) => el("tr", {}, el("td", {}, f.what), el("td", {}, f.shown))))));
      return [...verdict, ...changes, ...told.paragraphs.map((p) => el("p", {}, ...prose(p))), figures];
    }

    end() {
      const asked = this.lesson.steps.map((s, i) => [s.right, this.answers.get(i)]).filter(([right]) => right !== null);
      const right = asked.filter(([a, b]) => a === b).length;
      return el("span", { class: "end" }, `The end: ${right} of ${asked.length} right. Everything in the scenario may be changed now.`);
    }
  }

  return { create: (lesson, holder, page) => new Made(lesson, holder, page) };
})();
