"""Bodies with keys that nothing knows, and near misses of those that are known."""

from typing import Any

from tests.plan.hostile_bodies.body import HEAD, RECIPE, body, filled


@body
def unknown_keys() -> str:
    return filled(HEAD, lambda n: f"descriptio{n}: 1\n", 60_000)


@body
def unknown_fields() -> str:
    return filled('{"version":1,"name":"x","recipe":{', lambda n: f'"iteration{n}":1,', 40_000, '"seed":1}}')


@body
def unknown_options() -> str:
    return filled(
        '{"version":1,"name":"x","recipe":{"loss":{"name":"triplet"', lambda n: f',"margi{n}":1', 60_000, "}}}"
    )


@body
def unknown_options_of_a_slot() -> str:
    return filled(f"{HEAD}slot: {{", lambda n: f"cpu{n}: 1,", 60_000, "}")


@body
def unknown_axes_of_long_names() -> str:
    axes = "".join(f"  {'a' * 90}{number}: [1]\n" for number in range(40))
    return filled(f"{HEAD}compare:\n{axes}", lambda n: "", 1) + filled(
        "rules:\n", lambda n: f"- {{when: {{{'a' * 91}{n}: 1}}, patch: {{loss: triplet}}}}\n", 6_000
    )


@body
def labels_that_are_nearly_there() -> str:
    labels = ",".join(f"{{label: {'a' * 80}{number}, patch: {{seed: {number}}}}}" for number in range(500))
    rule = lambda n: f"- {{when: {{x: {'a' * 90}{n}}}, patch: {{loss: triplet}}}}\n"  # noqa: E731
    return filled(f"{HEAD}compare: {{x: [{labels}]}}\nrules:\n", rule, 6_000)


@body
def metrics_that_are_nearly_there() -> str:
    return filled(f"{HEAD}tables: {{main: {{rows: [], columns: [], metrics: [", lambda n: f"recal@{n},", 60_000, "]}}")


@body
def axes_that_are_nearly_there() -> str:
    return filled(f"{HEAD}tables: {{main: {{metrics: [nmi], rows: [", lambda n: f"los{n},", 60_000, "]}}")


@body
def a_misspelt_loss_in_every_cell() -> dict[str, Any]:
    axes = {"seed": list(range(100)), "embedding": list(range(1, 100))}
    return {"recipe": {**RECIPE, "loss": "x" * 90}, "compare": axes}


@body
def a_misplaced_option_in_every_cell() -> dict[str, Any]:
    axes = {"embedding": list(range(1, 100)), "iterations": list(range(1, 100))}
    return {"recipe": {**RECIPE, "loss": {"name": "triplet", **{f"margi{n}": 1 for n in range(300)}}}, "compare": axes}
