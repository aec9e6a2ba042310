// The pages work without this file. It adds keys, and keeps what changes up to date.
"use strict";

// Milliseconds between two questions for changes. A slow answer makes them rarer, so they take at most a twentieth of the time.
const POLL_MS = 2000, SHARE = 20;

// j and k move through the items of a page. a and r move to the controls that decide; Enter presses them.
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (event.key === "j" || event.key === "k") {
    const items = [...document.querySelectorAll("main .item")];
    const at = items.indexOf(document.activeElement);
    const next = event.key === "j" ? at + 1 : at < 0 ? items.length - 1 : at - 1;
    items[Math.max(0, Math.min(next, items.length - 1))]?.focus();
  } else if (event.key === "a" || event.key === "r") {
    const control = document.querySelector(`[data-key="${event.key}"]`);
    if (!control) return;
    event.preventDefault();
    control.focus();
    control.scrollIntoView({ block: "nearest" });
  }
}

// Replaces the changing part of a page when it has changed, and keeps the focus on the same item.
function keepLive(live) {
  const status = document.getElementById("status");
  async function poll() {
    const began = performance.now();
    if (!document.hidden) await update();
    setTimeout(poll, Math.max(POLL_MS, SHARE * (performance.now() - began)));
  }
  async function update() {
    try {
      const query = new URLSearchParams(location.search);
      query.set("digest", live.dataset.digest);
      const answer = await fetch(`${live.dataset.live}?${query}`);
      if (!answer.ok) throw new Error(answer.statusText);
      if (answer.status === 200) replace(await answer.text(), answer.headers.get("x-digest"));
      else if (status.dataset.lost) status.textContent = "";
      delete status.dataset.lost;
    } catch {
      status.dataset.lost = "1";
      status.textContent = "The server does not answer. Is `albert review --web` still running?";
    }
  }
  function replace(text, digest) {
    const focused = document.activeElement?.getAttribute("href");
    // The server has escaped everything in this fragment, as in the page itself, and the page's policy forbids scripts in it.
    live.innerHTML = text;
    live.dataset.digest = digest;
    if (focused) live.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
    const heading = live.querySelector("h1").textContent;
    status.textContent = `Updated: ${heading}`;
    document.title = `${heading} – Albert review`;
  }
  setTimeout(poll, POLL_MS);
}

// Loads the slow part of a version's page: its examples and the repeated runs.
async function load(part) {
  const link = part.querySelector("a");
  link.textContent = "Running the examples and repeating the recorded runs …";
  const answer = await fetch(part.dataset.load).catch(() => null);
  const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  const loaded = page?.getElementById("rerun");
  if (loaded) part.replaceWith(loaded);
  else link.textContent = "Try again";
}

document.addEventListener("keydown", key);
const live = document.querySelector("[data-live]");
if (live) keepLive(live);
const part = document.querySelector("[data-load]");
if (part) load(part);
