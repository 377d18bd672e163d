/** The decision on a stream does not depend on how it is cut: at every position, in every dialect. */
import { describe, expect, it } from "vitest";
import { Findings } from "./findings.ts";
import {
  BLOCKS_WALRUS,
  cutSentence,
  findingsWithMail,
  MASKS,
  pass,
  SENTENCE,
  STREAMS,
  words,
} from "./guarded-streams-fixture.ts";
import { BlockedResponse } from "./blocked-response.ts";

describe.each(Object.entries(STREAMS))("a stream of %s", (_, { type, events }) => {
  it("is masked and put together again, wherever its text is cut", () => {
    for (let i = 0; i <= SENTENCE.length; i++) {
      const reads = [Buffer.from(events(cutSentence(i)))];
      const { text, failure } = pass(MASKS, findingsWithMail(), type, reads);
      expect(failure).toBeNull();
      const shown = words(text).replaceAll("\\\\u0061", "a");
      expect(shown).not.toMatch(/walrus|4111|EMAIL/);
      expect(shown).toContain("<W_1> has <CARD_1> and ada@example.org. Bye");
    }
  });

  it("is blocked before the first character of the match, wherever its bytes are cut", () => {
    const bytes = Buffer.from(events(Array.from(SENTENCE)));
    for (let i = 1; i <= bytes.length; i++) {
      const reads = [bytes.subarray(0, i), bytes.subarray(i)];
      const cut = pass(BLOCKS_WALRUS, new Findings(), type, reads);
      expect(cut.failure).toBeInstanceOf(BlockedResponse);
      expect(words(cut.text)).not.toMatch(/w/);
    }
  });
});
