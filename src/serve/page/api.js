// Requests to the daemon. The token lives in this tab's sessionStorage and goes out in a header: never in an address, never
// in a cookie.
import { parse } from "./json.js";

const KEY = "tgspool.token";
let onLocked = () => {};

// The daemon's clock, as the last status told it: a phone's own may be wrong.
let ahead = 0;
export const keepClock = now => (ahead = now - Date.now() / 1000);
export const serverNow = () => Date.now() / 1000 + ahead;

export const token = () => sessionStorage.getItem(KEY) || "";
export const setToken = t => (t ? sessionStorage.setItem(KEY, t) : sessionStorage.removeItem(KEY));
export const whenLocked = fn => (onLocked = fn); // told when the token is refused

export class Refused extends Error { // an answer of the daemon that is no success
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
export class Gone extends Error {} // no answer

const queryOf = o => {
  const q = new URLSearchParams(Object.entries(o || {}).filter(([, v]) => v !== "" && v !== undefined && v !== null));
  return q.size || q.toString() ? "?" + q : "";
};

// Returns the answer's text.
export async function askText(method, path, { query, body, signal } = {}) {
  let r, text;
  try {
    r = await fetch(path + queryOf(query), {
      method,
      headers: { Authorization: "Bearer " + token(), ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: signal || AbortSignal.timeout(30000),
    });
    text = await r.text();
  } catch (e) {
    if (signal && signal.aborted) throw e;
    throw new Gone(e.message);
  }
  if (r.ok) return text;
  let error = {};
  try {
    error = parse(text).error || {};
  } catch { /* a proxy's page */ }
  const refused = new Refused(r.status, error.code || "", error.message || r.status + " " + r.statusText);
  if (r.status === 401) onLocked(refused);
  throw refused;
}

// Returns the answer's JSON; raw: see parse.
export async function ask(method, path, options = {}) {
  return parse(await askText(method, path, options), options.raw);
}

// POSTs what may become a job, and waits for that to end. progress is called with each account of it.
export async function work(path, body, progress) {
  let a = await ask("POST", path, { body });
  while (a.job !== undefined && a.state === "running") {
    progress(a);
    await new Promise(done => setTimeout(done, 700));
    a = await ask("GET", "/v1/jobs/" + a.job);
  }
  if (a.state === "failed") throw new Refused(503, "unavailable", "the store lost the last write");
  return a;
}
