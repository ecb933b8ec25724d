"""`checklist`: answers to a reproducibility checklist, drafted from the records of a sweep."""

from api.commands.options import HOME, Home, Json, SweepId, Token, Url, connect
from api.commands.terminal import out, print_json


def checklist(number: SweepId, as_json: Json = False, url: Url = None, token: Token = None, home: Home = HOME) -> None:
    """Draft answers to a reproducibility checklist: error bars, seeds, selection, budget, compute, data, code."""
    with connect(url, token, home) as client:
        drafted = client.evidence.checklist(number)
    if as_json:
        print_json(drafted)
        return
    for one in drafted.answers:
        out.print(f"{one.question}\n  {one.answer}" + (f"\n  To add: {one.open}" if one.open else "") + "\n")
