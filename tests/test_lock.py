"""What the images install: every package by version and hash, and of the versions that are tested."""

import re

import pytest

from tests.compose_file import ROOT

IMAGES = ("control", "worker")
LINE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) --hash=sha256:(?P<hash>[0-9a-f]{64})")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {plain(name): version for name, version in (line.split("==") for line in lines)}


def locked(image: str) -> dict[str, re.Match[str]]:
    lines = (ROOT / "docker" / f"{image}.lock.txt").read_text(encoding="utf-8").splitlines()[1:]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), "a line is not a package with its version and its hash"
    return {match["name"]: match for match in found if match}


@pytest.mark.parametrize("image", IMAGES)
def test_every_package_is_of_the_version_that_is_tested(image: str) -> None:
    known, found = constraints(), locked(image)
    assert {name: one["version"] for name, one in found.items()} == {name: known.get(name) for name in found}
    assert {"mlflow", "opentelemetry-sdk", "ray", "fastapi", "setuptools"} <= set(found)
    assert ("torch" in found) == (image == "worker")


@pytest.mark.parametrize("image", IMAGES)
def test_the_image_installs_nothing_else(image: str) -> None:
    text = (ROOT / "docker" / f"{image}.Dockerfile").read_text(encoding="utf-8")
    assert f"docker/{image}.lock.txt" in text
    installing = re.findall(r"pip install ([^&\n\\]*)", text)
    assert installing[0].split() == ["--require-hashes", "-r", f"{image}.lock.txt"]
    assert all({"--no-deps", "--no-build-isolation", "."} <= set(one.split()) for one in installing[1:])
    assert len(installing) > 1
