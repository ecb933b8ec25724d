// Draws the plot beside a listing and links it with the rows: chosen rows stand out in it, and rows inside a frame that
// is drawn in it are marked. Expressions are interpreted (`ast`): the page's policy allows no code made from text.

const place = document.getElementById("plot");
const note = document.getElementById("plot-note");
const rows = [...document.querySelectorAll("tr[data-trial]")];
const boxes = [...document.querySelectorAll("tr[data-trial] input[type=checkbox]")];
let view = null;
let figure = null;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const [text, muted, line, page] = ["--text", "--muted", "--line", "--page"].map((name) => style.getPropertyValue(name));
  return {
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: line },
    axis: { labelColor: muted, titleColor: text, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 400 },
    legend: { labelColor: text, titleColor: muted, titleFontWeight: 400, orient: place.clientWidth < 620 ? "bottom" : "right", columns: place.clientWidth < 620 ? 2 : 1 },
    text: { color: text, limit: place.clientWidth < 620 ? 60 : 130 },
    title: { color: text },
    style: { halo: { stroke: page, strokeWidth: 3, strokeJoin: "round" } },
  };
}

const chosen = () => {
  const trials = boxes.filter((box) => box.checked).map((box) => [box.value, true]);
  return Object.fromEntries([["any", trials.length > 0], ...trials]);
};

function say() {
  const count = boxes.filter((box) => box.checked).length;
  document.getElementById("chosen").textContent = count ? `${count} chosen` : "";
  if (view) view.signal("chosen", chosen()).runAsync();
}

/** Mark the rows whose points lie within the frame. */
function framed(_, frame) {
  const inside = frame?.v0 && frame?.v1 ? points().filter((one) => within(one, frame)) : [];
  const trials = new Set(inside.map((one) => String(one.trial)));
  for (const row of rows) row.classList.toggle("framed", trials.has(row.dataset.trial));
  const here = rows.filter((row) => trials.has(row.dataset.trial)).length;
  note.textContent = trials.size ? `${trials.size} points in the frame; ${here} of them in the table below are marked.` : caption();
}

const points = () => (figure.layer ?? [figure]).flatMap(({ data }) => data?.values ?? figure.datasets?.[data?.name] ?? []).filter((one) => one.trial);
const within = (one, frame) => ["v0", "v1"].every((key) => one[key] >= Math.min(...frame[key]) && one[key] <= Math.max(...frame[key]));
const caption = () => [figure.usermeta?.title, ...(figure.usermeta?.notes ?? [])].filter(Boolean).join(". ") + ".";

async function fetched() {
  const answer = await fetch(place.dataset.plot, { headers: { Accept: "application/json" } });
  const read = await answer.json();
  if (!answer.ok) throw new Error(read.detail ?? `status ${answer.status}`);
  return read;
}

async function draw() {
  try {
    figure ??= await fetched();
    if (!window.vegaEmbed) await import(`${place.dataset.script}?v=${encodeURIComponent(figure.$schema?.match(/v[\d.]+\d/)?.[0] ?? "")}`);
    const { usermeta, $schema, ...spec } = figure;
    const narrow = place.clientWidth < 620;
    spec.width = Math.max(200, Math.min(1100, place.clientWidth - (narrow ? 80 : 210)));
    spec.description = `${caption()} The rows are in the table below.`;
    const aside = document.createElement("div");
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, config: colours() };
    const made = await window.vegaEmbed(aside, spec, options);
    place.replaceChildren(aside);
    view?.finalize();
    view = made.view;
    note.textContent = caption();
    if (usermeta?.points === 0) note.textContent = "There are no numbers to draw yet.";
    try {
      view.addSignalListener("brush", framed);
    } catch {
      // not every plot has frames
    }
    view.signal("chosen", chosen()).runAsync();
  } catch (error) {
    place.replaceChildren();
    note.textContent = `Nothing is drawn: ${error.message}`;
  }
}

for (const box of boxes) box.addEventListener("change", say);
if (place) {
  draw();
  let later = 0;
  addEventListener("resize", () => (clearTimeout(later), (later = setTimeout(draw, 200))));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
if (boxes.length) say();
