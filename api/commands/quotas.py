"""`users quota` and `projects quota`: what each may have, and has used; by REST, or in the database of the home."""

from typing import TYPE_CHECKING

import typer
from pydantic import ValidationError

from api.commands.terminal import out, print_json, print_rows
from orchestrator.views.quotas import Quota, QuotaKind, QuotaUse

if TYPE_CHECKING:
    from api.asking.people import PeopleClient
    from orchestrator.service.people import People


def quota(
    people: "People | PeopleClient",
    kind: QuotaKind,
    name: str | None,
    limits: dict[str, float | None],
    *,
    unlimited: bool,
) -> None:
    """Give a user or a project the quota that is named by options; without any nothing changes."""
    given = {what: most for what, most in limits.items() if most is not None}
    if unlimited and given:
        raise typer.BadParameter("--unlimited takes the quota away; it stands alone")
    if not given and not unlimited:
        return
    if "days" in given and not {"gpu_hours", "cpu_hours"} & set(given):
        raise typer.BadParameter("--days says in which time hours are counted; --gpu-hours or --cpu-hours is missing")
    if name is None:
        raise typer.BadParameter("NAME is missing")
    try:
        people.set_quota(kind, name, Quota.model_validate(given))
    except ValidationError as error:
        said = "; ".join(f"--{str(one['loc'][0]).replace('_', '-')}: {one['msg']}" for one in error.errors())
        raise typer.BadParameter(said) from None


def show(uses: list[QuotaUse], kind: QuotaKind, *, as_json: bool) -> None:
    """Print quotas with what is used."""
    if as_json:
        print_json(uses)
    elif uses:
        print_rows([_row(kind, one) for one in uses], ("slots", "GPU hours", "CPU hours"))
    else:
        out.print(f"no {kind}s")


def _row(kind: QuotaKind, one: QuotaUse) -> dict[str, str]:
    names = ("slots", "GPU hours", "CPU hours")
    said = {name: _said(used, most) for name, (_, used, most) in zip(names, one.amounts, strict=True)}
    return {kind: one.name, **said, "counted": "all" if one.days is None else f"{one.days} days"}


def _said(used: float, most: float | None) -> str:
    return f"{used:.4g}" + ("" if most is None else f" of {most:.6g}")
