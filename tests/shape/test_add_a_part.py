"""`docs/add-a-part.md` says how many files and lines something new of each kind takes: those of what it names."""

import re
from pathlib import Path
from typing import Final

from workers.contract import KINDS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "add-a-part.md").read_text(encoding="utf-8")
EXAMPLES: Final = dict(re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```$", PAGE, re.M | re.S))


def test_the_page_counts_files_and_lines_of_each_kind() -> None:
    section = PAGE.partition("## How many files and lines")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == [*(kind for kind in KINDS), "table format", "engine"]
    for kind, files, lines, counted in rows[2:]:
        named = re.findall(r"`([\w/]+\.py)`", counted)
        texts = [EXAMPLES.get(file) or (ROOT / "workers" / file).read_text(encoding="utf-8") for file in named]
        assert (len(named), sum(len(text.splitlines()) for text in texts)) == (int(files), int(lines)), kind
