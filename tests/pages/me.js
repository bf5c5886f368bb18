// A member's own page, walked in a browser: the way in by code or by link, what it shows, what can be changed, and the way out.

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import jsQR from "jsqr";
import { PNG } from "pngjs";
import { earn } from "./campaign.js";

// What a phone's camera would read off the screen, by another hand than ours.
async function readQr(figure) {
  const { data, width, height } = PNG.sync.read(await figure.screenshot());
  const read = jsQR(new Uint8ClampedArray(data), width, height);
  return read?.data;
}

// Those of ours; the mailbox of a development server has one of its own.
const cookies = async (context) => (await context.cookies()).filter(({ name }) => name.includes("union"));

// The figures stay in view to the end of the page, as one thin line on a phone, and cover nothing that a link leads to. On a desk there
// are two columns.
export async function inView(page, size) {
  const box = (selector) => page.locator(selector).boundingBox();
  const scrollTo = (selector, block) =>
    page.locator(selector).evaluate((element, block) => element.scrollIntoView({ behavior: "instant", block }), block);
  await scrollTo(".foot", "end");
  const [standing, left, right] = [await box(".standing"), await box(".own-left"), await box(".own-right")];
  assert(standing.y >= 0 && standing.y < 40, `in view: at ${standing.y}`);
  if (size === "phone") assert(standing.height <= 56 && right.x === left.x, `one line: ${standing.height} pixels`);
  else assert(right.x >= left.x + left.width, "two columns");
  await scrollTo("#yours", "start");
  if (size === "phone") assert((await box("#yours")).y >= (await box(".standing")).height, "what is led to is not covered");
  await page.evaluate(() => window.scrollTo({ top: 0, behavior: "instant" }));
}

export async function meWalk(page, tools) {
  const { base, call, data, go, heading, isFocused, look, memberCount, openLetter, size, scheme, step, tab, withScripts } = tools;
  const address = `mia-${size}-${scheme}@example.com`;
  const main = page.getByRole("main");
  // What is folded away is opened by its heading.
  const unfold = (name) => page.locator("details.fold > summary", { hasText: name }).click();
  const confirmed = async (email, refCode) => {
    const { inviteLink } = await call("/v1/invite", refCode ? { email, refCode } : { email, usState: "CA", categories: { travel: true } });
    const letter = await openLetter(page, email);
    await go(page, () => letter.click());
    const links = await page.locator("pre.letter").getByRole("link").evaluateAll((found) => found.map((link) => link.href));
    const confirm = links.find((link) => link.includes("/confirm/"));
    assert.equal((await fetch(confirm, { method: "POST" })).status, 200);
    return { inviteLink, links };
  };

  step("a member, whose link somebody else joined by");
  const { inviteLink, links } = await confirmed(address);
  assert(links.includes(`${base}/me`), "the mail leads to the member's page");
  await confirmed(`ned-${size}-${scheme}@example.com`, inviteLink);
  const before = await memberCount();

  step("find the way in");
  await go(page, "/join");
  await go(page, () => page.getByRole("banner").getByRole("link", { name: "Sign in" }).click());
  await heading(page, "Your page");
  await look(page, "me-sign-in");
  const email = page.getByRole("textbox", { name: "The email address you joined with" });
  await email.fill("mia@example");
  await go(page, () => page.keyboard.press("Enter"));
  assert(await isFocused(email), "the mistake has the focus");
  assert.equal(await email.getAttribute("aria-invalid"), "true");
  await look(page, "me-mistake");
  await email.fill(address);
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Check your inbox");
  await look(page, "me-sent");
  const sent = page.url();

  step("open the mail in a program of its own, as scanners do");
  const elsewhere = await page.context().browser().newContext({ colorScheme: scheme });
  const scanner = await elsewhere.newPage();
  const letter = await openLetter(scanner, address);
  await letter.click();
  await scanner.getByRole("link", { name: "Show the HTML part" }).click();
  await scanner.waitForURL(/html$/);
  const enter = await scanner.getByRole("link", { name: "Open my page" }).getAttribute("href");
  const code = /[0-9A-Z]{4}-[0-9A-Z]{4}/.exec(await scanner.locator("body").innerText())[0];
  for (const method of ["GET", "HEAD", "GET", "HEAD"]) {
    const answer = await fetch(enter, { method });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("set-cookie"), null, "looking signs nobody in");
    await answer.arrayBuffer();
  }
  for (let time = 0; time < 2; time += 1) {
    await scanner.goto(enter);
    await scanner.waitForLoadState("networkidle");
  }
  assert.deepEqual(await cookies(elsewhere), [], "nor does a browser that runs scripts");
  await scanner.goto(`${base}/me`);
  assert.equal(await scanner.getByRole("heading", { level: 1 }).innerText(), "Your page");

  if (withScripts) {
    step("type a code that is wrong, then the right one");
    assert.equal(page.url(), sent);
    const field = page.getByRole("textbox", { name: "Eight letters and digits" });
    await field.fill("0000-0000");
    await go(page, () => page.keyboard.press("Enter"));
    assert(await isFocused(field), "the mistake has the focus");
    await look(page, "me-wrong-code");
    await field.fill(code.toLowerCase().replace("-", " "));
    await go(page, () => page.keyboard.press("Enter"));
  } else {
    step("press the link's button");
    await go(page, enter);
    await heading(page, "Sign in?");
    assert((await main.innerText()).includes("m•••@e•••.com"));
    await look(page, "me-enter");
    await go(page, () => page.getByRole("button", { name: "Yes, sign me in" }).click());
  }
  await elsewhere.close();
  assert.equal(new URL(page.url()).pathname, "/me");
  await heading(page, "Your page");
  const used = await fetch(enter);
  assert.equal(used.status, 410, "the link was used");
  await go(page, enter);
  assert.equal(new URL(page.url()).pathname, "/me", "and leads whoever is signed in to their page");

  step("see everything, and what to do first");
  assert((await main.innerText()).includes("You're up to date."));
  await inView(page, size);
  assert.equal(await page.getByRole("button", { name: "Save my answers" }).isVisible(), false, "what few need is folded away");
  await unfold("How you joined");
  const shown = await main.innerText();
  for (const text of [address, "Member since", "Acme Assistant", "through its API", "with the button our email led to"]) {
    assert(shown.includes(text), text);
  }
  const link = page.getByRole("textbox", { name: "Share this link with friends" });
  assert.equal(await link.inputValue(), inviteLink);
  const counts = await page.locator("[aria-labelledby=yours] .figures dd").allInnerTexts();
  assert.deepEqual(counts, ["1", "1"], "one signed up, one is a member");
  assert.equal(await readQr(page.getByRole("img", { name: "QR code of your referral link" })), inviteLink, "the QR code");
  await page.getByText("What you were told").first().click();
  assert((await main.innerText()).includes("By confirming, you join"), "the words of the notice");
  const moment = await page.locator("time").first().innerText();
  assert.match(moment, withScripts ? /^[A-Z][a-z]{2} \d+, \d{4}, \d+:\d{2}\s[AP]M E[SD]T$/ : /^[A-Z][a-z]{2} \d+, \d{4}$/, "the reader's zone, or the day alone");
  await look(page, "me");
  if (withScripts) {
    await page.evaluate(() => navigator.clipboard.writeText("something else"));
    await page.getByRole("button", { name: "Copy the link" }).click();
    await page.getByRole("status").filter({ hasText: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), inviteLink);
  }

  step("change the answers");
  await unfold("Your answers");
  const box = (name) => page.getByRole("checkbox", { name });
  assert(await box(/^Travel/).isChecked());
  await box(/^Travel/).uncheck();
  assert.equal(await page.locator("#chosen-total").innerText(), withScripts ? "$0" : "$350", "the total follows, with a script");
  await box(/^Home Internet/).check();
  await page.getByRole("combobox", { name: /^State you live in/ }).selectOption("NY");
  await page.getByRole("textbox", { name: /^Anything else/ }).fill("Moved <b>east</b>.");
  await go(page, () => page.getByRole("button", { name: "Save my answers" }).click());
  await page.getByRole("status").filter({ hasText: "Your answers are saved." }).waitFor();
  await unfold("Your answers");
  assert(!(await page.locator("input[name=travel]").isChecked()) && (await box(/^Home Internet/).isChecked()));
  assert.equal(await page.getByRole("combobox", { name: /^State you live in/ }).inputValue(), "NY");
  assert.equal(await page.getByRole("textbox", { name: /^Anything else/ }).inputValue(), "Moved <b>east</b>.");

  step("choose mail, and take everything along");
  await unfold("Email from us");
  await box("Warn me if someone uses my address to sign up").uncheck();
  await go(page, () => page.locator("form[action='/me/mail'] button").click());
  await unfold("Email from us");
  assert(!(await box("Warn me if someone uses my address to sign up").isChecked()));
  const exported = await (await page.request.get(`${base}/me/export`)).json();
  assert.equal(exported.email, address);
  assert.deepEqual(exported.answers.categories, ["internet"]);
  assert.deepEqual(exported.mail.unwantedKinds, ["already_member"]);
  const schema = await (await fetch(exported.$schema)).json();
  assert.deepEqual(Object.keys(exported).sort(), Object.keys(schema.properties).sort(), "the schema names every field");

  step("leave");
  await go(page, () => page.getByRole("link", { name: "Leave the union" }).click());
  await heading(page, "Leave the union?");
  await look(page, "me-leave");
  await go(page, () => page.getByRole("link", { name: "Stay" }).click());
  assert.equal(await memberCount(), before, "asking changes nothing");
  await go(page, "/me/leave");
  const leave = page.getByRole("button", { name: "Leave now" });
  for (const target of [page.getByRole("link", { name: "Skip" }), page.getByRole("link", { name: "Consumer" }), page.getByRole("link", { name: "Español" }), page.getByRole("banner").getByRole("link", { name: "Your page" }), main.getByRole("link", { name: "erase everything" }), leave]) {
    await tab(page, target, target);
  }
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "You're no longer a member");
  assert.equal(await memberCount(), before - 1);
  await look(page, "me-left");
  await go(page, "/me/leave");
  await heading(page, "You're no longer a member");

  step("sign out, and stay out");
  await go(page, () => page.getByRole("button", { name: "Sign out here" }).click());
  await heading(page, "Your page");
  await page.getByRole("status").filter({ hasText: "You're signed out in this browser." }).waitFor();
  await page.goBack();
  await go(page, "/me");
  await heading(page, "Your page");
  assert.deepEqual(await cookies(page.context()), []);

  step("whoever left can sign in again, to take everything along or have it erased");
  const records = new DatabaseSync(join(data, "unionhall.db"));
  records.exec("PRAGMA busy_timeout = 60000; UPDATE sign_ins SET created_at = created_at - 3600001; UPDATE mailboxes SET sent_1 = NULL, last_mail_id = NULL");
  records.close();
  const newest = async (wanted) => {
    for (const deadline = Date.now() + 60_000; ; ) {
      const letter = await openLetter(page, address);
      await go(page, () => letter.click());
      const links = await page.locator("pre.letter").getByRole("link").evaluateAll((found) => found.map((link) => link.href));
      const link = links.find((link) => link.includes(wanted));
      if (link && link !== enter) return link;
      assert(Date.now() < deadline, `no mail with ${wanted} within a minute`);
    }
  };
  await email.fill(address);
  await go(page, () => page.keyboard.press("Enter"));
  await go(page, await newest("/me/enter/"));
  await go(page, () => page.getByRole("button", { name: "Yes, sign me in" }).click());
  await heading(page, "You're no longer a member");
  await page.getByRole("link", { name: "Erase everything about me" }).waitFor();
  assert.equal((await (await page.request.get(`${base}/me/export`)).json()).email, address);

  step("and come back with the answers that were kept");
  await call("/v1/invite", { email: address });
  await go(page, await newest("/confirm/"));
  for (const text of ["New York", "Moved <b>east</b>.", "Home Internet"]) assert((await main.innerText()).includes(text), text);
}

// Somebody has themselves erased, and comes back.
export async function eraseWalk(page, tools) {
  const { base, call, data, go, heading, look, memberCount, openLetter, size, scheme, step } = tools;
  const address = `oda-${size}-${scheme}@example.com`;
  // A link of their newest mail, once that is the one that holds it.
  const open = async (wanted) => {
    for (const deadline = Date.now() + 60_000; ; ) {
      const letter = await openLetter(page, address);
      await go(page, () => letter.click());
      const links = await page.locator("pre.letter").getByRole("link").evaluateAll((found) => found.map((link) => link.href));
      const link = links.find((link) => link.includes(wanted));
      if (link) return link;
      assert(Date.now() < deadline, `no mail with ${wanted} within a minute`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const { inviteLink } = await call("/v1/invite", { email: address });
  assert.equal((await fetch(await open("/confirm/"), { method: "POST" })).status, 200);
  await go(page, "/me");
  await page.getByRole("textbox", { name: "The email address you joined with" }).fill(address);
  await go(page, () => page.getByRole("button", { name: "Send me the email" }).click());
  await go(page, await open("/me/enter/"));
  await look(page, "me-enter");
  await go(page, () => page.getByRole("button", { name: "Yes, sign me in" }).click());

  step("erase");
  await go(page, () => page.getByRole("link", { name: "Erase everything about me" }).click());
  await heading(page, "Erase everything about you?");
  await look(page, "me-erase");

  step("with money due, first without giving it up");
  const records = new DatabaseSync(join(data, "unionhall.db"));
  records.exec("PRAGMA busy_timeout = 60000");
  records.exec("INSERT INTO campaigns (slug, definition, state, gather_until, created_at) VALUES ('internet-2099', '', 'draft', 47147, 1)");
  earn(records, "internet-2099", address);
  records.close();
  await go(page, () => page.getByRole("button", { name: "Erase everything now" }).click());
  assert((await page.getByRole("alert").innerText()).includes("Nothing was erased: we owe you $100 in rewards."));
  await look(page, "me-erase-due");
  await page.getByRole("checkbox", { name: "I give up $100 in rewards" }).check();
  await go(page, () => page.getByRole("button", { name: "Erase everything now" }).click());
  await heading(page, "Your data is erased");
  const told = await page.getByRole("main").innerText();
  assert(told.includes("no email to that mailbox for 30 days") && !told.includes("unsuppress"), told);
  await look(page, "me-erased");
  assert.equal(await memberCount(), 0);
  await go(page, "/me");
  await heading(page, "Your page");
  assert.deepEqual(await cookies(page.context()), []);

  step("come back");
  assert.equal((await call("/v1/invite", { email: address })).inviteLink, inviteLink, "the code stays theirs");
  assert.equal((await fetch(`${base}/me/export`)).status, 403);
}
