import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Automaton } from "./automaton.ts";
import { SOFT_BREAK } from "./look-alikes.ts";
import { PatternProgram, type ScanPattern } from "./pattern-program.ts";
import { type FoundText, MAX_MATCH, TextScanner } from "./text-scanner.ts";

const exact = (source: string): ScanPattern => ({ source, ignoresCase: false, seesThrough: false });
const wary = (source: string): ScanPattern => ({ source, ignoresCase: true, seesThrough: true });

const automata = new Map<readonly ScanPattern[], Automaton>();

function scan(patterns: readonly ScanPattern[], pieces: readonly string[]): FoundText[] {
  let automaton = automata.get(patterns);
  if (automaton === undefined)
    automata.set(patterns, (automaton = new Automaton(new PatternProgram(patterns))));
  const scanner = new TextScanner(
    automaton,
    patterns.map(() => null),
  );
  const found: FoundText[] = [];
  for (const piece of pieces) {
    scanner.push(piece);
    for (const match of scanner.takeMatches()) {
      expect(match.end).toBeLessThanOrEqual(scanner.judged);
      found.push(match);
    }
  }
  scanner.end();
  found.push(...scanner.takeMatches());
  return found.sort((a, b) => a.start - b.start || a.pattern - b.pattern);
}

const texts = (found: readonly FoundText[]) => found.map(({ text }) => text);

describe("matches", () => {
  it("are leftmost and longest, and several patterns are found in one pass", () => {
    const patterns = [exact("[a-z]+@[a-z]+\\.com"), exact("ab|abcd"), exact("\\bsecret\\b")];
    expect(texts(scan(patterns, ["me@abc.com abcd secret secrets"]))).toEqual([
      "me@abc.com",
      "ab",
      "abcd",
      "secret",
    ]);
  });

  it("respect the ends of words, lines and the text", () => {
    expect(texts(scan([exact("^a|b$")], ["a b a b"]))).toEqual(["a", "b"]);
    expect(texts(scan([exact("(?m)^x$")], ["x\nx\nyx"]))).toEqual(["x", "x"]);
    expect(texts(scan([wary("\\büber\\b")], ["Über, überall"]))).toEqual(["Über"]);
  });

  it("see through look-alikes, styles, invisible characters and breaks between strings, if the pattern does", () => {
    const tricks = [
      "sеcret",
      "ｓｅｃｒｅｔ",
      "s\u200be\u2060cret",
      "𝐬𝐞𝐜𝐫𝐞𝐭",
      `sec${SOFT_BREAK}ret`,
      "SECRET",
    ];
    for (const text of tricks) {
      expect(texts(scan([wary("\\bsecret\\b")], [`a ${text} b`])), text).toEqual([text]);
      expect(texts(scan([exact("\\bsecret\\b")], [`a ${text} b`])), text).toEqual([]);
    }
    expect(texts(scan([wary("\\d{4}")], ["٤١١١"]))).toEqual(["٤١١١"]);
  });

  it("have a bound, beyond which a match is cut, and a region without end is judged all the same", () => {
    const long = "a".repeat(3 * MAX_MATCH);
    const [first] = scan([exact("a+b?")], [long]);
    expect(first?.start).toBe(0);
    const text = `${"x".repeat(10_000)}needle${"x".repeat(10_000)}`;
    expect(texts(scan([exact("needle"), exact("x+y")], [text]))).toEqual(["needle"]);
  });

  it("of patterns that take too long are given up", () => {
    const automaton = new Automaton(new PatternProgram([exact("a|a.*b")]));
    const scanner = new TextScanner(automaton, [null]);
    scanner.push("a".repeat(20_000));
    scanner.end();
    expect(scanner.isTooComplex).toBe(true);
  });

  it("of patterns with too many states are given up, whatever was learned before and however the text is cut", () => {
    // A generator, so that the text is the same in every run.
    let seed = 1;
    const bits = Array.from({ length: 8000 }, () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return String((seed >>> 16) & 1);
    });
    const automaton = new Automaton(new PatternProgram([exact("[01]*1[01]{490}x"), exact("needle")]));
    for (const size of [8000, 8000, 7]) {
      const scanner = new TextScanner(automaton, [null, null]);
      let givenUpAt = -1;
      for (let at = 0; at < bits.length; at += size) {
        scanner.push(bits.slice(at, at + size).join(""));
        if (scanner.isTooComplex && givenUpAt === -1) givenUpAt = at;
      }
      expect(scanner.isTooComplex, `reads of ${size}`).toBe(true);
      // Nothing is held of a text that is not searched any more.
      expect(scanner.judged).toBe(8000);
      if (size === 7) expect(givenUpAt).toBeLessThan(5000);
      scanner.end();
      scanner.push("a needle");
      scanner.end();
      expect(texts(scanner.takeMatches())).toEqual(["needle"]);
    }
  });

  it("of wide patterns are found in long texts, whose states repeat", () => {
    const automaton = new Automaton(new PatternProgram([exact("[a-z]{1,400}@x"), exact("[a-z ]{300}!")]));
    const scanner = new TextScanner(automaton, [null, null]);
    scanner.push("lorem ipsum dolor sit amet ".repeat(1000));
    scanner.push(" ada@x");
    scanner.end();
    expect(scanner.isTooComplex).toBe(false);
    expect(texts(scanner.takeMatches())).toEqual(["ada@x"]);
  });

  it("that are refused by their check are looked for further on", () => {
    const automaton = new Automaton(new PatternProgram([exact("[0-9]{3}")]));
    const scanner = new TextScanner(automaton, [(plain) => (plain === "456" ? [0, 3] : null)]);
    scanner.push("123456");
    scanner.end();
    expect(texts(scanner.takeMatches())).toEqual(["456"]);
  });
});

describe("a long text", () => {
  const random = (seed: number) => {
    let state = seed;
    return (limit: number) => ((state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 16) % limit;
  };

  it("has the same matches when the states of the automaton were too many, and all were forgotten", () => {
    const dice = random(1);
    const text = Array.from({ length: 8000 }, () => {
      const letters = Array.from({ length: 18 + dice(40) }, () => (dice(2) === 0 ? "a" : "b")).join("");
      return `${letters}${dice(3) === 0 ? "c" : " "}`;
    }).join("");
    const expected = [...text.matchAll(/a[ab]{15}c/g)].map(({ index }) => index);
    expect(expected.length).toBeGreaterThan(500);
    const patterns = [exact("a[ab]{15}c"), exact("zebra")];
    const found = scan(patterns, [text]);
    expect(found.map(({ start }) => start)).toEqual(expected);
    expect(automata.get(patterns)?.idleBehind(0).generation).toBeGreaterThan(0);
  });

  it("is searched in slices, between which the matches that are known can be taken", () => {
    const patterns = [wary("secret"), exact("\\b[a-z]+@[a-z]+\\.com\\b")];
    const text = Array.from({ length: 9000 }, (_, i) =>
      i % 7 === 0 ? "a secret" : `me${i}@abc.com \u{1f600}`,
    ).join(" ");
    const scanner = new TextScanner(new Automaton(new PatternProgram(patterns)), [null, null]);
    const found: FoundText[] = [];
    let slices = 0;
    for (const _ of scanner.pushSlices(text)) {
      slices += 1;
      found.push(...scanner.takeMatches());
    }
    scanner.end();
    found.push(...scanner.takeMatches());
    expect(slices).toBeGreaterThan(3);
    const whole = scan(patterns, [text]);
    expect(found.toSorted((a, b) => a.start - b.start || a.pattern - b.pattern)).toEqual(whole);
    expect(whole.length).toBeGreaterThan(1000);
  });
});

describe("a text in pieces", () => {
  const patterns = [
    exact("[a-c]+@b"),
    exact("ab{2,4}c"),
    wary("\\bcab\\b"),
    exact("a.*c"),
    exact("\\bc+$"),
    wary("\\d(?:[ -]?\\d){3,5}"),
  ];

  it("has the matches of the whole text, wherever it is cut", () => {
    const text = "cab aab@b abbbc 12 3-4 сab\u200b ccc 💥 abbc\nc a1234567 c";
    const whole = scan(patterns, [text]);
    expect(whole.length).toBeGreaterThan(6);
    for (let i = 0; i <= text.length; i++)
      for (let j = i; j <= text.length; j++)
        expect(scan(patterns, [text.slice(0, i), text.slice(i, j), text.slice(j)])).toEqual(whole);
  });

  it("has the matches of the whole text, whatever the text is", () => {
    const alphabet = fc.constantFrom(
      "a",
      "b",
      "c",
      "@",
      " ",
      "1",
      "2",
      "-",
      "\n",
      "с",
      "\u200b",
      "💥",
      SOFT_BREAK,
    );
    fc.assert(
      fc.property(fc.array(fc.array(alphabet, { maxLength: 8 }), { maxLength: 8 }), (pieces) => {
        const cut = pieces.map((piece) => piece.join(""));
        const whole = cut.join("");
        expect(scan(patterns, cut)).toEqual(scan(patterns, [whole]));
        expect(scan(patterns, whole.split(""))).toEqual(scan(patterns, [whole]));
      }),
      { numRuns: 300 },
    );
  });

  it("lets everything go that cannot belong to a match", () => {
    const scanner = new TextScanner(new Automaton(new PatternProgram([exact("\\bsecret\\b")])), [null]);
    scanner.push("nothing sec");
    expect(scanner.judged).toBe("nothing ".length);
    scanner.push("tion");
    expect(scanner.judged).toBe("nothing section".length);
  });
});

it("texts that were searched alone are searched together without being read twice, and the same matches span them", () => {
  const patterns = [
    wary("\\bsecret\\b"),
    wary("[a-z0-9.]+@[a-z]+\\.org"),
    wary("\\d{4}(?: ?\\d{4})+"),
    exact("^a|b$"),
    wary("x+y"),
  ];
  const automaton = new Automaton(new PatternProgram(patterns));
  const create = () =>
    new TextScanner(
      automaton,
      patterns.map(() => null),
    );
  const spanning = (scanner: TextScanner) =>
    scanner.takeMatches().filter(({ text }) => text.includes(SOFT_BREAK));
  const piece = fc.array(
    fc.constantFrom(
      "sec",
      "ret",
      " ",
      "ada",
      "@",
      "example.org",
      "4111",
      "\u200b",
      "x",
      "y",
      "b",
      "\n",
      "é",
      "𝐬",
      "x".repeat(5000),
    ),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 5 }), (pieces) => {
      const [together, alone, again] = [create(), create(), create()];
      const found: FoundText[] = [];
      const expected: FoundText[] = [];
      let start = 0;
      for (const text of pieces.map((parts) => parts.join(""))) {
        alone.push(text);
        const { idle } = alone;
        alone.end();
        together.push(text, idle === null ? null : { ...idle, at: idle.at - start });
        again.push(text);
        start += text.length;
        for (const scanner of [together, again]) scanner.push(SOFT_BREAK);
        found.push(...spanning(together));
        expected.push(...spanning(again));
        expect(together.judged).toBe(again.judged);
      }
      together.end();
      again.end();
      found.push(...spanning(together));
      expected.push(...spanning(again));
      expect(found).toEqual(expected);
    }),
  );
});
