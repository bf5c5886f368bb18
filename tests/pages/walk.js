// One walk through the pages in a browser; ./check runs it as `node walk.js WAY SIZE SCHEME [off]`, each time with a new
// server. What is wrong with a step ends the walk. What is wrong with a page (violations.txt) and what the browser complains
// of (complaints.txt) is written down for ./check to judge, and so is each page that was looked at (seen.txt).

import assert from "node:assert/strict";
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { eraseWalk, meWalk } from "./me.js";

const [way, size, scheme, scripts] = process.argv.slice(2);
const { UNION_URL: base, UNION_KEY: key, UNION_DATA: data, PAGES_BROWSER, PAGES_SCREENSHOTS } = process.env;
const withScripts = scripts !== "off";
const sizes = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const partner = "Acme Assistant";

const note = (file, line) => appendFileSync(file, `${line}\n`);
const step = (what) => console.log(`${(performance.now() / 1000).toFixed(1)} s: ${what}`);
const dollars = (amount) => `$${amount.toLocaleString("en-US")}`;

// --- The union, as a partner's program sees it -------------------------------------------------------------------------

async function call(path, body) {
  const answer = await fetch(base + path, body && {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const json = await answer.json();
  assert.equal(answer.status, 200, `${path}: ${JSON.stringify(json)}`);
  return json;
}

const memberCount = async () => (await call("/v1/stats")).memberCount;

// --- The browser -------------------------------------------------------------------------------------------------------

// What the browser complained of, with the answer that it is about, if it is about one. Answers that were errors on purpose
// are no reason to; those are known only later. Both are called `STATUS ADDRESS`.
const complaints = [];
const meant = new Set();

async function openBrowser() {
  const browser = await chromium.launch({
    executablePath: PAGES_BROWSER,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
    ],
  });
  const phone = size === "phone";
  const context = await browser.newContext({
    viewport: sizes[size],
    isMobile: phone,
    hasTouch: phone,
    colorScheme: scheme,
    javaScriptEnabled: withScripts,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(10_000);
  const complain = (what, answer) => complaints.push({ what, answer });
  context.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    const status = /^Failed to load resource: the server responded with a status of (\d+)/.exec(message.text())?.[1];
    complain(`${message.text()} (${message.location().url})`, `${status} ${message.location().url}`);
  });
  context.on("weberror", (error) => complain(error.error()));
  context.on("request", (request) => {
    if (new URL(request.url()).origin !== base) complain(`a request to ${request.url()}`);
  });
  context.on("requestfailed", (request) => {
    // A browser fetches the icon when it has nothing better to do, and lets it go when the reader leaves the page first.
    const left = request.url() === `${base}/icon.svg` && request.failure()?.errorText === "net::ERR_ABORTED";
    if (!left) complain(`${request.url()} failed: ${request.failure()?.errorText}`);
  });
  return { browser, page: await context.newPage() };
}

// Goes somewhere, by an address or by what is done to the page, and holds the answer to a status.
async function go(page, to, status = 200) {
  const response = typeof to === "string"
    ? await page.goto(new URL(to, base).href)
    : (await Promise.all([page.waitForNavigation(), to()]))[0];
  assert.equal(response.status(), status, response.url());
  if (status >= 400) meant.add(`${status} ${response.url()}`);
}

// A page as people see it: nothing to scroll sideways, nothing that axe-core knows to be wrong, and a picture of it.
async function look(page, name, rules = {}) {
  step(`look at ${name}`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(width <= sizes[size].width, `${name} is ${width} pixels wide`);
  if (PAGES_SCREENSHOTS) {
    const path = join(PAGES_SCREENSHOTS, `${name}-${size}-${scheme}${withScripts ? "" : "-without-scripts"}.png`);
    await page.screenshot({ path, fullPage: true });
  }
  // The rules are a script themselves.
  if (!withScripts) return;
  await page.evaluate(axe);
  // Without `preload`, which would load the stylesheet again, by a script, which the policy rightly forbids.
  const options = { preload: false, rules: { "target-size": { enabled: true }, ...rules } };
  const { violations, passes } = await page.evaluate((options) => axe.run(document, options), options);
  assert(passes.length > 10, `axe-core looked at ${name}`);
  for (const { id, help, nodes } of violations) {
    for (const { html, failureSummary } of nodes) {
      note("violations.txt", `${name}, ${size}, ${scheme}: ${id}: ${help}\n    ${html}\n    ${failureSummary}`);
    }
  }
  note("seen.txt", `${name} ${scheme}`);
}

const heading = async (page, text) => assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), text);
const isFocused = (target) => target.evaluate((element) => element === document.activeElement);

async function tab(page, target, what) {
  await page.keyboard.press("Tab");
  const there = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
  assert(await isFocused(target), `the key Tab leads to ${what}, not to ${there}`);
}

// The newest mail to an address, once it has come.
async function openLetter(page, address) {
  const newest = page.getByRole("main").getByRole("listitem").first();
  const deadline = Date.now() + 10_000;
  for (;;) {
    await go(page, process.env.UNION_MAILBOX);
    if ((await newest.count()) && (await newest.innerText()).includes(address)) return newest.getByRole("link");
    assert(Date.now() < deadline, `no mail to ${address} within ten seconds`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// --- The walks ---------------------------------------------------------------------------------------------------------

// A person joins, by a friend's link and without touching the mouse.
async function joinWalk(page) {
  const address = `ana-${size}-${scheme}@example.com`;
  // A code that is nobody's does no harm; once is enough to show it.
  const code = withScripts ? (await call("/v1/referral-link", { email: "friend@example.net" })).code : "zzzzzzzzzzzz";
  const { categories } = await call("/v1/negotiate-categories");
  const chosen = [categories[1], categories[4]];
  const before = await memberCount();

  if (withScripts) {
    await go(page, "/");
    await look(page, "join");
  }
  await go(page, `/joinus${code}`);
  await look(page, "invited");
  await page.getByText("A member has invited you").waitFor();
  const figures = page.locator(".figures");
  assert(!(await figures.innerText()).includes("already in"), "nobody is in yet, which is no figure to show");

  step("fill in the form with a mistake");
  const email = page.getByRole("textbox", { name: "Your e-mail address" });
  const state = page.getByRole("combobox", { name: /^State you live in/ });
  const comments = page.getByRole("textbox", { name: /^Anything else/ });
  const box = ({ label, annualSavings }) =>
    page.getByRole("checkbox", { name: `${label} ${dollars(annualSavings)} a year`, exact: true });
  await tab(page, page.getByRole("link", { name: "Skip to the content" }), "the link past the header");
  await tab(page, page.getByRole("link", { name: "Consumer Union" }), "the union's name");
  await tab(page, email, "the address");
  // Right to a browser, which would not send it otherwise, and wrong to the server.
  await page.keyboard.type("ana@example");
  // The stylesheet counts what is chosen; its figure is in no tree that could be asked, only in the picture.
  const counted = [];
  for (const category of categories) {
    await tab(page, box(category), category.label);
    if (!chosen.includes(category)) continue;
    await page.keyboard.press("Space");
    counted.push((await page.locator(".chosen").screenshot()).toString("base64"));
  }
  assert(counted.length === 2 && counted[0] !== counted[1], "the figure of what is chosen changes with the choice");
  await tab(page, state, "the state");
  await page.keyboard.type("Calif");
  await tab(page, comments, "the comments");
  await page.keyboard.type("Rates <b>rise</b> & rise.");
  await tab(page, page.getByRole("button", { name: "Sign me up" }), "the button");
  await go(page, () => page.keyboard.press("Enter"), 400);

  step("find the mistake beside its field and everything kept");
  assert((await page.title()).startsWith("Problem: "), await page.title());
  const problems = page.getByRole("alert");
  assert(await isFocused(problems), "what is wrong has the focus, so that a screen reader begins with it");
  const error = page.locator("#email-error");
  assert.match(await error.innerText(), /^The address has a domain that is not a name of two or more parts/);
  const [above, below] = [await error.boundingBox(), await email.boundingBox()];
  assert(below.y - (above.y + above.height) < 40 && below.y > above.y, "the message stands beside its field");
  assert.equal(await email.getAttribute("aria-invalid"), "true");
  assert((await email.getAttribute("aria-describedby")).split(" ").includes("email-error"));
  assert.equal(await email.inputValue(), "ana@example");
  for (const category of categories) {
    assert.equal(await box(category).isChecked(), chosen.includes(category), category.label);
  }
  assert.equal(await state.inputValue(), "CA");
  assert.equal(await comments.inputValue(), "Rates <b>rise</b> & rise.");
  assert.equal(await page.locator("input[name=refCode]").inputValue(), code, "who invited is not forgotten");
  await look(page, "mistake");

  step("put it right");
  await tab(page, problems.getByRole("link"), "the mistake");
  await page.keyboard.press("Enter");
  assert(await isFocused(email), "the mistake leads to its field");
  await page.keyboard.press("Control+A");
  await page.keyboard.type(address);
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Check your inbox");
  const masked = "a•••@e•••.com";
  const main = page.getByRole("main");
  assert((await main.innerText()).includes(masked) && !(await page.content()).includes(address), "the address is masked");
  await look(page, "check-inbox");
  assert.equal(await memberCount(), before, "nobody is a member by the form alone");

  step("open the mail");
  const letter = await openLetter(page, address);
  await look(page, "mailbox");
  await go(page, () => letter.click());
  await look(page, "letter");
  const inText = page.locator("pre.letter").getByRole("link");
  const links = await inText.evaluateAll((found) => found.map((link) => link.href));
  await go(page, () => page.getByRole("link", { name: "Show the HTML part" }).click());
  // A mail is an article within the page of whatever program shows it; the landmarks are that program's.
  await look(page, "letter-html", { "landmark-one-main": { enabled: false }, region: { enabled: false } });
  assert(!(await page.content()).includes("Rates"), "nothing of what was typed is in the mail");
  const button = page.getByRole("link", { name: "Confirm my sign-up" });
  const confirm = await button.getAttribute("href");
  assert(confirm.startsWith(`${base}/confirm/`) && links.includes(confirm), "both parts have the link");
  await go(page, () => button.click());

  step("see what is confirmed");
  await heading(page, "Confirm your sign-up");
  const shown = await main.innerText();
  const total = chosen.reduce((sum, { annualSavings }) => sum + annualSavings, 0);
  for (const text of [masked, "our form", "California", "Rates <b>rise</b> & rise.", dollars(total)]) assert(shown.includes(text), text);
  assert(!(await page.content()).includes(address), "the address is masked");
  const rows = (await main.getByRole("listitem").allInnerTexts()).map((row) => row.split(/\s*\n\s*/));
  assert.deepEqual(rows, chosen.map(({ label, annualSavings }) => [label, dollars(annualSavings)]));
  await look(page, "confirm");
  await page.reload();
  await heading(page, "Confirm your sign-up");
  assert.equal(await memberCount(), before, "looking confirms nothing");

  step("confirm");
  await tab(page, page.getByRole("link", { name: "Skip to the content" }), "the link past the header");
  await tab(page, page.getByRole("link", { name: "Consumer Union" }), "the union's name");
  const big = page.getByRole("button", { name: "Confirm and join" });
  await tab(page, big, "the button");
  const area = await big.boundingBox();
  assert(area.width > 300 && area.height > 48, "the button is big");
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Welcome to the union");
  assert((await main.innerText()).includes("we are 1 member strong"), await main.innerText());
  assert.equal(await memberCount(), before + 1);
  const link = page.getByRole("textbox", { name: "Copy it and pass it on" });
  const own = await link.inputValue();
  assert(own.startsWith(`${base}/joinus`) && !own.endsWith(code) && links.includes(own), own);
  assert.equal(own, (await call("/v1/referral-link", { email: address })).inviteLink);
  for (const name of ["Send by e-mail", "Send as a text"]) {
    const href = await page.getByRole("link", { name }).getAttribute("href");
    assert(/^(mailto|sms):\?/.test(href) && decodeURIComponent(href).includes(own), href);
  }

  step("copy the link");
  const copy = page.getByRole("button", { name: "Copy the link" });
  if (withScripts) {
    await page.evaluate(() => navigator.clipboard.writeText("something else"));
    await copy.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("status").filter({ hasText: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), own);
  } else {
    assert.equal(await page.locator("#copy").count(), 1);
    assert(!(await copy.isVisible()), "a button that does nothing is not shown");
  }
  await look(page, "share");

  step("confirm again");
  await go(page, () => page.reload());
  await heading(page, "You have already confirmed");
  await go(page, confirm);
  await heading(page, "You have already confirmed");
  assert.equal(await link.inputValue(), own);
  await look(page, "share-again");
  assert.equal(await memberCount(), before + 1, "confirming again counts no more");

  await go(page, "/join");
  assert.match(await figures.innerText(), /1 member\s+already in/, "the next visitor sees the count");
}

// A mail's HTML part, and where its two links lead that act.
async function openHtml(page, address) {
  const letter = await openLetter(page, address);
  await go(page, () => letter.click());
  await go(page, () => page.getByRole("link", { name: "Show the HTML part" }).click());
  const confirm = await page.getByRole("link", { name: "Confirm my sign-up" }).getAttribute("href");
  const notMe = page.getByRole("link", { name: "This wasn't me" });
  return { confirm, notMe, decline: await notMe.getAttribute("href") };
}

// Somebody was signed up by an assistant and never asked for it.
async function notMeWalk(page) {
  const address = `bo-${size}-${scheme}@example.org`;
  await go(page, process.env.UNION_MAILBOX);
  await look(page, "mailbox-empty");
  await call("/v1/invite", { email: address, usState: "HI", categories: { travel: true } });

  step("follow the link of the mail");
  const { confirm, notMe, decline } = await openHtml(page, address);
  assert((await page.getByRole("article").innerText()).includes(partner), "the mail says who asked");
  await go(page, () => notMe.click());
  await heading(page, "Withdraw this sign-up?");
  const main = page.getByRole("main");
  assert((await main.innerText()).includes(partner) && (await main.innerText()).includes("b•••@e•••.org"));
  await look(page, "decline");

  step("nothing is withdrawn yet");
  await go(page, confirm);
  assert((await main.innerText()).includes(partner), "the page says who asked");
  await go(page, () => page.getByRole("link", { name: "This wasn't me" }).click());

  step("withdraw");
  const button = page.getByRole("button", { name: "Withdraw the sign-up" });
  for (const target of [page.getByRole("link", { name: "Skip" }), page.getByRole("link", { name: "Consumer" }), button]) {
    await tab(page, target, target);
  }
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "The sign-up is withdrawn");
  await look(page, "declined");
  await go(page, confirm, 410);
  await heading(page, "This sign-up was withdrawn");
  await look(page, "withdrawn");
  const late = await fetch(confirm, { method: "POST" });
  assert.equal(late.status, 410, "the link confirms no more");
  assert.equal(await memberCount(), 0);

  step("withdraw what was confirmed");
  const other = `cy-${size}-${scheme}@example.org`;
  await call("/v1/invite", { email: other });
  const mail = await openHtml(page, other);
  assert.notEqual(mail.decline, decline);
  assert.equal((await fetch(mail.confirm, { method: "POST" })).status, 200);
  await go(page, mail.decline);
  await go(page, () => button.click());
  await heading(page, "This sign-up was confirmed");
  await look(page, "too-late");
  assert.equal(await memberCount(), 1);

  step("other pages");
  await go(page, `${confirm.slice(0, -1)}${confirm.endsWith("0") ? "1" : "0"}`, 404);
  await heading(page, "We do not know this link");
  await look(page, "unknown");
  await go(page, "/nothing-here", 404);
  await heading(page, "There is nothing here");
  await look(page, "not-found");
  await go(page, "/docs");
  await look(page, "docs");
}

// Programs open every link of a mail before its reader does; some of them are browsers.
async function scannerWalk(page) {
  const address = "di@example.com";
  await call("/v1/invite", { email: address });
  const { confirm, decline } = await openHtml(page, address);
  const inHtml = await page.getByRole("link").evaluateAll((links) => links.map((link) => link.href));
  await go(page, () => page.goBack());
  const inText = await page.locator("pre.letter").getByRole("link").evaluateAll((links) => links.map((link) => link.href));
  // The header is on no page; a long line of it is folded.
  const folder = join(data, "mailbox");
  const [file] = readdirSync(folder).filter((name) => name.endsWith(".eml"));
  const headers = readFileSync(join(folder, file), "utf8").split("\r\n\r\n")[0].replace(/\r\n[ \t]+/g, " ");
  const unsubscribe = [...headers.matchAll(/^List-Unsubscribe: .*?<(http[^>]+)>/gim)].map((found) => found[1]);
  assert.equal(unsubscribe.length, 1, "a link to unsubscribe by");
  const links = new Set([...inHtml, ...inText, ...unsubscribe]);
  assert(links.has(confirm) && links.has(decline) && links.size >= 3, [...links].join(" "));

  for (const link of links) {
    step(`open ${link.replace(base, "").slice(0, 12)}…`);
    for (const method of ["GET", "HEAD", "GET", "HEAD"]) {
      const answer = await fetch(link, { method, redirect: "manual" });
      assert.equal(answer.status, 200, `${method} ${link}`);
      await answer.arrayBuffer();
    }
    for (let time = 0; time < 2; time += 1) await go(page, link);
  }

  step("nothing has changed");
  assert.equal(await memberCount(), 0);
  await go(page, decline);
  await heading(page, "Withdraw this sign-up?");
  await go(page, confirm);
  await heading(page, "Confirm your sign-up");
  await go(page, () => page.getByRole("button", { name: "Confirm and join" }).click());
  assert.equal(await memberCount(), 1, "and the reader can still confirm");
}

// The form has had its mail of the day (one, on this server) while somebody fills it in.
async function brakedWalk(page) {
  const address = `eve-${size}-${scheme}@example.com`;
  const email = page.getByRole("textbox", { name: "Your e-mail address" });
  const button = page.getByRole("button", { name: "Sign me up" });
  await go(page, "/join");
  assert.equal(await page.locator("script").count(), 0, "an open form needs no script");
  await email.fill(address);
  await page.getByRole("textbox", { name: /^Anything else/ }).fill("Kept.");

  step("meanwhile another takes the day's mail");
  const body = new URLSearchParams({ email: "first@example.com" });
  assert.equal((await fetch(`${base}/join`, { method: "POST", body })).status, 200);
  for (const deadline = Date.now() + 10_000; !(await (await fetch(`${base}/join`)).text()).includes("question"); ) {
    assert(Date.now() < deadline, "the form is braked within ten seconds");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  step("be asked for one more step");
  await go(page, () => button.click(), 400);
  const more = page.getByRole("alert");
  assert((await more.innerText()).includes("One more step") && (await isFocused(more)));
  assert.equal(await email.inputValue(), address);
  await look(page, "one-more-step");

  if (!withScripts) {
    step("without scripts it is taken, and may wait");
    assert((await page.content()).includes("Your browser runs no scripts"));
    await go(page, () => button.click());
    await heading(page, "Your sign-up is noted");
    await look(page, "may-wait");
    return;
  }

  step("press again, before the browser is done with its work or after");
  const pressed = performance.now();
  await email.focus();
  const navigated = page.waitForNavigation({ timeout: 60_000 });
  await page.keyboard.press("Enter");
  const status = (await navigated).status();
  step(`sent after ${((performance.now() - pressed) / 1000).toFixed(1)} s`);
  assert.equal(status, 200);
  await heading(page, "Check your inbox");
  await openLetter(page, address);

  step("whoever opens the form now is asked at once");
  await go(page, "/join");
  await look(page, "join-braked");
  // The work is done while the form is filled in.
  await page.waitForFunction(() => document.querySelector("input[name=answer]").value !== "", undefined, { timeout: 60_000 });
  await email.fill(`fay-${size}-${scheme}@example.com`);
  await go(page, () => button.click());
  await heading(page, "Check your inbox");
}

const { browser, page } = await openBrowser();
try {
  const walks = { join: joinWalk, "not-me": notMeWalk, scanner: scannerWalk, braked: brakedWalk, me: meWalk, erase: eraseWalk };
  await walks[way](page, { base, call, go, heading, isFocused, look, memberCount, openLetter, size, scheme, step, tab, withScripts });
} finally {
  await browser.close();
  for (const { what, answer } of complaints) {
    if (!meant.has(answer)) note("complaints.txt", `${way}, ${size}, ${scheme}: ${what}`);
  }
}
