/**
 * What rules would have done with stored calls: each is searched as it would be searched today. Bodies are those that the log has: of the client,
 * in the client's dialect, with masks put back.
 */
import type { GuardrailRule } from "../../accounts/index.ts";
import type { ScannedCall, StoredBody } from "../../engines/call-log/index.ts";
import { FindingCounts } from "./finding-counts.ts";
import { Findings, GuardrailBlock } from "./findings.ts";
import { searchRequestBytes } from "./request-body.ts";
import { searchResponseBytes } from "./response-guard.ts";
import type { RuleSet } from "./rule-set.ts";
import { inOnePiece } from "./slices.ts";
import { triedSet } from "./try-rules.ts";

export class CallTrial {
  calls = 0;
  /** Calls with a body that is not stored, not as a whole, or not what its type says: what there is was searched. */
  incomplete = 0;
  readonly counts: FindingCounts;
  readonly #rules: RuleSet;

  private constructor(rules: RuleSet, maxSamples: number) {
    this.#rules = rules;
    this.counts = new FindingCounts(maxSamples);
  }

  /** Throws if a rule asks somebody else. */
  static async begin(rules: readonly GuardrailRule[], maxSamples: number): Promise<CallTrial> {
    const set = triedSet(rules);
    await set.prepare();
    return new CallTrial(set, maxSamples);
  }

  /** Takes as long as the call has text. */
  add({ row, request, response }: ScannedCall): void {
    this.calls += 1;
    const findings = new Findings();
    const isSearched = this.#search(
      findings,
      wholeOf(request, row.requestBytes),
      wholeOf(response, row.responseBytes),
    );
    if (!isSearched) this.incomplete += 1;
    const { action, all } = findings;
    if (action === null) return;
    const { id, gatewayId, createdAt, cost } = row;
    this.counts.add(action, { id, gatewayId, createdAt, cost, findings: all });
  }

  /** False if there is something that could not be searched. */
  #search(findings: Findings, request: StoredBody | null, response: StoredBody | null): boolean {
    const prompt = this.#rules.at("prompt");
    const answer = this.#rules.at("response");
    try {
      if (prompt !== null && request !== null)
        inOnePiece(searchRequestBytes(prompt, findings, toBuffer(request), request.contentType));
      if (answer !== null && response !== null)
        searchResponseBytes(answer, findings, toBuffer(response), response.contentType);
    } catch (error) {
      // Anything else is a stored body that is damaged, such as a binary stream that ends inside a message.
      return error instanceof GuardrailBlock;
    }
    return request !== null && response !== null;
  }
}

const NOTHING: StoredBody = { contentType: "", bytes: new Uint8Array(), isComplete: true };

/** Null if the body, which had `length` bytes, is not stored as a whole. */
function wholeOf(body: StoredBody | null, length: number): StoredBody | null {
  if (length === 0) return NOTHING;
  return body?.isComplete === true ? body : null;
}

function toBuffer({ bytes }: StoredBody): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
