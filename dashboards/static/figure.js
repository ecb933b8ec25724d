// Draws the curves of a page with the Vega that this server holds, in the page's colours and width, again when they change:
// new points come into the drawing that is there, so that it stays zoomed.
// Expressions are interpreted (`ast`): the page's policy allows no code made from text.

const CHART = 320; // pixels that one of the small multiples wants
const NARROW = 620; // pixels of a page below which a legend has one column
const BESIDE = 62; // pixels of a chart beside its plotting area

const drawings = new WeakMap(); // by place: what is shown, its view, and its form, which is all of the figure but its data

function colours() {
  const style = getComputedStyle(document.documentElement);
  const [text, muted, line, accent] = ["--text", "--muted", "--line", "--accent"].map((name) => style.getPropertyValue(name));
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    axis: { labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 400 },
    title: { color: text, anchor: "start", fontSize: 12, fontWeight: 600 },
    mark: { color: accent },
    line: { color: accent },
    point: { color: accent, fill: accent },
    legend: { labelColor: text, titleColor: muted },
    view: { stroke: null },
  };
}

/** One chart, or small multiples with as many charts in a row as the page is wide. */
function fitted(figure, width) {
  if (!figure.concat) return { ...figure, width: Math.max(200, width - 80), layer: figure.layer?.map((one) => narrowed(one, width)) };
  const columns = Math.max(1, Math.min(3, Math.floor(width / CHART)));
  const plot = Math.max(140, Math.min(340, Math.floor(width / columns) - BESIDE - 8));
  return { ...figure, columns, spacing: 16, concat: figure.concat.map((chart) => ({ ...chart, width: plot, layer: chart.layer?.map((one) => narrowed(one, width)) })) };
}

/** On a phone the names of a legend stand below one another. */
function narrowed(layer, width) {
  const encoding = Object.entries(layer.encoding).map(([channel, one]) =>
    [channel, one.legend?.columns && width < NARROW ? { ...one, legend: { ...one.legend, columns: 1, labelLimit: width - 60 } } : one]);
  return { ...layer, encoding: Object.fromEntries(encoding) };
}

async function draw() {
  for (const here of document.querySelectorAll("[data-figure]")) await drawIn(here);
}

async function drawIn(here) {
  const source = document.getElementById(here.dataset.figure);
  if (!source) return;
  if (!drawings.has(here)) drawings.set(here, { shown: "", drawn: null, form: "" });
  const state = drawings.get(here);
  const width = here.clientWidth;
  const wanted = [width, matchMedia("(prefers-color-scheme: dark)").matches, source.textContent].join();
  if (wanted === state.shown && here.querySelector("svg")) return;
  state.shown = wanted;
  try {
    if (!window.vegaEmbed) await import(here.dataset.script);
    const aside = document.createElement("div");
    const figure = fitted(JSON.parse(source.textContent), width);
    figure.description = here.dataset.description ?? "The trial's curves; their last values are in the table that follows.";
    const { datasets, ...rest } = figure;
    const wantedForm = JSON.stringify([rest, matchMedia("(prefers-color-scheme: dark)").matches]);
    if (state.drawn && datasets && state.form === wantedForm && here.querySelector("svg")) {
      for (const [name, values] of Object.entries(datasets)) state.drawn.view.data(name, values);
      return void (await state.drawn.view.runAsync());
    }
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: colours() };
    const made = await window.vegaEmbed(aside, figure, options);
    if (wanted !== state.shown) return made.finalize(); // another drawing began meanwhile
    here.replaceChildren(aside);
    const values = here.dataset.figure === "figure" && document.getElementById("last-values");
    if (!state.drawn && values) values.open = false;
    state.drawn?.finalize();
    Object.assign(state, { drawn: made, form: wantedForm });
  } catch (error) {
    console.error("the curves cannot be drawn", error);
  }
}

let later = 0;
const soon = () => {
  clearTimeout(later);
  later = setTimeout(draw, 150);
};
document.addEventListener("refreshed", draw);
addEventListener("resize", soon);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
