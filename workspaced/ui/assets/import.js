// Send a chosen file to the service, and put the returned text into the table field. The service also reads workbooks.
"use strict";

const chosen = byId("file");
byId("choose").hidden = false;
chosen.addEventListener("change", async () => {
  const [file] = chosen.files;
  if (!file) return;
  const status = byId("file-status");
  status.textContent = `Reading ${file.name}…`;
  try {
    const address = `${chosen.dataset.to}?${new URLSearchParams({ name: file.name })}`;
    const token = document.querySelector("#import input[name='form_token']").value;
    const headers = { Accept: "application/json", "X-Form-Token": token };
    const response = await fetch(address, { method: "POST", body: file, headers, credentials: "same-origin" });
    const result = await response.json();
    if (response.ok) {
      byId("table").value = result.text;
      const sheet = result.others ? `The sheet “${result.sheet}” of ` : "";
      const others = result.others ? ` Not read: ${result.others} further ${result.others === 1 ? "sheet" : "sheets"}; paste a table from there.` : "";
      status.textContent = result.text.trim() ? `${sheet}${file.name} is in the field above. Press Preview.${others}` : `${file.name} is empty.`;
    } else {
      status.textContent = `${file.name} was not read: ${result.detail}`;
    }
  } catch {
    status.textContent = `${file.name} was not read: the service can't be reached, or the connection ended. Try again.`;
  }
});
