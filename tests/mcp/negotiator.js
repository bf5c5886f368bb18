// A negotiator's program in JavaScript, on the official clients.
//
//     negotiator.js SERVER MODE     MODE is how the client finds the era: auto, legacy or 2026-07-28; sdk takes the client of old.
//
// Speaks to `SERVER negotiator` over standard input, on the records in UNION_DATA: it reads the campaign, records two rounds and a bid,
// and proposes an offer, and a person publishes it. The clients themselves hold every answer to the schema of its tool.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import * as modern from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import * as old from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [server, mode] = process.argv.slice(2);
const data = ["--data", process.env.UNION_DATA];

// What a command of the operator's prints.
const operate = (args, input) => {
  const done = spawnSync(server, ["campaigns", ...args, ...(args[0] === "sample" ? [] : data)], { input, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
};

const slug = `mobile-${mode}`;
operate(["new", "-"], operate(["sample"]).replace("internet-sample", slug));
operate(["open", slug, "--postal-address", "12 Mill Street, Springfield"]);

const about = { name: "checks", version: "1.0.0" };
const program = { command: server, args: ["negotiator", ...data] };
const versionNegotiation = { mode: ["auto", "legacy"].includes(mode) ? mode : { pin: mode } };
const client = mode === "sdk" ? new old.Client(about) : new modern.Client(about, { versionNegotiation });
await client.connect(mode === "sdk" ? new OldTransport(program) : new StdioClientTransport(program));

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["listCampaigns", "getCampaign", "recordRound", "recordBid", "proposeOffer"]);
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  assert(!result.isError, JSON.stringify(result));
  return result.structuredContent;
};
assert((await call("listCampaigns", {})).campaigns.some((campaign) => campaign.slug === slug));
const read = await call("getCampaign", { slug });
const sheet = JSON.parse(operate(["demand", slug, "--json"]));
assert.deepEqual(Object.fromEntries(Object.keys(sheet).map((name) => [name, read[name]])), sheet);
assert.deepEqual([read.rounds, read.bids, read.mandate.targetCents], [[], [], 57600]);
assert(!JSON.stringify(read).includes("69600"), "what only people see");
for (const answered of ["$55", "$48, agreed"]) {
  await call("recordRound", { slug, supplier: "Example Fiber", asked: "$45 a month", answered });
}
const bid = {
  supplier: "Example Fiber",
  price: { cents: 4800, per: "month" },
  fees: [],
  term_months: 12,
  exit_fee_cents: 0,
  commission_cents: 2500,
  valid_until: "2099-03-31",
  evidence: "We can do $48 a month.",
};
const recorded = await call("recordBid", { slug, bid });
assert.deepEqual([recorded.number, recorded.reckoned.within], [1, true]);
const offer = {
  slug,
  bid: 1,
  decideBy: "2099-03-15",
  complaints: "help@fiber.example",
  text: { en: { how: "Order on their page." }, es: { how: "Haz tu pedido en su página." } },
};
const refused = await client.callTool({ name: "proposeOffer", arguments: { ...offer, decideBy: "soon" } });
assert.match(JSON.parse(refused.content[0].text).error, /^decideBy: /);
assert.equal((await call("proposeOffer", offer)).draft, 1);
await client.close();

const [one, two] = JSON.parse(operate(["rounds", slug, "--json"]));
assert.deepEqual([one.client, two.answered], ["checks", "$48, agreed"]);
assert.equal(JSON.parse(operate(["show", slug, "--json"])).state, "gathering", "only a person publishes");
operate(["offer", slug, "--draft", "1"]);
assert.equal(JSON.parse(operate(["show", slug, "--json"])).state, "offered");
