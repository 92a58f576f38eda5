"use strict";

// Updates the page in place: fetches it again and changes only what differs, so that focus, scroll
// position, open details and text input are kept.

const INTERVAL_MS = 2000; // streamduel commits twice a second
const TIMEOUT_MS = 10000; // an answer takes milliseconds
const OWN = new Set(["open", "tabindex", "role"]); // attributes that the reader or this script changes

const main = document.getElementById("main");
const status = document.createElement("span");
const button = document.createElement("button");
const noAnswer = document.createElement("div"); // sticks to the top
let paused = false;
let asking = false;

function say(text, kind) {
  if (status.textContent !== text) {
    status.textContent = text;
    status.className = kind;
  }
}

let answeredAt = new Date();

function answered(well) {
  if (well) answeredAt = new Date();
  document.body.classList.toggle("outdated", !well);
  noAnswer.hidden = well;
  const at = answeredAt.toISOString().slice(11, 19);
  noAnswer.textContent = well ? "" : `No answer since ${at} UTC; the figures are outdated.`;
}

function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(document.importNode(to, true));
  } else if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
  } else if (from.nodeName !== "FORM") {
    morphAttributes(from, to);
    morphChildren(from, to);
  }
}

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!OWN.has(name) && !to.hasAttribute(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (!OWN.has(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
}

function morphChildren(from, to) {
  const before = [...from.childNodes];
  const after = [...to.childNodes];
  before.slice(after.length).forEach((node) => node.remove());
  after.forEach((node, place) => {
    if (place < before.length) morph(before[place], node);
    else from.append(document.importNode(node, true));
  });
}

async function refresh() {
  if (paused || asking || document.hidden) return;
  asking = true;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const answer = await fetch(location.href, { cache: "no-store", signal });
    if (answer.status === 503) throw new Error("partitions are being restored");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    if (!fresh) throw new Error("not a page of streamduel");
    if (paused) return; // paused after the request
    morph(main, fresh);
    document.title = page.title;
    answered(true);
    rove();
    say("live", "on");
  } catch {
    if (!paused) {
      say("no answer; retrying", "off");
      answered(false);
    }
  } finally {
    asking = false;
  }
}

// In the matrix, Tab focuses one cell, and the arrow keys move from there.

function cells() {
  return [...document.querySelectorAll(".heat tbody tr")].map((row) => [...row.querySelectorAll("td")]);
}

let chosen = null;

function rove() {
  const all = cells().flat();
  if (!all.length) return;
  document.querySelector(".heat").setAttribute("role", "grid");
  if (all.includes(document.activeElement)) chosen = document.activeElement;
  if (!all.includes(chosen)) chosen = all[0];
  all.forEach((cell) => cell.setAttribute("tabindex", cell === chosen ? "0" : "-1"));
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

document.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  const rows = cells();
  const row = rows.findIndex((each) => each.includes(document.activeElement));
  if (!step || row < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const next = rows[row + step[0]]?.[rows[row].indexOf(document.activeElement) + step[1]];
  event.preventDefault();
  if (next) next.focus();
});

document.addEventListener("focusin", (event) => {
  if (event.target.closest(".heat td")) rove();
});

button.type = "button";
button.textContent = "Pause";
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Resume" : "Pause";
  say(paused ? "paused" : "live", paused ? "off" : "on");
  refresh();
});

noAnswer.className = "no-answer";
noAnswer.setAttribute("role", "alert");
noAnswer.hidden = true;
document.querySelector(".skip").after(noAnswer);
status.setAttribute("role", "status");
document.getElementById("live").replaceChildren(status, button);
say("live", "on");
rove();
setInterval(refresh, INTERVAL_MS);
document.addEventListener("visibilitychange", refresh);
