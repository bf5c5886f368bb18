"""Gives each request that schemathesis makes up a name of its own: one name for two inputs is refused, and rightly."""

import uuid

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    # What is no name at all, because it is empty or holds what no name may, stays: it has to be refused.
    name = headers.get("Idempotency-Key")
    if name and len(name) <= 255 and all("!" <= character <= "~" for character in name) and not name.startswith('"'):
        # As long as it may be, it stays as long.
        headers["Idempotency-Key"] = f"{name[:219]}{uuid.uuid4()}"
