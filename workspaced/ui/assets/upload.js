// Upload the files that the user chooses or drops on the page, one after the other, and show the progress.
"use strict";

const area = byId("upload");
const picker = byId("upload-files");
const list = byId("uploads");
const queue = [];
let sending = false;

function send(file, line) {
  return new Promise((done) => {
    const request = new XMLHttpRequest(); // unlike fetch, it reports the progress of an upload
    const bar = line.querySelector("progress");
    const words = line.querySelector("span");
    const cancel = line.querySelector("button");
    const end = (sentence, bad) => {
      bar.remove();
      cancel.remove();
      words.textContent = sentence;
      words.className = bad ? "error" : "hint";
      done(!bad);
    };
    request.open("POST", `${area.dataset.to}?${new URLSearchParams({ name: file.name })}`);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("X-Form-Token", document.querySelector("input[name='form_token']").value);
    if (file.type) request.setRequestHeader("Content-Type", file.type);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = event.total ? event.loaded / event.total : 1;
    });
    request.addEventListener("load", () => {
      let result = {};
      try {
        result = JSON.parse(request.responseText);
      } catch {
        result = { detail: `The service responded with status ${request.status}.` };
      }
      if (request.status !== 201) {
        end(`not uploaded: ${result.detail}`, true);
        return;
      }
      const link = document.createElement("a");
      link.href = result.page;
      link.textContent = result.name;
      line.querySelector("bdi").replaceChildren(link);
      end("uploaded", false);
    });
    request.addEventListener("error", async () => {
      const isReadable = await file.slice(0, 1).arrayBuffer().then(() => true, () => false);
      const reason = isReadable ? "the service can't be reached, or the connection ended. Try again." : "it can't be read. It is a folder, or was changed or deleted meanwhile.";
      end(`not uploaded: ${reason}`, true);
    });
    request.addEventListener("abort", () => end("cancelled: not uploaded", true));
    if ("cancelled" in line.dataset) {
      end("cancelled: not uploaded", true);
      return;
    }
    cancel.addEventListener("click", () => request.abort());
    request.send(file);
  });
}

async function sendAll() {
  if (sending) return;
  sending = true;
  let all = true;
  while (queue.length) {
    const [file, line] = queue.shift();
    all = (await send(file, line)) && all;
  }
  sending = false;
  const readList = readAgain.get("files");
  if (readList) await readList();
  else byId("upload-reload").hidden = false;
  byId("upload-status").textContent = all ? "All files are uploaded." : "Some files are not uploaded; the list says why.";
}

function add(files) {
  for (const file of files) {
    const line = document.createElement("li");
    const name = document.createElement("bdi");
    name.textContent = file.name;
    const bar = document.createElement("progress");
    bar.setAttribute("aria-label", `Progress of ${file.name}`);
    bar.value = 0;
    const cancel = document.createElement("button");
    cancel.type = "button";
    cancel.className = "quiet";
    cancel.textContent = "Cancel";
    cancel.setAttribute("aria-label", `Cancel ${file.name}`);
    cancel.addEventListener("click", () => {
      line.dataset.cancelled = "";
      cancel.disabled = true;
      picker.focus();
    });
    line.append(name, " ", bar, " ", cancel, " ", document.createElement("span"));
    list.append(line);
    queue.push([file, line]);
  }
  byId("upload-status").textContent = "";
  sendAll();
}

area.hidden = false;
picker.addEventListener("change", () => {
  add(picker.files);
  picker.value = "";
});
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    area.classList.add("over");
  });
}
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) area.classList.remove("over");
});
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  area.classList.remove("over");
  add(event.dataTransfer.files);
});
