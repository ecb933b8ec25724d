// Draws a sweep's figures with the Vega that this server holds, once they come into view, and again when they change.
// They look as they will in print. Expressions are interpreted (`ast`): the page's policy allows no code made from text.

const PAUSE = 15_000; // milliseconds between two questions about one figure: drawing it costs the server some work
const SCREEN = 1.5; // pixels of a screen to a point of the print, where there is room

const shown = new WeakMap(); // by place: when it was requested, what was drawn, and the view

async function draw(place, now = false) {
  const known = shown.get(place) ?? { at: 0, text: "", view: null };
  if (!now && Date.now() - known.at < PAUSE) return;
  const request = { ...known, at: Date.now() };
  shown.set(place, request);
  try {
    const answer = await fetch(place.dataset.drawn, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const text = await answer.text();
    if (text === known.text) return;
    const figure = JSON.parse(text);
    const grammar = figure.$schema?.match(/v[\d.]+\d/)?.[0] ?? "";
    if (!window.vegaEmbed) await import(`${place.dataset.script}?v=${encodeURIComponent(grammar)}`);
    const facts = figure.usermeta ?? {};
    delete figure.usermeta;
    delete figure.$schema;
    figure.description = [facts.title, facts.caption, ...(facts.notes ?? [])].filter(Boolean).join(" ");
    const aside = document.createElement("div");
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true };
    const view = await window.vegaEmbed(aside, figure, options);
    const drawing = aside.querySelector("svg");
    drawing.style.width = `${SCREEN * drawing.viewBox.baseVal.width}px`;
    if (shown.get(place) !== request) return view.finalize(); // a later request replaced it
    place.replaceChildren(aside);
    known.view?.finalize();
    shown.set(place, { at: request.at, text, view });
  } catch (error) {
    console.error("the figure cannot be drawn", error);
  }
}

const visible = new Set();
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) visible.add(target);
      else visible.delete(target);
      if (isIntersecting && !shown.has(target)) draw(target);
    }
  },
  { rootMargin: "200px" },
);
const places = () => document.querySelectorAll("[data-drawn]");
places().forEach((place) => watcher.observe(place));

document.addEventListener("refreshed", () => {
  places().forEach((place) => watcher.observe(place));
  const over = !document.getElementById("main").dataset.refresh; // the page will not ask again
  visible.forEach((place) => draw(place, over));
});
