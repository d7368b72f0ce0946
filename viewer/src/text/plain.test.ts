import { describe, expect, it } from "vitest";
import { plain, plainAll, shortened } from "./plain.ts";

describe("plain", () => {
  it("leaves ordinary text alone", () => {
    for (const text of ["pek.cs.example.1033", "Zürich, 東京, नमस्ते, a → b · 5 µs", "cafe\u0301"]) {
      expect(plain(text)).toBe(text);
    }
  });

  it("shows what acts or hides", () => {
    expect(plain("\x1b[2J\x07")).toBe("\\u{1b}[2J\\u{7}");
    expect(plain("name\r\n✔ Nothing is wrong\tat all")).toBe("name  ✔ Nothing is wrong at all");
    for (const hidden of [
      "\u202e",
      "\u2066",
      "\u200f",
      "\u061c",
      "\u200b",
      "\ufeff",
      "\u00ad",
      "\u{e0041}",
      "\uffff",
    ]) {
      expect(plain(`a${hidden}b`)).toBe(`a\\u{${hidden.codePointAt(0)?.toString(16)}}b`);
    }
    expect(plain("half \ud800 a pair")).toBe("half \\u{d800} a pair");
  });

  it("cuts a tower of marks", () => {
    const clean = plain(`a${"\u0301".repeat(50)}b`);
    expect(clean.match(/\u0301/g)).toHaveLength(2);
    expect(clean.endsWith("\\u{301}b")).toBe(true);
  });

  it("reaches every text of a report", () => {
    const hostile = { name: "a\u202eb", list: [{ "k\u200b": "c\u0000" }], n: 3, none: null };
    expect(plainAll(hostile)).toEqual({
      name: "a\\u{202e}b",
      list: [{ "k\\u{200b}": "c\\u{0}" }],
      n: 3,
      none: null,
    });
  });

  it("keeps both ends of a long name", () => {
    expect(shortened("abcdefghij", 10)).toBe("abcdefghij");
    expect(shortened("abcdefghijk", 10)).toBe("abcde…hijk");
    expect([...shortened("🦀".repeat(300), 48)]).toHaveLength(48);
  });
});
