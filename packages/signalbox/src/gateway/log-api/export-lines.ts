/** A stored call as a line of NDJSON or CSV. */
import { csvLine, type CsvValue } from "../../core/csv.ts";
import type { ScannedCall, StoredBody } from "../../engines/call-log/index.ts";
import { callResult, showCall } from "./call-fields.ts";

const COLUMNS = ["gateway_id", ...Object.keys(callResult.shape), "prompt", "answer"];

/** Bodies that are not UTF-8 are base64, which `request_encoding` and `response_encoding` say. */
export function callNdjson({ row, request, response }: ScannedCall, withBodies: boolean): string {
  const line = {
    account_id: row.accountId,
    gateway_id: row.gatewayId,
    ...showCall(row),
    token_id: row.tokenId,
    ...(withBodies ? { ...bodyMembers("request", request), ...bodyMembers("response", response) } : {}),
  };
  return `${JSON.stringify(line)}\n`;
}

export function callCsvHead(): string {
  return csvLine(COLUMNS);
}

export function callCsvLine({ row, prompt, answer }: ScannedCall): string {
  const shown: Record<string, unknown> = { gateway_id: row.gatewayId, ...showCall(row), prompt, answer };
  return csvLine(COLUMNS.map((name) => shown[name] as CsvValue));
}

function bodyMembers(side: "request" | "response", body: StoredBody | null): Record<string, unknown> {
  if (body === null) return { [side]: null };
  const bytes = Buffer.from(body.bytes);
  const text = bytes.toString("utf8");
  const isText = Buffer.from(text).equals(bytes);
  return {
    [side]: isText ? text : bytes.toString("base64"),
    ...(isText ? {} : { [`${side}_encoding`]: "base64" }),
    [`${side}_complete`]: body.isComplete,
  };
}
