"""The fingerprints of one recipe with any seed."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from workers.contract import canonical_json, fingerprint_of


def fingerprints_by_seed(recipe: Mapping[str, Any]) -> Callable[[int], str]:
    """`fingerprint_of` for a recipe that is JSON already with any seed, which writes the rest of it once."""
    before, found, after = canonical_json({**recipe, "seed": None}).rpartition('"seed":null')
    if not found or '"seed":null' in before:  # a part has a seed of its own that is not set
        return lambda seed: fingerprint_of({**recipe, "seed": seed})
    begun = hashlib.sha256(f'{before}"seed":'.encode())

    def of(seed: int) -> str:
        digest = begun.copy()
        digest.update(f"{seed}{after}".encode())
        return digest.hexdigest()

    return of
