// Keeps a page current: asks for it again when follow.js says that it changed, or while it says so itself where no
// events come, and changes only what differs, so that focus, scroll positions and what a person unfolded stay as they
// are. Without this script the page reloads itself or stands still.

const main = document.getElementById("main");
const note = document.getElementById("note");
const REQUEST_SECONDS = 30;
const IDLE_SECONDS = 60; // between two looks at an active page without events: its times go on
const AWAY_SECONDS = 3;
const JITTER = 0.5; // seconds, so that the listeners to an event do not all ask at once

/** Make `old` equal to `next` in place. What is marked data-keep belongs to another script. */
function morph(old, next) {
  if (old.isEqualNode(next)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  morphAttributes(old, next);
  if (!old.hasAttribute("data-keep")) morphChildren(old, next);
}

function morphAttributes(old, next) {
  const own = (name) => name === "data-live" || (name === "open" && old.nodeName === "DETAILS"); // ours, the person's
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && !own(name)) old.removeAttribute(name);
  for (const { name, value } of [...next.attributes])
    if (old.getAttribute(name) !== value && !own(name)) old.setAttribute(name, value);
}

function morphChildren(old, next) {
  const wanted = new Set([...next.children].map((child) => child.id).filter(Boolean));
  const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  const stays = (node) => node.id && wanted.has(node.id);
  let cursor = old.firstChild;
  for (const child of [...next.childNodes]) {
    const match = child.id ? known.get(child.id) : cursor && !stays(cursor) ? cursor : null;
    if (!match || match.nodeName !== child.nodeName) {
      old.insertBefore(child, cursor);
      continue;
    }
    while (cursor && cursor !== match && !stays(cursor)) cursor = removed(cursor);
    if (match === cursor) cursor = cursor.nextSibling;
    else old.insertBefore(match, cursor);
    morph(match, child);
  }
  while (cursor) cursor = removed(cursor);
}

function removed(node) {
  const following = node.nextSibling;
  node.remove();
  return following;
}

function say(text) {
  note.textContent = text;
  note.hidden = !text;
}

/** The recent request of a form of this page, until the page shows that the conductor applied it. */
function requested() {
  const kept = JSON.parse(sessionStorage.getItem("requested") ?? "null");
  const fresh = kept && kept.page === location.pathname && Date.now() < kept.until;
  return fresh && (!kept.state || kept.state === main.dataset.state) ? kept : null;
}

function seconds() {
  return Number(main.dataset.refresh ?? 0) || (requested() ? 2 : 0);
}

let live = false; // events come
let timer = 0;
let due = Infinity; // when the next look is, by performance.now()
let looked = performance.now();
let looking = false;
let missed = null; // a change that came during the last look
let away = false; // whether the last look failed

function lookAt(time) {
  if (document.hidden || time >= due) return;
  due = time;
  clearTimeout(timer);
  timer = setTimeout(turn, Math.max(0, due - performance.now()));
}

function plan(took = 0) {
  clearTimeout(timer);
  due = Infinity;
  const often = away ? seconds() || AWAY_SECONDS : seconds();
  const pause = often && live && !away && !requested() ? IDLE_SECONDS : often;
  if (pause) lookAt(performance.now() + Math.max(pause * 1000, 4 * took));
}

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  document.title = page.title;
  morph(main, page.getElementById("main"));
  document.dispatchEvent(new Event("refreshed"));
}

async function turn() {
  if (looking) return;
  looking = true;
  looked = performance.now();
  due = Infinity;
  missed = null;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.redirected) return location.assign(answer.url); // the login ran out
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.text());
    say(requested()?.message ?? "");
    away = false;
  } catch {
    away = true;
    say("The server does not answer; what is shown may be old. Asking again.");
  } finally {
    looking = false;
  }
  plan(performance.now() - looked);
  if (missed) changed({ detail: missed });
}

function changed({ detail }) {
  const { seconds: pause } = detail;
  if (looking && (!missed || pause < missed.seconds)) missed = detail;
  if (looking) return;
  const earliest = Math.max(looked + pause * 1000, performance.now());
  lookAt(earliest + Math.random() * JITTER * 1000);
}

document.addEventListener("submit", ({ target }) => {
  const { requestPage: page, message } = target.dataset;
  if (!page) return;
  // Another page than this one (none here) has a state of its own.
  const state = page === location.pathname ? main.dataset.state : "";
  const until = Date.now() + REQUEST_SECONDS * 1000;
  sessionStorage.setItem("requested", JSON.stringify({ page, message, state, until }));
});
document.addEventListener("changed", changed);
document.addEventListener("live", ({ detail }) => {
  if (live === detail) return;
  live = detail;
  main.toggleAttribute("data-live", live);
  plan();
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  due = Infinity;
  if (!document.hidden && (seconds() || main.dataset.follow)) turn();
});
say(requested()?.message ?? "");
plan();
