"""Bodies with tables and figures over what they hold."""

from tests.plan.hostile_bodies.body import HEAD, axis, body, filled


@body
def ten_thousand_tables() -> str:
    return filled(f"{HEAD}tables:\n", lambda n: f"  t{n}: {{rows: [], columns: [], metrics: [nmi]}}\n", 10_000)


@body
def ten_thousand_figures() -> str:
    return filled(f"{HEAD}figures:\n", lambda n: f"  f{n}: {{kind: bars, metric: nmi, x: loss}}\n", 10_000)


@body
def a_table_of_many_metrics() -> str:
    return filled(f"{HEAD}tables: {{main: {{metrics: [", lambda n: f"recall@{n + 1},", 60_000, "]}}")


@body
def a_table_of_many_equal_metrics() -> str:
    return filled(f"{HEAD}tables: {{main: {{metrics: [", lambda n: "nmi,", 90_000, "]}}")


@body
def a_table_of_many_labelled_metrics() -> str:
    column = lambda n: f"{{metric: nmi, label: l{n}}},"  # noqa: E731
    return filled(f"{HEAD}tables: {{main: {{metrics: [", column, 30_000, "]}}")


@body
def tables_with_labels_for_many() -> str:
    axes = f"{HEAD}compare: {{embedding: {axis(1_000)}}}\n"
    labels = ",".join(f"{number}.0: x" for number in range(1, 1_000))
    return filled(
        f"{axes}tables:\n", lambda n: f"  t{n}: {{rows: [embedding], labels: {{embedding: {{{labels}}}}}}}\n", 40
    )


@body
def tables_with_templates() -> str:
    labels = ",".join(f"{number}: '{''.join(f'{{p{number}x{at}}}' for at in range(30))}'" for number in range(1, 1_000))
    axes = f"{HEAD}compare: {{embedding: {axis(1_000)}}}\n"
    return f"{axes}tables: {{main: {{rows: [embedding], labels: {{embedding: {{{labels}}}}}}}}}\n"


@body
def tables_with_many_panels() -> str:
    panel = "{embedding: [" + ",".join(f"'{number}'" for number in range(1, 300)) + "]},"
    axes = f"{HEAD}compare: {{embedding: {axis(1_000)}}}\n"
    return f"{axes}tables: {{main: {{columns: [embedding], panels: [{panel * 300}]}}}}\n"


@body
def tables_over_many_axes() -> str:
    axes = "".join(f"  a{number}: [{{label: x, patch: {{seed: 1}}}}]\n" for number in range(40))
    rows = ",".join(f"a{number}" for number in range(40))
    return filled(f"{HEAD}compare:\n{axes}tables:\n", lambda n: f"  t{n}: {{rows: [{rows}], metrics: [nmi]}}\n", 2_000)


@body
def tables_that_leave_many_axes_out() -> str:
    two = "[{label: x, patch: {seed: 1}}, {label: y, patch: {seed: 2}}]"
    axes = "".join(f"  {'a' * 90}{number}: {two}\n" for number in range(16))
    return filled(f"{HEAD}compare:\n{axes}tables:\n", lambda n: f"  t{n}: {{rows: [], metrics: [nmi]}}\n", 9_000)


@body
def metrics_with_conditions() -> str:
    axes = f"{HEAD}compare: {{embedding: {axis(1_000)}}}\n"
    whens = ",".join(map(str, range(1, 90)))
    column = lambda n: f"{{metric: nmi, label: l{n}, when: {{embedding: [{whens}]}}}},"  # noqa: E731
    return filled(f"{axes}tables: {{main: {{columns: [embedding], metrics: [", column, 1_000, "]}}")


@body
def captions() -> str:
    return filled(f"{HEAD}tables:\n", lambda n: f"  t{n}: {{rows: [], metrics: [nmi], caption: {'x' * 9_900}}}\n", 100)
