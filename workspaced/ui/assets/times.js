// Show each time in the zone of the browser, with the name of the zone; the exact UTC time stays in the title.
"use strict";

const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

function localTimes() {
  for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const two = (number) => String(number).padStart(2, "0");
    const name = zone.formatToParts(at).find((part) => part.type === "timeZoneName").value;
    time.title = time.textContent;
    time.textContent = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${name}`;
  }
}

localTimes();
document.addEventListener("rows", localTimes);
