// The first screen: how far down the address and its button are, in each language, on a phone and at a desk, with and without campaigns;
// and the header, which is one line on the smallest phone.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { inflateSync } from "node:zlib";
import { definition, slug } from "./campaign.js";

// What a phone and a desk show without scrolling.
const MOST = 700;
const screens = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 800 } };

// The rows of a PNG of ours; unpacking checks their sum.
function rowsOf(png) {
  const pieces = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") pieces.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const raw = inflateSync(Buffer.concat(pieces));
  return Array.from({ length: 630 }, (_, y) => raw.subarray(y * 601, (y + 1) * 601));
}

export async function firstWalk(page, { base, call, data, step }) {
  const browser = page.context().browser();
  const { code } = await call("/v1/referral-link", { email: "friend@example.net" });
  const open = async (language, viewport, path) => {
    const locale = language === "es" ? "es-MX" : "en-US";
    const context = await browser.newContext({ viewport, locale, isMobile: viewport.width < 400, hasTouch: viewport.width < 400 });
    const shown = await context.newPage();
    await shown.goto(base + path);
    return shown;
  };
  const measure = async (shown, what) => {
    const email = await shown.locator("#email").boundingBox();
    const button = await shown.locator(".entry > .button").boundingBox();
    const [field, bottom] = [email.y, button.y + button.height].map(Math.round);
    step(`${what}: the field begins at ${field}, the button ends at ${bottom}`);
    assert(field < bottom && bottom <= MOST, `${what}: the button ends at ${bottom}`);
  };
  const measureAll = async (campaigns) => {
    for (const language of ["en", "es"]) {
      for (const [screen, viewport] of Object.entries(screens)) {
        for (const [how, path] of [["plain", "/join"], ["invited", `/joinus${code}`]]) {
          const shown = await open(language, viewport, path);
          await measure(shown, `${campaigns}, ${language}, ${screen}, ${how}`);
          // Ten forms a minute are taken from one address.
          if (how === "plain") {
            await shown.locator("#email").fill("ana@example");
            await Promise.all([shown.waitForNavigation(), shown.locator(".entry > .button").click()]);
            assert.equal(await shown.locator("#email-error").count(), 1);
            await measure(shown, `${campaigns}, ${language}, ${screen}, with a mistake`);
          }
          await shown.context().close();
        }
      }
    }
  };

  // A demonstration has campaigns, a result and a strip of its own from its start.
  if (process.env.UNION_MEMBER) {
    await measureAll("a demonstration");
  } else {
    await measureAll("no campaigns");
    const records = new DatabaseSync(join(data, "unionhall.db"));
    records.exec("PRAGMA busy_timeout = 60000");
    records.prepare("INSERT INTO campaigns (slug, definition, state, gather_until, created_at) VALUES (?, ?, 'gathering', 47147, 1)").run(slug, definition);
    records.prepare("INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) SELECT id, 1, 'operator', '', 'gathering', '' FROM campaigns").run();
    for (const deadline = Date.now() + 60_000; !(await (await fetch(`${base}/join`)).text()).includes(slug); ) {
      assert(Date.now() < deadline, "the campaign is on the page within a minute");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await measureAll("campaigns");
  }

  step("the picture of a shared link has the union's name, and nothing else has changed");
  for (const language of ["en", "es"]) {
    const [served, plain] = [Buffer.from(await (await fetch(`${base}/card.png?lang=${language}`)).arrayBuffer()), readFileSync(join(process.env.PAGES_CARDS, `${language}.png`))];
    const [ours, empty] = [served, plain].map(rowsOf);
    const differ = ours.flatMap((row, y) => (row.equals(empty[y]) ? [] : [y]));
    assert(differ.length > 20 && differ.every((y) => y >= 480 && y < 540), `rows ${differ}`);
    await page.setContent(`<img src="${base}/card.png?lang=${language}">`);
    assert.deepEqual(await page.locator("img").evaluate(async (image) => (await image.decode(), [image.naturalWidth, image.naturalHeight])), [1200, 630]);
  }

  for (const language of ["en", "es"]) {
    for (const width of [320, 390]) {
      const shown = await open(language, { width, height: 640 }, "/join");
      const boxes = await shown.locator(".top > .home, .top .languages a, .top > .own").evaluateAll((links) =>
        links.map((link) => link.getBoundingClientRect()).map(({ left, right, top, bottom }) => ({ left, right, top, bottom })));
      assert.equal(boxes.length, 3);
      for (const [one, next] of [[0, 1], [1, 2]].map((pair) => pair.map((at) => boxes[at]))) {
        assert(one.right <= next.left && one.top < next.bottom && next.top < one.bottom, `${language}, ${width}: in one line`);
      }
      assert(boxes[2].right <= width);
      const [home, , own] = boxes.map(({ top, bottom }) => bottom - top);
      step(`${language}, ${width} pixels: the header's name is ${home} and its link ${own} pixels high`);
      assert(home >= 24 && own >= 40);
      await shown.context().close();
    }
  }
}
