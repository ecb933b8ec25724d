"""What libraries make anew for each application and client, made once in a process: tests make thousands of both.

FastAPI works out its routes at an application's first request, in up to .1 s of CPU, and httpx reads the system's
certificates for each client, in .02 to .04 s, also where nothing is encrypted. Kept is what a route's function and its
router say; no test gives an application `dependency_overrides`, which would be in it.
"""

import os
from functools import cache
from typing import Any

import httpx
from fastapi import routing

_routes: dict[Any, Any] = {}


def _route(*, original_route: Any, include_context: Any) -> Any:
    said = (include_context.prefix, tuple(include_context.dependencies), tuple(include_context.responses))
    key = (id(original_route), include_context.include_in_schema, include_context.max_body_size, *said)
    if key not in _routes:  # which keeps the route, whose id is nobody else's then
        _routes[key] = _worked_out(original_route=original_route, include_context=include_context)
    return _routes[key]


def _context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> Any:
    if verify is not True or cert is not None:
        return _read(verify=verify, cert=cert, trust_env=trust_env)
    return _usual(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _usual(trust_env: bool, *_: str | None) -> Any:
    return _read(verify=True, cert=None, trust_env=trust_env)


_worked_out = routing._EffectiveRouteContext.from_api_route
routing._EffectiveRouteContext.from_api_route = _route  # type: ignore[method-assign, assignment]
_read = httpx._transports.default.create_ssl_context  # type: ignore[attr-defined]
httpx._transports.default.create_ssl_context = _context  # type: ignore[attr-defined]
