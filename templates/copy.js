// The only script of the site, and nothing depends on it: it puts a button beside the link that copies it.
const link = document.getElementById("link");
const button = document.getElementById("copy");
if (link && button && navigator.clipboard) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(link.value);
    document.getElementById("copied").textContent = "Copied. Now paste it where your friends will see it.";
  });
}
