"""Runs one example as a partner would, with a harsher world around it; ./check says when.

    run.py PROGRAM FILE      such as: run.py python sign_up.py

Requests of the example come through a front that can lose them; the server's webhooks come to a mailbox of this test, which passes on
what the example shall see, as often and in the form that it shall see it.
"""

import http.client
import http.server
import json
import os
import queue
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

from partner_client import AuthenticatedClient
from partner_client.api.partner import list_inbox, list_sign_ups, list_webhooks
from standardwebhooks.webhooks import Webhook

EXAMPLE = sys.argv[1:]
PARTNER = f"Examples with {EXAMPLE[0]}"
SERVER = urllib.parse.urlsplit(os.environ["UNION_URL"]).netloc
BEFORE = f"confirm+{EXAMPLE[0]}@simulator.test"
MEMBER = f"{EXAMPLE[0]}@example.com"
# More than anything takes on a busy machine.
LIMIT = 60


def send(address, method, path, headers=None, body=None):
    """The answer's status, headers and body."""
    connection = http.client.HTTPConnection(address, timeout=LIMIT)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def command(*words):
    words = [os.environ["UNION_SERVER"], *words, "--test", "--data", os.environ["UNION_DATA"]]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT).stdout.strip()


def until(condition, what):
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < end, f"no {what} within {LIMIT} s"
        time.sleep(0.02)
    return found


class Quiet(http.server.BaseHTTPRequestHandler):
    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Mailbox(Quiet):
    """Where the server's webhooks go. What comes is kept by the sign-up that it is about."""

    kept = {}

    def do_POST(self):
        body = self.body()
        headers = {name: self.headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
        Mailbox.kept[json.loads(body)["data"]["idempotencyKey"]] = (headers | {"Content-Type": "application/json"}, body)
        self.answer(204)


class Front(Quiet):
    """Stands before the server. `plan` says what becomes of the next sign-ups: "pass", "lose" the answer, or a status and Retry-After."""

    plan: queue.SimpleQueue = queue.SimpleQueue()
    # Each attempt at a sign-up: when, and under which key.
    attempts = []
    # Whether a question is held back until the server has told of the sign-up: then nothing hangs on how fast this machine is.
    waits_for_message = False

    def pass_on(self):
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        status, headers, body = send(SERVER, self.command, self.path, headers, self.body())
        left_out = ("connection", "transfer-encoding", "date")
        return status, [(name, value) for name, value in headers.items() if name.lower() not in left_out], body

    def do_POST(self):
        if self.path.startswith("/partner/"):
            return self.answer(*self.pass_on())
        Front.attempts.append((time.monotonic(), self.headers["Idempotency-Key"]))
        match "pass" if Front.plan.empty() else Front.plan.get():
            case "pass":
                self.answer(*self.pass_on())
            case "lose":
                self.pass_on()
                self.close_connection = True
            case (status, after):
                self.body()
                # As the server says it, or as a proxy does.
                own = status in (429, 503)
                kind, body = ("application/json", b'{"ok":false,"error":"Not now."}') if own else ("text/html", b"<p>Not now</p>")
                self.answer(status, [("Retry-After", str(after)), ("Content-Type", kind)], body)

    def do_GET(self):
        if Front.waits_for_message:
            until(lambda: Front.attempts[-1][1] in Mailbox.kept, "message about the sign-up that is asked about")
        self.answer(*self.pass_on())


def start(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


# A port for the example. As long as this socket is bound nobody else is given it; it does not listen, so that the example may.
KEPT = socket.socket()
KEPT.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
KEPT.bind(("127.0.0.1", 0))
MAILBOX, FRONT, PORT = start(Mailbox), start(Front), KEPT.getsockname()[1]
KEY = command("keys", "issue", PARTNER, "--per-minute", "1000")
SECRET = command("webhooks", "add", PARTNER, f"http://127.0.0.1:{MAILBOX}/hooks", "--base-url", "http://127.0.0.1:8080")
CLIENT = AuthenticatedClient(base_url=os.environ["UNION_URL"], token=KEY, raise_on_unexpected_status=True)
BEARER = {"Authorization": f"Bearer {KEY}"}


@contextmanager
def running(*arguments, plan=(), patience=LIMIT, secret=None):
    """The example, with this to happen to its requests; it does not outlive the test."""
    Front.attempts.clear()
    Front.plan = queue.SimpleQueue()
    for step in plan:
        Front.plan.put(step)
    settings = {
        "UNION_BASE_URL": f"http://127.0.0.1:{FRONT}",
        "UNION_TEST_KEY": KEY,
        "UNION_WEBHOOK_SECRET": SECRET if secret is None else secret,
        "UNION_WEBHOOK_PORT": str(PORT),
        "UNION_WAIT_SECONDS": str(patience),
    }
    example = subprocess.Popen(
        [*EXAMPLE, *arguments], env=os.environ | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield example
    finally:
        example.kill()
        example.wait()


def ended(example, status):
    """What it printed, line by line, and what it complained of."""
    printed, complained = example.communicate(timeout=2 * LIMIT)
    assert example.returncode == status, f"ended with {example.returncode}: {printed}{complained}"
    assert KEY not in printed + complained and SECRET not in printed + complained, "a secret was printed"
    return printed.splitlines(), complained


def deliver(headers, body):
    return send(f"127.0.0.1:{PORT}", "POST", "/hooks", headers, body)[0]


def sign_up(email, **headers):
    headers = BEARER | {"Content-Type": "application/json"} | headers
    assert send(SERVER, "POST", "/v1/invite", headers, json.dumps({"email": email}))[0] == 200


def forgeries(message):
    """Each is what somebody might send who has seen this message, or its sender's clock."""
    headers, body = message
    old = datetime.now(timezone.utc) - timedelta(minutes=10)
    stranger = Webhook("whsec_YSBzdHJhbmdlcidzIHNlY3JldCwgbm90IG91cnM=").sign(headers["webhook-id"], old, body.decode())
    yield "another body", headers, body.replace(b"confirmed", b"closed")
    yield "another name", headers | {"webhook-id": "msg_other"}, body
    yield "a stranger's signature", headers | {"webhook-signature": stranger}, body
    yield "a signature that is none", headers | {"webhook-signature": "nonsense"}, body
    yield "a signature that is not base64", headers | {"webhook-signature": "v1,é?"}, body
    yield "no headers", {}, body
    yield "not UTF-8", headers, b"\xff\xfe"
    late = Webhook(SECRET).sign(headers["webhook-id"], old, body.decode())
    yield "ten minutes old", headers | {"webhook-timestamp": str(int(old.timestamp())), "webhook-signature": late}, body


def full_course():
    """A sign-up of before gives a real message to repeat."""
    sign_up(BEFORE, **{"Idempotency-Key": "before"})
    before = until(lambda: Mailbox.kept.get("before"), "message about the sign-up before")

    # The first attempt arrives and its answer is lost, so that the message is here before the example knows of its sign-up.
    with running(plan=["lose", (429, 1)]) as example:
        until(lambda: Front.attempts or example.poll() is not None, "attempt")
        assert example.poll() is None, example.communicate()
        key = Front.attempts[0][1]
        message = until(lambda: Mailbox.kept.get(key), "message about the example's sign-up")
        for what, headers, body in forgeries(message):
            assert deliver(headers, body) == 401, what
        assert deliver(message[0], b"x" * 65_537) == 413
        assert [deliver(*before), deliver(*before)] == [204, 204]
        assert example.poll() is None, "it has not gone on"
        assert deliver(*message) == 204
        printed, complained = ended(example, 0)

    times, keys = zip(*Front.attempts)
    assert keys == (key,) * 3, f"three attempts under one key: {keys}"
    assert times[1] - times[0] >= 0.9 and times[2] - times[1] >= 1, f"pauses: {times}"
    pauses = [line for line in printed if line.startswith("again in 1 s: ")]
    assert len(pauses) == 2 and pauses[1].startswith("again in 1 s: 429"), printed
    assert "signed up, by an attempt before" in printed, printed
    assert any(re.fullmatch(r"their link to pass on: http\S+/joinus\S+", line) for line in printed), printed
    # What was forged left no trace, what came twice was taken once.
    told = [line for line in printed if line.startswith("told ")]
    assert told == ["told sign_up.confirmed of before", f"told sign_up.confirmed of {key}"], printed
    passed_over = [line for line in printed if line.startswith("passed over ")]
    assert passed_over == [f"passed over {before[0]['webhook-id']}, which came before"], printed
    assert printed[-1] == f"{key} is confirmed, by webhook" and not complained, (printed, complained)

def nothing_comes():
    """Messages that are not passed on: the example catches up by the events, and asks for what they do not tell."""
    for email, status, how in ((None, "confirmed", "events"), (f"decline+{EXAMPLE[0]}@simulator.test", "pending", "asking")):
        Front.waits_for_message = status == "confirmed"
        with running(*([email] if email else []), patience=0.5) as example:
            printed, complained = ended(example, 0)
        (_, key), = Front.attempts
        assert printed[0] == "signed up" and not complained, (printed, complained)
        assert printed[-1] == f"{key} is {status}, by {how}", printed
        # From the beginning, each once, in the order in which they happened.
        found = [line.rsplit(" ", 1)[-1] for line in printed if line.startswith("found sign_up.confirmed of ")]
        assert found[0] == "before" and len(found) == len(set(found)) == 3, printed
        assert (found[-1] == key) == (how == "events"), printed


def no_sign_up():
    """It ends with 1, and says why: at once where a repeat would not help or would be too late, else after four attempts."""
    for email, plan, attempts, why in (
        ("nobody", [], 1, "refused: 400 email: "),
        ("confirm+late@simulator.test", [(429, 3600)], 1, "given up: "),
        ("confirm+never@simulator.test", [(503, 0), (502, 0), (504, 0), (500, 0)], 4, "given up: "),
    ):
        with running(email, plan=plan) as example:
            printed, complained = ended(example, 1)
        assert complained.startswith(why), (printed, complained)
        assert len(Front.attempts) == attempts and len({key for _, key in Front.attempts}) == 1, Front.attempts
        assert not any(line.startswith("signed up") for line in printed), printed


def last_pages():
    """The generated client reads what leaves fields out: a last page, a sign-up that waits, a mail without a button."""
    # Somebody who is a member: their mail asks for nothing. The simulator's are asked each time, so it is an ordinary address.
    sign_up(MEMBER)
    button = until(lambda: [mail.confirm_link for mail in list_inbox.sync(client=CLIENT).mails if mail.to == MEMBER], "mail")
    assert send(SERVER, "POST", urllib.parse.urlsplit(button[0]).path)[0] == 303
    # Another mail to the same mailbox waits ten minutes, which go by.
    with sqlite3.connect(os.path.join(os.environ["UNION_DATA"], "sandbox.db"), timeout=LIMIT) as records:
        records.execute("UPDATE mailboxes SET sent_1 = 0 WHERE mailbox LIKE ?", [f"%:{MEMBER}"])
    sign_up(MEMBER)
    inbox = until(lambda: (found := list_inbox.sync(client=CLIENT)) and len(found.mails) > 5 and found, "mail to a member")
    asked = [mail.to for mail in inbox.mails if mail.confirm_link]
    # The sign-up before, three attempts that are one, the two that nobody was told of, and the member's first.
    assert len(asked) == len(set(asked)) == 5 == len(inbox.mails) - 1 and not inbox.next_cursor, asked

    listed = list_sign_ups.sync(client=CLIENT)
    statuses = [(one.status, bool(one.confirmed_at)) for one in listed.sign_ups]
    assert statuses == [("confirmed", True)] * 3 + [("pending", False)] and not listed.next_cursor, statuses


def own_endpoint():
    """Without a secret: it adds its endpoint, and the next time gives it another secret. The server's own messages come to it."""
    for secret in ("a", "another"):
        Front.waits_for_message = False
        with running(secret="") as example:
            printed, complained = ended(example, 0)
        (_, key), = Front.attempts
        endpoints = [one for one in list_webhooks.sync(client=CLIENT).webhooks if f":{PORT}/" in one.url]
        assert len(endpoints) == 1 and printed[0] == f"endpoint {endpoints[0].id} has {secret} secret", printed
        assert printed[-1] == f"{key} is confirmed, by webhook" and not complained, (printed, complained)
        assert not any("whsec_" in line for line in printed), printed


# The first test key makes the sandbox, and the server notices in its time.
until(lambda: send(SERVER, "GET", "/partner/v1/sign-ups", BEARER)[0] == 200, "sandbox")
full_course()
nothing_comes()
no_sign_up()
last_pages()
own_endpoint()
