// Puts buttons beside the link: one copies it, one opens the system's own share sheet where there is one. Nothing depends on it.
const link = document.getElementById("link");
const button = document.getElementById("copy");
const share = document.getElementById("share");
if (link) link.addEventListener("focus", () => link.select());
if (link && button && navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(link.value);
    const copied = document.getElementById("copied");
    copied.textContent = copied.dataset.copied;
  });
}
if (share && navigator.share) {
  share.hidden = false;
  // Whoever closes the sheet has changed their mind.
  share.addEventListener("click", () => navigator.share({ text: share.dataset.message }).catch(() => {}));
}
