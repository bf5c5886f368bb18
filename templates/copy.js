// Puts a button beside the link that copies it, and makes the field as high as the link is long. Nothing depends on it.
const link = document.getElementById("link");
const button = document.getElementById("copy");
if (link) link.addEventListener("focus", () => link.select());
if (link && button && navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(link.value);
    const copied = document.getElementById("copied");
    copied.textContent = copied.dataset.copied;
  });
}
