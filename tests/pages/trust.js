// The paths that people take twice, backwards and by mistake, in English and in Spanish: a code that is nobody's, "this wasn't me" and
// taking it back, a member who is signed up again, a link that came too late, the pages of trust, and one's own page in one's own
// language. Every text is looked up in languages/, so that the walk is the same in each.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PNG } from "pngjs";

// A language's table: "section.name" to text. Of TOML it reads what is used there.
export function readTexts(language) {
  const texts = {};
  let section = "";
  for (const line of readFileSync(join(process.env.PAGES_LANGUAGES, `${language}.toml`), "utf8").split("\n")) {
    const heading = /^\[(.+)\]$/.exec(line);
    if (heading) section = `${heading[1]}.`;
    const found = /^(\w+) = (?:'''(.*)'''|"(.*)")$/.exec(line);
    if (found) texts[section + found[1]] = found[2] ?? JSON.parse(`"${found[3]}"`);
  }
  return texts;
}

// Its text as a reader sees it, with its holes filled.
export function speaker(language) {
  const texts = readTexts(language);
  return (name, holes = {}) => {
    assert(texts[name], `${language} has ${name}`);
    const filled = texts[name].replace(/\{(\w+)\}/g, (_, hole) => {
      assert(hole in holes, `${name} has a hole for ${hole}`);
      return holes[hole];
    });
    return filled.replace(/<br>/g, "\n").replace(/<[^>]+>/g, "");
  };
}

export async function trustWalk(page, tools) {
  const { base, call, data, go, heading, isFocused, language, look, memberCount, openLetter, partner, size, scheme, step, tab } = tools;
  const union = "Consumer Union";
  const say = speaker(language);
  const main = page.getByRole("main");
  const shows = async (text) => assert((await main.innerText()).includes(text), `${text}, in ${await main.innerText()}`);
  const button = (name) => page.getByRole("button", { name, exact: true });
  const box = (name) => page.getByRole("checkbox", { name, exact: true });
  const email = page.getByRole("textbox", { name: say("join.email") });
  const who = (name) => `${name}-${size}-${scheme}@example.com`;
  // The newest mail, whose subject is in the reader's language; its links.
  const links = async (address, subject) => {
    for (const deadline = Date.now() + 60_000; ; ) {
      const letter = await openLetter(page, address);
      if ((await letter.innerText()) === subject) {
        await go(page, () => letter.click());
        const found = await page.locator("pre.letter").getByRole("link").evaluateAll((all) => all.map((link) => link.href));
        return { confirm: found.find((link) => link.includes("/confirm/")), decline: found.find((link) => link.includes("/not-me/")), found };
      }
      assert(Date.now() < deadline, `no mail "${subject}" to ${address}, but "${await letter.innerText()}"`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };

  step("the browser's own language, another by its link, and back");
  await go(page, "/join");
  await heading(page, say("join.headline"));
  const other = language === "en" ? "es" : "en";
  const others = speaker(other);
  await go(page, () => page.getByRole("link", { name: others("site.language") }).click());
  await heading(page, others("join.headline"));
  await go(page, "/terms");
  await heading(page, others("terms.heading"));
  await go(page, () => page.getByRole("link", { name: say("site.language"), exact: true }).click());
  await heading(page, say("terms.heading"));

  step("a code that is nobody's is told before the form is sent");
  for (const path of ["/joinuszzzzzzzzzzzz", "/joinus", "/joinus12"]) {
    await go(page, path);
    await shows(say("join.unknown_code"));
    assert.equal(await page.locator("input[name=refCode]").count(), 0);
  }
  await look(page, "unknown-code");
  const { code } = await call("/v1/referral-link", { email: "friend@example.net" });

  step("a friend's code is kept while somebody looks around, and however its link was pasted");
  const keepsCode = async () => assert.equal(await page.locator("input[name=refCode]").inputValue(), code, page.url());
  const footer = (name) => page.getByRole("contentinfo").getByRole("link", { name: say(`site.${name}`), exact: true });
  for (const path of [`/joinus${code}.`, `/joinus${code}/`, `/JOINUS${code.toUpperCase()}`]) {
    await go(page, path);
    await keepsCode();
  }
  for (const name of ["about", "privacy", "terms"]) await go(page, () => footer(name).click());
  await go(page, () => main.getByRole("link", { name: say("site.join"), exact: true }).last().click());
  await keepsCode();
  await go(page, () => footer("campaigns").click());
  await go(page, () => page.getByRole("link", { name: others("site.language"), exact: true }).click());
  await go(page, () => page.getByRole("link", { name: say("site.language"), exact: true }).click());
  await go(page, () => page.getByRole("link", { name: union, exact: true }).click());
  await keepsCode();
  await go(page, "/about/");
  assert.equal(new URL(page.url()).pathname, "/about");

  step("half an address is offered whole");
  await go(page, `/joinus${code}`);
  await email.fill("maria@gmail");
  await go(page, () => page.keyboard.press("Enter"));
  await button(say("join.meant_yes", { suggestion: "maria@gmail.com" })).waitFor();
  assert(await isFocused(email));
  await keepsCode();

  step("sign up, and find the mail in the same language");
  const ana = who("ana");
  await email.fill(ana);
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, say("check_inbox.heading"));
  await shows(ana);
  await look(page, "check-inbox-trust");
  await go(page, () => page.getByRole("link", { name: others("site.language"), exact: true }).click());
  await heading(page, others("check_inbox.heading"));
  await shows(ana);
  await go(page, () => page.getByRole("link", { name: say("site.language"), exact: true }).click());
  await go(page, () => page.getByRole("link", { name: union, exact: true }).click());
  await keepsCode();
  const mail = await links(ana, say("mail.confirm_subject", { union }));
  await go(page, mail.confirm);
  await heading(page, say("confirm.heading"));
  await shows("f•••@e•••.net");
  await look(page, "confirm-trust");

  step("this wasn't me: nothing happens by looking");
  await go(page, () => main.locator("a[href^='/not-me/']").click());
  await heading(page, say("decline.heading"));
  for (const choice of await page.getByRole("checkbox").all()) assert(!(await choice.isChecked()), "nothing is silenced unasked");
  await look(page, "decline");
  await go(page, mail.confirm);
  await heading(page, say("confirm.heading"));

  step("withdraw by keyboard, ask for silence, and see what is true");
  await go(page, mail.decline);
  const silence = box(say("decline.no_mail"));
  for (const target of [
    page.getByRole("link", { name: say("site.skip") }), page.getByRole("link", { name: union, exact: true }),
    page.getByRole("link", { name: others("site.language") }),
    page.getByRole("banner").getByRole("link", { name: say("site.sign_in") }), silence, button(say("decline.button")),
  ]) {
    await tab(page, target, target);
    if (target === silence) await page.keyboard.press("Space");
  }
  await go(page, () => page.keyboard.press("Enter"));
  await heading(page, say("decline.done_heading"));
  assert(await page.getByRole("checkbox").isChecked(), "the silence that was asked for");
  await look(page, "declined");
  await go(page, mail.confirm, 410);
  await heading(page, say("outcome.declined"));
  await look(page, "withdrawn");

  step("it was me after all: confirmed, and mail comes again");
  await go(page, () => page.getByRole("link", { name: say("outcome.declined_action") }).click());
  await heading(page, say("decline.done_heading"));
  assert(!(await button(say("decline.undo_button")).isVisible()), "nobody joins by a stray tap");
  await page.getByText(say("decline.undo")).click();
  for (const line of ["lead", "point_1", "point_2", "point_3", "point_4"]) await shows(say(`notice.${line}`, { union }));
  await main.getByRole("link", { name: `${base}/me`, exact: true }).waitFor();
  await go(page, () => button(say("decline.undo_button")).click());
  await heading(page, say("share.heading"));
  assert.equal(await memberCount(), 1);
  await look(page, "taken-back");
  await go(page, mail.decline);
  await heading(page, say("decline.confirmed_heading"));
  assert(!(await box(say("decline.no_mail")).isChecked()), "the silence is lifted");
  await look(page, "too-late");

  step("a member is signed up again: only that request is withdrawn");
  const record = new DatabaseSync(join(data, "unionhall.db"));
  record.exec("PRAGMA busy_timeout = 60000; UPDATE mailboxes SET sent_1 = NULL, sent_2 = NULL, sent_3 = NULL, sent_4 = NULL, last_mail_id = NULL");
  await call("/v1/invite", { email: ana });
  const again = await links(ana, say("mail.member_subject", { union }));
  await go(page, again.found.find((link) => link.endsWith(`?lang=${other}`)));
  await heading(page, others("mail.member_heading"));
  await page.context().clearCookies({ name: "union-language" });
  await go(page, again.decline);
  await heading(page, say("decline.member_heading"));
  await shows(say("decline.member_ask"));
  await look(page, "decline-member");
  await box(say("decline.no_partner", { partner })).check();
  await go(page, () => button(say("decline.member_button")).click());
  await heading(page, say("decline.member_done_heading"));
  assert(await box(say("decline.no_partner", { partner })).isChecked());
  assert(!(await box(say("decline.no_again")).isChecked()) && !(await box(say("decline.no_mail")).isChecked()));
  assert.equal(await button(say("decline.undo_button")).count(), 0, "a member has nothing to confirm");
  assert.equal(await memberCount(), 1);
  await look(page, "declined-member");
  await box(say("decline.no_partner", { partner })).uncheck();
  await go(page, () => button(say("decline.save")).click());
  await page.getByRole("status").filter({ hasText: say("decline.saved") }).waitFor();
  assert(!(await box(say("decline.no_partner", { partner })).isChecked()));

  step("a link that came too late brings the form back, with answers and referral");
  const ben = who("ben");
  // A browser that is signed in is greeted, and not asked to sign up.
  await page.context().clearCookies({ name: "union" });
  await go(page, `/joinus${code}`);
  await email.fill(ben);
  await page.locator(".more-bills > summary").click();
  await page.locator("input[name=mortgage]").check();
  await page.locator("details.more > summary").click();
  await page.locator("#usState").selectOption("NY");
  await page.locator("#otherComments").fill("Ring after six.");
  await go(page, () => button(say("join.button")).click());
  const late = await links(ben, say("mail.confirm_subject", { union }));
  record.exec(`UPDATE sign_ups SET expires_at = 0 WHERE person_id = (SELECT id FROM people WHERE email = '${ben}')`);
  await go(page, late.confirm, 410);
  const alert = page.getByRole("alert");
  assert((await alert.innerText()).includes(say("join.expired")) && (await isFocused(alert)));
  assert.equal(await email.inputValue(), ben);
  assert(await page.locator("input[name=mortgage]").isChecked());
  assert.equal(await page.locator("#usState").inputValue(), "NY");
  assert.equal(await page.locator("#otherComments").inputValue(), "Ring after six.");
  assert.equal(await page.locator("input[name=refCode]").inputValue(), code, "who invited is not forgotten");
  await look(page, "expired");
  await go(page, late.decline);
  await heading(page, say("decline.lapsed_heading"));
  await look(page, "decline-lapsed");
  await go(page, () => main.getByRole("link").first().click(), 410);
  await go(page, () => button(say("join.button")).click());
  await heading(page, say("check_inbox.heading"));

  step("one's own page in one's own language, and in another from then on");
  record.exec("UPDATE mailboxes SET sent_1 = NULL, sent_2 = NULL, sent_3 = NULL, sent_4 = NULL, last_mail_id = NULL");
  await page.context().clearCookies({ name: "union-language" });
  // Joining has signed them in; here they come by mail.
  await page.context().clearCookies({ name: "union" });
  await go(page, "/me");
  await page.getByRole("textbox", { name: say("sign_in.email") }).fill(ana);
  await go(page, () => button(say("sign_in.button")).click());
  const way = await links(ana, say("mail.sign_in_subject", { union }));
  await go(page, way.found.find((link) => link.includes("/me/enter/")));
  await heading(page, say("sign_in.enter_heading"));
  await go(page, () => button(say("sign_in.enter_button")).click());
  await heading(page, say("own.heading"));
  await look(page, "me-trust");
  await page.locator("details.fold > summary", { hasText: say("own.mail") }).click();
  await page.getByRole("combobox", { name: say("own.language") }).selectOption(other);
  await go(page, () => page.locator("form[action='/me/language'] button").click());
  await page.getByRole("status").filter({ hasText: others("own.language_saved") }).waitFor();
  await heading(page, others("own.heading"));
  assert.equal(record.prepare("SELECT language FROM people WHERE email = ?").get(ana).language, other);
  await go(page, "/join");
  await heading(page, others("join.greeting"));
  await page.context().clearCookies({ name: "union" });
  await go(page, "/join");
  await heading(page, say("join.headline"));
  record.close();

  step("the pages of trust");
  for (const name of ["about", "privacy", "terms"]) {
    await go(page, () => page.getByRole("contentinfo").getByRole("link", { name: say(`site.${name}`), exact: true }).click());
    assert.equal(new URL(page.url()).pathname, `/${name}`);
    await heading(page, say(`${name}.heading`, { union }));
    await look(page, name);
  }
  await go(page, "/privacy");
  await shows(say("privacy.long_left", { left: say("site.days", { count: 365 }) }));

  step("links that lead nowhere");
  await go(page, `${mail.confirm.slice(0, -1)}${mail.confirm.endsWith("0") ? "1" : "0"}`, 404);
  await heading(page, say("outcome.unknown"));
  await look(page, "unknown");
  await go(page, "/nothing-here", 404);
  await heading(page, say("outcome.not_found"));
  await look(page, "not-found");
  if (language === "en") return;
  step("what chats show of a link in that language");
  await go(page, `/joinus${code}`);
  const property = (name) => page.locator(`meta[property="og:${name}"]`).getAttribute("content");
  assert.equal(await property("title"), say("join.card_title_invited", { union }));
  const card = await fetch(await property("image"));
  const { width, height } = PNG.sync.read(Buffer.from(await card.arrayBuffer()));
  assert.deepEqual([card.headers.get("content-type"), width, height], ["image/png", 1200, 630]);
}

// How much the page to join on weighs, whole: what a phone loads before it can be read.
export async function weightWalk(page, { base, go, step }) {
  let bytes = 0;
  const loaded = [];
  page.on("response", async (response) => {
    const { length } = await response.body();
    bytes += length;
    loaded.push(`${new URL(response.url()).pathname} ${length}`);
  });
  await go(page, "/join");
  await page.waitForLoadState("networkidle");
  step(`the page to join on: ${bytes} bytes in ${loaded.join(", ")}`);
  assert(loaded.some((one) => one.startsWith("/heading.woff2")), "with the typeface");
  assert(bytes < 60_000, `${bytes} bytes`);
  const fonts = await page.evaluate(() => [...document.fonts].filter((font) => font.status === "loaded").map((font) => font.family));
  assert.deepEqual(fonts, ["Union Heading"]);
  for (const [path, type] of [["/favicon.ico", "image/vnd.microsoft.icon"], ["/icon.png", "image/png"], ["/heading-licence.txt", "text/plain; charset=utf-8"]]) {
    const answer = await fetch(base + path);
    assert.deepEqual([answer.status, answer.headers.get("content-type")], [200, type], path);
  }
  assert((await (await fetch(`${base}/heading-licence.txt`)).text()).includes("SIL OPEN FONT LICENSE"));
}
