import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan.yaml import MAX_BYTES, MAX_DEPTH, MOST_BYTES, lines, parse
from orchestrator.views.errors import InvalidSpecError, TooLargeError
from workers.catalog import Problem


def refusal(text: bytes) -> list[str]:
    with pytest.raises(InvalidSpecError) as refused:
        parse(text)
    assert all(problem.path == "" for problem in refused.value.problems)
    return [problem.message for problem in refused.value.problems]


def test_plain_scalars_are_those_of_yaml_1_2() -> None:
    cases: list[tuple[str, Any]] = [
        ("1e-3", 0.001), ("1.0e-3", 0.001), ("1E5", 100000.0), (".5", 0.5), ("5.", 5.0), ("+3", 3), ("-0", 0),
        ("0777", 777), ("0o17", 15), ("0x1F", 31), ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)), ("no", "no"), ("yes", "yes"), ("on", "on"), ("Off", "Off"),
        ("none", "none"), ("nan", "nan"), ("true", True), ("FALSE", False), ("~", None), ("null", None), ("", None),
        ("12:30:45", "12:30:45"), ("2001-01-01", "2001-01-01"), ("1_000", "1_000"), ("=", "="), ("'1'", "1"),
        ("!!str 1", "1"), ("!!int '3'", 3), ("map@r", "map@r"),
    ]  # fmt: skip
    found = [(text, value, parse(f"a: {text}".encode())["a"]) for text, value in cases]
    assert [one for one in found if (one[1], type(one[1])) != (one[2], type(one[2]))] == []


def test_refuses_with_the_place() -> None:
    cases: list[tuple[bytes, str]] = [
        (b"a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' stands twice; first on line 1"),
        (b"{'a': 1, \"a\": 2}", "line 1, column 10: the key 'a' stands twice; first on line 1"),
        (b"a: !!python/object/apply:os.system [id]", "line 1, column 4: the tag '!!python/object/apply:os.system'"),
        (b"a: !!binary aGk=", "line 1, column 4: the tag '!!binary' is not allowed"),
        (b"a: !!timestamp 2001-01-01", "line 1, column 4: the tag '!!timestamp' is not allowed"),
        (b"a: !!set {x}", "line 1, column 4: the tag '!!set' is not allowed"),
        (b"a: !x 1", "line 1, column 4: the tag '!x' is not allowed here; a spec holds plain values only"),
        (b"a: &x [1, *x]", "line 1, column 11: the alias '*x' stands within what it names"),
        (b"a: *x", "line 1, column 4: found undefined alias 'x'"),
        (b"b: &b {x: 1}\na:\n  <<: *b", "line 3, column 3: merge keys ('<<') are not part of YAML 1.2"),
        (b"a:\n  - .nan", "line 2, column 5: '.nan' is not a finite number"),
        (b"a: -.INF", "line 1, column 4: '-.INF' is not a finite number"),
        (b"a: 1e999", "line 1, column 4: the number 1e999 is out of range"),
        (b"a: 9223372036854775808", "line 1, column 4: the number 9223372036854775808 does not fit 64 bits"),
        (b"a: " + b"9" * 5000, "line 1, column 4: the number 9999999999999999999999999999999999999... does not fit"),
        (b"a: b: c", "line 1, column 5: mapping values are not allowed here"),
        (b"a:\n\tb: 1", "line 2, column 1: a tab stands where YAML wants spaces"),
        ("a:\n  b: 1\n\u00a0 c: 2\nd: 1".encode(), "line 3, column 1: a no-break space stands where YAML wants spaces"),
        ("a: {b: 1}\n\u00a0 c: 2\nd: 1".encode(), "line 2, column 1: a no-break space stands where YAML wants spaces"),
        ("a: 1\nb:\u00a02\nc: 3".encode(), "line 2, column 3: a no-break space stands where YAML wants spaces"),
        ("a: \u3000b".encode(), "line 1, column 4: an ideographic space stands where YAML wants spaces"),
        ("a: 1\nb\u00a0: 2".encode(), "line 2, column 1: a no-break space stands where YAML wants spaces"),
        ("a:\n  - \u2003b: 1".encode(), "line 2, column 5: an em space stands where YAML wants spaces"),
        (b"a: 1\n---\nb: 2", "line 2, column 1: a second document starts here; a spec is one document"),
        (b"", "the spec is empty"),
        (b"# nothing\n", "the spec is empty"),
        (b"a: \xff", "the text is not UTF-8: byte 0xff at offset 3"),
        ("a: é".encode("utf-16"), "the text is UTF-16; save it as UTF-8"),
        (b"a: 1\nb: \x00", "line 2, column 4: the character U+0000 is not allowed"),
        (b'a: "\\0"', "line 1, column 4: this text holds a NUL character"),
        (b'a: "\\ud83d"', "line 1, column 4: this text holds half of a surrogate pair"),
        (b'a: "\\UFFFFFFFF"', "line 1"),
        (b"1: a", "line 1, column 1: a key must be text; put '1' in quotes"),
        (b"? [a]\n: 1", "line 1, column 3: a key must be text, not a list or a mapping"),
        (b"a: !!int x", "line 1, column 4: 'x' is not a whole number"),
        (b"%YAML 2.0\n---\na: 1", "line 1, column 1: found incompatible YAML document"),
    ]
    wrong = [(message, refusal(text)) for text, message in cases]
    assert [one for one in wrong if not one[1][0].startswith(one[0])] == []


def test_blanks_that_are_no_spaces_may_stand_within_text() -> None:
    text = "a: x\u00a0y\nb: '\u00a0z'\nc: |\n  \u00a0w\n"
    assert parse(text.encode()) == {"a": "x\u00a0y", "b": "\u00a0z", "c": "\u00a0w\n"}


def test_tells_all_problems_of_values_at_once() -> None:
    assert len(refusal(b"a: .nan\na: 1\nb: !x 1\nc: 1e999")) == 4


def test_json_is_read_with_the_same_checks() -> None:
    document = {"a": [1, 2.5, True, None, "no"], "b": {"é😀": "\u2028\n\t/"}, "c": []}
    for indent in (None, 2, "\t"):
        for ascii_only in (True, False):
            assert parse(json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()) == document
    assert refusal(b'{"a": 1,\n "a": 2}') == ["line 2, column 2: the key 'a' stands twice; first on line 1"]
    assert "number" in refusal(b'{"a": 1e400}')[0]


def test_a_byte_order_mark_and_document_marks_are_fine() -> None:
    assert parse(b"\xef\xbb\xbf---\na: 1\n...\n") == {"a": 1}


def test_aliases_stand_for_separate_copies() -> None:
    document = parse(b"a: &x [1, {b: 2}]\nc: *x")
    assert document == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}
    document["a"][1]["b"] = 3
    assert document["c"][1]["b"] == 2


def test_what_explodes_is_refused_without_expanding_it() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    assert "more than 100,000 values" in refusal("\n".join(lines).encode())[0]
    assert "more than 100,000 values" in refusal(b"[" + b"1," * 150_000 + b"]")[0]


def test_nesting_is_limited_through_aliases_too() -> None:
    for bomb in (b"[" * 500_000, b'{"a":' * 200_000, b"- " * 500_000, b"? " * 500_000):
        assert f"deeper than {MAX_DEPTH} levels" in refusal(bomb)[0]
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    half = b"a: &a " + b"[" * 20 + b"]" * 20
    assert "deeper" in refusal(half + b"\nb: " + b"[" * 20 + b"*a" + b"]" * 20)[0]


def test_size_is_limited() -> None:
    assert parse(b"#" * (MAX_BYTES - 5) + b"\na: 1") == {"a": 1}
    with pytest.raises(TooLargeError, match=r"1,048,577 bytes; at most 1,048,576"):
        parse(b"#" * (MAX_BYTES + 1))


def test_messages_stay_short() -> None:
    for text in (b"a: !" + b"x" * 100_000 + b" 1", b"*" + b"x" * 100_000, b"'" + b"x" * 900 + b"': 1\n" * 2):
        assert all(len(message) < 400 for message in refusal(text * 2))


def outcome(text: bytes) -> None:
    """Parses, where only our own errors may come."""
    with suppress(InvalidSpecError, TooLargeError):
        parse(text)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_our_error(text: bytes) -> None:
    outcome(text)


_TOKENS = [*"{}[]:,-?&*!|>'\"%@`#<=~ab01.e\n\t \\", "\n  ", "- ", ": ", "&a", "*a", "<<", "!!int ", "\\U", "é"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from([*_TOKENS, "---\n", "%YAML 1."])).map("".join))
def test_anything_like_yaml_gives_a_value_or_our_error(text: str) -> None:
    outcome(text.encode())


_KEYS = st.text(st.characters(categories=["L", "N"]), max_size=6)
_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"]), max_size=20)
_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300)
@given(_JSON)
def test_whatever_json_says_is_read_so(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value


TEXT = b"""\
version: 1
recipe:
  dataset: {name: digits, sides: 3}
compare:
  loss:
    - triplet
    - {label: other, patch: {loss: npair}}
tune:
  regularizer.eta:
    - {values: [1, 2], when: {regularizer: sec}}
  regularizer.eta.max: [3]
"""


def test_a_path_leads_to_its_line_or_to_that_of_the_block_that_lacks_it() -> None:
    cases = [
        ("version", 1), ("recipe.dataset", 3), ("recipe.dataset.sides", 3), ("recipe.missing", 2),
        ("compare.loss[1]", 7), ("compare.loss[9]", 5), ("compare.loss[1].patch.loss", 7),
        ("tune.regularizer.eta[0].when.regularizer", 10), ("tune.regularizer.eta", 9),
        ("tune.regularizer.eta.max[0]", 11), ("nothing.of.it", 1),
    ]  # fmt: skip
    assert lines(TEXT, [Problem(path=path, message="") for path, _ in cases]) == [line for _, line in cases]


def test_what_cannot_be_read_says_its_line_itself() -> None:
    problem = Problem(path="", message="line 4, column 7: expected a value")
    assert lines(b"a: [1\nb: }", [problem, Problem(path="", message="odd")]) == [4, None]


def test_of_a_long_text_no_line_is_told() -> None:
    assert lines(TEXT + b"#" * MOST_BYTES, [Problem(path="version", message="")]) == [None]
