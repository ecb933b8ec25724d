"""A frame of pandas from the stream of Arrow that the server sends."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from api.connection import Query, ServerConnection
from orchestrator.host.checks import brought_by

if TYPE_CHECKING:  # late, since the commands wait for neither
    import pandas
    import pyarrow

FRAME_SECONDS: Final = 600.0
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def frame(connection: ServerConnection, path: str, query: Query | None = None) -> "pandas.DataFrame":
    """A frame from Arrow's stream; columns of names and values become a column each.

    A column of labels that are all numbers, such as `seed` or `regularizer.eta`, holds numbers.
    """
    with brought_by("notebook"):
        import pandas
        import pyarrow

    with connection.streamed(path, FRAME_SECONDS, query) as pieces:
        whole = pyarrow.py_buffer(b"".join(pieces))
    table = pyarrow.ipc.open_stream(whole).read_all()
    plain = [name for name in table.schema.names if not pyarrow.types.is_map(table.schema.field(name).type)]
    rows = table.select(plain).to_pandas()
    extra: dict[str, Any] = {}
    for name in ("labels", "metrics", "deviations"):
        if name in table.schema.names:
            wide = _wide(table.column(name))
            ending = " std" if name == "deviations" else ""
            for key, values in wide.items():
                column = f"{key}{ending}"
                extra[column if column not in plain else f"{column}_"] = (
                    _numbers(values) if name == "labels" else values
                )
    return pandas.concat([rows, pandas.DataFrame(extra, index=rows.index)], axis=1)


def _numbers(labels: Any) -> Any:
    """Labels as numbers where all that there are can be read as such; others stay text."""
    import pandas

    given = [label for label in labels if label is not None]
    if not given or not all(map(_NUMBER.fullmatch, given)):
        return labels
    if all(label.lstrip("+-").isdigit() for label in given):
        whole = [None if label is None else int(label) for label in labels]
        if all(abs(one) < 2**63 for one in whole if one is not None):
            return pandas.array(whole, dtype="int64" if len(given) == len(labels) else "Int64")
    return pandas.array([float("nan") if label is None else float(label) for label in labels], dtype="float64")


def _wide(column: "pyarrow.ChunkedArray") -> Mapping[str, Any]:
    """A column of maps as a column a key; nothing where a row lacks it."""
    import numpy
    import pyarrow
    from pyarrow import compute

    by_key: dict[str, Any] = {}
    length, begin = len(column), 0
    for chunk in column.chunks:
        rows = numpy.repeat(numpy.arange(len(chunk)), numpy.diff(chunk.offsets.to_numpy())) + begin
        keys, items = compute.dictionary_encode(chunk.keys), chunk.items
        numbers = pyarrow.types.is_floating(items.type)
        values = items.to_numpy(zero_copy_only=False)
        which = keys.indices.to_numpy()
        for index, key in enumerate(keys.dictionary.to_pylist()):
            if key not in by_key:
                by_key[key] = numpy.full(length, numpy.nan if numbers else None, dtype=float if numbers else object)
            mine = which == index
            by_key[key][rows[mine]] = values[mine]
        begin += len(chunk)
    return by_key
