// One walk through the pages in a browser; ./check runs it as `node walk.js WAY SIZE SCHEME [off]`, each time with a new
// server. What is wrong with a step ends the walk. What is wrong with a page (violations.txt) and what the browser complains
// of (complaints.txt) is written down for ./check to judge, and so is each page that was looked at (seen.txt).

import assert from "node:assert/strict";
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { campaignWalk } from "./campaign.js";
import { firstWalk } from "./first.js";
import { eraseWalk, meWalk } from "./me.js";
import { operatorWalk } from "./operator.js";
import { rewardsWalk } from "./rewards.js";
import { referenceWalk } from "./reference.js";
import { trustWalk, weightWalk } from "./trust.js";
import { turnsWalk } from "./turns.js";

const [way, size, scheme, scripts, language = "en"] = process.argv.slice(2);
const { UNION_URL: base, UNION_KEY: key, UNION_DATA: data, PAGES_BROWSER, PAGES_SCREENSHOTS } = process.env;
const withScripts = scripts !== "off";
const sizes = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const partner = "Acme Assistant";

const note = (file, line) => appendFileSync(file, `${line}\n`);
const step = (what) => console.log(`${(performance.now() / 1000).toFixed(1)} s: ${what}`);
const dollars = (amount) => `$${amount.toLocaleString("en-US")}`;

// --- The union, as a partner's program sees it -------------------------------------------------------------------------

// What bills are worth together, where one and its parts are not added up.
function headline(categories) {
  const parts = { car_insurance: "insurance", home_insurance: "insurance", hawaii_resort_stay: "travel", alaska_cruise: "travel" };
  const kinds = {};
  for (const { slug, annualSavings } of categories) {
    const kind = (kinds[parts[slug] ?? slug] ??= [0, 0]);
    kind[slug in parts ? 1 : 0] += annualSavings;
  }
  return Object.values(kinds).reduce((sum, [whole, part]) => sum + Math.max(whole, part), 0);
}

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
    locale: language === "es" ? "es-MX" : "en-US",
    timezoneId: "America/New_York",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(60_000);
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
    const url = request.url();
    // What is downloaded is no page, and the browser stays where it was.
    const isDownload = url.startsWith(`${base}/operator/rewards/batches/`);
    const left = (url === `${base}/icon.svg` || isDownload) && request.failure()?.errorText === "net::ERR_ABORTED";
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
  // The reference is for engineers, and in English alone.
  if (name !== "docs") assert.equal(await page.locator("html").getAttribute("lang"), language, `${name} is in ${language}`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(width <= sizes[size].width, `${name} is ${width} pixels wide`);
  if (size === "phone" && name !== "docs") await lookOnSmallPhone(page, name);
  if (!name.startsWith("operator") && name !== "docs") await weigh(page, name);
  if (PAGES_SCREENSHOTS) {
    const path = join(PAGES_SCREENSHOTS, `${name}-${size}-${scheme}-${language}${withScripts ? "" : "-without-scripts"}.png`);
    await page.screenshot({ path, fullPage: true });
  }
  await lookOnPaper(page, name);
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
  note("seen.txt", `${name} ${scheme} ${language}`);
}

// What a page costs somebody who opens it first, but for the typeface, which is fetched once and for all pages.
async function weigh(page, name) {
  const bytes = await page.evaluate(() => {
    const fetched = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return fetched.filter(({ name }) => !name.endsWith(".woff2")).reduce((sum, entry) => sum + entry.decodedBodySize, 0);
  });
  assert(bytes > 1000 && bytes < 60_000, `${name} weighs ${bytes} bytes`);
}

// On every phone, all of a page is there without scrolling sideways. Only the row of an operator's pages scrolls, and begins at this one.
async function lookOnSmallPhone(page, name) {
  const section = page.locator(".sections [aria-current]");
  const current = (await section.count()) ? await section.boundingBox() : null;
  assert(!current || (current.x >= 0 && current.x + current.width <= sizes.phone.width), `${name} begins at its own name`);
  for (const width of [320, sizes.phone.width]) {
    await page.setViewportSize({ ...sizes.phone, width });
    const faults = await page.evaluate(() => {
      const isWide = (element) => element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible";
      const scrolls = [...document.querySelectorAll("body *:not(input, select, textarea, .unseen, .elsewhere, .whole)")].filter(isWide);
      const wide = scrolls.filter((element) => !element.matches(".sections ul, thead, .letter, .own-text table, .home > span")).map((element) => element.outerHTML.slice(0, 200));
      if (document.documentElement.scrollWidth > innerWidth) wide.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
      return wide;
    });
    assert.deepEqual(faults, [], `${name} at ${width} pixels`);
  }
}

// A printed page has nothing to press, and no heading with nothing below it.
async function lookOnPaper(page, name) {
  await page.emulateMedia({ media: "print" });
  const faults = await page.evaluate(() => {
    const main = document.querySelector("main");
    if (!main) return [];
    const isSeen = (element) => element.checkVisibility() && !element.closest(".unseen, .elsewhere");
    const faults = [...main.querySelectorAll("button, .button, input, select")].filter(isSeen).map((found) => found.outerHTML);
    let above = [];
    const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    const close = (level) => {
      above.filter((one) => one.level >= level && !one.full).forEach((one) => faults.push(`nothing below “${one.text}”`));
      above = above.filter((one) => one.level < level);
    };
    while (texts.nextNode()) {
      const node = texts.currentNode;
      const inside = node.nodeType === Node.TEXT_NODE && node.parentElement.closest("h1, h2, h3, h4");
      if (node.nodeType === Node.ELEMENT_NODE && /^H[1-4]$/.test(node.tagName) && isSeen(node)) {
        close(Number(node.tagName[1]));
        above.push({ level: Number(node.tagName[1]), text: node.innerText, full: false });
      } else if (node.nodeType === Node.TEXT_NODE && !inside && node.data.trim() && isSeen(node.parentElement)) {
        above.forEach((one) => (one.full = true));
      }
    }
    close(1);
    return faults;
  });
  await page.emulateMedia({ media: null });
  assert.deepEqual(faults, [], `${name} on paper`);
}

const heading = async (page, text) => assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), text);

// A browser gives a new page's focus when it first draws it, which may be a moment after it has come.
async function isFocused(target) {
  for (const deadline = Date.now() + 60_000; ; ) {
    if (await target.evaluate((element) => element === document.activeElement)) return true;
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function tab(page, target, what) {
  await page.keyboard.press("Tab");
  const there = await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
  assert(await isFocused(target), `the key Tab leads to ${what}, not to ${there}`);
}

// The newest mail to an address, once it has come.
async function openLetter(page, address) {
  const newest = page.getByRole("main").getByRole("listitem").first();
  const deadline = Date.now() + 60_000;
  for (;;) {
    await go(page, process.env.UNION_MAILBOX);
    if ((await newest.count()) && (await newest.innerText()).includes(address)) return newest.getByRole("link");
    assert(Date.now() < deadline, `no mail to ${address} within a minute`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// --- The walks ---------------------------------------------------------------------------------------------------------

// A person joins, by a friend's link and without touching the mouse.
async function joinWalk(page) {
  const address = `ana-${size}-${scheme}@example.com`;
  const { code } = await call("/v1/referral-link", { email: "friend@example.net" });
  const { categories } = await call("/v1/negotiate-categories");
  const chosen = [categories[1], categories[4]];
  const before = await memberCount();

  if (withScripts) {
    await go(page, "/");
    await look(page, "join");
  }
  await go(page, `/joinus${code}`);
  await look(page, "invited");
  await page.getByText("You've been invited").waitFor();
  assert.equal((await page.locator(".figures").innerText()).trim(), "", "nobody is in yet, and the sample's figures are made up: none stands for itself");
  assert.deepEqual(await page.locator(".marks dt").allInnerTexts(), ["Who runs it", "What it costs", "How it earns"]);

  step("fill in the form with a mistake");
  const email = page.getByRole("textbox", { name: "Your email address" });
  const state = page.getByRole("combobox", { name: /^State you live in/ });
  const comments = page.getByRole("textbox", { name: /^Anything else/ });
  const box = ({ slug }) => page.locator(`input[name=${slug}]`);
  const more = page.locator(".more-bills summary");
  await tab(page, page.getByRole("link", { name: "Skip to the content" }), "the link past the header");
  await tab(page, page.getByRole("link", { name: "Consumer Union" }), "the union's name");
  await tab(page, page.getByRole("link", { name: "Español" }), "the other language");
  await tab(page, page.getByRole("banner").getByRole("link", { name: "Sign in" }), "the way to one's page");
  await tab(page, email, "the address");
  // Right to a browser, which would not send it otherwise, and wrong to the server.
  await page.keyboard.type("ana@example");
  await tab(page, page.getByRole("button", { name: "Sign me up", exact: true }), "the button");
  await tab(page, page.getByRole("link", { name: "What joining means" }), "what joining means");
  for (const name of ["privacy", "terms"]) await tab(page, page.getByRole("main").getByRole("link", { name }), name);
  // Four bills are shown at once; the others behind a line that the keyboard opens, too.
  const visible = [];
  for (const category of categories) if (await box(category).isVisible()) visible.push(category);
  assert.equal(visible.length, 4);
  const total = page.locator("#chosen-total");
  const ticked = [];
  for (const category of visible) {
    await tab(page, box(category), category.label);
    if (!chosen.includes(category)) continue;
    await page.keyboard.press("Space");
    ticked.push(category);
    if (withScripts) assert.equal(await total.innerText(), dollars(headline(ticked)), "the total follows the ticks");
  }
  await tab(page, more, "the other bills");
  await page.keyboard.press("Enter");
  const hidden = categories.filter((category) => !visible.includes(category));
  for (let i = 0; i < hidden.length; i += 1) await page.keyboard.press("Tab");
  const last = await page.evaluate(() => document.activeElement.name);
  assert(hidden.some(({ slug }) => slug === last), "every bill is reached by keyboard");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await tab(page, state, "the state");
  await page.keyboard.type("Calif");
  await tab(page, comments, "the comments");
  await page.keyboard.type("Rates <b>rise</b> & rise.");
  await tab(page, page.getByRole("button", { name: "Sign me up with these answers" }), "the button below the bills");
  await go(page, () => page.keyboard.press("Enter"));

  step("find the mistake beside its field and everything kept");
  assert((await page.title()).startsWith("Problem: "), await page.title());
  assert(await isFocused(email), "the field has the focus, so that a screen reader begins with it and what is wrong with it");
  const error = page.locator("#email-error");
  const told = "That address looks incomplete: did you mean ana@example.com?";
  assert.equal(await error.innerText(), told);
  assert.equal((await page.locator("body").innerText()).split(told).length, 2, "and is told once");
  const seen = await page.evaluate(() => {
    const { top, bottom } = document.getElementById("email-error").getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
  assert(seen, "and is in view");
  await page.getByRole("button", { name: "Yes, use ana@example.com" }).waitFor();
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
  assert.equal(await total.innerText(), dollars(headline(chosen)), "with scripts or without");
  await look(page, "mistake");

  step("a misspelled host is asked about, and the answer is theirs");
  await email.fill(`ana-${size}@gmial.com`);
  await go(page, () => page.keyboard.press("Enter"));
  const meant = page.getByRole("alert");
  assert((await meant.innerText()).includes(`Did you mean ana-${size}@gmail.com?`) && (await isFocused(meant)));
  await look(page, "meant");
  const yes = page.getByRole("button", { name: `Yes, use ana-${size}@gmail.com` });
  step("what is typed meanwhile is not thrown away unasked");
  await email.fill(`eva-${size}@example.com`);
  if (withScripts) {
    assert(!(await yes.isVisible()), "a suggestion goes once its field is edited");
  } else {
    await go(page, () => yes.click());
    assert((await meant.innerText()).includes(`You typed eva-${size}@example.com.`));
  }
  await email.fill(`ana-${size}@gmial.com`);
  await go(page, () => page.keyboard.press("Enter"));
  await go(page, () => yes.click());
  await heading(page, "Check your inbox");
  assert((await page.getByRole("main").innerText()).includes(`ana-${size}@gmail.com`));

  step("wrong address: change it, with everything kept");
  await go(page, () => page.getByRole("button", { name: "Change it" }).click());
  assert(await isFocused(page.getByRole("alert")));
  assert.equal(await email.inputValue(), `ana-${size}@gmail.com`);
  assert.equal(await comments.inputValue(), "Rates <b>rise</b> & rise.");
  for (const category of categories) assert.equal(await box(category).isChecked(), chosen.includes(category));
  assert.equal(await page.locator("input[name=refCode]").inputValue(), code);
  await look(page, "change");
  await email.fill("ana@example");
  await go(page, () => page.keyboard.press("Enter"));
  assert(await isFocused(email));

  step("put it right");
  await page.keyboard.press("Control+A");
  await page.keyboard.type(address);
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Check your inbox");
  const masked = "a•••@e•••.com";
  const main = page.getByRole("main");
  assert((await main.innerText()).includes(address), "the address as it was typed, to the one who typed it");
  await look(page, "check-inbox");
  assert.equal(await memberCount(), before, "nobody is a member by the form alone");
  await go(page, () => page.reload());
  await heading(page, "Check your inbox");
  assert((await main.innerText()).includes(address) && !page.url().includes("ana"), "loaded again, with nothing to send again");

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
  const button = page.getByRole("link", { name: "Review and confirm" });
  const confirm = await button.getAttribute("href");
  assert(confirm.startsWith(`${base}/confirm/`) && links.includes(confirm), "both parts have the link");
  await go(page, () => button.click());

  step("see what is confirmed");
  await heading(page, "Confirm your sign-up");
  const shown = await main.innerText();
  for (const text of [masked, "our form", "California", "Rates <b>rise</b> & rise.", dollars(headline(chosen)), "f•••@e•••.net"]) {
    assert(shown.includes(text), text);
  }
  assert(!(await page.content()).includes(address), "the address is masked");
  const rows = (await main.locator(".ledger").getByRole("listitem").allInnerTexts()).map((row) => row.split(/\s*\n\s*/));
  assert.deepEqual(rows, chosen.map(({ label, annualSavings }) => [label, dollars(annualSavings)]));
  await look(page, "confirm");
  await page.reload();
  await heading(page, "Confirm your sign-up");
  assert.equal(await memberCount(), before, "looking confirms nothing");

  step("confirm");
  await tab(page, page.getByRole("link", { name: "Skip to the content" }), "the link past the header");
  await tab(page, page.getByRole("link", { name: "Consumer Union" }), "the union's name");
  await tab(page, page.getByRole("link", { name: "Español" }), "the other language");
  await tab(page, page.getByRole("banner").getByRole("link", { name: "Sign in" }), "the way to one's page");
  await tab(page, main.getByRole("link", { name: `${base}/me` }), "where they see all of it");
  const big = page.getByRole("button", { name: "Confirm and join" });
  await tab(page, big, "the button");
  const area = await big.boundingBox();
  assert(area.width > 300 && area.height > 48, "the button is big");
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, "Welcome to the union");
  assert(!(await main.innerText()).includes("1 member"), "one member is no figure to show off");
  assert.equal(await memberCount(), before + 1);
  const link = page.getByRole("textbox", { name: "Share this link with friends" });
  const own = await link.inputValue();
  assert(own.startsWith(`${base}/joinus`) && !own.endsWith(code) && links.includes(own), own);
  assert.equal(own, (await call("/v1/referral-link", { email: address })).inviteLink);
  for (const name of ["Email", "Text", "WhatsApp"]) {
    const href = await page.getByRole("link", { name, exact: true }).getAttribute("href");
    assert(/^(mailto:|sms:|https:\/\/wa\.me\/)\?/.test(href) && decodeURIComponent(href).includes(own), href);
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
  await heading(page, "Welcome to the union");
  await go(page, confirm);
  await heading(page, "You've already confirmed");
  assert.equal(await link.inputValue(), own);
  await look(page, "share-again");
  assert.equal(await memberCount(), before + 1, "confirming again counts no more");

  const cut = await link.evaluate((field) => field.scrollHeight > field.clientHeight + 2 || field.scrollWidth > field.clientWidth + 2);
  assert(!cut, "the whole link is seen");
  assert(!(await main.innerText()).includes(own), "and stands nowhere but in its field");

  step("whoever is signed in is greeted");
  await go(page, "/join");
  await heading(page, "Welcome back");
  assert.equal(await page.locator("form").count(), 0);
  await look(page, "greeting");
  await go(page, () => page.getByRole("link", { name: "Go to your page" }).click());
  await heading(page, "Your page");
}

// A mail's HTML part, and where its two links lead that act.
async function openHtml(page, address) {
  const letter = await openLetter(page, address);
  await go(page, () => letter.click());
  await go(page, () => page.getByRole("link", { name: "Show the HTML part" }).click());
  const confirm = await page.getByRole("link", { name: "Review and confirm" }).getAttribute("href");
  const notMe = page.getByRole("link", { name: "This wasn't me" });
  return { confirm, notMe, decline: await notMe.getAttribute("href") };
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
  // One of the links was to the same page in Spanish, which a browser remembers for its reader.
  await page.context().clearCookies({ name: "union-language" });
  await go(page, decline);
  await heading(page, "Withdraw this sign-up?");
  await go(page, confirm);
  await heading(page, "Confirm your sign-up");
  await go(page, () => page.getByRole("button", { name: "Confirm and join" }).click());
  assert.equal(await memberCount(), 1, "and the reader can still confirm");
}

// The form has had its mail of the day (one, on this server) while somebody fills it in.
async function throttledWalk(page) {
  const address = `eve-${size}-${scheme}@example.com`;
  const email = page.getByRole("textbox", { name: "Your email address" });
  const button = page.getByRole("button", { name: "Sign me up", exact: true });
  await go(page, "/join");
  assert.equal(await page.locator("script[src='/proof.js']").count(), 0, "an open form asks for no proof");
  await email.fill(address);
  await page.locator("details.more > summary").click();
  await page.getByRole("textbox", { name: /^Anything else/ }).fill("Kept.");

  step("meanwhile another takes the day's mail");
  const body = new URLSearchParams({ email: "first@example.com" });
  assert.equal((await fetch(`${base}/join`, { method: "POST", body })).status, 200);
  for (const deadline = Date.now() + 60_000; !(await (await fetch(`${base}/join`)).text()).includes("question"); ) {
    assert(Date.now() < deadline, "the form is throttled within a minute");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  step("be asked for one more step");
  await go(page, () => button.click());
  const more = page.getByRole("alert");
  assert((await more.innerText()).includes("One more step") && (await isFocused(more)));
  assert.equal(await email.inputValue(), address);
  await look(page, "one-more-step");

  if (!withScripts) {
    step("without scripts it is taken, and may wait");
    assert((await page.content()).includes("JavaScript is off in your browser"));
    await go(page, () => button.click());
    await heading(page, "We have your sign-up");
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
  await look(page, "join-throttled");
  // The work is done while the form is filled in.
  await page.waitForFunction(() => document.querySelector("input[name=answer]").value !== "", undefined, { timeout: 60_000 });
  await email.fill(`fay-${size}-${scheme}@example.com`);
  await go(page, () => button.click());
  await heading(page, "Check your inbox");
}

const { browser, page } = await openBrowser();
try {
  const walks = { campaign: campaignWalk, first: firstWalk, join: joinWalk, trust: trustWalk, weight: weightWalk, scanner: scannerWalk, throttled: throttledWalk, me: meWalk, erase: eraseWalk, operator: operatorWalk, rewards: rewardsWalk, reference: referenceWalk, turns: turnsWalk };
  const tools = { base, call, data, go, heading, isFocused, language, look, meant, memberCount, openLetter, partner, size, scheme, step, tab, withScripts };
  await walks[way](page, tools);
} finally {
  await browser.close();
  for (const { what, answer } of complaints) {
    if (!meant.has(answer)) note("complaints.txt", `${way}, ${size}, ${scheme}: ${what}`);
  }
}
