// JSON in which numbers survive. JSON.parse makes each a double, which holds whole numbers up to 2^53 only; ids of chats and
// events may have 64 bits. Here a whole number that a double cannot hold becomes a BigInt, which prints as it came.

// Reads a text. The member named `raw` of the outermost object is not read but kept as the text that it is.
export function parse(text, raw) {
  let at = 0;

  const fail = () => {
    throw new SyntaxError("no JSON at " + at);
  };
  const blanks = () => {
    while (at < text.length && " \t\n\r".includes(text[at])) at++;
  };
  const take = c => {
    if (text[at] !== c) fail();
    at++;
  };
  const string = () => {
    const from = at;
    take('"');
    while (text[at] !== '"') {
      if (at >= text.length) fail();
      at += text[at] === "\\" ? 2 : 1;
    }
    at++;
    return JSON.parse(text.slice(from, at));
  };
  const word = () => {
    const from = at;
    while (at < text.length && !" \t\n\r,:[]{}\"".includes(text[at])) at++;
    return text.slice(from, at);
  };
  const scalar = () => {
    const s = word();
    const v = JSON.parse(s); // a number, true, false or null; anything else throws
    const whole = typeof v === "number" && !s.includes(".") && !s.toLowerCase().includes("e");
    return whole && !Number.isSafeInteger(v) ? BigInt(s) : v;
  };
  // Calls item for each of what stands between two brackets.
  const items = (open, close, item) => {
    take(open);
    blanks();
    for (let first = true; first ? text[at] !== close : text[at] === ","; first = false) {
      if (!first) at++;
      blanks();
      item();
      blanks();
    }
    take(close);
  };
  const object = depth => {
    const o = Object.create(null);
    items("{", "}", () => {
      const name = string();
      blanks();
      take(":");
      blanks();
      const from = at;
      const v = value(depth + 1);
      o[name] = depth === 0 && name === raw ? text.slice(from, at) : v;
    });
    return o;
  };
  const value = depth => {
    if (text[at] === "{") return object(depth);
    if (text[at] === '"') return string();
    if (text[at] !== "[") return scalar();
    const list = [];
    items("[", "]", () => list.push(value(depth + 1)));
    return list;
  };

  blanks();
  const v = value(0);
  blanks();
  if (at < text.length) fail();
  return v;
}

// The same JSON with line breaks and indents. Numbers stay as they are written; what was escaped without need is readable.
export function pretty(text) {
  let out = "", depth = 0, at = 0;
  const line = () => "\n" + "  ".repeat(depth);
  const skip = () => {
    while (at < text.length && " \t\n\r".includes(text[at])) at++;
  };

  for (skip(); at < text.length; skip()) {
    const c = text[at];
    if (c === '"') {
      const from = at++;
      while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
      at++;
      out += JSON.stringify(JSON.parse(text.slice(from, at)));
      continue;
    }
    at++;
    if (c === "{" || c === "[") {
      skip();
      const empty = text[at] === "}" || text[at] === "]";
      depth++;
      out += empty ? c : c + line();
      if (empty) {
        depth--;
        out += text[at++];
      }
    } else if (c === "}" || c === "]") {
      depth--;
      out += line() + c;
    } else if (c === ",") {
      out += c + line();
    } else {
      out += c === ":" ? ": " : c;
    }
  }
  return out;
}
