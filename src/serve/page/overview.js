// The overview: a card a bot, kept up to date by every answer of /v1/status.
import { ask } from "./api.js";
import { confirm } from "./dialog.js";
import { busy, button, h, s, setText, sparkline, toast } from "./dom.js";
import { clock, moment, number, span, t, bytes } from "./words.js";

const POINTS = 90; // of a sparkline
const STATES = ["pending", "processing", "dead", "done"];
const NAMES = { pending: "Pending", processing: "Processing", dead: "Dead", done: "Done" };
const RATE_S = 60; // what a rate is the mean of

// ---- rates, from differences of counters --------------------------------------------------------

const samples = new Map(); // box name -> [{ at, received, delivered }]
const nameOf = b => b.bot + "/" + b.box;

export function remember(status) {
  for (const b of status.boxes) {
    const list = samples.get(nameOf(b)) || [];
    const sample = { at: status.now, received: Number(b.since_made.received), delivered: Number(b.since_made.delivered) };
    const last = list[list.length - 1];
    if (last && (sample.received < last.received || sample.at <= last.at)) list.length = 0; // another spool, another clock
    list.push(sample);
    if (list.length > POINTS + 1) list.shift();
    samples.set(nameOf(b), list);
  }
}

export function forget() {
  samples.clear();
}

function ratesOf(b) {
  const list = samples.get(nameOf(b)) || [];
  const last = list[list.length - 1];
  const from = list.find(x => x.at >= last.at - RATE_S) || last;
  const per = key => (last.at > from.at ? ((last[key] - from[key]) * 60) / (last.at - from.at) : 0);
  const points = list.slice(1).map((x, i) => {
    const d = x.at - list[i].at;
    return d > 30 ? null : [(x.received - list[i].received) / d, (x.delivered - list[i].delivered) / d];
  });
  return { received: per("received"), delivered: per("delivered"), points };
}

const rate = n => (n > 0 && n < 9.95 ? n.toFixed(1) : number(Math.round(n)));

// ---- a card -------------------------------------------------------------------------------------

function fact(name) {
  const value = h("dd");
  return { row: h("div", { className: "fact" }, h("dt", {}, t(name)), value), value };
}

function tile(bot, box, state) {
  const n = h("b"), note = h("small");
  const link = "#/events?" + new URLSearchParams({ state, bot, box });
  return { root: h("a", { className: "tile " + state, href: link }, n, h("span", {}, t(NAMES[state])), note), n, note };
}

async function pause(control, bot, what, paused) {
  const intake = what === "intake";
  if (!paused && !(await confirm({
    title: t(intake ? "Pause intake of {bot}?" : "Pause delivery of {bot}?", { bot }),
    text: t(intake ? "New updates stay at Telegram, which keeps them for 24 hours."
      : "Updates are still taken and kept; handlers get none until you resume."),
    yes: t(intake ? "Pause intake" : "Pause delivery"),
  }))) return;
  await busy(control, async () => {
    await ask("POST", paused ? "/v1/resume" : "/v1/pause", { body: { bot, what } });
    toast(t(`{bot}: ${intake ? "intake" : "delivery"} is ${paused ? "resumed" : "paused"}.`, { bot }));
    document.dispatchEvent(new Event("poll"));
  });
}

function intakeText(b, now) {
  const i = b.intake;
  if (!i) return [b.orphan ? t("not configured") : t("none"), false];
  if (i.mode === "none") return [t("no intake"), false];
  const mode = t(i.mode === "poll" ? "long polling" : "webhook");
  if (i.trouble_since) {
    const values = { age: span(now - i.trouble_since), n: i.tries };
    return [mode + ": " + t(i.tries !== undefined ? "failing for {age}, {n} tries" : "failing for {age}", values), true];
  }
  if (b.paused.intake) return [mode + ": " + t("intake paused"), false];
  if (i.held || i.state === "held") return [mode + ": " + t("held"), true];
  return [mode + ": " + (i.answered_at ? t("well; last answer {when}", { when: moment(i.answered_at, now) }) : t("nothing yet")), false];
}

function breakerText(b, now) {
  const k = b.breaker;
  if (!k.open) return t("closed");
  const probe = k.probe_at ? "; " + t("next probe {when}", { when: moment(k.probe_at, now) }) : "";
  return t("open since {age}: {why}", { age: span(now - k.since), why: t(k.cause || "") }) + probe;
}

function badgesOf(b) {
  const list = [];
  if (b.orphan) list.push(["not configured", ""]);
  if (b.intake && b.intake.trouble_since) list.push(["intake fails", "bad"]);
  if (b.breaker.open) list.push(["breaker open", "bad"]);
  if (b.paused.intake) list.push(["intake paused", "warn"]);
  if (b.paused.deliver) list.push(["delivery paused", "warn"]);
  return list;
}

function card(bot) {
  const tiles = Object.fromEntries(STATES.map(k => [k, tile(bot, "in", k)]));
  const badges = h("span", { className: "badges" });
  const oldest = fact("Oldest unfinished"), last = fact("Last update"), intake = fact("Intake"), breaker = fact("Breaker");
  const waiting = fact("Waiting at Telegram"), gaps = fact("Gaps in update_id"), calls = fact("Calls to Telegram");
  const trouble = h("p", { className: "trouble", hidden: true });
  const chart = s("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img",
    "aria-label": t("received and delivered over the last minutes") });
  const rateIn = h("span", { className: "in" }), rateOut = h("span", { className: "out" });
  const state = { intake: false, deliver: false };
  const pauseIntake = button("", () => pause(pauseIntake, bot, "intake", state.intake), { className: "pause-intake" });
  const pauseDeliver = button("", () => pause(pauseDeliver, bot, "deliver", state.deliver), { className: "pause-deliver" });
  const actions = h("div", { className: "actions" }, pauseIntake, pauseDeliver);
  const root = h("section", { className: "card bot", id: "bot-" + bot },
    h("header", {}, h("h2", {}, bot), badges),
    h("div", { className: "tiles" }, STATES.map(k => tiles[k].root)),
    h("div", { className: "rates" }, chart, h("p", {}, rateIn, rateOut)),
    trouble,
    h("dl", { className: "facts" }, [oldest, last, intake, breaker, waiting, gaps, calls].map(f => f.row)),
    actions);

  const update = (b, out, now) => {
    for (const k of STATES) {
      setText(tiles[k].n, number(b[k]));
      tiles[k].root.classList.toggle("zero", Number(b[k]) === 0);
    }
    setText(tiles.dead.note, Number(b.dead_replayed) ? t("{n} settled", { n: number(b.dead_replayed) }) : "");
    const all = badgesOf(b);
    const key = all.join("|");
    if (badges.dataset.key !== key) {
      badges.dataset.key = key;
      badges.replaceChildren(...all.map(([text, tone]) => h("span", { className: "badge " + tone }, t(text))));
    }
    setText(oldest.value, b.oldest_unfinished_at ? span(now - b.oldest_unfinished_at) : t("nothing waits"));
    setText(last.value, b.last_received_at ? moment(b.last_received_at, now) : t("nothing yet"));
    last.value.title = b.last_received_at ? clock(b.last_received_at) : "";
    const [text, bad] = intakeText(b, now);
    setText(intake.value, text);
    intake.value.classList.toggle("bad", bad);
    setText(breaker.value, breakerText(b, now));
    breaker.value.classList.toggle("bad", b.breaker.open);
    const why = [b.intake && (b.intake.trouble || (!b.paused.intake && b.intake.held)), b.behind_barrier && t("events behind a change of order wait")].filter(Boolean).join("\n");
    setText(trouble, why);
    trouble.hidden = !why;
    const upstream = b.intake && b.intake.upstream_pending;
    waiting.row.hidden = !(Number(upstream) > 0);
    setText(waiting.value, waiting.row.hidden ? "" : number(upstream));
    gaps.row.hidden = !Number(b.since_made.gaps);
    setText(gaps.value, number(b.since_made.gaps));
    calls.row.hidden = !out;
    if (out) {
      const link = k => h("a", { href: "#/events?" + new URLSearchParams({ state: k, bot, box: "out" }), className: Number(out[k]) && k === "dead" ? "bad" : "" },
        number(out[k]) + " " + t(k));
      const now2 = STATES.map(k => out[k]).join(",") + out.breaker.open;
      if (calls.value.dataset.key !== now2) {
        calls.value.dataset.key = now2;
        const some = STATES.filter(k => Number(out[k]));
        calls.value.replaceChildren(...some.flatMap((k, i) => [i ? " · " : "", link(k)]), some.length ? " " : t("none"), out.breaker.open ? h("span", { className: "badge bad" }, t("breaker open")) : "");
      }
    }
    const r = ratesOf(b);
    setText(rateIn, t("{n}/min in", { n: rate(r.received) }));
    setText(rateOut, t("{n}/min out", { n: rate(r.delivered) }));
    sparkline(chart, r.points, POINTS);
    state.intake = b.paused.intake;
    state.deliver = b.paused.deliver;
    setText(pauseIntake, t(state.intake ? "Resume intake" : "Pause intake"));
    setText(pauseDeliver, t(state.deliver ? "Resume delivery" : "Pause delivery"));
    pauseIntake.classList.toggle("primary", state.intake);
    pauseDeliver.classList.toggle("primary", state.deliver);
    actions.hidden = b.orphan;
  };
  return { root, update };
}

// ---- the disk -----------------------------------------------------------------------------------

function diskCard(disk) {
  const rows = [["free", disk.free], ["total", disk.total], ["database", disk.db], ["reserve", disk.reserve]].filter(([, v]) => v !== undefined);
  const tone = disk.full || disk.low || disk.held ? "bad" : disk.filling ? "warn" : "";
  return [
    h("header", {}, h("h2", {}, t("Disk")), tone && h("span", { className: "badge " + tone }, t(tone === "warn" ? "filling up" : "nearly full"))),
    disk.held && h("p", { className: "trouble" }, disk.held),
    h("dl", { className: "facts wide" }, rows.map(([k, v]) => h("div", { className: "fact" }, h("dt", {}, t(k)), h("dd", {}, bytes(v))))),
  ].filter(Boolean);
}

// ---- the view -----------------------------------------------------------------------------------

export function overview(root) {
  const cards = new Map();
  const list = h("div", { id: "bots" }), disk = h("section", { className: "card", id: "disk", hidden: true });
  root.append(list, disk);
  return {
    update(status) {
      const boxes = status.boxes.filter(b => b.box === "in");
      for (const b of boxes) {
        if (!cards.has(b.bot)) cards.set(b.bot, card(b.bot));
        const c = cards.get(b.bot);
        if (!c.root.parentNode) list.append(c.root);
        c.update(b, status.boxes.find(o => o.bot === b.bot && o.box === "out"), status.now);
      }
      for (const [name, c] of cards)
        if (!boxes.some(b => b.bot === name)) {
          c.root.remove();
          cards.delete(name);
        }
      if (!boxes.length && !list.firstChild) list.append(h("p", { className: "empty" }, t("No bots are configured.")));
      disk.hidden = !status.disk;
      if (status.disk) disk.replaceChildren(...diskCard(status.disk));
    },
  };
}
