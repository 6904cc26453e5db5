// The page's frame: login, the views by the address behind #, the language, and the poll of /v1/status that keeps all alive.
import { ask, keepClock, Refused, setToken, token, whenLocked } from "./api.js";
import { button, h, setText } from "./dom.js";
import { event } from "./event.js";
import { list } from "./list.js";
import { forget, overview, remember } from "./overview.js";
import { language, setLang, span, startLang, t } from "./words.js";

const POLL_MS = 2000, RETRY_MS = 4000;
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const nav = document.getElementById("nav");
const tools = document.getElementById("tools");
const foot = document.getElementById("foot");

let view = null;       // { update(status), close() }
let status = null;     // the newest answer
let statusAt = 0;      // when it came, by this browser's clock that only grows
let timer = 0, asking = false;

// ---- the frame ----------------------------------------------------------------------------------

function frame() {
  const inside = !!token();
  const here = location.hash.startsWith("#/event") ? "events" : "overview";
  const tab = (name, to, text) => h("a", { href: to, className: here === name ? "on" : "", "aria-current": here === name ? "page" : null }, t(text));
  nav.replaceChildren(...(inside ? [tab("overview", "#/", "Overview"), tab("events", "#/events?state=dead", "Events")] : []));
  const to = language() === "zh" ? "en" : "zh";
  tools.replaceChildren(
    button(to === "zh" ? "中文" : "English", () => {
      setLang(to);
      show();
    }, { id: "lang", lang: to === "zh" ? "zh-CN" : "en" }),
    inside ? button(t("Log out"), () => lock(""), { id: "logout" }) : "");
}

function say(text, tone) {
  banner.hidden = !text;
  banner.className = tone || "";
  setText(banner, text || "");
}

// ---- login --------------------------------------------------------------------------------------

function lock(why) {
  setToken("");
  status = null;
  forget();
  clearTimeout(timer);
  show(why);
}

async function enter(form, field, error, control) {
  const t0 = field.value.trim();
  if (!t0) return;
  control.disabled = true;
  setText(control, t("Checking"));
  setText(error, "");
  setToken(t0);
  try {
    if (![...t0].every(c => c > " " && c < "\x7f")) throw new Refused(401, "unauthorized", ""); // no header can hold it
    take(await ask("GET", "/v1/status"));
    field.value = "";
    show();
  } catch (e) {
    setToken("");
    setText(error, e.status === 401 ? (e.message.startsWith("a pull token") ? t("This is a bot's pull token; the page needs the API token.") : t("This token is not the right one."))
      : e.status ? e.message : t("The daemon does not answer."));
    control.disabled = false;
    setText(control, t("Log in"));
    field.select();
  }
}

function login(root, why) {
  const field = h("input", { type: "password", id: "token", name: "token", autocomplete: "off", spellcheck: false, required: true });
  const error = h("p", { id: "error", className: "bad", role: "alert" }, why || "");
  const control = h("button", { type: "submit", className: "primary", id: "enter" }, t("Log in"));
  const form = h("form", { id: "login", className: "card", method: "dialog", onsubmit: e => {
    e.preventDefault();
    enter(form, field, error, control);
  } },
    h("h1", {}, t("Status page")),
    h("label", { htmlFor: "token" }, t("API token")), field, error, control,
    h("p", { className: "note" }, t("The token is in the file that listen.api_token_file names. It stays in this tab and is forgotten when the tab closes.")));
  root.append(form);
  field.focus();
}

// ---- views --------------------------------------------------------------------------------------

function show(why) {
  if (view) view.close?.();
  view = null;
  main.replaceChildren();
  frame();
  if (!token()) {
    say("");
    foot.replaceChildren();
    document.title = "tgspool";
    login(main, why);
    return;
  }
  const [path, query] = location.hash.slice(1).split("?");
  if (path === "/events") {
    view = list(main, new URLSearchParams(query || ""), status);
  } else if (path.startsWith("/event/")) {
    view = event(main, path.slice("/event/".length));
  } else {
    view = overview(main);
    if (!status) main.prepend(h("p", { className: "empty loading", id: "loading" }, t("Loading")));
  }
  if (status) refresh();
  poll();
}

function refresh() {
  document.getElementById("loading")?.remove();
  view.update(status);
  document.body.classList.remove("gone");
  const why = status.trouble || "";
  say(!status.healthy ? t("The store does not write: {why}", { why }) : why && t("The store: {why}", { why }), "bad");
  foot.replaceChildren(h("span", {}, "tgspool " + status.version), h("span", {}, t("up for {age}", { age: span(status.now - status.started_at) })));
  const dead = status.boxes.reduce((n, b) => n + Number(b.dead) - Number(b.dead_replayed), 0);
  document.title = (dead > 0 ? "(" + dead + ") " : "") + "tgspool";
}

function take(answer) {
  status = answer;
  statusAt = performance.now();
  keepClock(answer.now);
  remember(answer);
}

async function poll() {
  clearTimeout(timer);
  if (!token() || asking || document.hidden) return;
  let wait = POLL_MS;
  asking = true;
  try {
    take(await ask("GET", "/v1/status"));
    if (view) refresh();
  } catch (e) {
    if (e.status === 401) return;
    wait = RETRY_MS;
    document.body.classList.add("gone");
    say(e.status ? e.message : status ? t("The daemon does not answer. What is shown is {age} old; trying again.", { age: span((performance.now() - statusAt) / 1000) })
      : t("The daemon does not answer. Trying again."), "bad");
  } finally {
    asking = false;
  }
  clearTimeout(timer);
  timer = setTimeout(poll, wait);
}

startLang();
whenLocked(refused => {
  if (view) lock(refused.message.startsWith("a pull token") ? t("This is a bot's pull token; the page needs the API token.") : t("The token is no longer accepted. Log in again."));
});
addEventListener("hashchange", () => {
  show();
  scrollTo(0, 0);
});
document.addEventListener("visibilitychange", poll);
document.addEventListener("poll", poll);
show();
