"""HTML tables as Chromium lays them out, compared with JSON cell by cell; signs stay within their cells."""

import json
from html import unescape

import pytest
from playwright.sync_api import Browser

from dashboards import rendering
from orchestrator.publish.formats import render
from tests.publish import shapes

pytestmark = pytest.mark.browser

READ = """() => [...document.querySelectorAll("table")].map((table) => {
  const box = (one) => one.getBoundingClientRect();
  const within = (inner, outer) => inner.left >= outer.left - 0.5 && inner.right <= outer.right + 0.5
    && inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5;
  const overlap = (one, two) => one.right > two.left + 0.5 && two.right > one.left + 0.5;
  const bare = (one) => {
    const copy = one.cloneNode(true);
    copy.querySelectorAll("sup, .std").forEach((part) => part.remove());
    return copy.textContent.trim();
  };
  const beside = [...table.querySelectorAll("tbody th")];
  const over = [...table.querySelectorAll("thead th")];
  return [...table.querySelectorAll("tbody td")].map((cell) => {
    const outer = box(cell), x = outer.left + 5, y = (outer.top + outer.bottom) / 2;
    const rows = beside.filter((one) => box(one).top <= y && y <= box(one).bottom);
    const columns = over.filter((one) => box(one).left <= x && x <= box(one).right);
    const signs = [...cell.querySelectorAll("sup")];
    return {
      text: bare(cell),
      headings: rows.sort((a, b) => box(a).left - box(b).left).map((one) => one.textContent),
      titles: columns.sort((a, b) => box(a).top - box(b).top).map((one) => one.textContent),
      std: cell.querySelector(".std")?.textContent ?? null,
      bold: Boolean(cell.querySelector("strong")),
      signs: signs.map((one) => one.firstChild.textContent).join(""),
      outside: signs.some((one) => !within(box(one), outer)),
      overprinted: signs.some((one, at) => signs.slice(at + 1).some((two) => overlap(box(one), box(two)))),
    };
  });
})"""


def over(panel: dict, at: int) -> list[str]:
    """The headings above a column, its title last."""
    found = []
    for level in panel["groups"]:
        texts = [one["text"] for one in level for _ in range(one["span"])]
        found.append(texts[at])
    titles = [column["title"] for column in panel["columns"]]
    return [*found, titles[at]] if not panel["groups"] or any(titles) else found


def test_chromium_shows_each_number_under_and_beside_its_headings(browser: Browser) -> None:
    style = (rendering.static("style.css") or b"").decode()
    page = browser.new_page()
    wrong: list[object] = []
    signs = set()
    for name, table in shapes.tables().items():
        page.set_content(f"<style>{style}</style><main>{render(table, 'html').content.decode()}</main>")
        expected = json.loads(render(table, "json").content)
        for panel, shown in zip(expected["panels"], page.evaluate(READ), strict=True):
            places = [
                (row["headings"], at, cell)
                for row in panel["rows"]
                for at, cell in enumerate(row["cells"])
                if cell["span"]
            ]
            assert len(places) == len(shown), name
            for (headings, at, cell), found in zip(places, shown, strict=True):
                text = cell["text"].replace("-", "−") if cell["value"] else cell["text"]
                std = f"±{cell['std_text']}" if cell["std_text"] else None
                wanted = (headings, over(panel, at), text, std, cell["bold"])
                read = tuple(found[key] for key in ("headings", "titles", "text", "std", "bold"))
                wrong += [(name, wanted, read)] if wanted != read else []
                wrong += [(name, headings, found)] if found["outside"] or found["overprinted"] else []
                signs.add(unescape(found["signs"]))
    page.close()
    assert wrong == []
    assert len({sign for sign in signs if len(sign) > 1}) > 2, signs
