// An assistant's program in JavaScript, on the official clients.
//
//     client.js MODE     MODE is how the client finds the era: auto, legacy or 2026-07-28; sdk takes the client of old.
//
// Calls every tool of the server at UNION_URL, with the key in UNION_KEY, with none, and with one that is not valid. The
// clients themselves hold every answer to the schema that the tool was listed with.

import assert from "node:assert/strict";
import * as modern from "@modelcontextprotocol/client";
import * as old from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { UNION_URL: url, UNION_KEY: key } = process.env;
assert(url && key, "UNION_URL and UNION_KEY must be set");
const mode = process.argv[2];
const versions = { auto: "2026-07-28", legacy: "2025-11-25", "2026-07-28": "2026-07-28", sdk: "2025-11-25" };
assert(mode in versions, `there is no mode ${mode}`);

const paths = {
  listNegotiationCategories: "/v1/negotiate-categories",
  getReferralProgram: "/v1/referral-program",
  getMemberStats: "/v1/stats",
};
const acting = ["signUpUser", "createReferralLink"];

const connect = async (headers) => {
  const about = { name: "checks", version: "1.0.0" };
  const address = new URL(`${url}/mcp`);
  const requestInit = { headers };
  if (mode === "sdk") {
    const client = new old.Client(about);
    const transport = new OldTransport(address, { requestInit });
    await client.connect(transport);
    return { client, version: transport.protocolVersion };
  }
  const client = new modern.Client(about, { versionNegotiation: { mode: mode in { auto: 1, legacy: 1 } ? mode : { pin: mode } } });
  await client.connect(new modern.StreamableHTTPClientTransport(address, { requestInit }));
  return { client, version: client.getNegotiatedProtocolVersion() };
};

const textOf = (result) => {
  assert.deepEqual(result.content.map((block) => block.type), ["text"]);
  return JSON.parse(result.content[0].text);
};

for (const [kind, sent] of [["partner", key], ["anyone", undefined], ["stranger", "uh_not_a_key"]]) {
  const valid = kind === "partner";
  const { client, version } = await connect(sent ? { Authorization: `Bearer ${sent}` } : {});
  assert.equal(version, versions[mode]);
  assert.equal(client.getServerVersion()?.name, "unionhall");
  assert.match(client.getInstructions() ?? "", /explicitly.*inbox/s);

  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), [...Object.keys(paths), ...(valid ? acting : [])]);
  for (const tool of tools) {
    assert(tool.title && tool.description && tool.outputSchema);
    assert.equal(tool.annotations?.readOnlyHint, tool.name in paths);
  }

  // Once for programs and once for the model, and the same both times.
  const call = async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args });
    assert(!result.isError, JSON.stringify(result));
    assert.deepEqual(result.structuredContent, textOf(result));
    assert.equal(result.structuredContent.ok, true);
    return result.structuredContent;
  };
  // An error for the model to read is a result.
  const refused = async (name, args, code) => {
    const result = await client.callTool({ name, arguments: args });
    assert.equal(result.isError, true, JSON.stringify(result));
    assert.equal(result.structuredContent, undefined);
    const body = textOf(result);
    assert.deepEqual([body.ok, body.code], [false, code]);
    return body.error;
  };

  for (const [name, path] of Object.entries(paths)) {
    assert.deepEqual(await call(name), await (await fetch(url + path)).json());
  }

  const email = `ben.js.${mode}.${kind}@example.com`;
  if (valid) {
    const link = await call("createReferralLink", { email: `ana.js.${mode}@example.com` });
    assert(link.inviteLink.endsWith(`/joinus${link.code}`));
    const joined = await call("signUpUser", { email, usState: "DC", refCode: link.code });
    assert(joined.refAttributed && joined.inviteLink.includes("/joinus"));
    for (const name of acting) {
      assert.match(await refused(name, { email: "nobody" }, "invalid_submission"), /^email: /);
      assert.match(await refused(name, { email, phone: "555-0100" }, "invalid_submission"), /^phone: /);
    }
  } else {
    for (const name of acting) await refused(name, { email }, "agent_unauthorized");
  }

  await assert.rejects(client.callTool({ name: "deleteUser", arguments: {} }), (error) => {
    assert.equal(error.code, -32602);
    return true;
  });
  await client.close();
}
