"""The text of a spec: what is read of it, and that its check is bounded in work, memory and words."""

import ctypes
import gc
import json
import re
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan import points
from orchestrator.plan.check import check, read_spec
from orchestrator.plan.read import spec_document
from orchestrator.views.errors import Deadline, GoneError, InvalidSpecError, within
from tests.plan.hostile_bodies import BODIES, LARGE, SMALL
from workers.catalog import MOST_REPORTED, Catalog, DocumentError, DocumentTooLargeError, Problem, load_document, shown
from workers.catalog.documents import MAX_BYTES, MAX_DEPTH


def refusal(text: bytes) -> list[str]:
    with pytest.raises(DocumentError) as refused:
        load_document(text)
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
    found = [(text, value, load_document(f"a: {text}".encode()).value["a"]) for text, value in cases]
    assert [one for one in found if (one[1], type(one[1])) != (one[2], type(one[2]))] == []


def test_refuses_with_the_place() -> None:
    cases: list[tuple[bytes, str]] = [
        (b"a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' stands twice; first on line 1"),
        (b"{'a': 1, \"a\": 2}", "line 1, column 10: the key 'a' stands twice; first on line 1"),
        (b"a: !!python/object/apply:os.system [id]", "line 1, column 4: the tag '!!python/object/apply:os.system'"),
        (b"a: !!binary aGk=", "line 1, column 4: the tag '!!binary' is not allowed"),
        (b"a: !!timestamp 2001-01-01", "line 1, column 4: the tag '!!timestamp' is not allowed"),
        (b"a: !!set {x}", "line 1, column 4: the tag '!!set' is not allowed"),
        (b"a: !x 1", "line 1, column 4: the tag '!x' is not allowed here; plain values are allowed"),
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
        (b"a: 1\n---\nb: 2", "line 2, column 1: a second document starts here; one is allowed"),
        (b"", "the document is empty"),
        (b"# nothing\n", "the document is empty"),
        (b"a: \xff", "the text is not UTF-8: byte 0xff at offset 3"),
        ("a: é".encode("utf-16"), "the text is UTF-16; save it as UTF-8"),
        (b"a: 1\nb: \x00", "line 2, column 4: the character U+0000 is not allowed"),
        (b'a: "\\0"', "line 1, column 4: the text holds a NUL character"),
        (b'a: "\\ud83d"', "line 1, column 4: the text holds half of a surrogate pair"),
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
    assert load_document(text.encode()).value == {"a": "x\u00a0y", "b": "\u00a0z", "c": "\u00a0w\n"}


def test_tells_all_problems_of_values_at_once() -> None:
    assert len(refusal(b"a: .nan\na: 1\nb: !x 1\nc: 1e999")) == 4


def test_json_is_read_with_the_same_checks() -> None:
    document = {"a": [1, 2.5, True, None, "no"], "b": {"é😀": "\u2028\n\t/"}, "c": []}
    for indent in (None, 2, "\t"):
        for ascii_only in (True, False):
            assert (
                load_document(json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()).value == document
            )
    assert refusal(b'{"a": 1,\n "a": 2}') == ["line 2, column 2: the key 'a' stands twice; first on line 1"]
    assert "number" in refusal(b'{"a": 1e400}')[0]


def test_a_byte_order_mark_and_document_marks_are_fine() -> None:
    assert load_document(b"\xef\xbb\xbf---\na: 1\n...\n").value == {"a": 1}


def test_aliases_stand_for_separate_copies() -> None:
    document = load_document(b"a: &x [1, {b: 2}]\nc: *x").value
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
    assert load_document(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).value
    half = b"a: &a " + b"[" * 20 + b"]" * 20
    assert "deeper" in refusal(half + b"\nb: " + b"[" * 20 + b"*a" + b"]" * 20)[0]


def test_size_is_limited() -> None:
    assert load_document(b"#" * (MAX_BYTES - 5) + b"\na: 1").value == {"a": 1}
    with pytest.raises(DocumentTooLargeError, match=r"1,048,577 bytes; at most 1,048,576"):
        load_document(b"#" * (MAX_BYTES + 1))


def test_messages_stay_short() -> None:
    for text in (b"a: !" + b"x" * 100_000 + b" 1", b"*" + b"x" * 100_000, b"'" + b"x" * 900 + b"': 1\n" * 2):
        assert all(len(message) < 400 for message in refusal(text * 2))


def outcome(text: bytes) -> None:
    """Parses, where only our own errors may come."""
    with suppress(DocumentError):
        load_document(text)


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
    assert load_document(json.dumps(value).encode()).value == value


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
    document = load_document(TEXT)
    assert [document.line(path) for path, _ in cases] == [line for _, line in cases]


MOST_MEGABYTES = 70
"""The promise is 100, but memory that the process had freed before is not counted. The largest body takes 35."""
MOST_CHARACTERS = 250_000
"""The limit of all messages about one spec; usual specs have a hundredth of it."""
HANG_SECONDS = 60
RESET = Path("/proc/self/clear_refs")
"""Writing to it resets the peak memory that the kernel reports for this process."""


@contextmanager
def ended() -> Iterator[None]:
    """Fail after a limit of processor seconds; the clock would depend on the load of the machine."""
    before = signal.signal(signal.SIGPROF, lambda *_: pytest.fail("the check hangs"))
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def little_memory() -> Iterator[None]:
    """Little memory is taken meanwhile, by what the kernel counts: Python's own count takes five times as long.

    What this process had let go of and could not give back may be taken again, unseen.
    """
    if not RESET.exists():  # only Linux has it
        yield
        return
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")
    before = _kilobytes("VmRSS")
    yield
    assert (_kilobytes("VmHWM") - before) / 1_024 < MOST_MEGABYTES


def _kilobytes(name: str) -> int:
    return int(re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.soak) for name in LARGE)])
def test_a_hostile_body_costs_little(name: str, catalog: Catalog) -> None:
    body = BODIES[name]()
    with ended(), pytest.MonkeyPatch.context() as patched, little_memory():
        counted = points.Effort()
        patched.setattr(points, "Effort", lambda: counted)
        told: tuple[Problem, ...] = ()
        try:
            read_spec(body, catalog, ())
        except InvalidSpecError as refused:
            told = refused.problems
    assert len(told) <= MOST_REPORTED + 1
    assert sum(len(str(problem)) for problem in told) < MOST_CHARACTERS
    # A step is counted before it is done, so that the last one is refused and not done.
    assert counted.steps <= points.MOST_STEPS + 100_000


def test_a_value_is_cut_before_it_is_written_out() -> None:
    long = "x" * 100_000
    deep: Any = 1
    for _ in range(30):
        deep = [deep, {"k": deep}]  # 2**30 values, written out
    for value in (long, [long] * 50_000, {long: long}, deep, {"a": [[long] * 1_000] * 1_000}):
        tracemalloc.start()
        found = shown(value)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(found) <= 80
        assert most < 2**17
    assert shown([1, "a", {"b": None}]) == '[1, "a", {"b": null}]'
    assert shown("x" * 200) == f"'{'x' * 76}..."


def test_problems_beyond_the_first_are_counted(catalog: Catalog) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        check({"version": 1, "name": "x", "recipe": {}, **{f"key{number}": 1 for number in range(5_000)}}, catalog)
    assert len(refused.value.problems) == MOST_REPORTED + 1
    assert re.fullmatch(r"and 4,8\d\d more problems", refused.value.problems[-1].message)


def test_texts_have_a_limit(catalog: Catalog) -> None:
    backbone, schedule = {"name": "resnet50", "weights": "x" * 1_001}, {"name": "step", "at": [1] * 1_001}
    with pytest.raises(InvalidSpecError) as refused:
        check({"version": 1, "name": "x", "recipe": {"backbone": backbone, "schedule": schedule}}, catalog)
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert told["recipe.backbone.weights"] == "expected a text of at most 1,000 characters, found 1,001"
    assert told["recipe.schedule.at"] == "expected at most 1,000 numbers, found 1,001"


def test_rows_that_would_fill_the_disk_are_refused(small: Any, catalog: Catalog) -> None:
    weights = {"name": "resnet50", "weights": "é" * 1_000}  # six bytes each in the database
    values = [{"label": f"{'é' * 90}{number}", "patch": {"iterations": number}} for number in range(1, 301)]
    document = small(compare={"x": values, "embedding": list(range(1, 301))}, **{"recipe.backbone": weights})
    with pytest.raises(InvalidSpecError, match=r"the rows of 90,000 trials would take up to \d+ MiB; at most 512"):
        check(document, catalog)


def test_labels_are_counted_over_all_cells(small: Any, catalog: Catalog) -> None:
    single: dict[str, Any] = {
        "warmup": 0, "patience": 1, "backbone_rate": 1.0, "loss_rate": 1.0, "undecayed": "norm", "clip_value": 1.0,
        "clip_norm": 1.0, "precision": "none", "channels_last": False, "compile": False,
    }  # fmt: skip
    single = {field: [value] for field, value in single.items()}
    document = small(compare={"embedding": list(range(1, 301)), "iterations": list(range(1, 301)), **single})
    with pytest.raises(InvalidSpecError, match="90,000 cells with a label on each of 12 axes are more than 1,000,000"):
        check(document, catalog)


def test_a_check_stops_when_nobody_waits(catalog: Catalog) -> None:
    deadline = Deadline(3_600)
    deadline.end()
    with within(deadline), pytest.raises(GoneError):
        read_spec(BODIES["ninety thousand cells"](), catalog, ())


def test_aliases_count_as_what_they_stand_for() -> None:
    assert spec_document(b"a: &a xx\nb: [*a, *a]").value == {"a": "xx", "b": ["xx", "xx"]}
    with pytest.raises(InvalidSpecError, match="more than 1,048,576 characters, an alias counted as what"):
        spec_document(BODIES["alias of a long text"]())
    with pytest.raises(InvalidSpecError, match=r"the key 'x{37}\.\.\.' has 201 characters; at most 200 are allowed"):
        spec_document(b"x" * 201 + b": 1")
