"use strict";
// The server renders the page. This script fetches it again after each event and changes what
// differs, in place: what the reader has scrolled to, focused or selected stays. It also moves the
// ages on, filters while the reader types, copies, and adds the keys. Without it, everything but
// copying works by reloading.

document.documentElement.classList.add("script");
const state = document.getElementById("state"), filter = document.getElementById("filter");
let main = document.querySelector("main");

// Ages.

function age(since) {
  let s = Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  s %= 60;
  return h ? `${h}h${m}m${s}s` : m ? `${m}m${s}s` : `${s}s`;
}

// reader is what the reader has focused and selected. To ask the browser after each change of the
// page would make it lay the page out each time.
let reader = {};
function lookAtReader() {
  const s = getSelection(), selects = s && !s.isCollapsed && s.rangeCount > 0;
  reader = { focus: document.activeElement, range: selects ? s.getRangeAt(0) : null, ends: selects ? [s.anchorNode, s.focusNode] : [] };
}

// setText changes a text, but not under a selection that begins or ends in it.
function setText(node, text) {
  if (node && node.nodeValue !== text && !reader.ends.includes(node)) node.nodeValue = text;
}

function tick() {
  lookAtReader();
  for (const t of document.querySelectorAll("time[datetime]")) setText(t.firstChild, age(t.dateTime));
  sweep();
  show();
}

// Patching.

// pinned reports whether the reader has focused or selected something in an element.
function pinned(element) {
  return element.contains(reader.focus) || reader.range !== null && reader.range.intersectsNode(element);
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined);
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

// patch makes a node what another one is.
function patch(node, next) {
  if (node.nodeType !== Node.ELEMENT_NODE) return setText(node, next.nodeValue);
  for (const { name } of [...node.attributes]) if (!next.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of next.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  if (node.nodeName === "TIME" && node.firstChild && next.firstChild) return; // tick sets the age
  patchChildren(node, next);
}

// patchChildren does it for the children. Nodes with a key are found by it. A node that the reader
// has pinned is neither removed nor moved: the others move around it, and if it is gone, it is
// marked.
function patchChildren(node, next) {
  const wanted = new Set([...next.children].map(keyOf).filter((k) => k !== undefined));
  if (wanted.size) {
    for (const parent of [node, next]) { // the space between rows
      for (const child of [...parent.childNodes]) if (child.nodeType === Node.TEXT_NODE) child.remove();
    }
  }
  const known = new Map();
  for (const child of [...node.childNodes]) {
    const key = keyOf(child);
    if (key === undefined) continue;
    if (wanted.has(key)) known.set(key, child);
    else if (pinned(child)) child.classList.add("gone");
    else child.remove();
  }
  const skip = (at) => {
    while (at && at.nodeType === Node.ELEMENT_NODE && at.classList.contains("gone") && !wanted.has(keyOf(at))) at = at.nextSibling;
    return at;
  };
  let at = skip(node.firstChild);
  for (const child of [...next.childNodes]) {
    const key = keyOf(child);
    let old = key === undefined ? (at && alike(at, child) ? at : null) : known.get(key);
    if (!old) {
      node.insertBefore(document.importNode(child, true), at);
      continue;
    }
    if (old !== at) {
      if (!pinned(old)) {
        node.insertBefore(old, at);
      } else {
        let behind = old.nextSibling;
        for (let n = at, after; n && n !== old; n = after) {
          after = n.nextSibling;
          if (!pinned(n)) node.insertBefore(n, behind);
        }
      }
    }
    patch(old, child);
    at = skip(old.nextSibling);
  }
  while (at) {
    const after = skip(at.nextSibling);
    at.remove();
    at = after;
  }
}

// sweep removes rows that are gone, once the reader has left them.
function sweep() {
  for (const row of document.querySelectorAll(".gone")) if (!pinned(row)) row.remove();
}

// update makes the page what another one is, and keeps in its place on the screen what the reader
// looks at: the row that is pinned, or else the first one on the screen.
let kept = { row: null, top: 0, at: 0 }; // the row of the last update: its place may have been rounded
function update(next) {
  lookAtReader();
  const rows = [...main.querySelectorAll("tr[data-key]")];
  const seen = (row) => row.getBoundingClientRect().bottom > 0 && row.getBoundingClientRect().top < innerHeight;
  const anchor = rows.find((row) => pinned(row) && seen(row)) || (scrollY > 0 ? rows.find(seen) : undefined);
  const top = anchor && (anchor === kept.row && scrollY === kept.at ? kept.top : anchor.getBoundingClientRect().top);
  patch(main, next);
  if (anchor && anchor.isConnected) {
    const moved = anchor.getBoundingClientRect().top - top;
    if (Math.abs(moved) >= 1) scrollBy(0, moved);
    kept = { row: anchor, top, at: scrollY };
  }
}

// What is known: the stream of events is open and has said something of late, the last fetch has
// worked, and the ensemble answers the server of the page.

let streams = false, heard = 0, fetched = Date.now(), failed = false, silent = Number(main.dataset.silent);
const quiet = 12000; // the server says something every 5 s

function show() {
  const clock = (ms) => new Date(ms).toLocaleTimeString([], { timeZoneName: "short" });
  let text = "live";
  if (!streams || failed || Date.now() - heard > quiet) text = "no answer from the server of this page since " + clock(Math.max(heard, fetched)) + ": trying again";
  else if (silent) text = "no answer from the ensemble since " + clock(silent) + ": trying again";
  else if (main.dataset.error) text = "failed at " + clock(fetched);
  document.body.classList.toggle("stale", text !== "live");
  if (text === "live" && busy && Date.now() - refreshed > slow) text = "reading…";
  if (state.textContent !== text) state.textContent = text;
}

let shown = main.dataset.blank ? null : location.search; // the query of the table

// keep adds to an answer without content what the page shows. The server has begun to read the ensemble
// in an outage, after the stream had broken or in another process: this page knows more than it.
function keep(next) {
  delete next.dataset.blank;
  for (const child of main.children) if (!child.matches(".error, .own")) next.append(next.ownerDocument.importNode(child, true));
}

let busy = false, again = false, retry = 0, refreshed = 0, fetching = new AbortController();
const pause = 200; // from one fetch to the next, at least
const slow = 500; // a fetch that takes longer shows
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  clearTimeout(retry);
  try {
    do {
      await new Promise((done) => setTimeout(done, refreshed + pause - Date.now()));
      again = false;
      refreshed = Date.now();
      setTimeout(show, slow + 10);
      const asked = location.href;
      fetching = new AbortController();
      let text;
      try {
        text = await (await fetch(asked, { signal: fetching.signal })).text();
      } catch (e) {
        if (asked === location.href) throw e;
      }
      if (asked !== location.href) { again = true; continue; } // the reader has typed since
      const next = new DOMParser().parseFromString(text, "text/html").querySelector("main");
      if (!next) throw new Error("this is another page");
      if (!next.dataset.blank) shown = location.search;
      else if (shown === location.search) keep(next);
      update(next);
      silent = Number(main.dataset.silent);
      fetched = Date.now();
      failed = false;
    } while (again);
  } catch {
    failed = true;
    retry = setTimeout(refresh, 2000); // there may be no further event
  } finally {
    busy = false;
    tick();
  }
}

// A browser connects again by itself after a stream has broken, but not after an answer that is no
// stream, as a proxy gives it while it cannot reach the service.
function connect() {
  const events = new EventSource(document.body.dataset.events);
  const hear = () => { streams = true; heard = Date.now(); };
  events.onopen = () => { hear(); show(); };
  events.onerror = () => {
    streams = false;
    show();
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
  events.onmessage = () => { hear(); refresh(); };
  events.addEventListener("silent", (e) => { hear(); silent = Number(e.data); show(); });
}
connect();
setInterval(tick, 1000);

// The filter works while the reader types. It changes the list only: of other pages, it leads there.
let typing = 0;
if (!["name", "host", "session"].some((key) => new URLSearchParams(location.search).get(key))) {
  filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      const query = new URLSearchParams(location.search);
      if (filter.value) query.set("q", filter.value); else query.delete("q");
      query.delete("page");
      history.replaceState(null, "", query.size ? "?" + query : "./");
      fetching.abort(); // the answer would be to the text before
      refresh();
    }, 100);
  });
}

document.addEventListener("click", async (e) => {
  const button = e.target.closest(".copy");
  if (!button) return;
  const line = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(line);
  } catch { // without TLS there is no clipboard, but for this
    const area = document.createElement("textarea");
    area.value = line;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  state.textContent = "copied: " + line;
});

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
    filter.focus();
    filter.select();
  } else if (e.key === "j" || e.key === "k") {
    const links = [...main.querySelectorAll("tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);
    const now = links.findIndex((a) => a.closest("tr").contains(document.activeElement));
    const to = links[e.key === "j" ? Math.min(now + 1, links.length - 1) : Math.max(now - 1, 0)];
    if (to) to.focus();
  }
});
