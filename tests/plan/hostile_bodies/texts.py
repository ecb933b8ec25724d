"""Bodies whose text is dear: to parse, to decode, to repeat."""

import json

from tests.plan.hostile_bodies.body import HEAD, LIMIT, RECIPE, body, filled


@body
def alias_of_a_long_text() -> str:
    return f"a: &a '{'x' * 100_000}'\nb: [{'*a,' * 50_000}]\n"


@body
def alias_of_a_long_text_in_a_recipe() -> str:
    text = f"a: &a '{'x' * 900}'\n{HEAD}"
    return f"{text}compare: {{loss: [{'{name: *a, margin: *a},' * 30_000}]}}\n"


@body
def alias_of_a_list_of_texts() -> str:
    return f"a: &a [{','.join(['x' * 1_000] * 300)}]\n{HEAD}tune:\n  loss.margin: [{'*a,' * 300}]\n"


@body
def billions_of_laughs() -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    return "\n".join(lines)


@body
def an_open_bracket_repeated() -> str:
    return "[" * LIMIT


@body
def nesting_in_json() -> str:
    return '{"a":' * 200_000


@body
def nesting_of_keys() -> str:
    return "? " * 500_000


@body
def one_huge_text() -> str:
    return f"{HEAD}description: {'x' * (LIMIT - 1_000)}"


@body
def one_huge_name() -> str:
    return f"version: 1\nrecipe: {json.dumps(RECIPE)}\nname: {'x' * (LIMIT - 1_000)}"


@body
def one_huge_block_text() -> str:
    return filled(f"{HEAD}description: |\n", lambda _: "  x\n")


@body
def one_huge_quoted_text() -> str:
    return f"{HEAD}description: '{chr(39) * (LIMIT - 1_001 - LIMIT % 2)}'"


@body
def one_huge_path() -> str:
    recipe = json.dumps({**RECIPE, "backbone": {"name": "resnet50", "weights": "x" * (LIMIT - 1_000)}})
    return f"version: 1\nname: hostile\nrecipe: {recipe}\n"


@body
def one_huge_key() -> str:
    return f"{HEAD}? {'x' * (LIMIT - 1_000)}\n: 1\n"


@body
def one_huge_axis() -> str:
    return f"{HEAD}compare:\n  ? {'x' * 500_000}\n  : [{'{label: 1, patch: {loss: x}},' * 10_000}]\n"


@body
def one_huge_table_name() -> str:
    return f"{HEAD}tables:\n  ? {'x' * 500_000}\n  : {{{filled('', lambda n: f'k{n}: 1,', 40_000)}}}\n"


@body
def one_huge_tag() -> str:
    return f"a: !{'x' * (LIMIT - 100)} 1"


@body
def one_huge_anchor() -> str:
    return f"a: &{'x' * 500_000} 1\nb: *{'x' * 500_000}"


@body
def one_huge_number() -> str:
    return f"{HEAD}slot: {{cpus: {'9' * 400_000}}}"


@body
def one_huge_fraction() -> str:
    return f"{HEAD}slot: {{cpus: 0.{'9' * 400_000}}}"


@body
def one_huge_hexadecimal_number() -> str:
    return f"{HEAD}slot: {{cpus: 0x{'f' * 400_000}}}"


@body
def huge_exponents() -> str:
    return filled(f"{HEAD}tune: {{loss.margin: [", lambda n: f"1e99999{n},", 40_000, "]}")


@body
def many_numbers() -> str:
    return filled("[", lambda _: "1,", foot="]")


@body
def many_long_numbers() -> str:
    return filled("[", lambda _: "123456789012345678.5e-3,", 90_000, foot="]")


@body
def comments() -> str:
    return filled(HEAD, lambda _: "# nothing\n")


@body
def one_long_comment() -> str:
    return f"{HEAD}#{'x' * (LIMIT - 1_000)}"


@body
def line_ends() -> str:
    return f"a: '{chr(10) * (LIMIT - 100)}'"


@body
def question_marks() -> str:
    return "?" * LIMIT


@body
def dashes() -> str:
    return "-\n" * (LIMIT // 2)


@body
def exclamation_marks() -> str:
    return "!" * LIMIT


@body
def anchors_and_nothing() -> str:
    return filled("", lambda n: f"- &a{n}\n")


@body
def tags() -> str:
    return filled("", lambda n: f"- !t{n} 1\n", 99_000)


@body
def bad_tags_within_aliases() -> str:
    return f"a: &a [{'!x 1,' * 300}]\nb: [{'*a,' * 300}]"


@body
def merges() -> str:
    return filled("a: &a {x: 1}\nb:\n", lambda n: f"  k{n}: {{<<: *a}}\n", 24_000)


@body
def one_key_again_and_again() -> str:
    return filled('{"a": 1', lambda _: ',"a": 1', 99_000, "}")


@body
def many_keys() -> str:
    return filled("", lambda n: f"k{n}: 1\n", 99_000)


@body
def half_a_surrogate_pair() -> str:
    return filled("[", lambda _: '"\\ud83d",', 99_000, "]")


@body
def one_pair_of_surrogates_and_many_numbers() -> str:
    return filled('["\\ud83d\\ude00"', lambda n: f",{n}", 99_000, "]")


@body
def one_pair_of_surrogates_and_a_long_text() -> str:
    return '"\\ud83d\\ude00' + "x" * 1_000_000 + '"'


@body
def escapes() -> str:
    return f'a: "{chr(92) + "x41"}{(chr(92) + "U0001F600") * 100_000}"'


@body
def characters_that_turn_around() -> str:
    return filled(f"{HEAD}compare: {{loss: [", lambda n: f'"\u202e{n}\u2066",', 40_000, "]}")


@body
def not_utf_8() -> bytes:
    return b"a: " + b"\xff" * 1_000_000


@body
def an_escape_sequence_in_every_name() -> str:
    return filled(HEAD, lambda n: f'"\\x1b]0;{n}\\x07": 1\n', 40_000)
