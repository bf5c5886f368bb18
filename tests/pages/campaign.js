// A stranger meets a campaign, joins, counts in, and decides about its offer; in the wrong order, too. In English and in Spanish.

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { inView } from "./me.js";
import { speaker } from "./trust.js";

export const slug = "internet-2099";
export const definition = `slug = "${slug}"
category = "internet"
states = ["CA", "OR"]
gather_until = 2099-01-31
[text.en]
title = "Home internet, winter 2099"
summary = "Faster for less: one price for all who are in."
[text.es]
title = "Internet en casa, invierno de 2099"
summary = "Más rápido por menos: un precio para todos."
`;
// The longest label of a button is that of an offer that gives addresses.
const offer = (states) => JSON.stringify({
  number: 1, units: 1, uses_a_year: null,
  bid: {
    supplier: "Example Fiber", steps: [{ from_month: 1, price: { cents: 4800, per: "month" } }], term_months: 12, exit_fee_cents: 0,
    fees: [{ name: "modem", cents: 500, per: "month" }], states, new_customers_only: false, needs_members: 500, valid_until: "2099-03-31",
    commission_cents: 2500, evidence: null,
  },
  benchmark: { price: { cents: 6800, per: "month" }, source: "FCC urban rate survey", url: "https://fcc.example/rates", date: "2026-12-01" },
  decide_by: "2099-03-15", open_until: null, complaints: "help@fiber.example", handover: "address",
  text: {
    en: { how: "Order with the code that you are mailed.", details: "Installation is free." },
    es: { how: "Haz tu pedido con el código que te llega.", details: "La instalación es gratis." },
  },
});

// Somebody has a group that is due, one that is paid, and two who count and wait.
export function earn(records, slug, address) {
  const run = (sql, ...values) => records.prepare(sql).run(...values);
  run("UPDATE campaigns SET active_at = 1, reward_cents = 10000, group_size = 5, max_groups = 10, hold_days = 30 WHERE slug = ?", slug);
  run("UPDATE people SET account = 'account1' WHERE email_normalized = ?", address);
  run("INSERT INTO payout_batches (created_at, who, filled_at, written_at) VALUES (1, 'operator', 1, 1)");
  run("INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state) SELECT 1, 'account1-1-1', 'account1', id, 10000, 1, 'out' FROM campaigns WHERE slug = ?", slug);
  run("INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at) SELECT p.id, c.id, 'accrued', 1 FROM people p, campaigns c WHERE p.email_normalized = ? AND c.slug = ?", address, slug);
  run("INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at) SELECT c.id, 1000 + n, p.id, 1 FROM people p, campaigns c, (SELECT 1 AS n UNION SELECT 2) WHERE p.email_normalized = ? AND c.slug = ?", address, slug);
  run("INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why) SELECT 'account1', id, 'accrual', 10000, 1, 'rules', 'group' FROM campaigns WHERE slug = ?", slug);
}

export async function campaignWalk(page, tools) {
  const { base, data, go, heading, isFocused, language, look, memberCount, openLetter, size, scheme, step } = tools;
  const say = speaker(language);
  const main = page.getByRole("main");
  const shows = async (text) => assert((await main.innerText()).includes(text), `${text}, in ${await main.innerText()}`);
  const button = (name) => page.getByRole("button", { name, exact: true });
  const link = (name) => page.getByRole("link", { name, exact: true });
  // Beside other campaigns its name is part of the button's, unseen: the browser puts a space before it.
  const listed = (role, name) => page.getByRole(role, { name: `${name} : ${title}`, exact: true });
  const title = /title = "(.*)"/.exec(definition.split(`[text.${language}]`)[1])[1];
  const records = new DatabaseSync(join(data, "unionhall.db"));
  records.exec("PRAGMA busy_timeout = 60000");
  // Takes the campaign a step further, and waits until the pages know.
  const to = async (state) => {
    records.prepare("UPDATE campaigns SET state = ?, closed_at = ?").run(state, state === "cancelled" ? 1794743200000 : null);
    records.prepare("INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) SELECT id, ?, 'operator', '', ?, '' FROM campaigns").run(Date.now(), state);
    for (const deadline = Date.now() + 60_000; ; ) {
      const [campaign] = (await (await fetch(`${base}/campaigns.json`)).json()).campaigns;
      if (state === "cancelled" ? !campaign : campaign?.state === state) return;
      assert(Date.now() < deadline, `the pages know within a minute that it is ${state}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };

  step("no campaign: nothing on the page to join on, and a page that says so");
  await go(page, "/join");
  assert.equal(await page.locator(".cards").count(), 0);
  await go(page, () => page.getByRole("contentinfo").getByRole("link", { name: say("site.campaigns"), exact: true }).click());
  await shows(say("campaign.none"));
  await look(page, "campaigns-none");

  step("a campaign is on the page to join on");
  records.prepare("INSERT INTO campaigns (slug, definition, state, gather_until, created_at) VALUES (?, ?, 'draft', 47147, 1)").run(slug, definition);
  await to("gathering");
  await go(page, "/join");
  await look(page, "join-campaigns");
  await go(page, () => link(say("campaign.all")).click());
  await look(page, "campaigns");
  await go(page, () => link(title).click());
  await heading(page, title);
  await shows(say("campaign.count_first"));
  assert.match(await main.innerText(), new RegExp(say("campaign.days_left", { count: "[0-9,]+" })));
  assert.equal(await main.locator('ol.steps.dated > li[aria-current="step"]').count(), 1, "one of four steps is now");
  assert.equal(await main.locator("ol.steps.dated > li").count(), 4);
  assert.equal(await main.locator(".button:not(.second)").count(), 1, "one gold button: to join");
  await look(page, "campaign");

  step("a stranger joins for it");
  await go(page, () => link(say("campaign.stranger_sign_in")).click());
  await shows(say("campaign.sign_in_note", { title }));
  await look(page, "campaign-sign-in");
  await go(page, () => main.locator(`a[href="/campaigns/${slug}/join"]`).click());
  await shows(say("campaign.join_note", { title }));
  assert(await page.locator('input[name="internet"]').isChecked(), "the campaign's bill is ticked");
  await look(page, "campaign-join");
  const address = `cam-${size}-${scheme}@example.com`;
  await page.getByRole("textbox", { name: say("join.email") }).fill(address);
  await go(page, () => button(say("join.button")).click());
  await heading(page, say("check_inbox.heading"));
  const letter = await openLetter(page, address);
  await go(page, () => letter.click());
  const links = await page.locator("pre.letter").getByRole("link").evaluateAll((all) => all.map((one) => one.href));
  await go(page, links.find((one) => one.includes("/confirm/")));
  await go(page, () => button(say("confirm.button")).click());
  await heading(page, say("share.heading"));
  assert.equal(await memberCount(), 1);
  await shows(say("campaign.welcome"));
  await look(page, "welcome-campaign");

  step("count in: first with a state that it is not for");
  const state = page.getByRole("combobox", { name: say("join.state"), exact: true });
  await state.selectOption("NY");
  await go(page, () => listed("button", say("campaign.count_in")).click());
  assert(await isFocused(page.getByRole("alert")), "why it was refused has the focus");
  await look(page, "campaign-refused");
  await state.selectOption("OR");
  await go(page, () => button(say("campaign.count_in")).click());
  await page.getByRole("status").filter({ hasText: say("campaign.done_in_mailed") }).waitFor();
  await shows(say("campaign.part_in"));
  const shared = await page.locator("textarea.link").inputValue();
  assert.match(shared, new RegExp(`/campaigns/${slug}\\?ref=[0-9a-z]{12}$`), "the campaign, with their own code");
  await look(page, "campaign-in");
  await go(page, () => button(say("campaign.count_out")).click());
  await shows(say("campaign.part_out"));
  await go(page, () => button(say("campaign.count_in")).click());

  step("the same on one's own page, where what was done is said once, in view");
  await go(page, "/me");
  await inView(page, size);
  for (const [press, done] of [["count_out", "done_out"], ["count_in", "done_in"]]) {
    await go(page, () => listed("button", say(`campaign.${press}`)).click());
    const told = page.getByRole("status").filter({ hasText: say(`own.${done}`, { title }) });
    await told.waitFor();
    const [{ y, height }, bar] = [await told.boundingBox(), await page.locator(".standing").boundingBox()];
    const isClear = size === "phone" ? y >= bar.y + bar.height : y >= 0;
    assert(isClear && y + height <= page.viewportSize().height, `in view: ${y}, below ${bar.y + bar.height}`);
  }

  step("an offer: found on one's own page, decided where it says what is agreed to");
  const old = await page.context().newPage();
  await old.goto(`${base}/campaigns/${slug}`);
  records.prepare("UPDATE campaigns SET offer = ?, decide_by = 47190").run(offer([]));
  records.exec("INSERT INTO campaign_mailings (campaign_id, kind, started_at) SELECT id, 'campaign_offer', 1 FROM campaigns");
  await to("offered");
  await Promise.all([old.waitForNavigation(), old.getByRole("button", { name: say("campaign.count_out"), exact: true }).click()]);
  assert((await old.getByRole("alert").innerText()).includes(say("campaign.refused_counting")), "a page from before the offer");
  await old.close();

  step("it is mailed about; the mail leads to the offer, and its kind can be switched off and on");
  let offered = await openLetter(page, address);
  for (const deadline = Date.now() + 60_000; !(await offered.innerText()).includes(title); offered = await openLetter(page, address)) {
    assert(Date.now() < deadline, "the offer is mailed within a minute");
  }
  await go(page, () => offered.click());
  const mailed = await page.locator("pre.letter").getByRole("link").evaluateAll((all) => all.map((one) => one.href));
  await go(page, () => page.getByRole("link", { name: "Show the HTML part" }).click());
  await look(page, "letter-offer", { "landmark-one-main": { enabled: false }, region: { enabled: false } });
  await go(page, mailed.find((one) => one.includes("/unsubscribe/")));
  await look(page, "unsubscribe");
  await go(page, () => button(say("unsubscribe.button")).click());
  await look(page, "unsubscribed");
  await go(page, "/me");
  const unfold = () => page.locator("details.fold > summary", { hasText: say("own.mail") }).click();
  await unfold();
  const kind = page.getByRole("checkbox", { name: say("own.want_offer"), exact: true });
  assert.equal(await kind.isChecked(), false, "what was switched off by the mail");
  await kind.check();
  await go(page, () => page.locator('form[action="/me/mail"]').getByRole("button").click());
  await page.getByRole("status").filter({ hasText: say("own.mail_saved") }).waitFor();
  await unfold();
  assert(await kind.isChecked(), "and is on again");
  await look(page, "memail");
  await go(page, mailed.find((one) => one.includes(`/campaigns/${slug}`)));
  await shows("Example Fiber");

  step("an offer that is not for their state cannot be accepted");
  const elsewhere = say("campaign.offer_elsewhere", { state: language === "es" ? "Oregón" : "Oregon" });
  const publish = async (states) => {
    records.prepare("UPDATE campaigns SET offer = ?").run(offer(states));
    await to("offered");
    for (const deadline = Date.now() + 60_000; ; ) {
      const { campaigns } = await (await fetch(`${base}/campaigns.json`)).json();
      if (campaigns[0].offer.states.length === states.length) break;
      assert(Date.now() < deadline, "the pages know within a minute");
      await new Promise((done) => setTimeout(done, 200));
    }
    await go(page, `/campaigns/${slug}`);
  };
  await publish(["CA"]);
  await shows(elsewhere);
  assert.equal(await button(say("handover.accept_address")).count(), 0);
  assert.equal(await button(say("campaign.pass")).count(), 1);
  await look(page, "campaign-elsewhere");
  await publish([]);
  await shows(say("campaign.offer_fits"));
  await look(page, "campaign-fits");
  await go(page, "/me");
  await shows(say("campaign.part_in_offered"));
  await look(page, "me-campaigns");
  await go(page, () => listed("link", say("own.decide")).click());
  await shows("Example Fiber");
  await go(page, () => button(say("handover.accept_address")).click());
  await page.getByRole("status").filter({ hasText: say("campaign.done_accept") }).waitFor();
  await shows(say("handover.next"));
  assert(!(await main.innerText()).includes(say("campaign.now_offered")), "they have decided");
  const top = async (name) => (await main.getByRole("heading", { name, exact: true }).boundingBox()).y;
  const order = [say("handover.next"), say("deal.terms"), say("campaign.steps"), say("handover.undo")];
  const tops = await Promise.all(order.map(top));
  assert.deepEqual(tops, [...tops].sort((a, b) => a - b), "what comes next is first, withdrawing is last");
  await look(page, "campaign-offered");

  step("what it earned: on hold, counting, missing, and money");
  earn(records, slug, address);
  await go(page, "/me");
  await shows(say("reward.due_text"));
  await shows(say("reward.groups_text", { groups: say("site.one_group"), reward: "$100" }));
  await look(page, "me-rewards");
  await go(page, () => link(say("reward.how")).click());
  assert(page.url().endsWith("/terms#referrals"));
  await go(page, `/campaigns/${slug}`);

  step("it is cancelled between the page and the press");
  await to("cancelled");
  await go(page, () => button(say("campaign.withdraw")).click());
  await shows(say("campaign.refused_over"));
  await look(page, "campaign-cancelled");
  await go(page, "/campaigns/nothing", 404);
  await heading(page, say("outcome.no_campaign"));
  await look(page, "no-campaign");

  step("what such a session cannot do");
  await go(page, "/me/leave");
  await heading(page, say("sign_in.first"));
  await look(page, "me-needs-mail");
  records.close();
}
