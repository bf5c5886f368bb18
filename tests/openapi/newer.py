"""A partner's program of today and a server of tomorrow: a code and a category that the generated client does not know.

The server is made up, because ours has neither; the client is the one that openapi-python-client made of our document.
"""

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer

from union_client import AuthenticatedClient
from union_client.api.agent_actions import create_referral_link, sign_up_user
from union_client.api.public_data import list_negotiation_categories
from union_client.models import Error, ErrorCode, InviteRequest, NegotiationCategories, NegotiationCategorySlug, ReferralLinkRequest


class Tomorrow(BaseHTTPRequestHandler):
    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        listed = [
            {"slug": "travel", "label": "Travel", "annualSavings": 300},
            {"slug": "pet_insurance", "label": "Pet Insurance", "annualSavings": 120, "since": 2031},
        ]
        self.answer(200, {"ok": True, "currency": "USD", "categories": listed, "totalPotentialAnnualSavings": 420})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        code = {"/v1/invite": "quota_of_tomorrow", "/v1/referral-link": "invalid_submission"}[self.path]
        self.answer(400, {"ok": False, "error": "Not today.", "code": code})

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Tomorrow)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = AuthenticatedClient(
    base_url=f"http://127.0.0.1:{server.server_port}", token="uh_x", raise_on_unexpected_status=True
)

listed = list_negotiation_categories.sync(client=client)
assert isinstance(listed, NegotiationCategories)
known, unknown = listed.categories
# What is known keeps its name, what is not is a text; and both can be said again.
assert known.slug is NegotiationCategorySlug.TRAVEL
assert unknown.slug == "pet_insurance" and unknown.label == "Pet Insurance" and unknown.annual_savings == 120
assert [category.to_dict()["slug"] for category in listed.categories] == ["travel", "pet_insurance"]

refused = sign_up_user.sync_detailed(client=client, body=InviteRequest(email="ana@example.com"))
assert refused.status_code == HTTPStatus.BAD_REQUEST and isinstance(refused.parsed, Error)
assert refused.parsed.code == "quota_of_tomorrow" and refused.parsed.error == "Not today."

refused = create_referral_link.sync_detailed(client=client, body=ReferralLinkRequest(email="ana@example.com"))
assert isinstance(refused.parsed, Error) and refused.parsed.code is ErrorCode.INVALID_SUBMISSION
server.shutdown()
