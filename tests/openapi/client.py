"""A partner's program in Python, on the client that openapi-python-client made of the document.

Calls every operation of the server at UNION_URL, with the key in UNION_KEY, and holds the typed answers to the contract.
"""

import os
from http import HTTPStatus

from union_client import AuthenticatedClient, Client
from union_client.api.agent_actions import create_referral_link, sign_up_user
from union_client.api.public_data import get_member_stats, get_referral_program, list_negotiation_categories
from union_client.models import (
    Error,
    ErrorCode,
    InviteRequest,
    InviteRequestCategories,
    InviteRequestUsState,
    InviteResponse,
    MemberStats,
    NegotiationCategories,
    NegotiationCategorySlug,
    ReferralLinkRequest,
    ReferralLinkResponse,
    ReferralProgram,
)

url, key = os.environ["UNION_URL"], os.environ["UNION_KEY"]
anyone = Client(base_url=url, raise_on_unexpected_status=True)
partner = AuthenticatedClient(base_url=url, token=key, raise_on_unexpected_status=True)
stranger = AuthenticatedClient(base_url=url, token="uh_not_a_key", raise_on_unexpected_status=True)

# Public data, with a key and without.
for client in (anyone, partner, stranger):
    listed = list_negotiation_categories.sync(client=client)
    assert isinstance(listed, NegotiationCategories) and listed.ok is True and listed.currency == "USD"
    assert listed.categories and listed.total_potential_annual_savings == sum(c.annual_savings for c in listed.categories)

    program = get_referral_program.sync(client=client)
    assert isinstance(program, ReferralProgram) and program.ok is True
    assert program.max_reward == program.reward_per_group * program.max_groups
    assert program.group_size > 0 and program.rules

    stats = get_member_stats.sync(client=client)
    assert isinstance(stats, MemberStats) and stats.ok is True and stats.member_count >= 0

# A link, and somebody who signs up with its code.
link = create_referral_link.sync(client=partner, body=ReferralLinkRequest(email="ana.py@example.com"))
assert isinstance(link, ReferralLinkResponse) and link.ok is True
assert link.invite_link.endswith(f"/joinus{link.code}")
assert create_referral_link.sync(client=partner, body=ReferralLinkRequest(email="Ana.Py@Example.com")) == link

savings = {category.slug: category.annual_savings for category in listed.categories}
joined = sign_up_user.sync(
    client=partner,
    body=InviteRequest(
        email="ben.py@example.com",
        us_state=InviteRequestUsState.DC,
        categories=InviteRequestCategories(internet=True, travel=False),
        other_comments="Grüße",
        ref_code=link.code,
    ),
)
assert isinstance(joined, InviteResponse) and joined.ok is True
assert joined.ref_attributed is True and joined.joined_count == stats.member_count
assert joined.selected_savings_total == savings[NegotiationCategorySlug.INTERNET]
assert "/joinus" in joined.invite_link and joined.invite_link != link.invite_link

# What is refused, and with which code.
refused = sign_up_user.sync_detailed(client=partner, body=InviteRequest(email="nobody"))
assert refused.status_code == HTTPStatus.BAD_REQUEST
assert isinstance(refused.parsed, Error) and refused.parsed.ok is False
assert refused.parsed.code is ErrorCode.INVALID_SUBMISSION and refused.parsed.error.startswith("email: ")

for operation, body in (
    (sign_up_user, InviteRequest(email="eve.py@example.com")),
    (create_referral_link, ReferralLinkRequest(email="eve.py@example.com")),
):
    refused = operation.sync_detailed(client=stranger, body=body)
    assert refused.status_code == HTTPStatus.UNAUTHORIZED
    assert isinstance(refused.parsed, Error) and refused.parsed.ok is False
    assert refused.parsed.code is ErrorCode.AGENT_UNAUTHORIZED

# An error without a code, as the document allows it and /v1/stats answers when its store is away.
assert not Error.from_dict({"ok": False, "error": "Try again."}).code
