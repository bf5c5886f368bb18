// Signs somebody up in the sandbox, waits to be told that they confirmed, catches up by the events if nobody tells, and prints
// what came of it.
//
//     node sign-up.ts [EMAIL]      EMAIL [default: one at simulator.test, which confirms by itself]
//
// On types that are generated from the service's documents; ../README.md has the commands, and the variables to set.

import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import process from "node:process";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import createClient from "openapi-fetch";
import { Webhook } from "standardwebhooks";
import type { paths as PartnerPaths, webhooks } from "./partner.ts";
import type { paths as UnionPaths } from "./union.ts";

/** Whatever the document says that an endpoint is sent. */
type Message = { [K in keyof webhooks]: webhooks[K]["post"]["requestBody"]["content"]["application/json"] }[keyof webhooks];

const access = {
  baseUrl: variable("UNION_BASE_URL"),
  headers: { Authorization: `Bearer ${variable("UNION_TEST_KEY")}` },
  fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(10_000) }),
};
const union = createClient<UnionPaths>(access);
const partner = createClient<PartnerPaths>(access);
const port = Number(variable("UNION_WEBHOOK_PORT"));
const url = process.env["UNION_WEBHOOK_URL"] ?? `http://127.0.0.1:${port}/hooks`;
const hook = new Webhook(process.env["UNION_WEBHOOK_SECRET"] || (await ownSecret()));
const patience = Number(process.env["UNION_WAIT_SECONDS"] ?? "60");
const [attempts, longestPause, largestMessage] = [4, 60, 65_536];

// In earnest: kept with the user's request before the first attempt, so that a restart goes on under the same key.
const key = `example-${randomUUID()}`;
const email = process.argv[2] ?? `confirm+${randomUUID().slice(0, 13)}@simulator.test`;
// The ids of what was processed; an event has the id of its webhook. In earnest: in your database.
const known = new Set<string>();
const told = Promise.withResolvers<string>();

function variable(name: string): string {
  return process.env[name] ?? giveUp(`${name} is not set`);
}

function giveUp(why: string): never {
  console.error(why);
  process.exit(1);
}

/** The secret of this program's endpoint, which is added, or gets another secret if it was added before. In earnest: added once, and
 * the secret kept beside the key. */
async function ownSecret(): Promise<string> {
  const { data: listed } = await partner.GET("/partner/v1/webhooks");
  const before = listed?.webhooks.find((one) => one.url === url);
  const { data, error } = before
    ? await partner.POST("/partner/v1/webhooks/{id}/rotate", { params: { path: { id: before.id } }, body: { now: true } })
    : await partner.POST("/partner/v1/webhooks", { body: { url } });
  if (!data) giveUp(`no endpoint: ${error?.error}`);
  console.log(`endpoint ${data.id} has ${before ? "another" : "a"} secret`);
  return data.secret;
}

/** Takes a message in; returns the status to answer with. */
async function take(request: IncomingMessage): Promise<number> {
  if (!(Number(request.headers["content-length"] ?? NaN) <= largestMessage)) return 413;
  let message: Message;
  try {
    message = hook.verify(await text(request), request.headers as Record<string, string>) as Message;
  } catch {
    return 401;
  }
  const name = String(request.headers["webhook-id"]);
  if (known.has(name)) {
    console.log(`passed over ${name}, which came before`);
    return 204;
  }
  // In earnest: written down before the answer, for a message that was answered with 2xx does not come again.
  known.add(name);
  if (message.type === "sign_up.confirmed" || message.type === "sign_up.closed") {
    console.log(`told ${message.type} of ${message.data.idempotencyKey}`);
    if (message.data.idempotencyKey === key) told.resolve(message.type.replace("sign_up.", ""));
  }
  return 204;
}

/** One key for all attempts: if an earlier one did arrive, its answer comes again, and nobody is mailed twice. */
async function signUp(): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    let [pause, reason] = [2 ** attempt, ""];
    try {
      const { data, error, response } = await union.POST("/v1/invite", {
        params: { header: { "Idempotency-Key": key } },
        body: { email, categories: { internet: true } },
      });
      if (data) {
        console.log("signed up" + (response.headers.get("Idempotency-Replayed") === "true" ? ", by an attempt before" : ""));
        return data.inviteLink;
      }
      reason = `${response.status} ${error?.error ?? ""}`;
      if (![408, 429].includes(response.status) && response.status < 500) giveUp(`refused: ${reason}`);
      const asked = response.headers.get("Retry-After") ?? "";
      if (/^\d+$/.test(asked)) pause = Number(asked);
    } catch (error) {
      reason = String(error); // no answer
    }
    if (attempt + 1 === attempts || pause > longestPause) giveUp(`given up: ${reason}`);
    console.log(`again in ${pause} s: ${reason}`);
    await sleep(pause * 1000);
  }
}

/** What the events say of this sign-up: whatever no webhook brought is listed there. */
async function caughtUp(): Promise<string | undefined> {
  let [cursor, outcome, more]: [string, string | undefined, boolean] = ["", undefined, true];
  while (more) {
    // In earnest: from the cursor on that was stored last.
    const query = cursor ? { after: cursor, limit: 100 } : { limit: 100 };
    const { data } = await partner.GET("/partner/v1/events", { params: { query } });
    if (!data) giveUp("the events could not be read");
    for (const event of data.events.filter(({ id }) => !known.has(id))) {
      known.add(event.id);
      console.log(`found ${event.type} of ${event.data.idempotencyKey}`);
      if (event.data.idempotencyKey === key) outcome = event.type.replace("sign_up.", "");
    }
    // In earnest: stored, now that the page is processed.
    [cursor, more] = [data.cursor, data.hasMore];
  }
  return outcome;
}

async function ask(): Promise<string> {
  const { data } = await partner.GET("/partner/v1/sign-ups/{idempotencyKey}", { params: { path: { idempotencyKey: key } } });
  return data?.status ?? "unknown";
}

// Before anything is asked for: the message may be here sooner than the answer.
const receiver = createServer({ requestTimeout: 10_000 }, async (request, response) => {
  response.writeHead(await take(request)).end();
});
await new Promise<void>((listening) => receiver.listen(port, "127.0.0.1", listening));

console.log("their link to pass on:", await signUp());
const outcome = await Promise.race([told.promise, sleep(patience * 1000, undefined, { ref: false })]);
const found = outcome ? undefined : await caughtUp();
if (outcome) console.log(`${key} is ${outcome}, by webhook`);
else console.log(found ? `${key} is ${found}, by events` : `${key} is ${await ask()}, by asking`);
receiver.close();
receiver.closeIdleConnections();
