// Keeps a page current: asks for it again while it says so and changes only what differs, so that focus, scroll
// positions and what a person unfolded stay as they are. Without this script the page reloads itself or stands still.

const main = document.getElementById("main");
const note = document.getElementById("note");
const ASKED_SECONDS = 30;

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
  const own = (name) => name === "open" && old.nodeName === "DETAILS"; // the person's
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

/** What a form of this page asked for a moment ago, which the page shows only once the conductor has seen to it. */
function asked() {
  const kept = JSON.parse(sessionStorage.getItem("asked") ?? "null");
  const fresh = kept && kept.page === location.pathname && Date.now() < kept.until;
  return fresh && (!kept.state || kept.state === main.dataset.state) ? kept : null;
}

function seconds() {
  return Number(main.dataset.refresh ?? 0) || (asked() ? 2 : 0);
}

let timer = 0;
function plan(took = 0) {
  clearTimeout(timer);
  if (seconds() && !document.hidden) timer = setTimeout(turn, Math.max(seconds() * 1000, 4 * took));
}

async function turn() {
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.redirected) return location.assign(answer.url); // the login ran out
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    morph(main, page.getElementById("main"));
    document.dispatchEvent(new Event("refreshed"));
    say(asked()?.said ?? "");
  } catch {
    say("The server does not answer; what is shown may be old. Asking again.");
  }
  plan(performance.now() - began);
}

document.addEventListener("submit", ({ target }) => {
  const { asks, said } = target.dataset;
  if (!asks) return;
  // Another page than this one (none here) has a state of its own.
  const state = asks === location.pathname ? main.dataset.state : "";
  sessionStorage.setItem("asked", JSON.stringify({ page: asks, said, state, until: Date.now() + ASKED_SECONDS * 1000 }));
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : seconds() && turn()));
say(asked()?.said ?? "");
plan();
