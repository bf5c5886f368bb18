"""Reads messages as Python's own mail library does, strictly, and says what is wrong with them.

Usage: lint.py FOLDER: every *.eml in it. Prints one line for each fault; ends with 1 if there was one.
"""

import email.errors
import email.policy
import email.utils
import pathlib
import re
import sys

ONCE = ["From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"]
OURS = ["List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted", "Feedback-ID"]


def faults(raw):
    if b"\n" in raw.replace(b"\r\n", b"") or b"\r" in raw.replace(b"\r\n", b""):
        yield "a line does not end in CR LF"
    if any(len(line) > 998 for line in raw.split(b"\r\n")):
        yield "a line is longer than 998 octets"
    head = raw.split(b"\r\n\r\n", 1)[0]
    if b"\0" in raw or not head.replace(b"\t", b" ").isascii():
        yield "the head is not plain ASCII"
    try:
        message = email.message_from_bytes(raw, policy=email.policy.SMTP.clone(raise_on_defect=True))
        for part in message.walk():
            for name, value in part.items():
                if value.defects:
                    yield f"{name}: {value.defects}"
            if not part.is_multipart():
                part.get_content()
    except (email.errors.MessageError, email.errors.MessageDefect, UnicodeError, LookupError) as error:
        yield f"it cannot be read: {error!r}"
        return
    for name in ONCE + OURS:
        if len(message.get_all(name, [])) != 1:
            yield f"{name} is not there once"
            return
    if len(message["From"].addresses) != 1 or len(message["To"].addresses) != 1:
        yield "it is not from one to one"
    if not message["Date"].datetime or message["Date"].datetime.tzinfo is None:
        yield "its date is none"
    if not re.fullmatch(r"<[\w.+-]+@[\w.-]+>", message["Message-ID"]):
        yield f"its id is none: {message['Message-ID']}"
    if not re.fullmatch(r"<https?://[^<>\s]+>", message["List-Unsubscribe"]):
        yield "one cannot unsubscribe"
    if message["List-Unsubscribe-Post"] != "List-Unsubscribe=One-Click":
        yield "one cannot unsubscribe with one click (RFC 8058)"
    if not re.fullmatch(r"[^:\s]+:[^:\s]+:[^:\s]+:[^:\s]+", message["Feedback-ID"]):
        yield "Feedback-ID has not four parts"
    parts = [part.get_content_type() for part in message.iter_parts()]
    if message.get_content_type() != "multipart/alternative" or parts != ["text/plain", "text/html"]:
        yield f"it is not text first and HTML beside it: {parts}"
        return
    text, html = (part.get_content() for part in message.iter_parts())
    links = set(re.findall(r"https?://[^\s<>\"]+", text))
    for link in links:
        if link not in html:
            yield f"a link of the text is not in the HTML: {link}"
    if not links or re.search(r"<(script|img|iframe|form|link)\b", html):
        yield "it has no link, or loads something"


found = 0
messages = sorted(pathlib.Path(sys.argv[1]).glob("*.eml"))
for path in messages:
    for fault in faults(path.read_bytes()):
        print(f"{path.name}: {fault}")
        found += 1
print(f"{len(messages)} messages, {found} faults")
sys.exit(1 if found or not messages else 0)
