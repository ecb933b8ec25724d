"""Hostile bodies: at most 1 MiB that is posted as a spec, cheap to send and expensive to check badly."""

import json
from collections.abc import Callable
from typing import Any, Final

LIMIT: Final = 1024 * 1024
RECIPE: Final[dict[str, Any]] = {
    "dataset": "digits", "backbone": "mlp", "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 2, "per_class": 4}, "iterations": 10,
    "validation": {"name": "class_holdout", "folds": 3},
}  # fmt: skip
HEAD: Final = f"version: 1\nname: hostile\nrecipe: {json.dumps(RECIPE)}\n"
Made = str | bytes | dict[str, Any]


def filled(head: str, piece: Callable[[int], str], most: int = 10**9, foot: str = "") -> str:
    """As many pieces as the limit takes, between head and foot."""
    found, left = [head], LIMIT - len(head.encode()) - len(foot.encode())
    for number in range(most):
        one = piece(number)
        left -= len(one.encode())
        if left < 0:
            break
        found.append(one)
    return "".join([*found, foot])


def axis(count: int, first: int = 1) -> list[int]:
    return list(range(first, first + count))


def table(field: str, piece: Callable[[int], str], most: int, above: str = "", foot: str = "]}}") -> str:
    """A table, one of whose fields is a list of many."""
    return filled(f"{HEAD}{above}tables: {{main: {{{field}: [", piece, most, foot)


def rules(block: str, what: str, most: int) -> str:
    """A list of rules, each of which holds in a hundredth of 10,000 cells."""
    head = f"{HEAD}compare: {{embedding: {axis(100)}, seed: {axis(100)}}}\n{block}:\n"
    return filled(head, lambda n: f"- {{when: {{embedding: {n % 100 + 1}}}, {what.format(n=n)}}}\n", most)


def groups(count: int, labels: int) -> str:
    """Groups of an axis that hold for a label each of `seed`."""
    return "".join(f"{{values: [{number}], when: {{seed: {number % labels}}}}}," for number in range(count))


def groups_of_many_labels() -> str:
    found = "".join(f"{{values: [{number}], when: {{seed: [{NINETY}]}}}}," for number in range(1_000))
    return f"{HEAD}compare: {{seed: {axis(100, 0)}}}\ntune: {{loss.margin: [{found}]}}"


def axes_that_hang_together() -> str:
    lines = [f"{HEAD}compare:\n  a0: [{{label: x, patch: {{seed: 1}}}}, {{label: y, patch: {{seed: 2}}}}]"]
    for number in range(1, 40):
        whens = [f"{{a{other}: {label}}}" for other in range(number) for label in "xy"]
        found = [
            f"{{when: {when}, values: [{{label: g{at}, patch: {{seed: {at}}}}}]}}" for at, when in enumerate(whens)
        ]
        lines.append(f"  a{number}: [{', '.join(found)}]")
    return "\n".join(lines)


def labels_that_are_nearly_there() -> str:
    labels = ",".join(f"{{label: {'a' * 80}{number}, patch: {{seed: {number}}}}}" for number in range(500))
    head = f"{HEAD}compare: {{x: [{labels}]}}\nrules:\n"
    return filled(head, lambda n: f"- {{when: {{x: {'a' * 90}{n}}}, patch: {{loss: triplet}}}}\n", 6_000)


def unknown_axes_of_long_names() -> str:
    axes = "".join(f"  {'a' * 90}{number}: [1]\n" for number in range(40))
    rule = filled("rules:\n", lambda n: f"- {{when: {{{'a' * 91}{n}: 1}}, patch: {{loss: triplet}}}}\n", 6_000)
    return f"{HEAD}compare:\n{axes}{rule}"


def laughs() -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    return "\n".join(lines + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)])


def templates() -> str:
    labels = ",".join(
        f"'{number}': '{''.join(f'{{p{number}x{at}}}' for at in range(9))}'" for number in range(1, 1_000)
    )
    return f"{MANY_ROWS}tables: {{main: {{rows: [embedding], labels: {{embedding: {{{labels}}}}}}}}}\n"


def tables_over(axes: str, one: str, most: int) -> str:
    return filled(f"{HEAD}compare:\n{axes}tables:\n", lambda n: f"  t{n}: {one}\n", most)


MANY_ROWS: Final = f"{HEAD}compare: {{embedding: {axis(1_000)}}}\n"
COMPARED: Final = f"compare: {{embedding: {axis(1_000)}}}\n"
SEED: Final = "[{label: x, patch: {seed: 1}}]"
SEEDS: Final = "[{label: x, patch: {seed: 1}}, {label: y, patch: {seed: 2}}]"
TWO: Final = [{"label": "x", "patch": {"seed": 1}}, {"label": "y", "patch": {"seed": 2}}]
CODE: Final = [
    "${jndi:ldap://x}", "{{7*7}}", "(a+)+$", "%s%s%n", "'; DROP TABLE sweep; --", "=cmd|'/c'!A1", "__import__",
]  # fmt: skip
NINETY: Final = ",".join(map(str, range(90)))
WHENS: Final = ",".join(map(str, range(1, 90)))
LABELS: Final = ",".join(f"'{number}': x" for number in range(1, 1_000))
PANEL: Final = "{embedding: [" + ",".join(f"'{number}'" for number in range(1, 300)) + "]},"
FORTY: Final = "".join(f"  a{number}: {SEED}\n" for number in range(40))

SMALL: Final[dict[str, Callable[[], Made]]] = {
    # keys that nothing knows, and near misses
    "unknown keys": lambda: filled(HEAD, lambda n: f"descriptio{n}: 1\n", 60_000),
    "unknown fields": lambda: filled(
        '{"version":1,"name":"x","recipe":{', lambda n: f'"iteration{n}":1,', 40_000, '"seed":1}}'
    ),
    "unknown options": lambda: filled(
        '{"version":1,"name":"x","recipe":{"loss":{"name":"triplet"', lambda n: f',"margi{n}":1', 60_000, "}}}"
    ),
    "a misplaced option in every cell": lambda: {
        "recipe": {**RECIPE, "loss": {"name": "triplet", **{f"margi{n}": 1 for n in range(300)}}},
        "compare": {"embedding": axis(99), "iterations": axis(99)},
    },
    # axes
    "two billion trials": lambda: {
        "compare": {"embedding": axis(1300)}, "tune": {"iterations": axis(1300)}, "repeat": {"seed": axis(1300)},
    },
    "forty axes of two": lambda: {"compare": {f"a{number}": TWO for number in range(40)}},
    "axes that hang together": axes_that_hang_together,
    "a thousand groups of many labels": groups_of_many_labels,
    "texts that look like code": lambda: filled(
        f"{HEAD}compare: {{loss: [", lambda n: json.dumps(CODE[n % 7] + str(n)) + ",", 30_000, "]}"
    ),
    # tables and figures
    "templates": templates,
    "tables over many axes": lambda: tables_over(
        FORTY, f"{{rows: [{','.join(f'a{number}' for number in range(40))}], metrics: [nmi]}}", 2_000
    ),
    "captions": lambda: filled(
        f"{HEAD}tables:\n", lambda n: f"  t{n}: {{rows: [], metrics: [nmi], caption: {'x' * 9_900}}}\n", 100
    ),
    # text that is expensive to parse, to decode, to repeat
    "alias of a long text": lambda: f"a: &a '{'x' * 100_000}'\nb: [{'*a,' * 50_000}]\n",
    "alias of a long text in a recipe": lambda: (
        f"a: &a '{'x' * 900}'\n{HEAD}compare: {{loss: [{'{name: *a, margin: *a},' * 30_000}]}}\n"
    ),
    "alias of a list of texts": lambda: (
        f"a: &a [{','.join(['x' * 1_000] * 300)}]\n{HEAD}tune:\n  loss.margin: [{'*a,' * 300}]\n"
    ),
    "billions of laughs": laughs,
    "an open bracket repeated": lambda: "[" * LIMIT,
    "nesting in json": lambda: '{"a":' * 200_000,
    "nesting of keys": lambda: "? " * 500_000,
    "a huge text": lambda: f"{HEAD}description: {'x' * (LIMIT - 1_000)}",
    "a huge name": lambda: f"version: 1\nrecipe: {json.dumps(RECIPE)}\nname: {'x' * (LIMIT - 1_000)}",
    "a huge quoted text": lambda: f"{HEAD}description: '{chr(39) * (LIMIT - 1_001 - LIMIT % 2)}'",
    "a huge key": lambda: f"{HEAD}? {'x' * (LIMIT - 1_000)}\n: 1\n",
    "a huge tag": lambda: f"a: !{'x' * (LIMIT - 100)} 1",
    "a huge anchor": lambda: f"a: &{'x' * 500_000} 1\nb: *{'x' * 500_000}",
    "a huge number": lambda: f"{HEAD}slot: {{cpus: {'9' * 400_000}}}",
    "many numbers": lambda: filled("[", lambda _: "1,", foot="]"),
    "many keys": lambda: filled("", lambda n: f"k{n}: 1\n", 99_000),
    "a long comment": lambda: f"{HEAD}#{'x' * (LIMIT - 1_000)}",
    "line ends": lambda: f"a: '{chr(10) * (LIMIT - 100)}'",
    "exclamation marks": lambda: "!" * LIMIT,
    "bad tags within aliases": lambda: f"a: &a [{'!x 1,' * 300}]\nb: [{'*a,' * 300}]",
    "merges": lambda: filled("a: &a {x: 1}\nb:\n", lambda n: f"  k{n}: {{<<: *a}}\n", 24_000),
    "escapes": lambda: f'a: "{chr(92) + "x41"}{(chr(92) + "U0001F600") * 100_000}"',
    "an escape sequence in every name": lambda: filled(HEAD, lambda n: f'"\\x1b]0;{n}\\x07": 1\n', 40_000),
    "not utf 8": lambda: b"a: " + b"\xff" * 1_000_000,
}  # fmt: skip
"""Bodies that are refused, or checked, within a tenth of a second; and one or two of each kind that take longer."""

LARGE: Final[dict[str, Callable[[], Made]]] = {
    "unknown axes of long names": unknown_axes_of_long_names,
    "labels that are nearly there": labels_that_are_nearly_there,
    "metrics that are nearly there": lambda: table("rows: [], columns: [], metrics", lambda n: f"recal@{n},", 60_000),
    "axes that are nearly there": lambda: table("metrics: [nmi], rows", lambda n: f"los{n},", 60_000),
    "ninety thousand trials": lambda: {"compare": {"embedding": axis(300)}, "tune": {"iterations": axis(300)}},
    "ninety thousand cells": lambda: {"compare": {"embedding": axis(300), "iterations": axis(300)}},
    "two billion trials with conditions": lambda: {
        "compare": {"embedding": axis(1300)}, "repeat": {"seed": axis(1300)},
        "tune": {"iterations": [{"values": axis(1300), "when": {"embedding": axis(1300)}}]},
    },
    "an axis of many": lambda: filled(f"{HEAD}repeat: {{seed: [", lambda n: f"{n},", 95_000, "]}"),
    "an axis of namesakes with many options": lambda: filled(
        f"{HEAD}compare: {{loss: [", lambda n: f"{{name: triplet,{','.join(f'o{at}: {n}' for at in range(90))}}},",
        1_000, "]}",
    ),
    "a thousand groups and many cells": lambda: (
        f"{HEAD}compare: {{seed: {axis(300, 0)}, embedding: {axis(300)}}}\ntune: {{loss.margin: [{groups(1_000, 2)}]}}"
    ),
    "rules for every cell": lambda: rules("rules", "patch: {{loss.margin: {n}}}", 12_000),
    "slots for every cell": lambda: rules("slots", "memory_gb: {n}.5", 14_000),
    "a budget for many cells": lambda: {
        "compare": {"embedding": axis(300), "seed": axis(30)}, "select": {"budget": 11},
        "tune": {"loss.margin": [0.1, 0.2]},
    },
    "a search in many cells": lambda: {
        "compare": {"embedding": axis(300), "iterations": axis(300)}, "search": {"name": "brute_force"},
        "tune": {"loss.margin": [
            {"values": axis(200), "when": {"embedding": axis(299)}}, {"values": [0.5], "when": {"embedding": 300}},
        ]},
    },
    "long labels": lambda: filled(
        f"{HEAD}compare: {{x: [", lambda n: f"{{label: '{'x' * 90}{n:06}', patch: {{embedding: {n + 1}}}}},", 7_000,
        "]}\n",
    ),
    "a long list in a plain field": lambda: {
        "recipe": {**RECIPE, "embedding": [1] * 90_000}, "compare": {"seed": axis(100), "iterations": axis(90)},
    },
    "a thousand folds": lambda: {
        "recipe": {**RECIPE, "validation": {"name": "cross_validation", "folds": 1000}},
        "compare": {"seed": axis(100), "iterations": axis(90)},
    },
    "ten thousand tables": lambda: filled(
        f"{HEAD}tables:\n", lambda n: f"  t{n}: {{rows: [], columns: [], metrics: [nmi]}}\n", 10_000
    ),
    "a table of many metrics": lambda: table("metrics", lambda n: f"recall@{n + 1},", 60_000),
    "tables with labels for many": lambda: filled(
        f"{MANY_ROWS}tables:\n", lambda n: f"  t{n}: {{rows: [embedding], labels: {{embedding: {{{LABELS}}}}}}}\n", 40
    ),
    "tables with many panels": lambda: (
        f"{MANY_ROWS}tables: {{main: {{columns: [embedding], panels: [{PANEL * 300}]}}}}\n"
    ),
    "tables that leave many axes out": lambda: tables_over(
        "".join(f"  {'a' * 90}{number}: {SEEDS}\n" for number in range(16)), "{rows: [], metrics: [nmi]}", 9_000
    ),
    "metrics with conditions": lambda: table(
        "columns: [embedding], metrics", lambda n: f"{{metric: nmi, label: l{n}, when: {{embedding: [{WHENS}]}}}},",
        1_000, COMPARED,
    ),
    "huge exponents": lambda: filled(f"{HEAD}tune: {{loss.margin: [", lambda n: f"1e99999{n},", 40_000, "]}"),
    "tags": lambda: filled("", lambda n: f"- !t{n} 1\n", 99_000),
    "a key again and again": lambda: filled('{"a": 1', lambda _: ',"a": 1', 99_000, "}"),
    "half a surrogate pair": lambda: filled("[", lambda _: '"\\ud83d",', 99_000, "]"),
}  # fmt: skip
"""Bodies of the same kinds that take up to two seconds each."""


def _whole(make: Callable[[], Made]) -> Callable[[], bytes]:
    def whole() -> bytes:
        made = make()
        if isinstance(made, dict):
            made = json.dumps({"version": 1, "name": "hostile", "recipe": RECIPE} | made)
        posted = made.encode() if isinstance(made, str) else made
        assert len(posted) <= LIMIT
        return posted

    return whole


BODIES: Final = {name: _whole(make) for name, make in {**SMALL, **LARGE}.items()}
