"""Runs the snippets of the reference; ./check says when. Each is taken from /docs.md of the server at UNION_URL.

    run.py complete | operations | begin | mcp | webhooks | types | partner | self_service | rotation
"""

import ast
import base64
import email
import email.policy
import hashlib
import hmac
import http.server
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

URL, KEY = os.environ["UNION_URL"], os.environ["UNION_KEY"]
OPERATIONS = ["listNegotiationCategories", "getReferralProgram", "getMemberStats", "signUpUser", "createReferralLink"]
BEGIN = ["start", "authentication", "limits", "retries", "errors"]
PARTNER = ["getSignUpStatus", "listSignUps", "listEvents", "listInbox", "getUsage", "sign-up-status", "events", "sandbox"]
# In an order in which each finds what it needs; and those that end the key that they are run with.
SELF_SERVICE = [
    "addWebhook", "listWebhooks", "getWebhook", "testWebhook", "rotateWebhookSecret", "enableWebhook", "recoverWebhook",
    "resendWebhookEvent", "removeWebhook", "listKeys",
]
KEYS = ["rotateKey", "revokeKey"]

# No programs: compared with what the server says where it says such a thing, and made up where it does not.
SHOWN = ["http", "json", "text"]


@dataclass
class Snippet:
    section: str
    label: str
    # Which of its label in its section, from 1 on.
    number: int
    language: str
    code: str

    @property
    def name(self):
        return (self.section, self.label, self.number)


def ask(path, headers=None, body=None):
    request = urllib.request.Request(URL + path, data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def read_all():
    text = ask("/docs.md")[2].decode()
    found, section = [], ""
    for anchor, language, label, code in re.findall(
        r'^<a id="([^"]+)"></a>$|^```(\w+) ?([^\n]*)\n(.*?)\n```$', text, re.MULTILINE | re.DOTALL
    ):
        if anchor:
            section = anchor
            continue
        number = 1 + sum((one.section, one.label) == (section, label) for one in found)
        found.append(Snippet(section, label, number, language, code))
    return found


SNIPPETS = read_all()


def of(*sections):
    return [one for one in SNIPPETS if one.section in sections]


def file_of(snippet, ending):
    label = re.sub(r"\W+", "-", snippet.label)
    path = Path(f"{snippet.section}-{label}-{snippet.number}{ending}".lower())
    path.write_text(snippet.code + "\n")
    return path


def output_of(command, patience=60):
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def run(snippet, patience=60):
    """What the snippet prints."""
    match snippet.language:
        case "bash":
            # A shell's own way to say that a request was refused would be a flag that the snippet does not have.
            return output_of(["bash", "-euo", "pipefail", str(file_of(snippet, ".sh"))], patience)
        case "python":
            return output_of([sys.executable, str(file_of(snippet, ".py"))], patience)
        case "ts":
            return output_of(["node", str(file_of(snippet, ".ts"))], patience)
    raise AssertionError(f"nobody knows how to run {snippet.name}")


def succeeded(snippet, printed):
    """The answer that was printed, if it can be read; at least it says that all went well."""
    if snippet.language == "ts":
        assert "ok: true" in printed, printed
        return None
    last = printed.strip().splitlines()[-1]
    answer = json.loads(last) if snippet.language == "bash" else ast.literal_eval(last)
    assert answer["ok"] is True, printed
    return answer


def shape(value):
    """The names in a JSON text, without what they stand for. Of a list all are alike."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


def operations():
    for section in OPERATIONS:
        snippets = of(section)
        labels = [one.label for one in snippets]
        assert labels == ["curl", "Python", "TypeScript", "MCP", "200 OK"], (section, labels)
        shown = json.loads(snippets[-1].code)
        # Together: two requests with one Idempotency-Key may well arrive at once.
        with ThreadPoolExecutor() as pool:
            printed = list(pool.map(run, snippets[:-1]))
        for snippet, text in zip(snippets, printed):
            answer = succeeded(snippet, text)
            assert answer is None or shape(answer) == shape(shown), (snippet.name, answer, shown)


class BadProxy(http.server.BaseHTTPRequestHandler):
    """Stands before the server: its own error page comes first, then half of the server's answer, then the whole of it."""

    protocol_version = "HTTP/1.1"
    # How often each user agent has asked, and with which keys.
    asked = {}

    def do_POST(self):
        keys = BadProxy.asked.setdefault(self.headers["User-Agent"].split("/")[0], [])
        keys.append(self.headers["Idempotency-Key"])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        names = ("Authorization", "Content-Type", "Idempotency-Key")
        status, _, answer = ask(self.path, {name: self.headers[name] for name in names}, body)
        kind, length = "application/json", len(answer)
        if len(keys) == 1:
            status, kind, answer = 502, "text/html", b"<html><h1>502 Bad Gateway</h1></html>"
            length = len(answer)
        elif len(keys) == 2:
            answer = answer[: len(answer) // 2]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(answer)
        self.close_connection = True

    def log_message(self, *_):
        pass


def survive_a_bad_proxy(snippets):
    """Each reaches the server in the end, with one key for all attempts."""
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BadProxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    there = f"http://127.0.0.1:{proxy.server_port}"
    behind = [replace(one, code=one.code.replace(URL, there), number=2) for one in snippets]
    assert all(there in one.code for one in behind), snippets
    with ThreadPoolExecutor() as pool:
        for snippet, printed in zip(behind, pool.map(run, behind)):
            succeeded(snippet, printed)
    assert list(BadProxy.asked.values()) == [["link-1042"] * 3] * len(behind), BadProxy.asked
    proxy.shutdown()


def begin():
    for snippet in of(*BEGIN):
        if snippet.language not in SHOWN:
            succeeded(snippet, run(snippet))
    survive_a_bad_proxy([one for one in of("retries") if one.language not in SHOWN])
    # What is shown of limits is what the server says.
    good, refused = [one for one in of("limits") if one.language == "http"]
    status, headers, _ = ask("/v1/stats")
    lines = dict(line.split(": ", 1) for line in good.code.splitlines())
    assert f"{status} OK" == good.label, good.label
    assert headers["RateLimit-Policy"] == lines["RateLimit-Policy"], (headers, lines)
    form = r'"public";r=\d+;t=\d+'
    assert re.fullmatch(form, headers["RateLimit"]) and re.fullmatch(form, lines["RateLimit"]), (headers, lines)
    slow = {"Authorization": f"Bearer {os.environ['UNION_SLOW_KEY']}", "Content-Type": "application/json"}
    for _ in range(2):
        status, headers, body = ask("/v1/referral-link", slow, b'{"email": "ana@example.com"}')
    assert f"{status} Too Many Requests" == refused.label and json.loads(body)["code"] == "rate_limited", (status, body)
    for line in refused.code.splitlines():
        name, value = line.split(": ", 1)
        told = headers[name]
        assert told and re.sub(r"\d+|public|action", "N", told) == re.sub(r"\d+|public|action", "N", value), (name, told)
    assert headers["Retry-After"] == re.search(r"t=(\d+)", headers["RateLimit"])[1], headers.items()
    # And so is the error.
    [error] = of("errors")
    key = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    status, _, body = ask("/v1/invite", key, b'{"email": "nobody"}')
    assert (f"{status} Bad Request", json.loads(body)) == (error.label, json.loads(error.code)), (status, body)


def configured(snippet):
    """The address and the header that a client's configuration leads to."""
    if snippet.language == "bash":
        words = shlex.split(snippet.code.replace("\\\n", " ").replace("$UNION_KEY", KEY))
        [address] = [word for word in words if word.startswith("http") and word.endswith("/mcp")]
        headers = [word.split(": ", 1)[1] for word in words if word.startswith("Authorization: ")]
        by_name = [f"Bearer {os.environ[words[at + 1]]}" for at, word in enumerate(words) if word == "--bearer-token-env-var"]
        [authorization] = headers + by_name
        return address, authorization
    config = json.loads(snippet.code)
    if "server_url" in config:
        server = {"url": config["server_url"], "headers": config["headers"]}
    else:
        [server] = (config.get("mcpServers") or config["servers"]).values()
    if "args" in server:
        [address] = [word for word in server["args"] if word.startswith("http")]
        header = server["args"][server["args"].index("--header") + 1]
        name, value = header.split(":", 1)
        assert name == "Authorization", header
        authorization = value.replace("${UNION_AUTHORIZATION}", server["env"]["UNION_AUTHORIZATION"])
    else:
        address, authorization = server["url"], server["headers"]["Authorization"]
    return address, re.sub(r"uh_…|\$\{env:UNION_KEY\}|\$\{input:union-key\}", KEY, authorization)


def mcp():
    clients = ["Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "OpenAI", "Inspector"]
    [endpoint, *snippets] = of("mcp")
    assert endpoint.code == f"{URL}/mcp", endpoint
    assert [one.label for one in snippets[: len(clients)]] == clients, snippets
    for snippet in snippets[: len(clients)]:
        address, authorization = configured(snippet)
        assert address == endpoint.code, (snippet.name, address)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {
            "Authorization": authorization,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        _, _, body = ask("/mcp", headers, json.dumps(message).encode())
        names = [tool["name"] for tool in json.loads(body)["result"]["tools"]]
        assert names == OPERATIONS, (snippet.name, names)
    for snippet in snippets[len(clients) :]:
        printed = run(snippet)
        if snippet.language == "bash":
            assert json.loads(printed)["result"]["structuredContent"]["ok"] is True, printed
        else:
            assert "createReferralLink" in printed and "memberCount" in printed, printed


def signed(secret, body, at, message="msg_2mvjqdczkvqz"):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signature = hmac.digest(key, f"{message}.{at}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": message,
        "webhook-timestamp": str(at),
        "webhook-signature": "v1," + base64.b64encode(signature).decode(),
    }


def webhooks():
    from standardwebhooks.webhooks import Webhook

    new = lambda: "whsec_" + base64.b64encode(os.urandom(24)).decode()
    secret, other, now = new(), new(), int(time.time())
    body = b'{"type":"sign_up.confirmed","timestamp":"2026-11-16T10:04:31Z","mode":"live","data":{"idempotencyKey":"sign-up-1042"}}'
    good = signed(secret, body, now)
    # What signs here signs as the library does.
    assert Webhook(secret).verify(body, good)["type"] == "sign_up.confirmed"
    both = good | {"webhook-signature": signed(other, body, now)["webhook-signature"] + " " + good["webhook-signature"]}
    cases = [
        (True, body, good),
        (True, body, both),
        (False, body.replace(b"1042", b"1043"), good),
        (False, body, good | {"webhook-id": "msg_another"}),
        (False, body, good | {"webhook-timestamp": str(now + 1)}),
        (False, body, signed(secret, body, now - 600)),
        (False, body, signed(secret, body, now + 600)),
        (False, body, signed(other, body, now)),
        (False, body, good | {"webhook-signature": "v1,"}),
        (False, body, good | {"webhook-signature": "v1,!"}),
        (False, body, good | {"webhook-signature": "v1,abcde"}),
    ]
    os.environ["UNION_WEBHOOK_SECRET"] = secret
    [sample, python, typescript, go, by_hand] = of("webhooks")

    # The message that is shown is signed with the secret that is shown.
    head, shown = sample.code.split("\n\n", 1)
    lines = dict(line.split(": ", 1) for line in head.splitlines()[1:])
    text = ask("/docs.md")[2].decode()
    shown_secret = re.search(r"`(whsec_[A-Za-z0-9+/=]+)`", text)[1]
    assert lines.items() >= signed(shown_secret, shown.encode(), int(lines["webhook-timestamp"])).items(), (
        signed(shown_secret, shown.encode(), int(lines["webhook-timestamp"]))
    )

    def module(snippet):
        path = file_of(snippet, ".py")
        spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    library, hand = module(python), module(by_hand)
    for number, (taken, sent, headers) in enumerate(cases):
        assert library.receive(sent, headers) == (204 if taken else 401), (python.name, number)
        assert hand.is_ours(sent, headers) is taken, (by_hand.name, number)

    told = json.dumps([[sent.decode(), headers] for _, sent, headers in cases])
    expected = [taken for taken, _, _ in cases]

    receiver = file_of(typescript, ".ts")
    Path("receive.ts").write_text(
        f"import {{ receive }} from './{receiver}';\n"
        f"const cases: [string, Record<string, string>][] = {told};\n"
        "const taken = cases.map(([body, headers]) => receive(body, headers) === 204);\n"
        "console.log(JSON.stringify(taken));\n"
    )
    printed = output_of(["node", "receive.ts"])
    assert json.loads(printed.splitlines()[-1]) == expected, printed

    folder = Path("hook/webhook")
    folder.mkdir(parents=True)
    (folder / "webhook.go").write_text(go.code + "\n")
    Path("hook/go.mod").write_text("module hook\n\ngo 1.22\n")
    Path("hook/main.go").write_text(
        'package main\n\nimport (\n\t"encoding/json"\n\t"fmt"\n\t"hook/webhook"\n\t"os"\n\t"time"\n)\n\n'
        "func main() {\n\tvar cases []struct {\n\t\tBody    string\n\t\tHeaders map[string]string\n\t}\n"
        "\tif err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {\n\t\tpanic(err)\n\t}\n\ttaken := []bool{}\n"
        "\tfor _, c := range cases {\n\t\th := c.Headers\n\t\terr := webhook.Verify(os.Getenv(\"UNION_WEBHOOK_SECRET\"), "
        'h["webhook-id"], h["webhook-timestamp"], h["webhook-signature"], []byte(c.Body), time.Now())\n'
        "\t\ttaken = append(taken, err == nil)\n\t}\n\ttold, _ := json.Marshal(taken)\n\tfmt.Println(string(told))\n}\n"
    )
    named = json.dumps([{"Body": sent.decode(), "Headers": headers} for _, sent, headers in cases])
    done = subprocess.run(
        ["go", "run", "."], cwd="hook", input=named, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0 and json.loads(done.stdout) == expected, (done.stdout, done.stderr)
    assert output_of(["go", "vet", "-C", "hook", "./..."]) == ""


def types():
    files = [str(file_of(one, ".ts")) for one in SNIPPETS if one.language == "ts"]
    assert len(files) >= 9, files
    options = "--noEmit --strict --target es2022 --module nodenext --moduleDetection force --types node --skipLibCheck"
    output_of(["tsc", *options.split(), *files])


def partner():
    # What the snippets of signing up send.
    [sign_up] = [one for one in of("signUpUser") if one.label == "curl"]
    succeeded(sign_up, run(sign_up))
    for snippet in of(*PARTNER):
        if snippet.language in SHOWN:
            continue
        printed = run(snippet)
        if snippet.section in PARTNER[:5] or snippet.language == "bash":
            succeeded(snippet, printed)
        elif snippet.section == "events":
            assert printed.splitlines()[-1] == "caught up", (snippet.name, printed)
        else:
            assert printed.strip() in ("pending", "confirmed", "closed"), (snippet.name, printed)


def test_key():
    """Another key of a partner that only this check has, in the sandbox: there somebody confirms by themselves."""
    server, data = os.environ["UNION_SERVER"], os.environ["UNION_DATA"]
    command = [server, "keys", "issue", "Self Service", "--test", "--data", data]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()


def self_service():
    class Endpoint(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    endpoint = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    os.environ["UNION_KEY"] = test_key()
    bearer = {"Authorization": f"Bearer {os.environ['UNION_KEY']}"}
    named = bearer | {"Content-Type": "application/json", "Idempotency-Key": "sign-up-1042"}
    status, _, body = ask("/v1/invite", named, b'{"email": "confirm+snippets@simulator.test"}')
    assert status == 200, body
    end = time.monotonic() + 60
    while json.loads(ask("/partner/v1/sign-ups/sign-up-1042", bearer)[2])["status"] != "confirmed":
        assert time.monotonic() < end, "waited for a minute, and nobody has confirmed"
        time.sleep(0.1)
    for label in ["curl", "Python", "TypeScript"]:
        url, id = f"http://127.0.0.1:{endpoint.server_port}/{label}", None
        for section in SELF_SERVICE:
            [snippet] = [one for one in of(section) if one.label == label]
            # As it stands, but for what nobody has: an address that is found, and the endpoint's own number.
            snippet = replace(snippet, code=snippet.code.replace("https://acme.example/hooks/union", url))
            if id is not None:
                snippet = replace(snippet, code=snippet.code.replace("/webhooks/7", f"/webhooks/{id}"))
            answer = succeeded(snippet, run(snippet))
            [shown] = [json.loads(one.code) for one in of(section) if one.label == "200 OK"]
            # What may be left out is no part of a shape that all have.
            may_miss = {"deliveredAt", "lastUsedAt", "expiresAt", "replacedBy"}
            if answer is not None and section not in ("listWebhooks", "listKeys"):
                assert set(shown) - may_miss <= set(answer), (section, answer, shown)
            if section == "addWebhook":
                listed = json.loads(ask("/partner/v1/webhooks", bearer)[2])["webhooks"]
                [id] = [one["id"] for one in listed if one["url"] == url]
            if section == "testWebhook" and answer is not None:
                assert answer["delivered"] is True and answer["status"] == 204, answer
        assert json.loads(ask("/partner/v1/webhooks", bearer)[2])["webhooks"] == []
        own = os.environ["UNION_KEY"]
        for section in KEYS:
            [snippet] = [one for one in of(section) if one.label == label]
            os.environ["UNION_KEY"] = test_key()
            answer = succeeded(snippet, run(snippet))
            [shown] = [json.loads(one.code) for one in of(section) if one.label == "200 OK"]
            assert answer is None or set(shown) <= set(answer), (section, answer, shown)
        os.environ["UNION_KEY"] = own


def until(condition, what):
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for a minute for {what}"
        time.sleep(0.05)
    return found


def rotation():
    """Each message is one that the service sends about a sign-up, and who verifies it is the official library alone."""
    from standardwebhooks.webhooks import Webhook, WebhookVerificationError

    kept = {}

    class Endpoint(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            kept.setdefault(json.loads(body)["data"]["idempotencyKey"], []).append((headers, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    endpoint = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    data = Path(os.environ["UNION_DATA"])
    command = lambda *words: output_of([os.environ["UNION_SERVER"], *words, "--data", str(data)]).strip()
    bearer = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

    def confirm(address):
        """The button in the mail to an address."""
        for path in (data / "mailbox").glob("*.eml"):
            letter = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            if address in letter["To"]:
                link = re.search(r"/confirm/\w+", letter.get_body(("plain",)).get_content())
                return ask(link[0], body=b"")[0] == 200
        return False

    def told(name):
        body = json.dumps({"email": f"{name}@example.com"}).encode()
        status, _, answer = ask("/v1/invite", bearer | {"Idempotency-Key": name}, body)
        assert status == 200, answer
        until(lambda: confirm(f"{name}@example.com"), f"a mail to {name}")
        return until(lambda: kept.get(name), f"a message about {name}")[-1]

    def verified_by(message, *secrets):
        headers, body = message
        found = []
        for secret in secrets:
            try:
                found.append(Webhook(secret).verify(body, headers)["type"] == "sign_up.confirmed")
            except WebhookVerificationError:
                found.append(False)
        return found

    def rotate(generation, *words):
        said = command("secret", "rotate", "--in", "0s", *words)
        assert f"Generation {generation} of the secret begins" in said and "API keys do not derive" in said, said
        begun = f"generation {generation} of the secret makes everything new"
        until(lambda: begun in Path("../server.err").read_text(), begun)

    def rotate_endpoint():
        status, _, body = ask(f"/partner/v1/webhooks/{id}/rotate", bearer, b'{"now": true}')
        assert status == 200, body
        return json.loads(body)["secret"]

    url = f"http://127.0.0.1:{endpoint.server_port}/rotated"
    first = command("webhooks", "add", "Acme Assistant", url, "--base-url", URL)
    [id] = [one["id"] for one in json.loads(ask("/partner/v1/webhooks", bearer)[2])["webhooks"] if one["url"] == url]
    before = told("before-rotation")
    assert verified_by(before, first) == [True]
    rotate(2)
    assert verified_by(told("after-rotation"), first) == [True], "it stays until its partner rotates it"
    # What was sent before has the same name now.
    command("webhooks", "resend", str(id), "before-rotation")
    again = until(lambda: len(kept["before-rotation"]) > 1 and kept["before-rotation"][-1], "the message again")
    assert again[0]["webhook-id"] == before[0]["webhook-id"] and verified_by(again, first) == [True], again
    second = rotate_endpoint()
    assert verified_by(told("partner-rotated"), first, second) == [True, True], "both sign for a day"
    rotate(3, "--leaked")
    leaked = told("after-leak")
    assert verified_by(leaked, first, second) == [True, True], "for seven days"
    third = rotate_endpoint()
    assert len({first, second, third}) == 3
    assert verified_by(told("rotated-after-leak"), first, second, third) == [False, True, True], "the newest two"
    # A receiver takes none of another's.
    assert verified_by(leaked, "whsec_" + base64.b64encode(bytes(32)).decode()) == [False]


def complete():
    run_here = OPERATIONS + BEGIN + ["mcp", "webhooks"] + PARTNER + SELF_SERVICE + KEYS
    for snippet in SNIPPETS:
        assert snippet.section in run_here, f"nobody runs {snippet.name}"
        assert snippet.language != "json" or json.loads(snippet.code)
        assert snippet.language in [*SHOWN, "bash", "python", "ts", "go"], snippet
    assert len(SNIPPETS) > 40, len(SNIPPETS)


if __name__ == "__main__":
    # Each check has files of its own.
    folder = Path(sys.argv[1])
    folder.mkdir()
    os.chdir(folder)
    globals()[sys.argv[1]]()
