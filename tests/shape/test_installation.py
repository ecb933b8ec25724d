"""What `make` does before it downloads anything, and what it then installs."""

import importlib.metadata
import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from packaging.specifiers import SpecifierSet

from tests.extras import PROJECT, canonical, installed

ROOT = Path(__file__).parents[2]


def chosen(
    folder: Path, versions: dict[str, str], python: str = "", system: str = "", slow: Collection[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs .ci/python where only `versions` (command -> version) are found, of which `slow` are not optimized."""
    folder.mkdir(exist_ok=True)
    for command, version in versions.items():
        major, minor = version.split(".")[:2]
        answer = minor if major == "3" else ""
        script = f"""#!/bin/sh
case "$*" in
    --version) echo "Python {version}" ;;
    *CONFIG_ARGS*) exit {int(command in slow)} ;;
    *) echo "{answer}" ;;
esac
"""
        (folder / command).write_text(script)
        (folder / command).chmod(0o755)
    for tool in ("sh", "seq", "df", "awk", "head", "cat"):
        found = next(path for path in ("/bin", "/usr/bin") if (Path(path) / tool).exists())
        (folder / tool).symlink_to(Path(found) / tool)
    environment = {"PATH": str(folder), "PYTHON": python, "SYSTEM_PYTHON": system}
    return subprocess.run(
        ["sh", str(ROOT / ".ci" / "python")], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_supported_python_is_taken_and_another_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for version in ("3.11.7", "3.12.1", "3.13.0", "3.14.2"):
        done = chosen(tmp_path / version, {"python3": version})
        assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / version / "python3"))
        assert f"Python {version}" in done.stderr
    for version in ("2.7.18", "3.10.13", "3.15.0"):
        done = chosen(tmp_path / version, {"python3": version})
        assert (done.returncode, done.stdout) == (1, "")
        for part in (f"python3 is Python {version}", "Python 3.11 to 3.14", "make PYTHON="):
            assert part in done.stderr, version
    done = chosen(tmp_path / "none", {})
    assert done.returncode == 1
    assert "found none" in done.stderr


def test_the_newest_supported_is_looked_for(tmp_path: Path) -> None:
    done = chosen(tmp_path, {"python3": "3.15.0", "python3.12": "3.12.1", "python3.13": "3.13.0"})
    assert done.stdout.strip() == str(tmp_path / "python3.13")


def test_a_python_that_was_built_with_optimizations_is_preferred(tmp_path: Path) -> None:
    """CPython without its profile-guided optimization is slower."""
    versions = {"python3": "3.13.0", "python3.13": "3.13.0", "python3.12": "3.12.1", "system": "3.11.2"}
    system, slow = str(tmp_path / "system"), ("python3", "python3.13", "python3.12")
    done = chosen(tmp_path, versions, system=system, slow=slow)
    assert done.stdout.strip() == system
    assert f"Python 3.13.0, {tmp_path / 'python3'}, was built without --enable-optimizations" in done.stderr
    assert chosen(tmp_path / "other", versions, slow=slow[:2]).stdout.strip() == str(tmp_path / "other" / "python3.12")
    alone = tmp_path / "alone"
    done = chosen(alone, {"python3": "3.12.1", "system": "3.10.2"}, system=str(alone / "system"), slow=["python3"])
    assert done.stdout.strip() == str(alone / "python3"), "where none was optimized, the first is taken"
    assert "was built without" in done.stderr


def test_the_python_that_was_named_is_taken_or_refused(tmp_path: Path) -> None:
    named = str(tmp_path / "slow" / "python3.13")
    done = chosen(tmp_path / "slow", {"python3": "3.11.2", "python3.13": "3.13.0"}, python=named, slow=["python3.13"])
    assert done.stdout.strip() == named
    done = chosen(tmp_path, {"python3": "3.13.0", "other": "3.9.1"}, python=str(tmp_path / "other"))
    assert done.returncode == 1
    assert "Python 3.9.1" in done.stderr


def test_documented_python_versions_are_the_declared_versions() -> None:
    declared = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"])
    assert declared
    script = (ROOT / ".ci" / "python").read_text(encoding="utf-8")
    assert f"FIRST={declared[1]}\nLAST={int(declared[2]) - 1}\n" in script
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python 3.{declared[1]} to 3.{int(declared[2]) - 1}" in readme


def test_every_installed_version_is_pinned() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    names = {canonical(name): version for name, version in pinned.items()}
    unpinned = {
        f"{needed}=={importlib.metadata.version(needed)}"
        for needed in installed(PROJECT["optional-dependencies"])
        if names.get(canonical(needed)) != importlib.metadata.version(needed)
    }
    assert unpinned == set()


def test_every_pinned_version_takes_an_early_patch_of_python() -> None:
    """Debian 12 has Python 3.11.2."""
    needs = {
        needed: importlib.metadata.distribution(needed).metadata.json.get("requires_python")
        for needed in installed(PROJECT["optional-dependencies"])
    }
    pythons = [f"3.{minor}.2" for minor in range(11, 15)]
    refusing = {
        (name, python)
        for name, versions in needs.items()
        for python in pythons
        if versions and not SpecifierSet(versions).contains(python)
    }
    assert refusing == set()
