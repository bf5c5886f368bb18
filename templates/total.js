// Adds up what is ticked as it is ticked, and takes a suggestion away once its field was edited; nothing depends on it. As on the server, a bill and its parts are not added up: the larger
// of the two counts.
const boxes = [...document.querySelectorAll("input[type=checkbox][data-savings]")];
const shown = document.getElementById("chosen");
const total = document.getElementById("chosen-total");
if (shown && total) {
  const update = () => {
    const ticked = boxes.filter((box) => box.checked);
    const kinds = new Map();
    for (const { name, dataset } of ticked) {
      const kind = kinds.get(dataset.partOf ?? name) ?? { whole: 0, parts: 0 };
      kind[dataset.partOf ? "parts" : "whole"] += Number(dataset.savings);
      kinds.set(dataset.partOf ?? name, kind);
    }
    const sum = [...kinds.values()].reduce((dollars, { whole, parts }) => dollars + Math.max(whole, parts), 0);
    total.textContent = `$${sum.toLocaleString("en-US")}`;
    shown.hidden = ticked.length === 0;
  };
  boxes.forEach((box) => box.addEventListener("change", update));
  // Browsers bring back what was ticked before the reader went away.
  update();
}
document.getElementById("email")?.addEventListener("input", () => {
  document.querySelectorAll(".meant").forEach((suggestion) => (suggestion.hidden = true));
});
