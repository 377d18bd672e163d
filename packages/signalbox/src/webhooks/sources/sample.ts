import type { Sample } from "./source-kind.ts";

export function jsonSample(payload: object, headers: Readonly<Record<string, string>> = {}): Sample {
  return { headers, contentType: "application/json", body: JSON.stringify(payload) };
}
