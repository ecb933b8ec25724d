"""This server's own folders in what it tells others: cut, so that an error says nothing about the machine."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import orchestrator
from orchestrator.settings import Settings


def folder_cutter(settings: Settings) -> Callable[[str], str]:
    """What makes paths in a text relative to the home folder, the storage, or wherever the file is installed.

    Those below the data root stay whole: which folder lacks a data set is what a reader has to know.
    """
    storage = settings.storage
    found = [settings.resolved_home, storage if isinstance(storage, Path) else None, settings.parts]
    found += [Path(orchestrator.__file__).parents[1], Path(tempfile.gettempdir())]
    folders = {str(one.absolute()).rstrip("/") for one in found if one is not None}
    longest_first = sorted(filter(None, folders), key=len, reverse=True)
    kept = re.escape(str(settings.data_root.absolute()))
    cut = re.compile(rf"(?P<kept>{kept}(?=[/'\"\s,;:]|$)\S*)|(?:{'|'.join(map(re.escape, longest_first))})(?:/|\b)")
    return lambda text: cut.sub(lambda match: match["kept"] or "", text)
