"""A PDF in one order: a figure that is drawn twice comes with its objects in any order, and is the same file here."""

import re
from typing import Final

_RESOURCES: Final = re.compile(rb"(?:^ +/[A-Za-z]+[0-9]+ [0-9]+ 0 R\n){2,}", re.MULTILINE)
_TABLE: Final = re.compile(rb"xref\n0 ([0-9]+)\n((?:[0-9]{10} [0-9]{5} [nf] ?\r?\n)+)")
_START: Final = re.compile(rb"startxref\n([0-9]+)\n%%EOF\n?\Z")
_REFERENCE: Final = re.compile(rb"\b([0-9]+) 0 R\b")
_OBJECT: Final = re.compile(rb"[0-9]+ 0 obj\b")
_STREAM: Final = b"\nstream\n"


def settled(content: bytes) -> bytes:
    """The same file with its objects in the order in which they are met, numbered so; one of another make as it is."""
    start = _START.search(content)
    table = _TABLE.match(content, int(start[1])) if start else None
    if start is None or table is None:
        return content
    entries = table[2].splitlines()[1:]
    offsets = [int(entry[:10]) for entry in entries]
    if not offsets or len(offsets) + 1 != int(table[1]) or any(b"f" in entry for entry in entries):
        return content
    bounds = sorted((*offsets, table.start()))
    objects = {number: content[at : bounds[bounds.index(at) + 1]] for number, at in enumerate(offsets, 1)}
    named = set(_references(content[table.end() : start.start()])).union(*map(_named, objects.values()))
    if not named <= objects.keys() or not all(_OBJECT.match(one) for one in objects.values()):
        return content
    return _written(content[: bounds[0]], objects, content[table.end() : start.start()])


def _written(head: bytes, objects: dict[int, bytes], trailer: bytes) -> bytes:
    parts = {number: _sorted(one).partition(_STREAM) for number, one in objects.items()}
    met = _references(trailer)
    for number in met:  # grows while it is walked
        met += [one for one in dict.fromkeys(_references(parts[number][0])) if one not in met]
    renamed = {old: new for new, old in enumerate(met, 1)}

    def pointed(text: bytes) -> bytes:
        return _REFERENCE.sub(lambda found: b"%d 0 R" % renamed[int(found[1])], text)

    body, places = head, []
    for old in met:
        said, stream, data = parts[old]
        places.append(len(body))
        body += _OBJECT.sub(b"%d 0 obj" % renamed[old], pointed(said), count=1) + stream + data
    listed = b"".join(b"%010d 00000 n \n" % place for place in places)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    size = re.sub(rb"/Size [0-9]+", b"/Size %d" % (len(places) + 1), pointed(trailer))
    return body + table + listed + size + b"startxref\n%d\n%%%%EOF\n" % len(body)


def _sorted(content: bytes) -> bytes:
    """An object whose named resources are in the order of their names; what follows in its stream stays."""
    said, stream, data = content.partition(_STREAM)
    return _RESOURCES.sub(lambda found: b"".join(sorted(found[0].splitlines(keepends=True))), said) + stream + data


def _named(content: bytes) -> list[int]:
    return _references(content.partition(_STREAM)[0])


def _references(text: bytes) -> list[int]:
    return list(dict.fromkeys(int(found) for found in _REFERENCE.findall(text)))
