"""What a spec says of a figure, as far as drawing it needs."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from orchestrator.views.errors import NotFoundError
from orchestrator.views.nearest import nearest
from orchestrator.views.printing import Unit


class FigureLayout(BaseModel):
    """One entry of a spec's `figures`; the plan has checked it, and documents its fields (plan/figure_spec.py)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    metric: tuple[str, ...] = ()
    data: str | None = None
    show: tuple[str, ...] = ()
    x: str | None = None
    y: str | None = None
    colour: str | None = None
    facet: tuple[str, ...] = ()
    x_scale: Literal["linear", "log", "category"] | None = None
    y_scale: Literal["linear", "log"] = "linear"
    when: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    error: Literal["std", "interval", "none"] = "std"
    reference: str | None = None
    unit: Unit | None = None
    decimals: int | None = None
    bins: int | None = None
    moments: bool = False
    windows: bool = False
    labels: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    titles: Mapping[str, str | None] = Field(default_factory=dict)
    title: str | None = None
    caption: str | None = None

    @field_validator("metric", "facet", "show", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return () if value is None else (value,) if isinstance(value, str) else value

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that give place and colour, each once."""
        named = (self.x, self.y, self.colour, *self.facet)
        return tuple(dict.fromkeys(axis for axis in named if axis is not None))

    @property
    def column(self) -> str | None:
        """The axis whose labels stand beside one another as panels."""
        return self.facet[0] if self.facet else None

    @property
    def row(self) -> str | None:
        """The axis whose labels stand below one another as panels."""
        return self.facet[1] if len(self.facet) > 1 else None


def parse(spec: Mapping[str, Any], name: str) -> FigureLayout:
    """The layout of one of the spec's figures; NotFoundError names those there are."""
    figures = spec.get("figures") or {}
    if name not in figures:
        raise NotFoundError(
            f"no figure named '{name}'{nearest(name, figures)}; this sweep's figures: {', '.join(figures) or 'none'}"
        )
    return FigureLayout.model_validate(figures[name])
