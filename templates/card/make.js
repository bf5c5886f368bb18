// The pictures of shared links and the letters for a union's name on them; ./make runs it as `node make.js TEMPLATES LANGUAGES`.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, deflateRawSync } from "node:zlib";
import { chromium } from "playwright-core";

const [templates, languages] = process.argv.slice(2);
const [width, height] = [1200, 630];
// As src/site/card.rs has them: rows for the name, which are empty in the pictures.
const [top, rows] = [480, 60];
const letters = [...Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)), ..."áéíóúüñÁÉÍÓÚÜÑ¿¡’–—·"];
const browser = await chromium.launch({ executablePath: process.env.PAGES_BROWSER, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width, height } });
const font = readFileSync(join(templates, "font/heading.woff2")).toString("base64");
const face = `@font-face { font-family: F; src: url(data:font/woff2;base64,${font}) }`;

// Colors as in style.css: from the band to the white letters, to the gold, and the lighter corner.
const mix = (from, to, share) => from.map((part, at) => Math.round(part + (to[at] - part) * share));
const [deep, white, sun] = [[0x0a, 0x4d, 0x3f], [0xfd, 0xf8, 0xec], [0xf2, 0xb5, 0x3c]];
const palette = [deep];
for (let n = 1; n <= 6; n += 1) palette.push(mix(deep, white, n / 6));
for (let n = 1; n <= 6; n += 1) palette.push(mix(deep, sun, n / 6));
palette.push(mix(deep, white, 0.04), mix(deep, white, 0.08));
const nearest = (pixel) => {
  const far = palette.map((color) => color.reduce((sum, part, at) => sum + (part - pixel[at]) ** 2, 0));
  return far.indexOf(Math.min(...far));
};

const crcs = Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit += 1) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n >>> 0;
});
const number = (value) => Buffer.from([value >>> 24, value >>> 16, value >>> 8, value].map((byte) => byte & 255));
const chunk = (kind, data) => {
  const body = Buffer.concat([Buffer.from(kind), data]);
  const crc = body.reduce((sum, byte) => crcs[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff) ^ 0xffffffff;
  return Buffer.concat([number(data.length), body, number(crc)]);
};
const adler = (data) => {
  let [a, b] = [1, 0];
  for (const byte of data) [a, b] = [(a + byte) % 65521, (a + b + byte) % 65521];
  return b * 65536 + a;
};

for (const language of ["en", "es"]) {
  const headline = /^card_headline = "(.*)"$/m.exec(readFileSync(join(languages, `${language}.toml`), "utf8"))[1].split(/(?<=\.) /);
  await page.setContent(`<style>${face}
    body { margin: 0; width: ${width}px; height: ${height}px; background: rgb(${deep}); font: 700 100px/120px F; color: rgb(${white}) }
    svg { position: absolute; inset: 0 } div { position: absolute; left: 80px; top: 213px; letter-spacing: -1px } em { font-style: normal; color: rgb(${sun}) }</style>
    <svg width="${width}" height="${height}"><path d="M780 0h420v297z" fill="rgb(${palette[14]})"/><path d="M80 560h1040v5H80z" fill="rgb(${sun})"/>
    <g fill="rgb(${sun})" transform="translate(75 57) scale(1.9)"><path d="M3 20 24 5l21 15v4H3z"/><circle cx="11" cy="31" r="4"/><circle cx="24" cy="31" r="4"/><circle cx="37" cy="31" r="4"/><path d="M4 45v-2a7 7 0 0 1 14 0v2zM17 45v-2a7 7 0 0 1 14 0v2zM30 45v-2a7 7 0 0 1 14 0v2z"/></g></svg>
    <div>${headline[0]}<br><em>${headline[1]}</em></div>`);
  await page.evaluate(() => document.fonts.ready);
  const shot = (await page.screenshot()).toString("base64");
  const pixels = await page.evaluate(async ([shot, width, height]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${shot}`;
    await image.decode();
    const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
    context.drawImage(image, 0, 0);
    return [...context.getImageData(0, 0, width, height).data];
  }, [shot, width, height]);
  const known = new Map();
  const raw = Buffer.alloc(height * (1 + width / 2));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const pixel = pixels.slice((y * width + x) * 4, (y * width + x) * 4 + 3);
      if (!known.has(`${pixel}`)) known.set(`${pixel}`, nearest(pixel));
      raw[y * (1 + width / 2) + 1 + (x >> 1)] |= known.get(`${pixel}`) << (x % 2 ? 0 : 4);
    }
  }
  const [begins, ends] = [top, top + rows].map((row) => row * (1 + width / 2));
  if (raw.subarray(begins, ends).some((byte) => byte)) throw new Error(`${language}: the rows for the name are not empty`);
  const part = (from, to, finishFlush) => deflateRawSync(raw.subarray(from, to), { level: 9, finishFlush });
  writeFileSync(join(templates, `card/${language}.png`), Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", Buffer.concat([number(width), number(height), Buffer.from([4, 3, 0, 0, 0])])),
    chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", Buffer.concat([Buffer.from([0x78, 0xda]), part(0, begins, constants.Z_FULL_FLUSH)])),
    chunk("IDAT", part(begins, ends, constants.Z_FULL_FLUSH)),
    chunk("IDAT", Buffer.concat([part(ends, raw.length, constants.Z_FINISH), number(adler(raw))])),
    chunk("IEND", Buffer.alloc(0)),
  ]));
}

// Each letter: what it is, how wide, how many bytes; then runs of one shade (three bits) and its length (five), row by row.
const drawn = await page.evaluate(([letters, rows]) => letters.map((letter) => {
  const context = Object.assign(document.createElement("canvas"), { width: 100, height: rows }).getContext("2d", { willReadFrequently: true });
  context.font = "700 46px F";
  const width = Math.ceil(context.measureText(letter).width) + 1;
  context.fillText(letter, 1, 44);
  return { width, alpha: [...context.getImageData(0, 0, width, rows).data].filter((_, at) => at % 4 === 3) };
}), [letters, rows]);
const glyphs = drawn.map(({ width, alpha }, at) => {
  const runs = [];
  for (const shade of alpha.map((part) => Math.round((part / 255) * 6))) {
    const last = runs.at(-1);
    if (last?.shade === shade && last.length < 32) last.length += 1;
    else runs.push({ shade, length: 1 });
  }
  const bytes = runs.map(({ shade, length }) => (shade << 5) | (length - 1));
  const code = letters[at].codePointAt(0);
  return Buffer.from([code >> 8, code & 255, width, bytes.length >> 8, bytes.length & 255, ...bytes]);
});
writeFileSync(join(templates, "card/letters.bin"), Buffer.concat(glyphs));
await browser.close();
