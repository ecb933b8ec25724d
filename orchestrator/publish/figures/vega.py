"""The Vega-Lite that Altair writes for: the version that draws files, and the scripts that draw in a browser."""

from functools import cache

import altair as alt
import vl_convert


@cache
def version() -> str | None:
    """The version that vl_convert takes for Altair's, such as 6.4; none: its newest."""
    found = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return found if found in vl_convert.get_vegalite_versions() else None


@cache
def bundle() -> str:
    """The scripts of Vega, Vega-Lite and Vega-Embed as one (0.9 MB), putting `vegaEmbed` into the page's window."""
    # It takes a second, hence the cache. Its stub asks for a snippet; the function itself does not.
    return vl_convert.javascript_bundle(vl_version=version())  # type: ignore[call-arg]
