"""The memory of processes, as Linux counts it in /proc; in megabytes of 2**20 bytes."""

from pathlib import Path


def resident(process: int | str = "self") -> float:
    """What a process holds now; 0 where it has ended."""
    return _field(process, "VmRSS")


def peak(process: int | str = "self") -> float:
    """The most that a process has held."""
    return _field(process, "VmHWM")


def counted(field: str) -> float:
    """What this process holds, counted page by page: `Rss`, or `Pss`, of what is shared with others its part."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def family(parent: int) -> dict[int, str]:
    """A process and all that descend from it, each with its command line."""
    parents, lines = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile
        parents[int(folder.name)], lines[int(folder.name)] = int(fields[1]), line
    found, last = {parent}, set[int]()
    while found != last:
        last = found
        found = found | {child for child, its in parents.items() if its in found}
    return {process: lines[process] for process in found if process in lines}


def _field(process: int | str, name: str) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0.0)
