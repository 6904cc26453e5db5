// Asking before something is done.
import { button, h } from "./dom.js";
import { t } from "./words.js";

// Asks; returns null or what was chosen: { option } tells whether the box was ticked. bad: the button that does harm.
export function confirm({ title, text, note, option, yes, bad }) {
  return new Promise(done => {
    const tick = option && h("input", { type: "checkbox", className: "option" });
    let answer = null;
    const dialog = h("dialog", { onclose: () => {
      dialog.remove();
      done(answer);
    } },
      h("h2", {}, title),
      text && h("p", {}, text),
      note && h("p", { className: "note" }, note),
      option && h("label", { className: "tick" }, tick, option),
      h("div", { className: "actions" },
        button(t("Cancel"), () => dialog.close(), { className: "cancel" }),
        button(yes, () => {
          answer = { option: !!tick && tick.checked };
          dialog.close();
        }, { className: bad ? "yes danger" : "yes primary" })));
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector(".cancel").focus();
  });
}
