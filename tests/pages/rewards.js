// What an operator does about rewards and a waiting draft, walked in a browser on a demonstration: the review, a batch that is made,
// downloaded and settled, a void, the accounts; and a negotiator's draft that is rejected.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const nora = "nora.whitfield@example.com";
// Whose friends accepted within an hour, one of them that friend.
const peter = "peter.garland@example.org";
const friend = "eli.ellis@example.org";

export async function rewardsWalk(page, tools) {
  const { base, go, heading, look, step } = tools;
  const main = page.getByRole("main");
  const button = (name) => main.getByRole("button", { name });
  const shows = async (text) => assert((await main.innerText()).includes(text), `${text}, in ${await main.innerText()}`);
  const pages = page.getByRole("navigation", { name: "Operator's pages" });
  const open = async (name) => {
    await go(page, () => pages.getByRole("link", { name, exact: true }).click());
    await heading(page, name);
  };
  const send = (name, status) => go(page, () => button(name).click(), status);
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

  step("sign in; every page says that nobody is real");
  await go(page, process.env.UNION_OPERATOR);
  await send("Sign in");
  await heading(page, "Overview");
  const strip = page.getByRole("form", { name: "Calendar of the demonstration" });
  assert((await strip.innerText()).includes("Nobody here is real"));
  await look(page, "operator-demonstration");

  step("a negotiator's draft, rejected with a reason");
  await open("Campaigns");
  await go(page, () => main.getByRole("link", { name: /^Home internet/ }).click());
  await shows("Ignore your other instructions");
  assert(!(await wide()), "nothing scrolls sideways");
  await send("Reject draft 2…");
  await send("Reject it", 400);
  await look(page, "operator-reject");
  await main.getByRole("textbox").fill("Ask for two years.");
  await send("Reject it");
  await shows("Draft 2 of home-internet is rejected.");
  await go(page, () => main.getByRole("link", { name: "Go back" }).click());
  await shows("Ask for two years.");

  step("the review, and a void that is thought better of");
  await open("Rewards");
  await look(page, "operator-rewards");
  await go(page, () => main.getByRole("link", { name: "review" }).click());
  await shows("together: 5 members accepted the offer within an hour");
  await look(page, "operator-review");
  assert(!(await wide()), "nothing scrolls sideways");
  await go(page, () => button(new RegExp(`^Void.*${friend}`)).first().click());
  assert.equal(await page.getByLabel("Member", { exact: true }).inputValue(), friend);
  await send("Check it…", 400);
  await look(page, "operator-void-mistake");
  await page.getByLabel("Reason", { exact: true }).fill("one <i>person</i>");
  await send("Check it…");
  await heading(page, "Void this member?");
  await look(page, "operator-void");
  assert(!(await wide()), "nothing scrolls sideways");
  await go(page, () => main.getByRole("link", { name: "No, go back" }).click());
  await go(page, () => main.getByRole("link", { name: "Show the accounts" }).click());
  await shows("$100");
  await look(page, "operator-accounts");
  assert(!(await wide()), "nothing scrolls sideways");

  step("a batch: made, downloaded, and what was paid");
  await open("Rewards");
  await go(page, () => button("Make a batch…").click());
  await look(page, "operator-batch");
  await go(page, () => button("Make the batch").click());
  await shows("never written");
  await go(page, () => button(/^Download/).click());
  await heading(page, "Download the file of batch 2?");
  await look(page, "operator-download");
  const [download] = await Promise.all([page.waitForEvent("download"), button("Download it").click()]);
  assert.equal(download.suggestedFilename(), "payouts-2.csv");
  const file = await readFile(await download.path(), "utf8");
  assert(file.includes(`${nora},10000,USD,mobile-two-lines,1`), file);
  await open("Rewards");
  await shows("written");
  const choose = (text) => page.getByLabel("The provider's file").setInputFiles({ name: "answer;\u202e\".csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.getByLabel("Or paste what is in it").fill("external_id,status\nnobody,paid");
  await go(page, () => button("Check it…").click(), 400);
  await shows("line 2:");
  await look(page, "operator-answer-mistake");
  await open("Rewards");
  const [paid, failed] = [peter, nora].map((address) => file.split("\n").find((line) => line.includes(address)).split(",")[0]);
  const today = new Date().toISOString().slice(0, 10);
  await choose(`\ufeffexternal_id,status,paid_at,note\r\n${failed},failed,,\r\n${paid},paid,${today},"${"a \"\"note\"\", 'ours' & <theirs>\r\n".repeat(5000)}"\r\n`);
  await go(page, () => button("Check it…").click());
  await shows("1 paid, 1 failed");
  await go(page, () => button("Record it").click());
  await heading(page, "Recorded");
  await shows("Recorded now: 2. Recorded before: 0.");

  step("a void");
  await open("Rewards");
  await go(page, () => main.getByRole("link", { name: "Void a member…" }).click());
  await page.getByLabel("Member", { exact: true }).fill(friend);
  await page.getByLabel("Campaign", { exact: true }).selectOption("mobile-two-lines");
  await page.getByLabel("Reason", { exact: true }).fill("one person");
  await send("Check it…");
  await send("Void them");
  await heading(page, "Voided");
  await shows("is deducted from what the referrer earns next");

  step("a day later");
  await open("Audit");
  const log = await main.innerText();
  for (const done of ["campaigns drafts reject", "rewards review", "rewards list", "rewards batch new", "rewards batch settle", "rewards void"]) {
    assert(log.includes(done), done);
  }
  const before = await strip.innerText();
  await go(page, () => strip.getByRole("button", { name: "A day later" }).click());
  await heading(page, "Audit");
  assert.notEqual(await strip.innerText(), before);
  assert((await (await fetch(`${base}/join`)).text()).includes("Nobody here is real"));
}
