// Tells a person by the browser's own notifications when a sweep ends, stalls or is hindered: those that he asked about
// on their pages, or all. Permission is asked only when he ticks a box; what he ticked stays in this browser.

const KEY = "metricsweep-notify";
const ACTIVE = ["queued", "running", "paused"];
const main = document.getElementById("main");
const place = document.getElementById("notify"); // only a sweep's page has it
const own = Number(place?.dataset.sweep ?? 0);
const active = new Set(); // sweeps that were seen before they ended: a note on one that had ended is no news

function kept() {
  try {
    const { all = false, sweeps = [] } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return { all, sweeps };
  } catch {
    return { all: false, sweeps: [] };
  }
}

function allowed() {
  return Notification.permission === "granted";
}

/** While somebody wants to be told, follow.js goes on listening for pages that are behind others. */
function mark() {
  const { all, sweeps } = kept();
  document.documentElement.toggleAttribute("data-notifying", allowed() && (all || sweeps.length > 0));
}

/** What a change is told as; none: it is no news. */
function news({ type, state, notice, trial, sweep }) {
  if (type === "stalled" || (type === "notice" && notice)) active.add(sweep); // what has ended is neither
  if (type === "stalled") return `trial ${trial} was silent for too long and was stopped`;
  if (type === "notice" && notice) return notice;
  if (type === "progress" || (type === "sweep" && ACTIVE.includes(state))) active.add(sweep);
  else if (type === "sweep" && state && active.delete(sweep)) return state;
  return null;
}

function heard({ detail }) {
  const said = news(detail);
  const { all, sweeps } = kept();
  if (!said || !allowed() || !(all || sweeps.includes(detail.sweep))) return;
  const title = `Sweep ${detail.sweep}${detail.name ? ` ${detail.name}` : ""}`;
  try {
    // The tag has several pages that heard it tell it once.
    const shown = new Notification(title, { body: said, tag: `metricsweep ${detail.sweep} ${said}` });
    shown.onclick = () => {
      window.focus();
      location.assign(`/sweeps/${detail.sweep}`);
      shown.close();
    };
  } catch {
    say("This browser shows no notifications of pages.");
  }
}

function say(text) {
  if (place) place.querySelector("[role=status]").textContent = text;
}

async function chosen({ target }) {
  if (target.checked && Notification.permission === "default") await Notification.requestPermission();
  if (target.checked && !allowed()) {
    target.checked = false;
    return say("This browser was told not to show notifications of this page; its settings of the site change that.");
  }
  const { all, sweeps } = kept();
  const others = sweeps.filter((sweep) => sweep !== own);
  const next =
    target.name === "all"
      ? { all: target.checked, sweeps }
      : { all, sweeps: target.checked ? [...others, own] : others };
  localStorage.setItem(KEY, JSON.stringify(next));
  say(target.checked ? "You are told while a page of metricsweep is open." : "");
  mark();
}

function offer() {
  place.innerHTML = `<details class="ask"><summary>Notify me…</summary><form>
<p>The browser tells you when it ends, stalls, or waits for a machine.</p>
<p><label><input type="checkbox" name="one"> this sweep</label><label><input type="checkbox" name="all"> every sweep</label></p>
<p role="status" class="muted"></p></form></details>`;
  const { all, sweeps } = kept();
  place.querySelector("[name=one]").checked = allowed() && sweeps.includes(own);
  place.querySelector("[name=all]").checked = allowed() && all;
  place.addEventListener("change", chosen);
  place.addEventListener("submit", (event) => event.preventDefault());
  if (ACTIVE.includes(main.dataset.state)) active.add(own);
}

if (window.isSecureContext && "Notification" in window && "SharedWorker" in window) {
  if (place) offer();
  mark();
  addEventListener("storage", ({ key }) => key === KEY && mark());
  document.addEventListener("told", heard);
}
