// Making elements. Texts of events are hostile: all that is shown goes through text nodes and attributes, never through markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(e, props, children) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (k in e && !(e instanceof SVGElement) && k !== "list") e[k] = v;
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat(9).filter(c => c !== undefined && c !== null && c !== false).map(c => (c instanceof Node ? c : String(c))));
  return e;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

// Sets what changed only, so that a selection, the focus and a reader's place stay.
export function setText(e, text) {
  if (e.textContent !== String(text)) e.textContent = text;
}

export function button(text, onclick, props) {
  return h("button", { type: "button", onclick, ...props }, text);
}

export function toast(text, bad) {
  const box = document.getElementById("toasts");
  const e = h("div", { className: bad ? "toast bad" : "toast" }, text);
  box.append(e);
  while (box.children.length > 4) box.firstChild.remove();
  setTimeout(() => e.remove(), bad ? 12000 : 6000);
}

// Runs what a button does: it cannot be pressed twice, and a failure is told.
export async function busy(control, fn) {
  control.disabled = true;
  try {
    return await fn();
  } catch (e) {
    if (e.status !== 401) toast(e.message, true);
  } finally {
    control.disabled = false;
  }
}

// Two lines over time: points is an array of [a, b], or null where nothing is known.
export function sparkline(svg, points, width) {
  const top = Math.max(1e-9, ...points.flatMap(p => p || []));
  const step = 100 / (width - 1);
  const path = i => {
    let d = "", pen = false;
    points.forEach((p, n) => {
      if (p) d += (pen ? "L" : "M") + ((width - points.length + n) * step).toFixed(2) + " " + (27 - (p[i] / top) * 24).toFixed(2);
      pen = !!p;
    });
    return d;
  };
  svg.replaceChildren(
    s("path", { class: "base", d: "M0 27.5H100" }),
    s("path", { class: "in", d: path(0) }),
    s("path", { class: "out", d: path(1) }));
}
