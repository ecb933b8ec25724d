"""What a slot has otherwise for some of a sweep's trials."""

from pydantic import JsonValue

from orchestrator.spec.when import When
from workers.contract import Frozen


class SlotRule(Frozen):
    """What a slot has otherwise for the trials of some labels; later ones apply over earlier ones."""

    when: When
    slot: dict[str, JsonValue]
    """The fields that it names."""
