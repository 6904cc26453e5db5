// One event: its facts, the timeline of its tries, and the payload for who asks for it.
import { ask, serverNow } from "./api.js";
import { act, exportEvents } from "./bulk.js";
import { busy, button, h, toast } from "./dom.js";
import { pretty } from "./json.js";
import { clock, moment, t } from "./words.js";

const other = (e, seq) => e.bot + (e.box === "out" ? "/out" : "") + "/@" + seq;
const pathOf = ref => "/v1/events/" + ref.split("/").map(encodeURIComponent).join("/");
const link = ref => h("a", { href: "#/event/" + ref }, ref);

function factsOf(e) {
  const some = v => v !== null && v !== undefined && v !== "";
  return [
    ["bot", e.bot], ["box", e.box], ["update id", e.update_id], ["sequence number", e.seq], ["kind", e.kind],
    ["chat", e.chat], ["user", e.user], ["lane", e.lane], ["key", e.key], ["tries", e.attempts],
    ["interrupted", e.interrupted || null], ["reason", e.reason && t(e.reason)], ["last error", e.error],
    ["made by", e.made_by && link(e.made_by)], ["replay of", some(e.replay_of) && link(other(e, e.replay_of))],
    ["replayed as", some(e.replayed_as) && link(other(e, e.replayed_as))],
  ].filter(([, v]) => some(v) && v !== false);
}

// ---- the timeline -------------------------------------------------------------------------------

function momentsOf(e) {
  const list = [{ at: e.received_at, what: t("received"), tone: "" }];
  for (const x of e.history)
    list.push({ at: x.at, what: t(x.outcome), error: x.error, tone: x.outcome === "done" ? "done" : x.outcome === "released" ? "" : "bad" });
  if (e.state === "processing") {
    list.push({ at: e.claimed_at, what: e.claimed_by ? t("handed over to {who}", { who: e.claimed_by }) : t("handed over"), tone: "processing" });
    if (e.deadline) list.push({ at: e.deadline, what: t("lease ends"), tone: "future" });
  } else if (e.state === "pending") {
    list.push(e.next_retry_at ? { at: e.next_retry_at, what: t("next try"), tone: "future" } : { what: t("waits for its turn"), tone: "future" });
  } else if (!e.history.some(x => x.outcome === "discarded")) { // that is the end itself
    list.push({ at: e.finished_at, what: t(e.state) + (e.reason ? ": " + t(e.reason) : ""), tone: e.state });
  }
  if (e.replayed_as !== null && e.replayed_as !== undefined) list.push({ what: [t("replayed as"), " ", link(other(e, e.replayed_as))], tone: "" });
  return list;
}

function timeline(e, now) {
  return h("ol", { id: "timeline" },
    Number(e.attempts) > e.history.length && h("li", { className: "note" }, t("Earlier tries are not kept.")),
    momentsOf(e).map(m => h("li", { className: m.tone }, h("b", {}, m.what),
      m.at ? h("time", { title: moment(m.at, now) }, clock(m.at) + " · " + moment(m.at, now)) : "",
      m.error ? h("pre", { className: "error" }, m.error) : "")));
}

// ---- the payload --------------------------------------------------------------------------------

function bytesAsText(base64) {
  const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

function payloadCard(ref) {
  const place = h("div", { id: "payload" });
  const masked = () => place.replaceChildren(
    h("p", { className: "mask", "aria-hidden": "true" }, "•••••••• •••••• •••••••••••• ••••"),
    h("p", { className: "note" }, t("Hidden, since it may hold private messages.")),
    button(t("Show payload"), e => busy(e.currentTarget, shown), { id: "unmask" }));
  const shown = async () => {
    const e = await ask("GET", pathOf(ref), { raw: "payload" });
    const text = e.payload !== undefined ? pretty(e.payload) : bytesAsText(e.payload_base64 || "");
    place.replaceChildren(
      e.payload === undefined && h("p", { className: "note" }, t("The bytes are no JSON in UTF-8; shown as text.")) || "",
      h("pre", { className: "json", tabIndex: 0 }, text),
      h("div", { className: "actions" },
        navigator.clipboard ? button(t("Copy"), b => busy(b.currentTarget, async () => {
          await navigator.clipboard.writeText(text);
          toast(t("Copied."));
        })) : "",
        button(t("Hide payload"), masked, { id: "mask" })));
  };
  masked();
  return h("section", { className: "card" }, h("h2", {}, t("Payload")), place);
}

// ---- the view -----------------------------------------------------------------------------------

export function event(root, ref) {
  let closed = false;
  const doing = (name, e) => b => busy(b.currentTarget, async () => {
    const what = { ids: [e.ref] };
    if (name === "export") await exportEvents(what);
    else if (await act(name, what, e.state === "processing")) await load();
  });
  const draw = e => {
    const ended = e.state === "done" || e.state === "dead";
    root.replaceChildren(
      h("p", { className: "crumb" }, h("a", { href: "#/events?" + new URLSearchParams({ state: e.state, bot: e.bot }) }, "← " + t("Back"))),
      h("header", { className: "title" }, h("h1", {}, e.id), h("span", { className: "badge " + e.state }, t(e.state)),
        h("div", { className: "actions" },
          ended && button(t("Replay"), doing("replay", e), { className: "replay primary" }),
          (!ended || (e.state === "dead" && e.reason !== "discarded" && e.replayed_as === null)) && button(t("Discard"), doing("discard", e), { className: "discard danger" }),
          button(t("Export"), doing("export", e), { className: "export" }),
          button(t("Refresh"), b => busy(b.currentTarget, load), { className: "refresh" }))),
      h("section", { className: "card" }, h("h2", {}, t("Timeline")), timeline(e, serverNow())),
      h("section", { className: "card" }, h("h2", {}, t("Facts")), h("dl", { className: "facts wide" },
        factsOf(e).map(([k, v]) => h("div", { className: "fact" }, h("dt", {}, t(k)), h("dd", {}, v))))),
      payloadCard(e.ref));
  };
  async function load() {
    try {
      const e = await ask("GET", pathOf(ref), { query: { payload: 0 } });
      if (!closed) draw(e);
    } catch (e) {
      if (closed || e.status === 401) return;
      root.replaceChildren(
        h("p", { className: "empty bad" }, e.status === 404 ? t("There is no such event. It may have been deleted by retention.") : e.message),
        h("p", { className: "empty" }, button(t("Try again"), load), " ", h("a", { href: "#/" }, t("Overview"))));
    }
  }
  root.append(h("p", { className: "empty loading" }, t("Loading")));
  load();
  return { update() {}, close: () => (closed = true) };
}
