/**
 * What the log, and what is exported of a call, may hold of its bodies under rules with `logs: masked`. A body in which such a rule cannot be applied is not
 * stored: what is not known to be clean may be what the rule forbids.
 */
import { Findings } from "./findings.ts";
import { searchRequestBytes } from "./request-body.ts";
import { searchResponseBytes } from "./response-guard.ts";
import type { GuardrailPlace, LogRules } from "./rule-set.ts";
import { inOnePiece } from "./slices.ts";

/** A row is written in one piece; a longer body would take the event loop for more than some 20 ms. */
const MAX_BYTES = 1024 * 1024;

export interface WholeBody {
  readonly bytes: Buffer;
  readonly contentType: string;
}

/** The masks of both bodies have the same numbers for the same texts. */
export class MaskedBodies {
  readonly #rules: LogRules;
  readonly #found: Findings;
  readonly #masks = new Findings();

  /** `found`: what the rules found while the call ran. */
  constructor(rules: LogRules, found: Findings) {
    this.#rules = rules;
    this.#found = found;
  }

  /** Null if the body must not be stored. `body` is null if it is not known as a whole. */
  request(body: WholeBody | null): Buffer | null {
    return this.#mask("prompt", body, (texts, { bytes, contentType }) => {
      this.#masks.reserve(bytes.toString("utf8"));
      return inOnePiece(searchRequestBytes(texts, this.#masks, bytes, contentType)) ?? bytes;
    });
  }

  response(body: WholeBody | null): Buffer | null {
    return this.#mask("response", body, (texts, { bytes, contentType }) =>
      searchResponseBytes(texts, this.#masks, bytes, contentType),
    );
  }

  /** Messages of a session, one in each line: a text may go on in the next one. */
  lines(place: GuardrailPlace, body: WholeBody | null): Buffer | null {
    return this.#mask(place, body, (texts, { bytes, contentType }) => {
      this.#masks.reserve(bytes.toString("utf8"));
      return searchResponseBytes(texts, this.#masks, bytes, contentType);
    });
  }

  #mask(
    place: GuardrailPlace,
    body: WholeBody | null,
    search: (texts: NonNullable<LogRules["texts"]>, body: WholeBody) => Buffer,
  ): Buffer | null {
    const { texts } = this.#rules;
    if (body === null || this.#rules.hasJudged(place, this.#found.all)) return null;
    if (texts === null) return body.bytes;
    if (body.bytes.length > MAX_BYTES) return null;
    try {
      return search(texts, body);
    } catch {
      // It cannot be searched, or is not what its type says.
      return null;
    }
  }
}
