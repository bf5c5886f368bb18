// The pictures of the README; ./make runs it as `node make.js FOLDER` beside a demonstration.

import { join } from "node:path";
import { chromium } from "playwright-core";

const { UNION_URL: base, UNION_OPERATOR: link, PAGES_BROWSER } = process.env;
const folder = process.argv[2];

const browser = await chromium.launch({ executablePath: PAGES_BROWSER, args: ["--no-sandbox"] });
// Smaller than life: the README shows them side by side.
const page = await browser.newPage({ viewport: { width: 1100, height: 1250 }, deviceScaleFactor: 0.75, colorScheme: "light", locale: "en-US" });
const shoot = (name) => page.screenshot({ path: join(folder, `${name}.png`) });
await page.goto(`${base}/join`);
await shoot("join");
await page.goto(link);
await Promise.all([page.waitForURL(`${base}/operator`), page.getByRole("main").getByRole("button", { name: "Sign in" }).click()]);
await shoot("operator");
await browser.close();
