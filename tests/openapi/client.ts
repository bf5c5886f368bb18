// A partner's program in TypeScript, on the types that openapi-typescript made of the document (union.ts, made by ./check).
// Calls every operation of the server at UNION_URL, with the key in UNION_KEY, and holds the answers to the contract.
// That it compiles proves as much as that it runs: whatever it reads off an answer is there by the document's word.

import assert from "node:assert/strict";
import process from "node:process";
import createClient from "openapi-fetch";
import type { components, paths } from "./union.ts";

const baseUrl = process.env["UNION_URL"];
const key = process.env["UNION_KEY"];
assert(baseUrl && key, "UNION_URL and UNION_KEY must be set");

const anyone = createClient<paths>({ baseUrl });
const partner = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

// Public data, with a key and without.
for (const client of [anyone, partner]) {
  const { data: listed } = await client.GET("/v1/negotiate-categories");
  assert(listed);
  const ok: true = listed.ok;
  const currency: "USD" = listed.currency;
  assert.deepEqual([ok, currency], [true, "USD"]);
  const total = listed.categories.reduce((sum, category) => sum + category.annualSavings, 0);
  assert(total > 0);
  assert.equal(listed.totalPotentialAnnualSavings, total);

  // What is listed can be chosen as it stands: both are the same type.
  const chosen: components["schemas"]["InviteRequest"]["categories"] = {};
  for (const { slug } of listed.categories) chosen[slug] = true;
  assert.equal(Object.keys(chosen).length, listed.categories.length);

  const { data: program } = await client.GET("/v1/referral-program");
  assert(program?.ok);
  assert.equal(program.maxReward, program.rewardPerGroup * program.maxGroups);
  assert(program.groupSize > 0 && program.rules.length > 0);

  const { data: stats, response } = await client.GET("/v1/stats");
  assert(stats?.ok && stats.memberCount >= 0);
  assert.match(response.headers.get("RateLimit") ?? "", /^"public";r=\d+;t=\d+$/);
}

// A link, and somebody who signs up with its code.
const { data: link } = await partner.POST("/v1/referral-link", { body: { email: "ana.ts@example.com" } });
assert(link?.ok);
assert(link.inviteLink.endsWith(`/joinus${link.code}`));

const body: components["schemas"]["InviteRequest"] = {
  email: "ben.ts@example.com",
  usState: "DC",
  categories: { internet: true, travel: false },
  otherComments: "Grüße",
  refCode: link.code,
};
const { data: joined } = await partner.POST("/v1/invite", { body });
assert(joined?.ok && joined.refAttributed && joined.joinedCount >= 0);
assert(joined.selectedSavingsTotal > 0);
assert(joined.inviteLink.includes("/joinus") && joined.inviteLink !== link.inviteLink);

// What the types refuse, the server refuses too, and says why.
for (const bad of [
  // @ts-expect-error: no such state
  { email: "cy.ts@example.com", usState: "ZZ" },
  // @ts-expect-error: no such category
  { email: "cy.ts@example.com", categories: { pets: true } },
  // @ts-expect-error: no such field
  { email: "cy.ts@example.com", phone: "555-0100" },
  // @ts-expect-error: no address
  { usState: "CA" },
] satisfies components["schemas"]["InviteRequest"][]) {
  const { error, response } = await partner.POST("/v1/invite", { body: bad as never });
  assert.equal(response.status, 400);
  assert.equal(error?.ok, false);
  assert.equal(error.code, "invalid_submission");
}

for (const path of ["/v1/invite", "/v1/referral-link"] as const) {
  const { error, response } = await anyone.POST(path, { body: { email: "eve.ts@example.com" } });
  assert.equal(response.status, 401);
  // The code may be missing from an error, so its type has to say so.
  const code: components["schemas"]["Error"]["code"] | undefined = error?.code;
  assert.equal(code, "agent_unauthorized");
}
