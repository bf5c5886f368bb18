// The reference with a hand: highlights and copies snippets, calls the operations that need no key, keeps the chosen language and the list of
// contents in step. Nothing on the page depends on it.

// --- Copying ---
const copyFrom = (block) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy-code";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    const shown = [...block.querySelectorAll("pre")].find((pre) => pre.offsetParent);
    await navigator.clipboard.writeText(`${shown.textContent}\n`);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.append(button);
};
if (navigator.clipboard) document.querySelectorAll(".code").forEach(copyFrom);

// --- Syntax highlighting: comments and strings, without a grammar for each language ---
const string = String.raw`"""[^]*?"""|"(?:\\[^]|[^"\\])*"`;
const quoted = String.raw`${string}|'(?:\\[^]|[^'\\])*'`;
const shell = String.raw`(?<string>${quoted})|(?<!\S)#.*`;
const script = String.raw`(?<string>${quoted}|\`(?:\\[^]|[^\`\\])*\`)|(?<!\S)//.*`;
const syntax = { bash: shell, sh: shell, python: shell, ts: script, go: script, json: `(?<string>${string})` };
for (const code of document.querySelectorAll("code[class^=language-]")) {
  const pattern = syntax[code.className.replace("language-", "")];
  if (!pattern) continue;
  const [parts, text] = [[], code.textContent];
  let at = 0;
  for (const { 0: token, index, groups } of text.matchAll(new RegExp(pattern, "g"))) {
    const span = Object.assign(document.createElement("span"), { className: groups.string ? "s" : "c", textContent: token });
    parts.push(text.slice(at, index), span);
    at = index + token.length;
  }
  code.replaceChildren(...parts, text.slice(at));
}

// --- One language for all snippets ---
const named = (input) => input.parentElement.textContent;
const radios = [...document.querySelectorAll(".tab-row input")];
for (const input of radios) {
  input.addEventListener("change", () => {
    // What was read must stay where it is, whatever grows or shrinks above it.
    const before = input.getBoundingClientRect().top;
    for (const other of radios) if (named(other) === named(input)) other.checked = true;
    scrollBy({ top: input.getBoundingClientRect().top - before, behavior: "instant" });
  });
}

// --- Trying ---
const told = ["RateLimit", "RateLimit-Policy", "Retry-After", "ETag", "X-Request-Id"];
for (const place of document.querySelectorAll(".try")) {
  place.hidden = false;
  const button = place.querySelector("button");
  button.addEventListener("click", async () => {
    button.disabled = true;
    let text;
    try {
      const answer = await fetch(place.dataset.path.slice(1), { cache: "no-store", credentials: "omit" });
      const headers = told.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
      const body = JSON.stringify(await answer.json(), null, 2);
      text = [`${answer.status} ${answer.statusText}`.trim(), ...headers, "", body].join("\n");
    } catch (error) {
      text = `There was no answer: ${error.message}`;
    }
    const block = document.createElement("div");
    block.className = "code";
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    pre.append(Object.assign(document.createElement("code"), { textContent: text }));
    block.append(pre);
    place.querySelector(".tried").replaceChildren(block);
    if (navigator.clipboard) copyFrom(block);
    button.disabled = false;
  });
}

// --- Where one is ---
const small = document.querySelector(".contents-small");
small.addEventListener("click", (event) => {
  if (event.target.closest("a")) small.open = false;
});
const links = new Map();
for (const link of document.querySelectorAll(".docs nav a")) {
  const id = link.hash.slice(1);
  links.set(id, [...(links.get(id) ?? []), link]);
}
const mark = () => {
  const sections = [...document.querySelectorAll("main > section")];
  const here = sections.findLast((section) => section.getBoundingClientRect().top < innerHeight / 3);
  for (const [id, all] of links) {
    for (const link of all) {
      if (id === here?.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  const shown = links.get(here?.id)?.find((link) => link.offsetParent);
  const list = shown?.closest("nav");
  if (list) {
    const { top, bottom } = shown.getBoundingClientRect();
    const frame = list.getBoundingClientRect();
    if (top < frame.top || bottom > frame.bottom) list.scrollTop += top - frame.top - frame.height / 3;
  }
};
let due = false;
addEventListener("scroll", () => {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    mark();
  });
}, { passive: true });
mark();
