"""A real mail server for the tests: takes mail over SMTP and writes each message to a file.

It asks for authentication and encryption as it is told to, and refuses some recipients the way real servers do:
`nobody@` does not exist (5.1.1), `later@` is greylisted (4.7.1), and a relay may be refused altogether (5.7.1). `slow@`, and whom it is
told to hold, it thinks about until there is a file `let-go` in the folder.
"""

import argparse
import asyncio
import json
import os
import ssl

from aiosmtpd.smtp import SMTP, AuthResult

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--tls", choices=["none", "starttls", "implicit"], default="none")
parser.add_argument("--cert")
parser.add_argument("--key")
parser.add_argument("--user")
parser.add_argument("--password")
parser.add_argument("--no-utf8", action="store_true")
parser.add_argument("--refuse-relay", action="store_true")
parser.add_argument("--refuse-sender", action="store_true")
parser.add_argument("--hold", default="slow", help="how the names begin whose mail waits until there is a file let-go")
options = parser.parse_args()


class Handler:
    def __init__(self):
        self.count = 0

    async def handle_MAIL(self, server, session, envelope, address, mail_options):
        if options.refuse_sender:
            return "550 5.1.0 sender address rejected"
        envelope.mail_from = address
        envelope.mail_options.extend(mail_options)
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        name = address.split("@")[0]
        if options.refuse_relay:
            return f"554 5.7.1 <{address}>: relay access denied"
        if name.startswith("nobody"):
            return f"550 5.1.1 <{address}>: no such user here"
        while name.startswith(options.hold) and not os.path.exists(os.path.join(options.folder, "let-go")):
            await asyncio.sleep(0.01)
        if name.startswith("later"):
            return f"451 4.7.1 <{address}>: come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.count += 1
        # Under another name first: whoever watches the folder never sees half a message.
        path = os.path.join(options.folder, f"{os.getpid()}-{self.count:06}")
        with open(path + ".part", "w", encoding="utf-8") as file:
            message = {
                "from": envelope.mail_from,
                "to": envelope.rcpt_tos,
                "options": envelope.mail_options,
                "encrypted": options.tls == "implicit" or session.ssl is not None,
                "user": session.auth_data.decode() if session.auth_data else None,
                "content": envelope.content.decode("utf-8"),
            }
            json.dump(message, file)
        os.rename(path + ".part", path + ".json")
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    if data.login.decode() == options.user and data.password.decode() == options.password:
        return AuthResult(success=True, auth_data=data.login)
    return AuthResult(success=False, handled=False)


async def main():
    context = None
    if options.tls != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert, options.key)
    handler = Handler()

    def session():
        return SMTP(
            handler,
            enable_SMTPUTF8=not options.no_utf8,
            tls_context=context if options.tls == "starttls" else None,
            require_starttls=options.tls == "starttls",
            authenticator=authenticate if options.user else None,
            auth_required=bool(options.user),
            auth_require_tls=options.tls == "starttls",
        )

    wrapped = context if options.tls == "implicit" else None
    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", options.port, ssl=wrapped)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
