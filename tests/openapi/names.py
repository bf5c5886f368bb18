"""Gives each request that schemathesis makes up a name of its own: one name for two inputs is refused, and rightly.

And leaves the name out once an address has had many: a hundred in a week is the limit.
"""

import collections
import uuid

import schemathesis


named = collections.Counter()


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = case.headers or {}
    # What is no name at all, because it is empty or holds what no name may, stays: it has to be refused.
    name = headers.get("Idempotency-Key")
    if name and len(name) <= 255 and all("!" <= character <= "~" for character in name) and not name.startswith('"'):
        # As long as it may be, it stays as long.
        headers["Idempotency-Key"] = f"{name[:219]}{uuid.uuid4()}"
        address = case.body.get("email") if isinstance(case.body, dict) else None
        named[str(address).lower()] += 1
        if named[str(address).lower()] > 80:
            del headers["Idempotency-Key"]
