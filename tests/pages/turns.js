// After every form that people send: loaded again, left by Back and come back to, the page is the same, and nothing is sent again.
// In English and in Spanish.

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { speaker } from "./trust.js";

const slug = "internet-2099";
const definition = `slug = "${slug}"
category = "internet"
states = ["CA", "OR"]
gather_until = 2099-01-31
[text.en]
title = "Home internet, winter 2099"
summary = "Faster for less."
[text.es]
title = "Internet en casa, invierno de 2099"
summary = "Más rápido por menos."
`;

export async function turnsWalk(page, tools) {
  const { base, call, data, go, heading, isFocused, language, openLetter, size, scheme, step } = tools;
  const say = speaker(language);
  const main = page.getByRole("main");
  const who = (name) => `${name}-${size}-${scheme}-${language}@example.com`;
  const button = (action, more = "") => page.locator(`form[action^="${action}"] button${more}`).first();
  const email = page.locator("#email");
  const records = new DatabaseSync(join(data, "unionhall.db"));
  records.exec("PRAGMA busy_timeout = 60000");
  const posts = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(request.url()));

  const seen = async () => ({ url: page.url(), text: await main.innerText() });
  const cameBy = () => page.evaluate(() => performance.getEntriesByType("navigation")[0].type);
  // Sends a form, and holds the page after it to what no browser asks to send again. `shows` is true of it each time.
  const turn = async (what, press, shows) => {
    step(what);
    const sent = posts.length;
    const [response] = await Promise.all([page.waitForNavigation(), press()]);
    assert.equal(posts.length, sent + 1, `${what} is sent once`);
    const form = response.request().redirectedFrom();
    assert.deepEqual([response.status(), response.request().method(), form?.method()], [200, "GET", "POST"], what);
    assert(!decodeURIComponent(page.url()).includes("@"), `${page.url()} holds no address`);
    await shows();
    const first = await seen();
    assert.equal((await page.reload()).request().method(), "GET", `${what}, loaded again`);
    assert.deepEqual([await cameBy(), await seen()], ["reload", first], `${what}, loaded again`);
    await shows();
    const back = await page.goBack();
    assert((back?.request().method() ?? "GET") === "GET" && !page.url().startsWith("chrome-error"), `${what}, Back`);
    const forth = await page.goForward();
    assert.equal(forth?.request().method() ?? "GET", "GET", `${what}, Forward`);
    assert.deepEqual([await cameBy(), await seen()], ["back_forward", first], `${what}, Back and Forward`);
    await shows();
    assert.equal(posts.length, sent + 1, `${what} is not sent again`);
  };
  const isTold = (text) => async () => assert((await main.innerText()).includes(text), `${text}, in ${await main.innerText()}`);
  const isCalled = (text) => () => heading(page, text);
  // A link of the newest mail to somebody, once it has come; read in a window of its own.
  const linkOf = async (address, wanted) => {
    const other = await page.context().newPage();
    for (const deadline = Date.now() + 60_000; ; ) {
      await (await openLetter(other, address)).click();
      await other.waitForURL(/mailbox\/./);
      const links = await other.locator("pre.letter").getByRole("link").evaluateAll((all) => all.map((one) => one.href));
      const [link, text] = [links.find((one) => one.includes(wanted)), await other.locator("pre.letter").innerText()];
      if (link) {
        await other.close();
        return { link, text };
      }
      assert(Date.now() < deadline, `no mail with ${wanted} within a minute`);
    }
  };

  records.prepare("INSERT INTO campaigns (slug, definition, state, gather_until, created_at) VALUES (?, ?, 'gathering', 47147, 1)").run(slug, definition);
  records.exec("INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) SELECT id, 1, 'operator', '', 'gathering', '' FROM campaigns");
  for (const deadline = Date.now() + 60_000; !(await (await fetch(`${base}/campaigns.json`)).json()).campaigns.length; ) {
    assert(Date.now() < deadline, "the pages know the campaign within a minute");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }

  const ana = who("ana");
  await go(page, "/join");
  await email.fill("ana@example");
  await turn("a mistake in the form", () => page.keyboard.press("Enter"), async () => assert(await isFocused(email), "the mistake has the focus"));
  await email.fill(`ana-${size}@gmial.com`);
  await turn("a misspelled host", () => page.keyboard.press("Enter"), isTold("gmail.com"));
  await turn("what was meant", () => page.locator("button[name=instead]").first().click(), isCalled(say("check_inbox.heading")));
  await turn("change it", () => page.locator("form:has(input[name=change]) button").click(), isTold(say("join.change")));
  await email.fill(ana);
  await turn("sign up", () => page.keyboard.press("Enter"), isTold(ana));
  await go(page, (await linkOf(ana, "/confirm/")).link);
  await turn("confirm", () => button("/confirm/").click(), isCalled(say("share.heading")));
  await isTold(say("campaign.welcome"))();

  const state = page.locator(`#state-${slug}`);
  await state.selectOption("NY");
  await turn("a state that it is not for", () => button("/campaigns/", "[value=in]").click(), isTold(say("campaign.refused")));
  await state.selectOption("OR");
  await turn("count in", () => button("/campaigns/", "[value=in]").click(), isTold(say("campaign.done_in_mailed")));

  step("leaving asks for a sign-in by mail");
  await go(page, "/me/leave");
  await heading(page, say("sign_in.first"));
  const code = page.locator("#code");
  await turn("ask for a code", () => button("/me/sign-in").click(), isTold(ana));
  const others = speaker(language === "en" ? "es" : "en");
  await go(page, () => page.getByRole("link", { name: others("site.language"), exact: true }).click());
  await heading(page, others("sign_in.sent_title"));
  assert((await code.isVisible()) && (await main.innerText()).includes(ana), "in another language, too");
  await go(page, () => page.getByRole("link", { name: say("site.language"), exact: true }).click());
  await code.fill("0000-0000");
  await turn("a wrong code", () => page.keyboard.press("Enter"), async () => assert(await isFocused(code), "the mistake has the focus"));
  await code.fill(/[0-9A-Z]{4}-[0-9A-Z]{4}/.exec((await linkOf(ana, "/me/enter/")).text)[0]);
  await turn("the right code", () => page.keyboard.press("Enter"), isCalled(say("own.leave_heading")));

  const unfold = () => page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  const onOwnPage = async () => {
    await go(page, "/me");
    await unfold();
  };
  await onOwnPage();
  await page.locator("#usState").evaluate((list) => list.add(new Option("XX", "XX", true, true)));
  await page.locator("#otherComments").fill("Kept <b>as typed</b>.");
  await turn("a mistake in the answers", () => button("/me/answers").click(), async () => {
    await isTold(say("mistake.state"))();
    assert.equal(await page.locator("#otherComments").inputValue(), "Kept <b>as typed</b>.");
  });
  await page.locator("#usState").selectOption("OR");
  await turn("the answers", () => button("/me/answers").click(), isTold(say("own.answers_saved")));
  for (const form of ["/me/mail", "/me/language"]) {
    await unfold();
    await turn(form, () => button(form).click(), isTold(say(form === "/me/mail" ? "own.mail_saved" : "own.language_saved")));
  }
  await unfold();
  await turn("sign out", () => button("/me/sign-out").click(), isTold(say("sign_in.signed_out")));
  await email.fill("ana@example");
  await turn("a mistake in the sign-in", () => page.keyboard.press("Enter"), async () => assert(await isFocused(email), "the mistake has the focus"));

  const ben = who("ben");
  await call("/v1/invite", { email: ben, usState: "OR", categories: { internet: true } });
  await go(page, (await linkOf(ben, "/not-me/")).link);
  await turn("this wasn't me", () => button("/not-me/").click(), isCalled(say("decline.done_heading")));
  await turn("what is not to be sent", () => button("/not-me/", ".second").click(), isTold(say("decline.saved")));
  await unfold();
  await turn("it was me", () => page.locator("details.undo button").click(), isCalled(say("share.heading")));
  records.exec("INSERT INTO campaign_mailings (campaign_id, kind, started_at) SELECT id, 'campaign_opened', 1 FROM campaigns");
  await go(page, (await linkOf(ben, "/unsubscribe/")).link);
  await turn("unsubscribe", () => button("/unsubscribe/").click(), isCalled(say("unsubscribe.done")));
  records.close();
}
