"""Bodies with axes: many, long, crossed, conditioned."""

import json
from collections.abc import Iterator
from typing import Any

from tests.plan.hostile_bodies.body import HEAD, RECIPE, axis, body, filled


@body
def ninety_thousand_trials() -> dict[str, Any]:
    return {"compare": {"embedding": axis(300)}, "tune": {"iterations": axis(300)}}


@body
def ninety_thousand_cells() -> dict[str, Any]:
    return {"compare": {"embedding": axis(300), "iterations": axis(300)}}


@body
def two_billion_trials() -> dict[str, Any]:
    return {"compare": {"embedding": axis(1300)}, "tune": {"iterations": axis(1300)}, "repeat": {"seed": axis(1300)}}


@body
def two_billion_trials_with_conditions() -> dict[str, Any]:
    groups = [{"values": axis(1300), "when": {"embedding": axis(1300)}}]
    return {"compare": {"embedding": axis(1300)}, "tune": {"iterations": groups}, "repeat": {"seed": axis(1300)}}


@body
def one_axis_of_many() -> str:
    return filled(f"{HEAD}repeat: {{seed: [", lambda n: f"{n},", 95_000, "]}")


@body
def one_axis_of_many_wrong() -> str:
    return filled(f"{HEAD}tune: {{loss.margin: [", lambda n: f"x{n},", 95_000, "]}")


@body
def one_axis_of_many_parts() -> str:
    return filled(f"{HEAD}compare: {{loss: [", lambda n: f"{{name: triplet, margin: {n}.5}},", 30_000, "]}")


@body
def one_axis_of_namesakes_with_many_options() -> str:
    part = lambda n: "{name: triplet," + ",".join(f"o{at}: {n}" for at in range(90)) + "},"  # noqa: E731
    return filled(f"{HEAD}compare: {{loss: [", part, 1_000, "]}")


@body
def forty_axes_of_one() -> str:
    axes = "".join(f"  a{number}: [{{label: x, patch: {{seed: 1}}}}]\n" for number in range(40))
    return filled(f"{HEAD}compare:\n{axes}tune: {{loss.margin: [", lambda n: f"{n},", 90_000, "]}")


@body
def forty_axes_of_two() -> dict[str, Any]:
    two = [{"label": "x", "patch": {"seed": 1}}, {"label": "y", "patch": {"seed": 2}}]
    return {"compare": {f"a{number}": two for number in range(40)}}


def _groups(most: int, axis: str, labels: int) -> Iterator[str]:
    for number in range(most):
        yield f"{{values: [{number}], when: {{{axis}: {number % labels}}}}},"


@body
def a_thousand_groups_and_many_cells() -> str:
    groups = "".join(_groups(1_000, "seed", 2))
    return f"{HEAD}compare: {{seed: {axis(300, 0)}, embedding: {axis(300)}}}\ntune: {{loss.margin: [{groups}]}}"


@body
def a_thousand_groups_of_many_labels() -> str:
    whens = ",".join(map(str, range(90)))
    groups = "".join(f"{{values: [{number}], when: {{seed: [{whens}]}}}}," for number in range(1_000))
    return f"{HEAD}compare: {{seed: {axis(100, 0)}}}\ntune: {{loss.margin: [{groups}]}}"


@body
def groups_that_overlap() -> str:
    values = ",".join(map(str, range(90)))
    return f"{HEAD}compare: {{loss.margin: [{f'{{values: [{values}]}},' * 1_000}]}}"


@body
def many_axes_that_hang_together() -> str:
    lines = [f"{HEAD}compare:\n  a0: [{{label: x, patch: {{seed: 1}}}}, {{label: y, patch: {{seed: 2}}}}]"]
    for number in range(1, 40):
        whens = [f"{{a{other}: {label}}}" for other in range(number) for label in "xy"]
        groups = [
            f"{{when: {when}, values: [{{label: g{at}, patch: {{seed: {at}}}}}]}}" for at, when in enumerate(whens)
        ]
        lines.append(f"  a{number}: [{', '.join(groups)}]")
    return "\n".join(lines)


@body
def rules_for_every_cell() -> str:
    rule = lambda n: f"- {{when: {{embedding: {n % 100 + 1}}}, patch: {{loss.margin: {n}}}}}\n"  # noqa: E731
    return filled(f"{HEAD}compare: {{embedding: {axis(100)}, seed: {axis(100)}}}\nrules:\n", rule, 12_000)


@body
def slots_for_every_cell() -> str:
    rule = lambda n: f"- {{when: {{embedding: {n % 100 + 1}}}, cpus: {n % 7 + 1}}}\n"  # noqa: E731
    return filled(f"{HEAD}compare: {{embedding: {axis(100)}, seed: {axis(100)}}}\nslots:\n", rule, 14_000)


@body
def a_budget_for_many_cells() -> dict[str, Any]:
    axes = {"embedding": axis(300), "seed": axis(30)}
    return {"compare": axes, "select": {"budget": 11}, "tune": {"loss.margin": [0.1, 0.2]}}


@body
def a_search_in_many_cells() -> dict[str, Any]:
    axes = {"embedding": axis(300), "iterations": axis(300)}
    margins = [{"values": axis(200), "when": {"embedding": axis(299)}}, {"values": [0.5], "when": {"embedding": 300}}]
    return {"compare": axes, "tune": {"loss.margin": margins}, "search": {"name": "brute_force"}}


@body
def long_labels() -> str:
    label = lambda n: f"{{label: '{'x' * 90}{n:06}', patch: {{embedding: {n + 1}}}}},"  # noqa: E731
    return filled(f"{HEAD}compare: {{x: [", label, 7_000, "]}\n")


@body
def labels_with_options_of_long_texts() -> str:
    label = lambda n: f"{{name: resnet50, weights: '{'x' * 5_000}{n}'}},"  # noqa: E731
    return filled(f"{HEAD}compare: {{backbone: [", label, 190, "]}\n")


@body
def many_figures_of_a_recipe() -> dict[str, Any]:
    recipe = {**RECIPE, "figures": ["norms"] * 90_000}
    return {"recipe": recipe, "compare": {"embedding": axis(100)}, "tune": {"iterations": axis(90)}}


@body
def a_long_list_in_a_plain_field() -> dict[str, Any]:
    return {"recipe": {**RECIPE, "embedding": [1] * 90_000}, "compare": {"seed": axis(100), "iterations": axis(90)}}


@body
def a_thousand_folds() -> dict[str, Any]:
    recipe = {**RECIPE, "validation": {"name": "cross_validation", "folds": 1000}}
    return {"recipe": recipe, "compare": {"seed": axis(100), "iterations": axis(90)}}


@body
def texts_that_look_like_code() -> str:
    pieces = [
        "${jndi:ldap://x}",
        "{{7*7}}",
        "(a+)+$",
        "%s%s%n",
        "'; DROP TABLE sweep; --",
        "=cmd|'/c'!A1",
        "__import__",
    ]
    return filled(f"{HEAD}compare: {{loss: [", lambda n: json.dumps(pieces[n % 7] + str(n)) + ",", 30_000, "]}")
