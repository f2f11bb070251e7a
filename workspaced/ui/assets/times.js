// Show each time in a short form and in the browser's zone: "11:01", "yesterday 11:01", "25 Nov 11:01". The title is exact.
"use strict";

const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
const two = (number) => String(number).padStart(2, "0");
const midnight = (at) => new Date(at.getFullYear(), at.getMonth(), at.getDate());
let shownOn = 0; // the day on which the times were last written

function briefly(at, today) {
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const days = Math.round((today - midnight(at)) / 86_400_000);
  if (days === 0) return clock;
  if (days === 1) return `yesterday ${clock}`;
  const day = `${at.getDate()} ${at.toLocaleString("en", { month: "short" })}`;
  return at.getFullYear() === today.getFullYear() ? `${day} ${clock}` : `${day} ${at.getFullYear()} ${clock}`;
}

function localTimes() {
  const today = midnight(new Date());
  const stale = today.getTime() !== shownOn;
  shownOn = today.getTime();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime()) || (time.title && !stale)) continue;
    if (!time.title) {
      const name = zone.formatToParts(at).find((part) => part.type === "timeZoneName").value;
      const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
      const local = `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${name}`;
      time.title = at.getTimezoneOffset() ? `${local} (${time.textContent})` : local;
    }
    time.textContent = briefly(at, today);
  }
}

localTimes();
document.addEventListener("rows", localTimes);
document.addEventListener("visibilitychange", localTimes);
