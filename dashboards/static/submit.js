// The editor of specs: a plain textarea, whose text is checked by the server while it is typed, with marks beside its
// lines and a list of completions below the cursor. Without this script the form works as any form does.

import { completions } from "./completion.js";

const form = document.getElementById("submit");
const text = document.getElementById("spec");
const numbers = document.getElementById("numbers");
const marks = document.getElementById("marks");
const verdict = document.getElementById("verdict");
const list = document.getElementById("problems");
const key = document.getElementById("key");
const WAIT = 450; // milliseconds without a key before the text is checked
const KEPT = `spec ${location.search}`; // where half-typed text survives a reload

let problems = [];

// What is typed survives a reload of this page; a refused text that the server sent back is newer.

const sent = form.dataset.origin === "what you sent";
const kept = sessionStorage.getItem(KEPT);
if (kept !== null && kept !== text.value && !sent) {
  text.value = kept;
  document.getElementById("origin").textContent = `${form.dataset.origin}, with your changes`;
}
form.addEventListener("submit", () => sessionStorage.removeItem(KEPT));

/** Another text is another sweep: the key submits one text once, however often it is sent. */
function renewed() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  key.value = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Lines and marks

function draw() {
  const count = text.value.split("\n").length;
  const wrong = new Set(problems.map((one) => one.line));
  numbers.replaceChildren(
    ...Array.from({ length: count }, (_, at) => {
      const line = document.createElement(wrong.has(at + 1) ? "b" : "span");
      line.textContent = `${wrong.has(at + 1) ? "● " : ""}${at + 1}\n`;
      return line;
    }),
  );
  follow();
}

function follow() {
  const style = getComputedStyle(document.getElementById("editor"));
  const [row, pad] = ["--row", "--pad"].map((name) => parseFloat(style.getPropertyValue(name)));
  numbers.style.transform = `translateY(${-text.scrollTop}px)`;
  numbers.parentElement.style.height = `${text.offsetHeight}px`;
  const lines = [...new Set(problems.map((one) => one.line).filter(Boolean))];
  marks.replaceChildren(
    ...lines.map((line) => {
      const mark = document.createElement("i");
      mark.style.top = `${pad + (line - 1) * row - text.scrollTop}px`;
      return mark;
    }),
  );
}

function goTo(line) {
  const start = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const end = text.value.indexOf("\n", start);
  text.focus();
  text.setSelectionRange(start, end < 0 ? text.value.length : end);
  text.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(text).lineHeight));
}

// The check

let timer = 0;
let asking = null;

function soon(wait = WAIT) {
  clearTimeout(timer);
  asking?.abort();
  timer = setTimeout(check, wait);
}

async function check() {
  const controller = new AbortController();
  asking = controller;
  try {
    const answer = await fetch("/submit/check", {
      method: "POST",
      body: text.value,
      headers: { "Content-Type": "application/yaml" },
      signal: controller.signal,
    });
    if (answer.redirected || answer.status === 401) return say("bad", ["You are logged out. What you typed is kept: log in, and come back."]);
    if (answer.status === 503) {
      const seconds = Number(answer.headers.get("Retry-After")) || 5;
      say("", [`The server is busy; the check is repeated in ${seconds} s.`]);
      return soon(seconds * 1000);
    }
    const checked = await answer.json();
    if (!answer.ok) return shown([], () => say("bad", [checked.detail]));
    shown(checked.problems, () => (checked.problems.length ? counted(checked.problems.length) : wouldBe(checked)));
  } catch (error) {
    if (error.name !== "AbortError") say("bad", ["The server does not answer; the text is checked again when you type."]);
  }
}

function shown(found, tell) {
  problems = found;
  tell();
  list.replaceChildren(...found.map(item));
  if (found.some((one) => one.line)) text.setAttribute("aria-invalid", "true");
  else text.removeAttribute("aria-invalid");
  draw();
}

function item(problem) {
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const place = document.createElement("b");
  place.textContent = problem.line ? `line ${problem.line} ` : "";
  const path = document.createElement("code");
  path.textContent = problem.path;
  button.append(place, path, ` ${problem.message}`);
  button.addEventListener("click", () => goTo(problem.line ?? 1));
  row.append(button);
  return row;
}

function counted(count) {
  say("bad", [count === 1 ? "1 problem" : `${count} problems`]);
}

function wouldBe({ summary, warnings, notes }) {
  say("good", [summary[0]]);
  for (const [lines, kind] of [[summary.slice(1), ""], [notes, ""], [warnings, "warned"]]) lines.forEach((line) => verdict.append(paragraph(kind, line)));
}

function say(kind, lines) {
  verdict.replaceChildren(...lines.map((line) => paragraph(kind, line)));
}

function paragraph(kind, words) {
  const made = document.createElement("p");
  if (kind) made.className = kind;
  made.textContent = words;
  return made;
}

// Keys

const offered = completions(text, document.getElementById("words"));

text.addEventListener("input", () => {
  sessionStorage.setItem(KEPT, text.value);
  renewed();
  draw();
  soon();
});
text.addEventListener("scroll", follow);
new ResizeObserver(follow).observe(text);
text.addEventListener("keydown", (event) => {
  if (offered.key(event)) return;
  if (event.altKey && event.key === "ArrowDown" && problems.length) {
    const here = text.value.slice(0, text.selectionStart).split("\n").length;
    const lines = problems.map((one) => one.line).filter(Boolean).sort((a, b) => a - b);
    goTo(lines.find((line) => line > here) ?? lines[0] ?? 1);
    event.preventDefault();
  } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.isComposing) {
    const line = text.value.slice(0, text.selectionStart).split("\n").at(-1);
    const indent = line.match(/^\s*(- )?/)[0].replace("-", " ") + (/:\s*$/.test(line) ? "  " : "");
    event.preventDefault();
    document.execCommand("insertText", false, `\n${indent}`); // of all ways the one that can be undone
  }
});
draw();
soon(0);
