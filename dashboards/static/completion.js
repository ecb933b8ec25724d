// Completions of a spec in a textarea: what can stand at the cursor, from the server's catalog.

const MOST = 12; // as many as stand there without scrolling

/** Lists completions of `text` in the listbox `list`; `key` takes a keydown and says whether it was for the list. */
export function completions(text, list) {
  let words = null;
  let open = [];
  let at = 0;
  let typed = "";

  // Asked for once: an answer to an earlier key must not draw the list anew below a later one.
  const load = () => (words ??= fetch("/submit/words").then((answer) => answer.json()));

  function close() {
    open = [];
    list.hidden = true;
    text.removeAttribute("aria-activedescendant");
    text.removeAttribute("aria-controls");
  }

  async function show(requested) {
    const known = await load().catch(() => null);
    const place = known && text.selectionStart === text.selectionEnd ? placeOf(text.value, text.selectionStart) : null;
    if (!place) return close();
    typed = place.word;
    const fitting = wordsAt(place, known).filter((one) => one.name.startsWith(typed) && one.insert !== typed);
    const others = wordsAt(place, known).filter((one) => !one.name.startsWith(typed) && one.name.includes(typed));
    open = [...fitting, ...(typed ? others : [])].slice(0, MOST);
    if (!open.length || (!requested && !typed)) return close();
    at = 0;
    draw();
  }

  function draw() {
    list.replaceChildren(
      ...open.map((one, number) => {
        const row = document.createElement("li");
        row.id = `word-${number}`;
        row.role = "option";
        row.ariaSelected = String(number === at);
        const name = document.createElement("b");
        name.textContent = one.name;
        const label = document.createElement("span");
        label.textContent = one.label ?? "";
        row.append(name, label);
        row.addEventListener("mousedown", (event) => {
          event.preventDefault();
          take(number);
        });
        return row;
      }),
    );
    put();
    list.hidden = false;
    list.children[at].scrollIntoView({ block: "nearest" });
    text.setAttribute("aria-controls", list.id);
    text.setAttribute("aria-activedescendant", `word-${at}`);
  }

  /** Below the cursor, or above it where there is no room. */
  function put() {
    const before = text.value.slice(0, text.selectionStart).split("\n");
    const style = getComputedStyle(text);
    const row = parseFloat(style.lineHeight);
    const wide = measure(style, before.at(-1).slice(0, -typed.length || undefined));
    const top = before.length * row + parseFloat(style.paddingTop) - text.scrollTop;
    const room = text.clientHeight - top;
    list.style.left = `${Math.max(0, Math.min(text.clientWidth - 200, wide + 6 - text.scrollLeft))}px`;
    list.style.top = room > text.clientHeight / 2 ? `${top}px` : "auto";
    list.style.bottom = room > text.clientHeight / 2 ? "auto" : `${text.clientHeight - top + row}px`;
  }

  function take(number) {
    const end = text.selectionStart;
    text.setSelectionRange(end - typed.length, end);
    const { insert } = open[number];
    close();
    document.execCommand("insertText", false, insert);
    close();
  }

  text.addEventListener("input", (event) => event.inputType !== "historyUndo" && show(false));
  text.addEventListener("blur", close);
  text.addEventListener("click", close);

  return {
    key(event) {
      if (event.key === " " && event.ctrlKey) show(true);
      else if (list.hidden) return false;
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        at = (at + (event.key === "ArrowDown" ? 1 : open.length - 1)) % open.length;
        draw();
      } else if (event.key === "Enter" || event.key === "Tab") take(at);
      else if (event.key === "Escape") close();
      else return false;
      event.preventDefault();
      return true;
    },
  };
}

let pen = null;
function measure(style, words) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  return pen.measureText(words).width;
}

/** Where the cursor is: the word before it, the key whose value it is in, the keys above, the braces around it. */
export function placeOf(text, caret) {
  const lines = text.slice(0, caret).split("\n");
  const before = lines.at(-1);
  if (/(^|\s)#/.test(before)) return null;
  const word = before.match(/[\w.@]*$/)[0];
  const head = before.slice(0, before.length - word.length);
  const above = keysAbove(lines);
  const brace = unclosed(head);
  if (brace >= 0) {
    const outside = head.slice(0, brace).match(/([\w.]+):\s*(?:\[.*)?$/);
    const inside = head.slice(brace + 1);
    const last = inside.split(",").at(-1);
    const given = last.match(/^\s*([\w.]+):\s*\[?[^\]]*$/);
    return {
      word, text, above,
      within: outside?.[1] ?? above.at(-1) ?? "",
      name: inside.match(/name:\s*([\w.]+)/)?.[1] ?? "",
      taken: [...inside.matchAll(/([\w.]+):/g)].map((one) => one[1]),
      key: given?.[1] ?? null,
    };
  }
  const given = head.match(/^\s*(?:- )?([\w.]+):\s+(.*)$/);
  const item = /^\s*- +$/.test(head);
  return { word, text, above, within: null, name: "", taken: [], key: given?.[1] ?? (item || insideList(head) ? above.at(-1) : null) };
}

const insideList = (head) => /^\s*\[?[\w.@, ]*,\s*$/.test(head) && head.includes(",");

function unclosed(head) {
  let depth = 0;
  for (let at = head.length - 1; at >= 0; at -= 1) {
    if (head[at] === "}") depth += 1;
    else if (head[at] === "{" && depth-- === 0) return at;
  }
  return -1;
}

/** The keys of the blocks that the last line stands in, outermost first. */
function keysAbove(lines) {
  const found = [];
  let indent = lines.at(-1).match(/^\s*/)[0].length;
  for (const line of lines.slice(0, -1).reverse()) {
    const match = line.match(/^(\s*)(?:- )?([\w.]+):/);
    if (match && match[1].length < indent) {
      found.unshift(match[2]);
      indent = match[1].length;
    } else if (match && match[1].length === indent && /^\s*- /.test(lines.at(-1)) && /:\s*(#.*)?$/.test(line) && !found.length) {
      found.unshift(match[2]); // a list may stand below its key without being indented
    }
  }
  return found;
}

const SPLITS = ["train", "validation", "test"];
const PARTED = ["rows", "columns"];

function wordsAt(place, words) {
  const parts = (kind) => words.parts[kind]?.map((one) => ({ ...one, insert: one.name }));
  const value = (key) => {
    if (key === "metric" || key === "metrics" || key === "select.metric") return parts("metric");
    if (key === "split" || key === "select.split") return plain(SPLITS);
    if (key === "validation") return plain(words.validation);
    if (PARTED.includes(key)) return plain(axes(place.text));
    return parts(key) ?? [];
  };
  if (place.within !== null) {
    const kind = place.within;
    if (place.key === "name") return kind === "validation" ? plain(words.validation) : (parts(kind) ?? []);
    if (place.key) return value(place.key);
    if (kind === "when" || kind === "only" || kind === "without") return keyed(axes(place.text));
    if (kind === "select") return keyed(["metric", "split"].filter((one) => !place.taken.includes(one)));
    if (kind === "metrics") return keyed(["metric", "split", "decimals", "unit"].filter((one) => !place.taken.includes(one)));
    if (!words.parts[kind]) return [];
    const options = place.name ? optionsOf(words, kind, place.name) : [{ name: "name", insert: "name: " }];
    return options.filter((one) => !place.taken.includes(one.name));
  }
  if (place.key) return value(place.key);
  const [top, ...deeper] = place.above;
  const inner = deeper.at(-1);
  if (!top) return words.spec.map((one) => ({ ...one, insert: `${one.name}: ` }));
  if (top === "recipe") return inner ? (optionsOfBlock(words, inner, place.text) ?? []) : keyed(words.recipe);
  if (["compare", "tune", "repeat"].includes(top)) return inner ? value(inner) : keyed([...words.recipe, ...dotted(words)]);
  if (top === "tables") return deeper.length === 1 ? keyed(words.table) : [];
  if (top === "select") return keyed(["metric", "split"]);
  return [];
}

const plain = (names) => names.map((name) => ({ name, insert: name }));
const keyed = (names) => names.map((name) => ({ name, insert: `${name}: ` }));

function optionsOf(words, kind, name) {
  const options = words.parts[kind]?.find((one) => one.name === name)?.options ?? [];
  return options.map((one) => ({ name: one.name, label: `default ${shown(one.default)}`, insert: `${one.name}: ${shown(one.default)}` }));
}

function optionsOfBlock(words, kind, text) {
  const name = text.match(new RegExp(`^\\s+${kind}:\\s*\\n(?:\\s+.*\\n)*?\\s+name:\\s*([\\w.]+)`, "m"))?.[1];
  return words.parts[kind] && [...keyed(["name"]), ...(name ? optionsOf(words, kind, name) : [])];
}

/** Hyper-parameters as axes have them: `regularizer.eta`. */
function dotted(words) {
  const names = Object.entries(words.parts).flatMap(([kind, parts]) => parts.flatMap((one) => one.options.map((option) => `${kind}.${option.name}`)));
  return [...new Set(names)].sort();
}

/** The axes that the text names. */
function axes(text) {
  const blocks = [...text.matchAll(/^(?:compare|tune|repeat):.*\n((?:[ \t]+.*\n|\s*\n)*)/gm)].map((one) => one[1]);
  return ["dataset", ...new Set(blocks.flatMap((block) => [...block.matchAll(/^ {1,4}([\w.]+):/gm)].map((one) => one[1])))];
}

const shown = (value) => (value === null ? "null" : Array.isArray(value) ? `[${value.map(shown).join(", ")}]` : String(value));
