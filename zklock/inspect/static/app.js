"use strict";
// The server renders the page. This script fetches it again after each event, moves the ages
// on once a second, and adds the keys. Without it, everything works by reloading.

const state = document.getElementById("state");

function age(since) {
  let s = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  s %= 60;
  return h ? `${h}h${m}m${s}s` : m ? `${m}m${s}s` : `${s}s`;
}

function tick() {
  for (const t of document.querySelectorAll("time[datetime]")) t.textContent = age(t.dateTime);
}
setInterval(tick, 1000);

// The page is live if the stream of events is open and the last fetch has worked.
let streams = false, fetched = true, retry = 0;
function show() { state.textContent = streams && fetched ? "live" : "disconnected: trying again"; }

let busy = false, again = false;
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  clearTimeout(retry);
  try {
    do {
      again = false;
      const text = await (await fetch(location.href)).text();
      const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
      if (!next) throw new Error("this is another page");
      const focused = document.activeElement && document.activeElement.closest("main a") && document.activeElement.getAttribute("href");
      document.querySelector("main").replaceWith(next);
      if (focused) {
        for (const a of next.querySelectorAll("a")) if (a.getAttribute("href") === focused) { a.focus(); break; }
      }
    } while (again);
    fetched = true;
  } catch {
    fetched = false;
    retry = setTimeout(refresh, 2000); // there may be no further event
  } finally {
    busy = false;
    show();
  }
}

// A browser connects again by itself after a stream has broken, but not after an answer that is no
// stream, as a proxy gives it while it cannot reach the service.
function connect() {
  const events = new EventSource(document.body.dataset.events);
  events.onopen = () => { streams = true; show(); };
  events.onerror = () => {
    streams = false;
    show();
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
  events.onmessage = refresh;
}
connect();

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target instanceof HTMLInputElement;
  if (e.key === "Escape") {
    if (typing) e.target.blur();
    else if (location.search) location.href = "./";
  } else if (typing) {
    return;
  } else if (e.key === "/") {
    e.preventDefault();
    document.getElementById("prefix").focus();
  } else if (e.key === "j" || e.key === "k") {
    const links = [...document.querySelectorAll("main a")];
    const at = links.indexOf(document.activeElement);
    const to = links[e.key === "j" ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0)];
    if (to) to.focus();
  }
});
