// The reference, as an engineer reads it: on the smallest phone and at a desk, with scripts and without.

import assert from "node:assert/strict";

export async function referenceWalk(page, { base, go, look, size, step, withScripts }) {
  const phone = size === "phone";
  if (phone) await page.setViewportSize({ width: 360, height: 780 });
  await go(page, "/docs");

  step("nothing is cut, and nothing scrolls sideways but code");
  const cut = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const parts = [...document.querySelectorAll("main td, main p, main h2, main h3, main li, main .endpoint, main .tab-row")];
    const wide = (part) => part.getBoundingClientRect().right > width + 1 || part.scrollWidth > part.clientWidth + 1;
    // What is inline has no width of its own to go past.
    const shown = parts.filter((part) => part.offsetParent && getComputedStyle(part).display !== "inline");
    return [shown.length, shown.filter(wide).map((part) => part.outerHTML.slice(0, 200)), document.documentElement.scrollWidth - width];
  });
  assert(cut[0] > 200, `${cut[0]} parts were looked at`);
  assert.deepEqual(cut.slice(1), [[], 0]);
  const cells = page.locator("#errors td");
  const labelled = await cells.nth(2).evaluate((cell) => getComputedStyle(cell, "::before").content);
  assert.equal(labelled, phone ? '"Meaning"' : "none", "on a phone cells say what they are");
  await look(page, "docs");

  step("the contents stay in sight");
  const contents = page.locator(phone ? ".contents-small" : ".contents");
  await page.evaluate(() => scrollTo({ top: 4000, behavior: "instant" }));
  assert.equal(Math.round((await contents.boundingBox()).y), 0, "it sticks to the top");
  if (phone) await contents.locator("summary").click();
  await contents.getByRole("link", { name: "Sign a user up" }).click();
  // By hand: a page without scripts waits for nothing.
  const section = page.locator("#signUpUser");
  for (const deadline = Date.now() + 60_000; Math.abs((await section.boundingBox()).y) > 120; ) {
    assert(Date.now() < deadline, "the link leads to its section");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(new URL(page.url()).hash, "#signUpUser");
  if (withScripts) {
    await contents.locator("[aria-current]").getByText("Sign a user up").waitFor({ state: phone ? "hidden" : "visible" });
    assert.equal(await page.locator(".contents-small").evaluate((details) => details.open), false, "it folds itself away");
  } else if (phone) {
    await contents.locator("summary").click();
  }

  step("each language is a press away");
  const shown = section.locator(".tabs pre:visible");
  assert.match(await shown.innerText(), /^curl /);
  await section.getByRole("radio", { name: "Python" }).check();
  assert.match(await shown.innerText(), /^import json/);
  assert.equal(await shown.count(), 1);
  const elsewhere = await page.locator("#createReferralLink .tabs pre:visible").innerText();
  assert.match(elsewhere, withScripts ? /^import json/ : /^curl /, "a choice is one for the whole page, where scripts run");

  if (!withScripts) {
    step("what needs a script is not there");
    assert.equal(await page.locator(".copy-code").count(), 0);
    assert.equal(await page.locator(".try:visible").count(), 0);
    return;
  }
  step("a snippet is copied whole");
  await section.locator(".tabs .copy-code").click();
  await section.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${await shown.textContent()}\n`);

  step("an operation is tried");
  const tries = page.locator(".try");
  assert.equal(await tries.count(), 3);
  const answered = page.waitForResponse(`${base}/v1/stats`);
  await page.locator("#getMemberStats").getByRole("button", { name: "Try it" }).click();
  assert.equal((await answered).status(), 200);
  const told = page.locator("#getMemberStats .tried pre");
  await told.waitFor();
  const text = await told.innerText();
  for (const part of ["200 OK", "RateLimit:", "RateLimit-Policy:", '"memberCount": 0']) assert(text.includes(part), text);
  await page.emulateMedia({ media: "print" });
  const printed = await page.locator("#signUpUser .panel:visible").count();
  assert.equal(printed, 4, "paper has every language");
}
