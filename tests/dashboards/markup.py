"""Reads a page as a browser would and says what is wrong with its markup."""

import re
from html.parser import HTMLParser

VOID = {"wbr", "meta", "link", "input", "br", "img", "hr"}
TOLD = {
    "href", "rel", "action", "name", "value", "title", "alt", "src", "content", "selected", "checked", "disabled",
    "open", "aria-label", "aria-current", "aria-sort", "aria-invalid", "data-refresh", "data-drawn", "data-keep",
    "data-plot",
}  # fmt: skip
"""Attributes that tell something, lead somewhere or are sent."""
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("form", "action"), ("iframe", "src"), ("use", "href")}


class Markup(HTMLParser):
    """The elements of a page, their text, and what breaks the rules of the pages."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.said: list[str] = []
        self.told: list[str] = []
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append(f"never closed: {self.open}")
        ids = [attributes["id"] for _, attributes in self.elements if "id" in attributes]
        self.faults += [f"id {one!r} twice" for one in set(ids) if ids.count(one) > 1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._seen(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._seen(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes nothing")
        if tag in {"td", "th", "li", "dt", "dd", "p"}:
            self.said.append(" ")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.said.append(data)
            self._tell(" ".join(data.split()))

    def _seen(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        told = [f"{name}={value!r}" for name, value in given.items() if name in TOLD]
        if (told or tag == "main") and tag not in {"link", "script"}:
            self.told.append(f"  <{' '.join([tag, *told])}>")
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag == "style" or "style" in given or any(name.startswith("on") for name in names):
            self.faults.append(f"<{tag}> holds a style or a script of its own")
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.faults.append("a script stands in the page")
        for element, attribute in LOADED:
            if tag == element and not re.match(r"/(?!/)", given.get(attribute, "/")):
                self.faults.append(f"<{tag}> loads {given[attribute]}")
        if given.get("href", "").lstrip().lower().startswith(("javascript:", "data:")):
            self.faults.append(f"<{tag}> leads to {given['href']}")

    def _tell(self, text: str) -> None:
        """Go on with the last line, unless an element stands there."""
        if text and self.told and not self.told[-1].startswith("  <"):
            self.told[-1] += f" {text}"
        elif text:
            self.told.append(text)

    def having(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of each element of a kind; `_` stands for `-`, `class_` for class."""
        expected = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [given for one, given in self.elements if one == tag and expected.items() <= given.items()]

    @property
    def outline(self) -> str:
        """What a person reads, presses and follows from the main part of the page on, a line each."""
        first = next(at for at, line in enumerate(self.told) if line.startswith("  <main"))
        return "\n".join(self.told[first:])

    @property
    def text(self) -> str:
        """What a person reads, with single blanks."""
        return " ".join("".join(self.said).split())


def read(text: str) -> Markup:
    """The page, without faults."""
    page = Markup(text)
    assert page.faults == []
    return page
