// What is done to many events: replay, discard and export, of the chosen ones or of all that pass the filters.
import { ask, askText, work } from "./api.js";
import { confirm } from "./dialog.js";
import { h, button, toast } from "./dom.js";
import { number, t } from "./words.js";

const IDS_MAX = 500; // in one request
const PAGE = 200;    // events of an export's page

const acts = {
  replay: {
    path: "/v1/replay", past: "replayed", title: "Replay {n} events?", title1: "Replay 1 event?", yes: "Replay", told: "{n} replayed.",
    text: "Each gets a copy at the end of its chat's queue; the old one keeps its state.",
    skips: "{n} were replayed before or have not ended, and are left out.",
    none: "Nothing to replay: these were replayed before, or have not ended.",
  },
  discard: {
    path: "/v1/discard", past: "discarded", title: "Discard {n} events?", title1: "Discard 1 event?", yes: "Discard", told: "{n} discarded.", bad: true,
    text: "They are kept as dead letters, are not handed over any more, and ask for nothing.",
    skips: "{n} are done, or were replayed or discarded before, and are left out.",
    none: "Nothing to discard: these are done, or were replayed or discarded before.",
  },
};

// A line at the screen's foot that tells how far something is. Returns { say, end, signal }.
function progress(text, cancellable) {
  const stop = new AbortController();
  const line = h("span", {}, text);
  const box = h("div", { className: "toast working" }, line, cancellable && button(t("Cancel"), () => stop.abort()));
  document.getElementById("toasts").append(box);
  return { say: text2 => (line.textContent = text2), end: () => box.remove(), signal: stop.signal };
}

// A list without a state shows all; the API would take its verb's usual states.
const whole = filters => ({ state: "pending,processing,done,dead", ...filters });

async function withIds(act, ids, force, say) {
  const sum = { changed: 0, skipped: 0, busy: 0 };
  for (let i = 0; i < ids.length; i += IDS_MAX) {
    const body = { ids: ids.slice(i, i + IDS_MAX), ...(force ? { force: true } : {}) };
    const a = await ask("POST", act.path, { body });
    for (const e of a.events) {
      if (e.ok) sum.changed++;
      else if (e.error.code === "busy") sum.busy++;
      else sum.skipped++;
    }
    say(t("Working: {n} so far", { n: number(sum.changed) }));
  }
  return sum;
}

async function withFilters(act, filters, force, say) {
  const a = await work(act.path, { ...whole(filters), ...(force ? { force: true } : {}) },
    job => say(t("Working: {n} so far", { n: number(job[act.past]) })));
  return { changed: a[act.past], skipped: a.skipped, busy: a.busy };
}

// How many there are, and whether some of them are being processed.
async function count(act, filters) {
  const p = progress(t("Counting"));
  try {
    return await work(act.path, { ...whole(filters), dry_run: true }, () => {});
  } finally {
    p.end();
  }
}

function tell(act, sum) {
  const parts = [t(act.told, { n: number(sum.changed) })];
  if (Number(sum.skipped)) parts.push(t("{n} skipped.", { n: number(sum.skipped) }));
  if (Number(sum.busy)) parts.push(t("{n} are being processed and were left alone.", { n: number(sum.busy) }));
  toast(parts.join(" "), !Number(sum.changed));
}

// Replays or discards. what: { ids } or { filters }; processing: some may be in a handler's hands. Returns whether anything
// was done.
export async function act(name, what, processing) {
  const a = acts[name];
  let n, note;
  if (what.ids) {
    n = what.ids.length;
  } else {
    const c = await count(a, what.filters);
    n = c[a.past];
    if (Number(c.skipped)) note = t(a.skips, { n: number(c.skipped) });
  }
  if (!Number(n)) {
    toast(t(a.none), true);
    return false;
  }
  const answer = await confirm({
    title: t(Number(n) === 1 ? a.title1 : a.title, { n: number(n) }), text: t(a.text), note, yes: t(a.yes), bad: a.bad,
    option: name === "discard" && processing && t("also those that are being processed: their handlers are stopped"),
  });
  if (!answer) return false;
  const p = progress(t("Working: {n} so far", { n: 0 }));
  try {
    tell(a, await (what.ids ? withIds(a, what.ids, answer.option, p.say) : withFilters(a, what.filters, answer.option, p.say)));
  } finally {
    p.end();
  }
  document.dispatchEvent(new Event("poll"));
  return true;
}

// ---- export -------------------------------------------------------------------------------------

// The lines of a page as they came, so that payloads stay to the byte: an event a line, between the first line and the last.
function linesOf(text) {
  const lines = text.split("\n").slice(1, -1);
  return lines.map(l => (l.endsWith(",") ? l.slice(0, -1) : l)).filter(Boolean);
}

async function* pagesOf(what, signal) {
  if (what.ids) {
    for (const id of what.ids) yield [await askText("GET", "/v1/events/" + id, { signal })];
    return;
  }
  let after;
  do {
    const text = await askText("GET", "/v1/events", { query: { ...what.filters, payload: 1, limit: PAGE, after }, signal });
    yield linesOf(text);
    after = JSON.parse("{" + text.slice(text.lastIndexOf('"next":'))).next; // behind the last event: only our own text
  } while (after);
}

function save(parts) {
  const url = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  const stamp = new Date().toISOString().slice(0, 19).split(":").join("").split("-").join("");
  const link = h("a", { href: url, download: `tgspool-${stamp}.jsonl` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// Downloads what `tgspool export` would write.
export async function exportEvents(what) {
  const answer = await confirm({ title: t("Export"), yes: t("Export"),
    text: t("The file holds payloads: keep it private. `tgspool import` puts it back.") });
  if (!answer) return;
  const p = progress(t("Exporting: {n} so far", { n: 0 }), true);
  const parts = [];
  let n = 0;
  try {
    for await (const lines of pagesOf(what, p.signal)) {
      if (lines.length) parts.push(lines.join("\n") + "\n");
      n += lines.length;
      p.say(t("Exporting: {n} so far", { n: number(n) }));
    }
    if (n) save(parts);
    toast(n ? t("{n} events exported.", { n: number(n) }) : t("Nothing to export."), !n);
  } catch (e) {
    if (!p.signal.aborted) throw e;
  } finally {
    p.end();
  }
}
