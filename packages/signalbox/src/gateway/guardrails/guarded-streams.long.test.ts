/** The decision on a stream does not depend on how it is cut: at every position, in every dialect. */
import { describe, expect, it } from "vitest";
import { Findings } from "./findings.ts";
import {
  BLOCKS_WALRUS,
  cutSentence,
  decisionsOn,
  findingsWithMail,
  MASKS,
  partsFor,
  pass,
  SENTENCE,
  shownIn,
  STREAMS,
  TEXTS,
  words,
} from "./guarded-streams-fixture.ts";
import { BlockedResponse } from "./blocked-response.ts";

describe.each(Object.entries(STREAMS))("a stream of %s", (_, form) => {
  it("is masked and put together again, wherever its text is cut", () => {
    for (let i = 0; i <= SENTENCE.length; i++) {
      const reads = [form.events(partsFor(form, cutSentence(i)))];
      const { text, failure } = pass(MASKS, findingsWithMail(), form.type, reads);
      expect(failure).toBeNull();
      const shown = shownIn(text);
      expect(shown).not.toMatch(/walrus|4111|EMAIL/);
      expect(shown).toContain("<W_1> has <CARD_1> and ada@example.org. Bye");
    }
  });

  it("is blocked before the first character of the match, wherever its bytes are cut", () => {
    // Short, because each cut runs the whole stream again. An event for each character.
    const bytes = form.events(partsFor(form, Array.from("ü walrus has. Bye")));
    // A cut far behind the match is one of a stream that has ended.
    const throughMatch = form.events(partsFor(form, Array.from("ü walrus ha")));
    const last = Math.min(bytes.length, throughMatch.length);
    for (let i = 1; i <= last; i++) {
      const reads = [bytes.subarray(0, i), bytes.subarray(i)];
      const cut = pass(BLOCKS_WALRUS, new Findings(), form.type, reads);
      expect(cut.failure).toBeInstanceOf(BlockedResponse);
      expect(words(cut.text)).not.toMatch(/w/);
    }
  });

  it.each(TEXTS)(
    "has the decision of the whole text, whatever the action and wherever it is cut: %s",
    (text) => {
      const characters = Array.from(text);
      const whole = decisionsOn(form, [text]);
      for (let i = 1; i < characters.length; i++) {
        const parts = [characters.slice(0, i).join(""), characters.slice(i).join("")];
        expect([parts, decisionsOn(form, parts)]).toEqual([parts, whole]);
        const three = [...parts.slice(0, 1), ...characters.slice(i, i + 3), characters.slice(i + 3).join("")];
        const some = three.filter((part) => part.trim() !== "");
        if (some.join("") === text) expect([some, decisionsOn(form, some)]).toEqual([some, whole]);
      }
      for (let length = 1; length < 120; length += 7)
        expect([length, decisionsOn(form, [text.slice(0, 9), text.slice(9)], length)]).toEqual([
          length,
          whole,
        ]);
    },
  );
});
