"""Bodies of at most 1 MiB that mean harm: each is posted as a spec, cheap to send and dear to check badly."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

LIMIT: Final = 1024 * 1024
RECIPE: Final[dict[str, Any]] = {
    "dataset": "digits",
    "backbone": "mlp",
    "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 2, "per_class": 4},
    "iterations": 10,
    "validation": {"name": "class_holdout", "folds": 3},
}
HEAD: Final = f"version: 1\nname: hostile\nrecipe: {json.dumps(RECIPE)}\n"

Body = Callable[[], bytes]
BODIES: Final[dict[str, Body]] = {}
"""What is posted, by what is wrong with it."""


def _body(make: Callable[[], str | bytes | dict[str, Any]]) -> Callable[[], str | bytes | dict[str, Any]]:
    def whole() -> bytes:
        made = make()
        text = (
            json.dumps({"version": 1, "name": "hostile", "recipe": RECIPE, **made}) if isinstance(made, dict) else made
        )
        posted = text.encode() if isinstance(text, str) else text
        assert len(posted) <= LIMIT, (make.__name__, len(posted))
        return posted

    BODIES[make.__name__.replace("_", " ")] = whole
    return make


def _filled(head: str, piece: Callable[[int], str], most: int = 10**9, foot: str = "") -> str:
    """As many pieces as the limit takes, between head and foot."""
    found, left = [head], LIMIT - len(head.encode()) - len(foot.encode())
    for number in range(most):
        one = piece(number)
        left -= len(one.encode())
        if left < 0:
            break
        found.append(one)
    return "".join([*found, foot])


# The text


@_body
def alias_of_a_long_text() -> str:
    return f"a: &a '{'x' * 100_000}'\nb: [{'*a,' * 50_000}]\n"


@_body
def alias_of_a_long_text_in_a_recipe() -> str:
    text = f"a: &a '{'x' * 900}'\n{HEAD}"
    return f"{text}compare: {{loss: [{'{name: *a, margin: *a},' * 30_000}]}}\n"


@_body
def alias_of_a_list_of_texts() -> str:
    return f"a: &a [{','.join(['x' * 1_000] * 300)}]\n{HEAD}tune:\n  loss.margin: [{'*a,' * 300}]\n"


@_body
def billions_of_laughs() -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    return "\n".join(lines)


@_body
def an_open_bracket_repeated() -> str:
    return "[" * LIMIT


@_body
def nesting_in_json() -> str:
    return '{"a":' * 200_000


@_body
def nesting_of_keys() -> str:
    return "? " * 500_000


@_body
def one_huge_text() -> str:
    return f"{HEAD}description: {'x' * (LIMIT - 1_000)}"


@_body
def one_huge_name() -> str:
    return f"version: 1\nrecipe: {json.dumps(RECIPE)}\nname: {'x' * (LIMIT - 1_000)}"


@_body
def one_huge_block_text() -> str:
    return _filled(f"{HEAD}description: |\n", lambda _: "  x\n")


@_body
def one_huge_quoted_text() -> str:
    return f"{HEAD}description: '{chr(39) * (LIMIT - 1_001 - LIMIT % 2)}'"


@_body
def one_huge_path() -> str:
    recipe = json.dumps({**RECIPE, "backbone": {"name": "resnet50", "weights": "x" * (LIMIT - 1_000)}})
    return f"version: 1\nname: hostile\nrecipe: {recipe}\n"


@_body
def one_huge_key() -> str:
    return f"{HEAD}? {'x' * (LIMIT - 1_000)}\n: 1\n"


@_body
def one_huge_axis() -> str:
    return f"{HEAD}compare:\n  ? {'x' * 500_000}\n  : [{'{label: 1, patch: {loss: x}},' * 10_000}]\n"


@_body
def one_huge_table_name() -> str:
    return f"{HEAD}tables:\n  ? {'x' * 500_000}\n  : {{{_filled('', lambda n: f'k{n}: 1,', 40_000)}}}\n"


@_body
def one_huge_tag() -> str:
    return f"a: !{'x' * (LIMIT - 100)} 1"


@_body
def one_huge_anchor() -> str:
    return f"a: &{'x' * 500_000} 1\nb: *{'x' * 500_000}"


@_body
def one_huge_number() -> str:
    return f"{HEAD}slot: {{cpus: {'9' * 400_000}}}"


@_body
def one_huge_fraction() -> str:
    return f"{HEAD}slot: {{cpus: 0.{'9' * 400_000}}}"


@_body
def one_huge_hexadecimal_number() -> str:
    return f"{HEAD}slot: {{cpus: 0x{'f' * 400_000}}}"


@_body
def huge_exponents() -> str:
    return _filled(f"{HEAD}tune: {{loss.margin: [", lambda n: f"1e99999{n},", 40_000, "]}")


@_body
def many_numbers() -> str:
    return _filled("[", lambda _: "1,", foot="]")


@_body
def many_long_numbers() -> str:
    return _filled("[", lambda _: "123456789012345678.5e-3,", 90_000, foot="]")


@_body
def comments() -> str:
    return _filled(HEAD, lambda _: "# nothing\n")


@_body
def one_long_comment() -> str:
    return f"{HEAD}#{'x' * (LIMIT - 1_000)}"


@_body
def line_ends() -> str:
    return f"a: '{chr(10) * (LIMIT - 100)}'"


@_body
def question_marks() -> str:
    return "?" * LIMIT


@_body
def dashes() -> str:
    return "-\n" * (LIMIT // 2)


@_body
def exclamation_marks() -> str:
    return "!" * LIMIT


@_body
def anchors_and_nothing() -> str:
    return _filled("", lambda n: f"- &a{n}\n")


@_body
def tags() -> str:
    return _filled("", lambda n: f"- !t{n} 1\n", 99_000)


@_body
def bad_tags_within_aliases() -> str:
    return f"a: &a [{'!x 1,' * 300}]\nb: [{'*a,' * 300}]"


@_body
def merges() -> str:
    return _filled("a: &a {x: 1}\nb:\n", lambda n: f"  k{n}: {{<<: *a}}\n", 24_000)


@_body
def one_key_again_and_again() -> str:
    return _filled('{"a": 1', lambda _: ',"a": 1', 99_000, "}")


@_body
def many_keys() -> str:
    return _filled("", lambda n: f"k{n}: 1\n", 99_000)


@_body
def half_a_surrogate_pair() -> str:
    return _filled("[", lambda _: '"\\ud83d",', 99_000, "]")


@_body
def one_pair_of_surrogates_and_many_numbers() -> str:
    return _filled('["\\ud83d\\ude00"', lambda n: f",{n}", 99_000, "]")


@_body
def one_pair_of_surrogates_and_a_long_text() -> str:
    return '"\\ud83d\\ude00' + "x" * 1_000_000 + '"'


@_body
def escapes() -> str:
    return f'a: "{chr(92) + "x41"}{(chr(92) + "U0001F600") * 100_000}"'


@_body
def characters_that_turn_around() -> str:
    return _filled(f"{HEAD}compare: {{loss: [", lambda n: f'"\u202e{n}\u2066",', 40_000, "]}")


@_body
def not_utf_8() -> bytes:
    return b"a: " + b"\xff" * 1_000_000


@_body
def an_escape_sequence_in_every_name() -> str:
    return _filled(HEAD, lambda n: f'"\\x1b]0;{n}\\x07": 1\n', 40_000)


# The keys and their near misses


@_body
def unknown_keys() -> str:
    return _filled(HEAD, lambda n: f"descriptio{n}: 1\n", 60_000)


@_body
def unknown_fields() -> str:
    return _filled('{"version":1,"name":"x","recipe":{', lambda n: f'"iteration{n}":1,', 40_000, '"seed":1}}')


@_body
def unknown_options() -> str:
    return _filled(
        '{"version":1,"name":"x","recipe":{"loss":{"name":"triplet"', lambda n: f',"margi{n}":1', 60_000, "}}}"
    )


@_body
def unknown_options_of_a_slot() -> str:
    return _filled(f"{HEAD}slot: {{", lambda n: f"cpu{n}: 1,", 60_000, "}")


@_body
def unknown_axes_of_long_names() -> str:
    axes = "".join(f"  {'a' * 90}{number}: [1]\n" for number in range(40))
    return _filled(f"{HEAD}compare:\n{axes}", lambda n: "", 1) + _filled(
        "rules:\n", lambda n: f"- {{when: {{{'a' * 91}{n}: 1}}, patch: {{loss: triplet}}}}\n", 6_000
    )


@_body
def labels_that_are_nearly_there() -> str:
    labels = ",".join(f"{{label: {'a' * 80}{number}, patch: {{seed: {number}}}}}" for number in range(500))
    rule = lambda n: f"- {{when: {{x: {'a' * 90}{n}}}, patch: {{loss: triplet}}}}\n"  # noqa: E731
    return _filled(f"{HEAD}compare: {{x: [{labels}]}}\nrules:\n", rule, 6_000)


@_body
def metrics_that_are_nearly_there() -> str:
    return _filled(f"{HEAD}tables: {{main: {{rows: [], columns: [], metrics: [", lambda n: f"recal@{n},", 60_000, "]}}")


@_body
def axes_that_are_nearly_there() -> str:
    return _filled(f"{HEAD}tables: {{main: {{metrics: [nmi], rows: [", lambda n: f"los{n},", 60_000, "]}}")


@_body
def a_misspelt_loss_in_every_cell() -> dict[str, Any]:
    axes = {"seed": list(range(100)), "embedding": list(range(1, 100))}
    return {"recipe": {**RECIPE, "loss": "x" * 90}, "compare": axes}


@_body
def a_misplaced_option_in_every_cell() -> dict[str, Any]:
    axes = {"embedding": list(range(1, 100)), "iterations": list(range(1, 100))}
    return {"recipe": {**RECIPE, "loss": {"name": "triplet", **{f"margi{n}": 1 for n in range(300)}}}, "compare": axes}


# Axes


def _axis(count: int, first: int = 1) -> list[int]:
    return list(range(first, first + count))


@_body
def ninety_thousand_trials() -> dict[str, Any]:
    return {"compare": {"embedding": _axis(300)}, "tune": {"iterations": _axis(300)}}


@_body
def ninety_thousand_cells() -> dict[str, Any]:
    return {"compare": {"embedding": _axis(300), "iterations": _axis(300)}}


@_body
def two_billion_trials() -> dict[str, Any]:
    return {"compare": {"embedding": _axis(1300)}, "tune": {"iterations": _axis(1300)}, "repeat": {"seed": _axis(1300)}}


@_body
def two_billion_trials_with_conditions() -> dict[str, Any]:
    groups = [{"values": _axis(1300), "when": {"embedding": _axis(1300)}}]
    return {"compare": {"embedding": _axis(1300)}, "tune": {"iterations": groups}, "repeat": {"seed": _axis(1300)}}


@_body
def one_axis_of_many() -> str:
    return _filled(f"{HEAD}repeat: {{seed: [", lambda n: f"{n},", 95_000, "]}")


@_body
def one_axis_of_many_wrong() -> str:
    return _filled(f"{HEAD}tune: {{loss.margin: [", lambda n: f"x{n},", 95_000, "]}")


@_body
def one_axis_of_many_parts() -> str:
    return _filled(f"{HEAD}compare: {{loss: [", lambda n: f"{{name: triplet, margin: {n}.5}},", 30_000, "]}")


@_body
def one_axis_of_namesakes_with_many_options() -> str:
    part = lambda n: "{name: triplet," + ",".join(f"o{at}: {n}" for at in range(90)) + "},"  # noqa: E731
    return _filled(f"{HEAD}compare: {{loss: [", part, 1_000, "]}")


@_body
def forty_axes_of_one() -> str:
    axes = "".join(f"  a{number}: [{{label: x, patch: {{seed: 1}}}}]\n" for number in range(40))
    return _filled(f"{HEAD}compare:\n{axes}tune: {{loss.margin: [", lambda n: f"{n},", 90_000, "]}")


@_body
def forty_axes_of_two() -> dict[str, Any]:
    two = [{"label": "x", "patch": {"seed": 1}}, {"label": "y", "patch": {"seed": 2}}]
    return {"compare": {f"a{number}": two for number in range(40)}}


def _groups(most: int, axis: str, labels: int) -> Iterator[str]:
    for number in range(most):
        yield f"{{values: [{number}], when: {{{axis}: {number % labels}}}}},"


@_body
def a_thousand_groups_and_many_cells() -> str:
    groups = "".join(_groups(1_000, "seed", 2))
    return f"{HEAD}compare: {{seed: {_axis(300, 0)}, embedding: {_axis(300)}}}\ntune: {{loss.margin: [{groups}]}}"


@_body
def a_thousand_groups_of_many_labels() -> str:
    whens = ",".join(map(str, range(90)))
    groups = "".join(f"{{values: [{number}], when: {{seed: [{whens}]}}}}," for number in range(1_000))
    return f"{HEAD}compare: {{seed: {_axis(100, 0)}}}\ntune: {{loss.margin: [{groups}]}}"


@_body
def groups_that_overlap() -> str:
    values = ",".join(map(str, range(90)))
    return f"{HEAD}compare: {{loss.margin: [{f'{{values: [{values}]}},' * 1_000}]}}"


@_body
def many_axes_that_hang_together() -> str:
    lines = [f"{HEAD}compare:\n  a0: [{{label: x, patch: {{seed: 1}}}}, {{label: y, patch: {{seed: 2}}}}]"]
    for number in range(1, 40):
        whens = [f"{{a{other}: {label}}}" for other in range(number) for label in "xy"]
        groups = [
            f"{{when: {when}, values: [{{label: g{at}, patch: {{seed: {at}}}}}]}}" for at, when in enumerate(whens)
        ]
        lines.append(f"  a{number}: [{', '.join(groups)}]")
    return "\n".join(lines)


@_body
def rules_for_every_cell() -> str:
    rule = lambda n: f"- {{when: {{embedding: {n % 100 + 1}}}, patch: {{loss.margin: {n}}}}}\n"  # noqa: E731
    return _filled(f"{HEAD}compare: {{embedding: {_axis(100)}, seed: {_axis(100)}}}\nrules:\n", rule, 12_000)


@_body
def slots_for_every_cell() -> str:
    rule = lambda n: f"- {{when: {{embedding: {n % 100 + 1}}}, cpus: {n % 7 + 1}}}\n"  # noqa: E731
    return _filled(f"{HEAD}compare: {{embedding: {_axis(100)}, seed: {_axis(100)}}}\nslots:\n", rule, 14_000)


@_body
def a_budget_for_many_cells() -> dict[str, Any]:
    axes = {"embedding": _axis(300), "seed": _axis(30)}
    return {"compare": axes, "select": {"budget": 11}, "tune": {"loss.margin": [0.1, 0.2]}}


@_body
def a_search_in_many_cells() -> dict[str, Any]:
    axes = {"embedding": _axis(300), "iterations": _axis(300)}
    margins = [{"values": _axis(200), "when": {"embedding": _axis(299)}}, {"values": [0.5], "when": {"embedding": 300}}]
    return {"compare": axes, "tune": {"loss.margin": margins}, "search": {"name": "brute_force"}}


@_body
def long_labels() -> str:
    label = lambda n: f"{{label: '{'x' * 90}{n:06}', patch: {{embedding: {n + 1}}}}},"  # noqa: E731
    return _filled(f"{HEAD}compare: {{x: [", label, 7_000, "]}\n")


@_body
def labels_with_options_of_long_texts() -> str:
    label = lambda n: f"{{name: resnet50, weights: '{'x' * 5_000}{n}'}},"  # noqa: E731
    return _filled(f"{HEAD}compare: {{backbone: [", label, 190, "]}\n")


@_body
def many_figures_of_a_recipe() -> dict[str, Any]:
    recipe = {**RECIPE, "figures": ["norms"] * 90_000}
    return {"recipe": recipe, "compare": {"embedding": _axis(100)}, "tune": {"iterations": _axis(90)}}


@_body
def a_long_list_in_a_plain_field() -> dict[str, Any]:
    return {"recipe": {**RECIPE, "embedding": [1] * 90_000}, "compare": {"seed": _axis(100), "iterations": _axis(90)}}


@_body
def a_thousand_folds() -> dict[str, Any]:
    recipe = {**RECIPE, "validation": {"name": "cross_validation", "folds": 1000}}
    return {"recipe": recipe, "compare": {"seed": _axis(100), "iterations": _axis(90)}}


@_body
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
    return _filled(f"{HEAD}compare: {{loss: [", lambda n: json.dumps(pieces[n % 7] + str(n)) + ",", 30_000, "]}")


# Tables and figures


@_body
def ten_thousand_tables() -> str:
    return _filled(f"{HEAD}tables:\n", lambda n: f"  t{n}: {{rows: [], columns: [], metrics: [nmi]}}\n", 10_000)


@_body
def ten_thousand_figures() -> str:
    return _filled(f"{HEAD}figures:\n", lambda n: f"  f{n}: {{kind: bars, metric: nmi, x: loss}}\n", 10_000)


@_body
def a_table_of_many_metrics() -> str:
    return _filled(f"{HEAD}tables: {{main: {{metrics: [", lambda n: f"recall@{n + 1},", 60_000, "]}}")


@_body
def a_table_of_many_equal_metrics() -> str:
    return _filled(f"{HEAD}tables: {{main: {{metrics: [", lambda n: "nmi,", 90_000, "]}}")


@_body
def a_table_of_many_labelled_metrics() -> str:
    column = lambda n: f"{{metric: nmi, label: l{n}}},"  # noqa: E731
    return _filled(f"{HEAD}tables: {{main: {{metrics: [", column, 30_000, "]}}")


@_body
def tables_with_labels_for_many() -> str:
    axis = f"{HEAD}compare: {{embedding: {_axis(1_000)}}}\n"
    labels = ",".join(f"{number}.0: x" for number in range(1, 1_000))
    return _filled(
        f"{axis}tables:\n", lambda n: f"  t{n}: {{rows: [embedding], labels: {{embedding: {{{labels}}}}}}}\n", 40
    )


@_body
def tables_with_templates() -> str:
    labels = ",".join(f"{number}: '{''.join(f'{{p{number}x{at}}}' for at in range(30))}'" for number in range(1, 1_000))
    axis = f"{HEAD}compare: {{embedding: {_axis(1_000)}}}\n"
    return f"{axis}tables: {{main: {{rows: [embedding], labels: {{embedding: {{{labels}}}}}}}}}\n"


@_body
def tables_with_many_panels() -> str:
    panel = "{embedding: [" + ",".join(f"'{number}'" for number in range(1, 300)) + "]},"
    axis = f"{HEAD}compare: {{embedding: {_axis(1_000)}}}\n"
    return f"{axis}tables: {{main: {{columns: [embedding], panels: [{panel * 300}]}}}}\n"


@_body
def tables_over_many_axes() -> str:
    axes = "".join(f"  a{number}: [{{label: x, patch: {{seed: 1}}}}]\n" for number in range(40))
    rows = ",".join(f"a{number}" for number in range(40))
    return _filled(f"{HEAD}compare:\n{axes}tables:\n", lambda n: f"  t{n}: {{rows: [{rows}], metrics: [nmi]}}\n", 2_000)


@_body
def tables_that_leave_many_axes_out() -> str:
    two = "[{label: x, patch: {seed: 1}}, {label: y, patch: {seed: 2}}]"
    axes = "".join(f"  {'a' * 90}{number}: {two}\n" for number in range(16))
    return _filled(f"{HEAD}compare:\n{axes}tables:\n", lambda n: f"  t{n}: {{rows: [], metrics: [nmi]}}\n", 9_000)


@_body
def metrics_with_conditions() -> str:
    axis = f"{HEAD}compare: {{embedding: {_axis(1_000)}}}\n"
    whens = ",".join(map(str, range(1, 90)))
    column = lambda n: f"{{metric: nmi, label: l{n}, when: {{embedding: [{whens}]}}}},"  # noqa: E731
    return _filled(f"{axis}tables: {{main: {{columns: [embedding], metrics: [", column, 1_000, "]}}")


@_body
def captions() -> str:
    return _filled(f"{HEAD}tables:\n", lambda n: f"  t{n}: {{rows: [], metrics: [nmi], caption: {'x' * 9_900}}}\n", 100)
