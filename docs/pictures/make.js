// The pictures of the README; ./make runs it as `node make.js FOLDER` beside a server.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { chromium } from "playwright-core";

const { UNION_URL: base, UNION_DATA: data, UNION_OPERATOR: link, PAGES_BROWSER } = process.env;
const folder = process.argv[2];

// A union that has grown for four months: the figures that the pages show, and nobody behind them.
function fill() {
  const records = new DatabaseSync(join(data, "unionhall.db"));
  records.exec("PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE");
  const run = (sql, ...values) => records.prepare(sql).run(...values);
  const today = Math.floor(Date.now() / 86_400_000);
  const partners = records.prepare("SELECT id FROM partners ORDER BY id").all().map(({ id }) => id);
  let members = 0;
  for (let ago = 120; ago >= 0; ago--) {
    for (const [place, partner] of [null, ...partners].entries()) {
      // It grows, weekends are quieter, and each source has its share.
      const week = (today - ago) % 7 < 2 ? 0.6 : 1;
      const signedUp = Math.round((8 + (120 - ago) / 3) * week * [0.5, 1, 0.7][place] * (1 + ((ago * 37 + place * 11) % 10) / 40));
      const confirmed = Math.round(signedUp * [0.62, 0.71, 0.66][place]);
      const left = Math.round(confirmed * 0.02);
      members += confirmed - left;
      run(
        `INSERT INTO source_days (partner_id, day, signed_up, mailed, confirmations_sent, confirmed, declined, expired, joined, departed)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        partner, today - ago, signedUp, signedUp, signedUp, confirmed, Math.round(signedUp * 0.03), Math.round(signedUp * 0.2), confirmed, left,
      );
    }
  }
  const states = { CA: 0.3, TX: 0.22, NY: 0.16, FL: 0.14, WA: 0.1, IL: 0.08 };
  const categories = { internet: 0.7, mobile_bills: 0.6, car_insurance: 0.5, groceries: 0.4, travel: 0.35, subscriptions: 0.3, medical_costs: 0.2 };
  for (const [state, share] of Object.entries(states)) {
    for (const [category, want] of [["", 1], ...Object.entries(categories)]) {
      run("INSERT INTO demand (category, us_state, members) VALUES (?, ?, ?)", category, state, Math.round(members * share * want));
    }
  }
  run("UPDATE installation SET member_count = ?", members);
  records.exec("COMMIT");
  records.close();
}

fill();
const browser = await chromium.launch({ executablePath: PAGES_BROWSER, args: ["--no-sandbox"] });
// Smaller than life: the README shows them side by side.
const page = await browser.newPage({ viewport: { width: 1100, height: 1250 }, deviceScaleFactor: 0.75, colorScheme: "light", locale: "en-US" });
const shoot = (name) => page.screenshot({ path: join(folder, `${name}.png`) });
await page.goto(`${base}/join`);
await shoot("join");
// The page is there within seconds of the first operator.
for (const deadline = Date.now() + 10_000; (await fetch(`${base}/operator`)).status === 404; ) {
  if (Date.now() > deadline) throw new Error("there is no page of the operator's");
  await new Promise((resolve) => setTimeout(resolve, 100));
}
await page.goto(link);
await Promise.all([page.waitForURL(`${base}/operator`), page.getByRole("main").getByRole("button", { name: "Sign in" }).click()]);
await shoot("operator");
await browser.close();
