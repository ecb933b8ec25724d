"""Folders with a folder of images for each class: their images, and what is skipped and why."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from PIL import Image

from workers.catalog.wording import counted
from workers.contract import DataDamagedError, DataMissingError
from workers.data.file_content import missing, note_folder
from workers.data.listing import Listed
from workers.data.pictures import Picture, shown

_LEFTOVERS: Final = frozenset({
    "@eadir", "@recently-snapshot", "@recycle", "@sharebin", "@tmp", "#recycle", "#snapshot", "~snapshot",
    "$recycle.bin", "__macosx", "desktop.ini", "ehthumbs.db", "lost+found", "network trash folder",
    "system volume information", "temporary items", "thumbs.db",
})  # fmt: skip
"""Names, in lower case, of thumbnails, copies and notes of network storage and operating systems."""

_NO_PICTURES: Final = frozenset({"BUFR", "EPS", "FITS", "FLI", "GRIB", "HDF5", "IPTC", "MPEG", "PDF", "WMF"})
"""Formats of Pillow that are no pictures, or that another program would draw."""
_FOREIGN: Final = frozenset({
    ".arw", ".avif", ".cr2", ".cr3", ".dng", ".eps", ".heic", ".heif", ".jxl", ".nef", ".orf", ".raf", ".rw2", ".svg",
})  # fmt: skip
"""Suffixes of images, not all of which Pillow can read."""
_HALVES: Final = frozenset({"train", "training", "test", "testing", "val", "valid", "validation", "eval"})
_SHOWN: Final = 3  # examples of what is passed over
_Kind = Literal["folder", "file", "nowhere", "other"]


class ClassFolders(NamedTuple):
    """The images found in a folder with a folder for each class, with notes on skipped files."""

    classes: dict[str, list[Listed]]  # by class in order of the names, images in order of their paths
    notes: tuple[str, ...]  # what was skipped, by reason with numbers and examples, and what looks like a mistake


def class_folders(folder: Path) -> ClassFolders:
    """Lists the images of a folder with a folder for each class, at any depth; links are followed.

    Raises DataMissingError if the folder is missing or a link in it is broken, DataDamagedError if it has fewer than
    two classes.
    """
    if not folder.is_dir():
        raise missing(f"the folder {shown(folder.name)} is missing: looked in {shown(folder.parent.absolute())}")
    walk, classes, without = _Walk(folder), dict[str, list[Listed]](), list[str]()
    for entry in walk.entries(str(folder)):
        kind = _kind(entry)
        if kind == "folder":
            name = shown(entry.name)
            if files := [Listed(Picture(Path(path)), name) for path in walk.images(entry.path)]:
                classes.setdefault(name, []).extend(files)
            else:
                without.append(name)
        elif kind == "nowhere":
            walk.nowhere.append(entry.path)
        else:
            walk.passed["outside" if _suffix(entry.name) in suffixes() else "other"].append(entry.path)
    walk.refuse_links(sorted(without))
    notes = (*walk.notes(), *_hints(folder, list(classes), without))
    if len(classes) < 2:
        found = f"found {len(classes)} with images{'; ' if notes else ''}{'; '.join(notes)}"
        raise DataDamagedError(f"{shown(folder)}: expected folders of images, one a class; {found}")
    return ClassFolders(classes, notes)


@cache
def suffixes() -> frozenset[str]:
    """The lower-case file suffixes of images that Pillow can read on this machine."""
    known = Image.registered_extensions()
    return frozenset(suffix for suffix, form in known.items() if form in Image.OPEN and form not in _NO_PICTURES)


class _Walk:
    """Walks through a folder, and records what it skips."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        above = (folder.resolve(), *folder.resolve().parents)
        self._above = {identity for parent in above if (identity := _identity(parent)) is not None}
        self.passed: dict[str, list[str]] = defaultdict(list)
        """Paths by the reason for which they are passed over, a key of `_WORDS`."""
        self.nowhere: list[str] = []
        """Links whose target is not there."""

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """The entries of a folder by name, without those that are skipped by their name."""
        note_folder(folder)
        kept = []
        try:
            with os.scandir(folder) as listed:
                every = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            raise DataDamagedError(f"{shown(folder)} cannot be listed ({error.strerror})") from error
        for entry in every:
            if entry.name.lower() in _LEFTOVERS:
                self.passed["leftover"].append(entry.path)
            elif entry.name.startswith("."):
                self.passed["hidden"].append(entry.path)
            else:
                kept.append(entry)
        return kept

    def images(self, folder: str, seen: set[tuple[int, int]] | None = None) -> Iterator[str]:
        """The images of a class folder, without the folders that were `seen`.

        It uses os.scandir, since pathlib is slow for a million files.
        """
        seen = set(self._above) if seen is None else seen
        identity = _identity(Path(folder))
        if identity is None or identity in seen:
            self.passed["again"].append(folder)
            return
        seen.add(identity)
        for entry in self.entries(folder):
            kind, suffix = _kind(entry), _suffix(entry.name)
            if kind == "folder":
                yield from self.images(entry.path, seen)
            elif kind == "file" and suffix in suffixes():
                yield entry.path
            elif kind == "nowhere" and (not suffix or suffix in suffixes()):
                self.nowhere.append(entry.path)
            else:
                self.passed["foreign" if suffix in _FOREIGN and kind == "file" else "other"].append(entry.path)

    def refuse_links(self, without: Sequence[str]) -> None:
        """Raise DataMissingError for broken links: images are missing."""
        if not self.nowhere:
            return
        count, first = len(self.nowhere), self.nowhere[0]
        lost = {Path(path).relative_to(self._folder).parts[0] for path in self.nowhere}
        whole = [name for name in without if name in {shown(part) for part in lost}]
        classes = f", and of {_listed(whole)} nothing else is there" if whole else ""
        target = shown(Path(first).readlink())
        raise DataMissingError(
            f"{shown(self._folder)}: {counted(count, 'link')} {'leads' if count == 1 else 'lead'} nowhere, the first "
            f"is {shown(first)} (to {target}){classes}; mount what they lead to, or remove them"
        )

    def notes(self) -> Iterator[str]:
        """A text for each reason to skip files."""
        for reason, words in _WORDS.items():
            if paths := self.passed.get(reason):
                singular, plural, advice = words
                what = singular if len(paths) == 1 else plural
                examples = ", ".join(shown(os.path.relpath(path, self._folder)) for path in paths[:_SHOWN])
                more = ", ..." if len(paths) > _SHOWN else ""
                kinds = f" ({_kinds(paths)})" if reason in {"foreign", "other"} else ""
                yield f"passed over {len(paths):,} {what}{kinds}: {examples}{more}{advice}"


_WORDS: Final = {
    "foreign": ("image in a format that is not read", "images in formats that are not read", "; save as JPEG or PNG"),
    "other": ("file that is not an image", "files that are not images", ""),
    "outside": ("image that lies in no class folder", "images that lie in no class folder", ""),
    "again": ("folder that was read already or lies above", "folders that were read already or lie above", ""),
    "leftover": ("entry of a NAS or an operating system", "entries of a NAS or an operating system", ""),
    "hidden": ("hidden file or folder", "hidden files or folders", ""),
}
"""For each reason to skip a path: words for one, words for several, and advice."""


def _hints(folder: Path, names: Sequence[str], without: Sequence[str]) -> Iterator[str]:
    if without:
        several = f"{len(without):,} folders are not classes, since they have" if len(without) > 1 else ""
        yield f"{several or '1 folder is not a class, since it has'} no image that can be read: {_listed(without)}"
    halves = [name for name in names if name.lower() in _HALVES]
    if len(halves) > 1:
        yield (
            f"warning: {_listed(halves)} are used as classes; if they are halves of a data set, name the folder that "
            f"holds one folder for each class, such as {shown(folder.name)}/{halves[0]}"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _kinds(paths: Sequence[str]) -> str:
    """Such as `.heic 3, .txt 1`, the most frequent first."""
    counts = Counter(_suffix(path) or "no suffix" for path in paths)
    return ", ".join(f"{shown(suffix)} {count:,}" for suffix, count in counts.most_common(_SHOWN))


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a million of them


def _kind(entry: os.DirEntry[str]) -> _Kind:
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file():
            return "file"
    except OSError:  # links in a circle
        return "nowhere"
    return "nowhere" if entry.is_symlink() else "other"


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
