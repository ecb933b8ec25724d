// Tells refresh.js when what its page shows has changed, by the stream that the pages of this browser share. A page
// says what it shows in data-follow: `all`, `sweep 7`, `sweep 7 cell 3` or `sweep 7 trial 41`.

const main = document.getElementById("main");
const address = document.querySelector("meta[name=feed]")?.content;
const [SOON, LATER, SLOWLY] = [0.5, 3, 5]; // seconds between two looks, by what has changed
let port = null;

/** Whether nobody looks at this page. */
function idle() {
  return document.hidden;
}

function tell(name, detail) {
  document.dispatchEvent(new CustomEvent(name, { detail }));
}

/** How many seconds after the last look a change is to be shown; none: this page does not show it. */
function pause(change) {
  if (!change) return SOON; // somebody has to look anew
  const words = (main.dataset.follow ?? "").split(" ");
  const wanted = words[0] === "all" ? {} : Object.fromEntries([[words[0], words[1]], [words[2], words[3]]]);
  if (wanted.sweep && String(change.sweep) !== wanted.sweep) return null;
  if (["sweep", "notice", "stalled", "request", "trials"].includes(change.type)) return SOON;
  if (!wanted.sweep) return change.type === "progress" ? null : LATER; // a list shows how many have ended
  if (wanted.trial && String(change.trial) !== wanted.trial) return null;
  if (wanted.cell && String(change.cell) !== wanted.cell) return null;
  return change.type === "progress" ? SLOWLY : LATER;
}

function heard({ data: { live, change } }) {
  if (live !== undefined) return tell("live", live);
  const seconds = pause(change);
  if (change) tell("told", change);
  if (seconds !== null) tell("changed", { seconds });
}

function join() {
  if (port || idle() || !main.dataset.follow) return;
  port = new SharedWorker(address, { name: "metricsweep" }).port;
  port.onmessage = heard;
}

function leave() {
  port?.postMessage("leave");
  port?.close();
  port = null;
  tell("live", false);
}

if (window.SharedWorker && address) {
  document.addEventListener("visibilitychange", () => (idle() ? leave() : join()));
  addEventListener("pagehide", leave);
  addEventListener("pageshow", join);
  join();
}
