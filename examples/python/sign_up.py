"""Signs somebody up in the sandbox, waits to be told that they confirmed, catches up by the events if nobody tells, and prints
what came of it.

    python sign_up.py [EMAIL]      EMAIL [default: one at simulator.test, which confirms by itself]

On clients that are generated from the service's documents; ../README.md has the commands, and the variables to set.
"""

import os
import queue
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

import partner_client
import union_client
from partner_client.api.partner import add_webhook, get_sign_up_status, list_events, list_webhooks, rotate_webhook_secret
from partner_client.models import (
    AddedWebhook,
    AddWebhookRequest,
    EventList,
    RotatedSecret,
    RotateWebhookSecretBody,
    StatusAnswer,
    WebhookList,
)
from partner_client.types import UNSET
from union_client.api.agent_actions import sign_up_user
from union_client.models import InviteRequest, InviteRequestCategories, InviteResponse

ACCESS = {"base_url": os.environ["UNION_BASE_URL"], "token": os.environ["UNION_TEST_KEY"], "timeout": httpx.Timeout(10)}
PORT = int(os.environ["UNION_WEBHOOK_PORT"])
URL = os.environ.get("UNION_WEBHOOK_URL", f"http://127.0.0.1:{PORT}/hooks")
PATIENCE = float(os.environ.get("UNION_WAIT_SECONDS", "60"))
ATTEMPTS, LONGEST_PAUSE, LARGEST_MESSAGE = 4, 60, 65_536

messages: queue.Queue = queue.Queue()
# The ids of what was processed; an event has the id of its webhook. In earnest: in your database.
known: set[str] = set()


def own_secret() -> str:
    """The secret of this program's endpoint, which is added, or gets another secret if it was added before. In earnest: added once,
    and the secret kept beside the key."""
    with partner_client.AuthenticatedClient(**ACCESS) as client:
        listed = list_webhooks.sync(client=client)
        known_as = [one.id for one in listed.webhooks if one.url == URL] if isinstance(listed, WebhookList) else []
        if known_as:
            answer = rotate_webhook_secret.sync(known_as[0], client=client, body=RotateWebhookSecretBody(now=True))
        else:
            answer = add_webhook.sync(client=client, body=AddWebhookRequest(url=URL))
    if not isinstance(answer, (AddedWebhook, RotatedSecret)):
        sys.exit(f"no endpoint: {answer.error if answer else 'the service cannot be reached'}")
    print(f"endpoint {answer.id} has {'another' if known_as else 'a'} secret", flush=True)
    return answer.secret


HOOK = Webhook(os.environ.get("UNION_WEBHOOK_SECRET") or own_secret())


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # for a sender that stops halfway

    def do_POST(self):
        self.send_response(self.take())
        self.end_headers()

    def take(self) -> int:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_MESSAGE:
            return 413
        try:
            event = HOOK.verify(self.rfile.read(int(length)), dict(self.headers))
        except (WebhookVerificationError, ValueError):  # the latter for what is not even base64 or UTF-8
            return 401
        # In earnest: written down before the answer, for a message that was answered with 2xx does not come again.
        messages.put((self.headers["webhook-id"], event))
        return 204

    def log_message(self, *_):
        pass


def sign_up(email: str, key: str) -> InviteResponse:
    """One key for all attempts: if an earlier one did arrive, its answer comes again, and nobody is mailed twice."""
    body = InviteRequest(email=email, categories=InviteRequestCategories(internet=True))
    with union_client.AuthenticatedClient(**ACCESS) as client:
        for attempt in range(ATTEMPTS):
            pause = 2**attempt
            try:
                answer = sign_up_user.sync_detailed(client=client, body=body, idempotency_key=key)
            except (httpx.TransportError, ValueError) as error:  # no answer, or a page of some proxy's
                reason = type(error).__name__
            else:
                if isinstance(answer.parsed, InviteResponse):
                    again = answer.headers.get("Idempotency-Replayed") == "true"
                    print("signed up" + (", by an attempt before" if again else ""), flush=True)
                    return answer.parsed
                reason = f"{answer.status_code:d} {answer.parsed.error if answer.parsed else ''}"
                if answer.status_code not in (408, 429) and answer.status_code < 500:
                    sys.exit(f"refused: {reason}")
                asked = answer.headers.get("Retry-After", "")
                pause = int(asked) if asked.isdecimal() else pause
            if attempt + 1 == ATTEMPTS or pause > LONGEST_PAUSE:
                sys.exit(f"given up: {reason}")
            print(f"again in {pause} s: {reason}", flush=True)
            time.sleep(pause)
    raise AssertionError("the last attempt ends the program")


def told(key: str) -> str | None:
    """What a webhook says of this sign-up, or nothing if none comes in time."""
    end = time.monotonic() + PATIENCE
    while (left := end - time.monotonic()) > 0:
        try:
            name, event = messages.get(timeout=left)
        except queue.Empty:
            break
        if name in known:
            print(f"passed over {name}, which came before", flush=True)
            continue
        known.add(name)
        match event:
            case {"type": "sign_up.confirmed" | "sign_up.closed" as kind, "data": {"idempotencyKey": of}}:
                print(f"told {kind} of {of}", flush=True)
                if of == key:
                    return kind.removeprefix("sign_up.")
    return None


def caught_up(key: str) -> str | None:
    """What the events say of this sign-up: whatever no webhook brought is listed there."""
    cursor, outcome, more = UNSET, None, True  # in earnest: from the cursor on that was stored last
    with partner_client.AuthenticatedClient(**ACCESS) as client:
        while more:
            page = list_events.sync(client=client, after=cursor, limit=100)
            if not isinstance(page, EventList):
                sys.exit("the events could not be read")
            for event in page.events:
                if event.id in known:
                    continue
                known.add(event.id)
                print(f"found {event.type_} of {event.data.idempotency_key}", flush=True)
                if event.data.idempotency_key == key:
                    outcome = str(event.type_).removeprefix("sign_up.")
            # In earnest: stored, now that the page is processed.
            cursor, more = page.cursor, page.has_more
    return outcome


def asked(key: str) -> str:
    with partner_client.AuthenticatedClient(**ACCESS) as client:
        answer = get_sign_up_status.sync(key, client=client)
    return str(answer.status) if isinstance(answer, StatusAnswer) else "unknown"


# In earnest: kept with the user's request before the first attempt, so that a restart goes on under the same key.
key = f"example-{uuid.uuid4()}"
email = sys.argv[1] if len(sys.argv) > 1 else f"confirm+{uuid.uuid4().hex[:12]}@simulator.test"

# Before anything is asked for: the message may be here sooner than the answer.
receiver = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()

print("their link to pass on:", sign_up(email, key).invite_link, flush=True)
if outcome := told(key):
    print(f"{key} is {outcome}, by webhook")
elif outcome := caught_up(key):
    print(f"{key} is {outcome}, by events")
else:
    print(f"{key} is {asked(key)}, by asking")
receiver.shutdown()
