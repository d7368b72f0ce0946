/**
 * Text from a capture is written by strangers: host names, file names and prose may carry characters that act
 * (control codes, direction overrides) or are there and not seen. `crates/report/src/plain.rs` has the same list.
 */
const HIDDEN = new RegExp(
  `[${[
    String.raw`\p{Cc}\p{Noncharacter_Code_Point}\p{Surrogate}`,
    String.raw`\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f`,
    String.raw`\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb`,
    String.raw`\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}`,
  ].join("")}]`,
  "gu",
);

/** Two marks may sit on a letter (a Vietnamese vowel with its tone); a tower of them paints over its neighbours. */
const TOWER = /(?<=[\p{Mn}\p{Me}]{2})[\p{Mn}\p{Me}]/gu;

const ORDINARY = /^[\u0020-\u007e]*$/;

/** `text` with everything that acts or hides written as `\u{…}`. Line breaks and tabs become spaces. */
export function plain(text: string): string {
  if (ORDINARY.test(text)) return text;
  return text
    .replace(/[\n\r\t]/g, " ")
    .replace(HIDDEN, escaped)
    .replace(TOWER, escaped);
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`;
}

/** `value` with every text in it made plain, however deep. */
export function plainAll<T>(value: T): T {
  if (typeof value === "string") return plain(value) as T;
  if (Array.isArray(value)) return value.map(plainAll) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [plain(key), plainAll(item)])) as T;
}

/** `text` cut in its middle to `most` characters: both ends of a name tell something. */
export function shortened(text: string, most: number): string {
  const letters = [...text];
  if (letters.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - tail).join("")}…${letters.slice(letters.length - tail).join("")}`;
}
