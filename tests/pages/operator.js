// The operator's page, walked in a browser: the way in by a link, every page, what is done there and asked before, and the way out.

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { operatorFigures } from "./operator_figures.js";

// A name that is markup to whoever forgets to escape it.
const newPartner = "<i>Zed</i> & \"Co\"";

export async function operatorWalk(page, tools) {
  const { base, call, data, go, heading, isFocused, look, size, scheme, step, tab } = tools;
  const link = process.env.UNION_OPERATOR;
  const main = page.getByRole("main");
  const button = (name) => main.getByRole("button", { name });
  const pages = page.getByRole("navigation", { name: "Operator's pages" });
  const open = async (name) => {
    await go(page, () => pages.getByRole("link", { name, exact: true }).click());
    assert.equal(await pages.locator("[aria-current]").innerText(), name);
    await heading(page, name);
  };

  step("the page is there within a second of the first operator");
  for (const deadline = Date.now() + 60_000; (await fetch(`${base}/operator`)).status === 404; ) {
    assert(Date.now() < deadline, "within a minute");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await go(page, "/operator", 403);
  await heading(page, "Sign in");
  await look(page, "operator-outside");

  step("sign in by keyboard; opening the link twice uses it up as little as once");
  assert.equal((await fetch(link)).status, 200);
  await go(page, link);
  await heading(page, "Sign in as ana");
  await look(page, "operator-enter");
  await tab(page, page.getByRole("link", { name: "Skip to the content" }), "the link past the header");
  await tab(page, page.getByRole("link", { name: /Operator/ }), "the overview");
  await tab(page, button("Sign in"), "the button");
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Overview");
  const cookie = (await page.context().cookies()).find(({ name }) => name === "union-operator");
  assert(cookie.httpOnly && cookie.sameSite === "Strict");
  await go(page, link, 410);
  await heading(page, "This link was used");
  await look(page, "operator-used");
  await go(page, "/operator");

  step("somebody signs up, and their mail is held");
  const address = `olga-${size}-${scheme}@example.com`;
  await call("/v1/invite", { email: address, usState: "CA", categories: { travel: true } });
  const records = new DatabaseSync(join(data, "unionhall.db"));
  records.exec("PRAGMA busy_timeout = 60000; UPDATE outbox SET held_at = 1");
  records.close();

  step("pause sign-ups, but not yet; then really; then turn them on again");
  await go(page, () => button("Pause sign-ups…").click());
  await heading(page, "Pause sign-ups?");
  await look(page, "operator-confirm");
  await go(page, () => page.getByRole("link", { name: "No, go back" }).click());
  await main.getByRole("heading", { name: "Sign-ups are not paused" }).waitFor();
  await go(page, () => button("Pause sign-ups…").click());
  await go(page, () => button("Pause sign-ups").click());
  await main.getByRole("heading", { name: "Sign-ups are paused" }).waitFor();
  assert.equal(await main.getByRole("link", { name: "Turn sign-ups on" }).getAttribute("href"), "/operator#sign-ups");
  await look(page, "operator");
  await go(page, () => button("Turn sign-ups on").click());
  await main.getByRole("heading", { name: "Sign-ups are not paused" }).waitFor();

  step("a new partner, whose name is markup, and its key");
  await open("Partners");
  await look(page, "operator-partners");
  await page.getByLabel("The partner's name").fill(newPartner);
  await go(page, () => button("Issue a key").click());
  await heading(page, "A new key");
  const key = await main.locator("pre").innerText();
  assert.match(key, /^uh_/);
  await look(page, "operator-new-key");
  await go(page, () => page.reload(), 400);
  assert((await main.innerText()).includes("was sent before"), "a reload issues no other");
  await go(page, () => page.getByRole("link", { name: "Back to Partners" }).click());
  await go(page, () => main.getByRole("link", { name: newPartner }).click());
  await heading(page, newPartner);
  await look(page, "operator-partner");
  await go(page, () => button(/^Rotate…/).click());
  await look(page, "operator-rotate");
  await page.getByLabel("The old key still works for").selectOption("not at all");
  await go(page, () => button("Rotate it").click());
  await heading(page, "A new key");
  await go(page, () => page.getByRole("link", { name: "Done" }).click());
  await go(page, () => button(/^Revoke…/).first().click());
  await go(page, () => button("Revoke it").click());
  await heading(page, "Revoked");
  await go(page, () => page.getByRole("link", { name: "Go back" }).click());
  await go(page, () => button("Suspend it…").click());
  await go(page, () => button("Suspend it").click());
  await go(page, () => page.getByRole("link", { name: "Go back" }).click());
  await look(page, "operator-suspended");
  await go(page, () => button("Resume it").click());
  await heading(page, "Resumed");

  step("held mail");
  await open("Mail");
  await look(page, "operator-mail");
  await go(page, () => button(/^Delete…/).click());
  await heading(page, "Delete held mail?");
  await go(page, () => page.getByRole("link", { name: "No, go back" }).click());
  await go(page, () => button(/^Send/).click());
  assert((await main.innerText()).includes("1 mail is sent"));

  step("look somebody up, and erase them");
  await open("People");
  await look(page, "operator-people");
  const text = page.getByLabel("Look somebody up");
  await text.fill("nobody@example.com");
  await go(page, () => page.keyboard.press("Enter"), 400);
  assert(await isFocused(text), "the mistake has the focus");
  await look(page, "operator-nobody");
  await text.fill(address);
  await go(page, () => page.keyboard.press("Enter"));
  assert(!page.url().includes("olga"), "no address is in an address");
  await main.getByRole("heading", { name: address }).waitFor();
  await look(page, "operator-person");
  await go(page, () => button("Erase this person…").click());
  await look(page, "operator-erase");
  const typed = page.getByLabel("Type the address again");
  await typed.fill("olga@example.com");
  await go(page, () => page.keyboard.press("Enter"), 400);
  await look(page, "operator-erase-mistake");
  await typed.fill(address);
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Erased");

  await operatorFigures(page, tools, open);

  step("the pages of a week");
  for (const [path, title, name] of [
    ["/operator/mail/outbox", "Mail that waits", "outbox"],
    ["/operator/mail/test", "Send a test mail", "test-mail"],
    ["/operator/mail/previews", "Previews of mail", "previews"],
    ["/operator/backup", "Backup", "backup"],
    ["/operator/partners/issue", "Issue a key", "issue"],
    ["/operator/partners/test-keys", "Test keys", "test-keys"],
    ["/operator/partners/1/settings", null, "partner-settings"],
    ["/operator/partners/1/webhooks", null, "webhooks"],
    ["/operator/account", "Your account", "account"],
    ["/operator/account?set-up", "Your account", "account-set-up"],
  ]) {
    await go(page, path);
    if (title) await heading(page, title);
    await look(page, `operator-${name}`);
  }

  step("who did all that");
  await open("Audit");
  await look(page, "operator-audit");
  const log = await main.innerText();
  for (const done of ["page sign-in", "signups pause", "keys issue", "keys rotate", "keys revoke", "mail release", "members show", "members erase", "campaigns new", "campaigns bid", "campaigns offer", "campaigns open", "campaigns close"]) {
    assert(log.includes(done), done);
  }
  assert(log.includes("ana (page)") && !log.includes("@example.com") && !log.includes(key));
  await page.getByLabel("What").fill("rotate");
  await go(page, () => page.keyboard.press("Enter"));
  assert.equal(await main.locator("tbody tr").count(), 1);
  await page.getByLabel("From").fill("yesterday");
  await go(page, () => page.keyboard.press("Enter"));
  await look(page, "operator-audit-mistake");

  step("out, and what was shown is not shown again");
  await go(page, () => page.getByRole("button", { name: "Sign out" }).click());
  await heading(page, "Signed out");
  await look(page, "operator-signed-out");
  await go(page, "/operator/audit", 403);
}
