// Lists of events: by state, with filters, page by page, and what is done to the chosen ones.
import { ask, serverNow } from "./api.js";
import { act, exportEvents } from "./bulk.js";
import { busy, button, h, setText } from "./dom.js";
import { clock, moment, number, t } from "./words.js";

const LIMIT = 50;
const STATES = [["pending", "Pending"], ["processing", "Processing"], ["dead", "Dead"], ["done", "Done"], ["", "All"]];
const FIELDS = ["bot", "box", "kind", "chat", "user", "since", "until", "error"];

export const linkTo = e => "#/event/" + e.ref;

function filtersOf(params) {
  const f = {};
  for (const name of ["state", ...FIELDS]) if (params.get(name)) f[name] = params.get(name);
  return f;
}

const go = f => (location.hash = "#/events?" + new URLSearchParams(f));

// ---- filters ------------------------------------------------------------------------------------

function select(name, value, options) {
  const known = options.some(([v]) => v === value);
  return h("select", { name }, (known ? options : [...options, [value, value]]).map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
}

function filterForm(f, bots) {
  const input = (name, label, more) => h("label", {}, h("span", {}, t(label)),
    h("input", { name, value: f[name] || "", autocomplete: "off", spellcheck: false, ...more }));
  const when = { placeholder: t("2h, or 2026-11-29 (UTC)") };
  const form = h("form", { id: "filters", method: "dialog", onsubmit: e => {
    e.preventDefault();
    const next = f.state ? { state: f.state } : {};
    for (const [k, v] of new FormData(form)) if (v.trim()) next[k] = v.trim();
    go(next);
  } },
    h("label", {}, h("span", {}, t("Bot")), select("bot", f.bot || "", [["", t("any")], ...bots.map(b => [b, b])])),
    h("label", {}, h("span", {}, t("Box")), select("box", f.box || "", [["", t("any")], ["in", t("updates (in)")], ["out", t("calls (out)")]])),
    input("kind", "Kind", { placeholder: t("e.g. message") }),
    input("chat", "Chat", { inputMode: "text" }), input("user", "User"),
    input("since", "Since", when), input("until", "Until", when), input("error", "Error contains"),
    h("div", { className: "actions" }, h("button", { type: "submit", className: "primary" }, t("Apply")),
      button(t("Clear"), () => go(f.state ? { state: f.state } : {}))));
  const used = FIELDS.filter(k => f[k]);
  return h("details", { className: "filters card", open: used.length > 0 || matchMedia("(min-width: 800px)").matches },
    h("summary", {}, t("Filters"), used.length > 0 && h("span", { className: "badge" }, used.length)), form);
}

// ---- rows ---------------------------------------------------------------------------------------

function row(e, now, onpick) {
  const pick = h("input", { type: "checkbox", value: e.ref, "aria-label": t("Select {id}", { id: e.id }), onchange: onpick });
  const who = [e.chat !== null && t("Chat") + " " + e.chat, e.user !== null && e.user !== e.chat && t("User") + " " + e.user].filter(Boolean);
  return h("tr", { className: e.state },
    h("td", { className: "pick" }, pick),
    h("td", { className: "id" }, h("a", { href: linkTo(e) }, e.id), h("small", {}, e.kind)),
    h("td", { className: "st" }, h("span", { className: "badge " + e.state }, t(e.state)), e.reason && h("small", {}, t(e.reason)), e.replayed_as !== null && h("small", {}, t("replayed"))),
    h("td", { className: "who" }, who.map(w => h("small", {}, w))),
    h("td", { className: "n" }, e.attempts),
    h("td", { className: "when", title: clock(e.received_at) }, moment(e.received_at, now)),
    h("td", { className: "err" }, h("div", {}, e.error || "")));
}

function table(events, now, onpick) {
  const all = h("input", { type: "checkbox", "aria-label": t("Select all on this page"), onchange: () => {
    for (const box of body.querySelectorAll("input")) box.checked = all.checked;
    onpick();
  } });
  const body = h("tbody", {}, events.map(e => row(e, now, onpick)));
  const heads = ["Event", "State", "Chat", "Tries", "Received", "Last error"];
  return h("table", { id: "events" }, h("thead", {}, h("tr", {}, h("th", { className: "pick" }, h("label", {}, all, h("span", { className: "phone" }, t("Select all on this page")))), heads.map(x => h("th", {}, t(x))))), body);
}

function emptyText(f, next) {
  if (next) return t("No more on this page; the search goes on.");
  if (FIELDS.some(k => f[k])) return t("Nothing passes these filters.");
  return t(f.state === "dead" || f.state === "pending" ? "Nothing here. That is good news." : "Nothing here.");
}

// ---- the view -----------------------------------------------------------------------------------

export function list(root, params, status) {
  const f = filtersOf(params);
  const before = []; // cursors of the pages before this one
  let after, next, closed = false;

  const tabs = h("nav", { className: "tabs" }, STATES.map(([state, name]) => {
    const to = { ...f, state };
    if (!state) delete to.state;
    return h("a", { href: "#/events?" + new URLSearchParams(to), className: (f.state || "") === state ? "on" : "", "data-state": state }, t(name), h("span", { className: "count" }));
  }));
  const place = h("div", { id: "page" }, h("p", { className: "empty loading" }, t("Loading")));
  const chosen = h("span", { className: "chosen" });
  const refs = () => [...place.querySelectorAll("tbody input:checked")].map(i => i.value);
  const ended = f.state === "dead" || f.state === "done" || !f.state;
  const open = f.state !== "done";
  const processing = !["pending", "dead"].includes(f.state);
  const doing = (name, what) => e => busy(e.currentTarget, async () => {
    const done = await (name === "export" ? exportEvents(what()) : act(name, what(), processing));
    if (done && !closed) await load();
  });
  const actions = what => [
    ended && button(t("Replay"), doing("replay", what), { className: "replay" }),
    open && button(t("Discard"), doing("discard", what), { className: "discard danger" }),
    button(t("Export"), doing("export", what), { className: "export" })];
  const some = h("div", { className: "bulk", id: "selected", hidden: true }, chosen, actions(() => ({ ids: refs() })));
  const every = h("div", { className: "bulk", id: "every" }, h("span", {}, t("Every event that passes the filters")), actions(() => ({ filters: f })));
  const number1 = h("span", { id: "pageno" });
  const back = button(t("Previous"), () => turn(-1), { id: "previous" });
  const on = button(t("Next"), () => turn(1), { id: "next" });
  const again = button(t("Refresh"), e => busy(e.currentTarget, load), { id: "refresh" });

  const picked = () => {
    const n = refs().length;
    some.hidden = n === 0;
    setText(chosen, t("{n} selected", { n: number(n) }));
  };
  const turn = by => {
    if (by > 0) before.push(after);
    after = by > 0 ? next : before.pop();
    load();
  };
  async function load() {
    place.classList.add("stale");
    back.disabled = on.disabled = true;
    try {
      const a = await ask("GET", "/v1/events", { query: { ...f, limit: LIMIT, newest: 1, after } });
      if (closed) return;
      next = a.next;
      place.replaceChildren(a.events.length ? table(a.events, serverNow(), picked) : h("p", { className: "empty" }, emptyText(f, next)));
      every.hidden = !a.events.length && !next;
    } catch (e) {
      if (closed || e.status === 401) return;
      place.replaceChildren(h("p", { className: "empty bad" }, e.message), h("p", { className: "empty" }, button(t("Try again"), load)));
      every.hidden = true;
      next = null;
    } finally {
      place.classList.remove("stale");
      setText(number1, t("Page {n}", { n: before.length + 1 }));
      back.disabled = !before.length;
      on.disabled = !next;
      picked();
    }
  }

  const bots = [...new Set((status ? status.boxes : []).map(b => b.bot))];
  root.append(tabs, filterForm(f, bots), some, place,
    h("div", { className: "pager" }, back, number1, on, again), every);
  load();
  return {
    update(st) {
      for (const a of tabs.children) {
        const state = a.dataset.state;
        const n = st.boxes.filter(b => (!f.bot || b.bot === f.bot) && (!f.box || b.box === f.box)).reduce((sum, b) => sum + Number(state ? b[state] : 0), 0);
        setText(a.lastChild, state ? number(n) : "");
      }
    },
    close: () => (closed = true),
  };
}
