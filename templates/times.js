// Writes each time in the reader's own zone, which it names. Without scripts it is in UTC. Nothing depends on it.
const spanish = document.documentElement.lang === "es";
const written = new Intl.DateTimeFormat(spanish ? "es-US" : "en-US", {
  year: "numeric",
  month: spanish ? "long" : "short",
  day: "numeric",
  hour: "numeric",
  minute: "2-digit",
  timeZoneName: "short",
});
for (const time of document.querySelectorAll("time[datetime]")) {
  time.textContent = written.format(new Date(time.dateTime));
}
